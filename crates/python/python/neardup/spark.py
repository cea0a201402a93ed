"""Near-duplicates in DataFrames of Spark: the pairs and connected clusters that the server's functions find.

The steps are DataFrame operations and Arrow functions, so they run wherever PySpark runs and this package is installed
on the workers. Documents become sets of shingles; identical ones count once. Each set comes under the rarest of its
shingles, as many as a set at the threshold must share one of, so no pair is missed. Pairs that meet are compared exactly.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, groupby
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType

from . import _native, near_dup, signature

__all__ = ["clusters", "pairs"]

MOST_COUNTERS = 1 << 22
"""Maximum number of counters: 16 MB of them are sent to every worker."""

COUNTERS_IN_A_ROW = 1 << 14

MEMBERS_IN_A_PART = 1 << 20
"""Number of members that a worker sorts at a time: 33 MB."""

SLICE_BYTES = 16 << 20
"""Number of bytes of texts or sets that become one batch of sets or members, which take up to five times as many."""

HOT = 1000
"""In groups of more than this many sets, `clusters` first compares one of them with the others."""

FEW_EDGES = 1 << 20
"""Up to this many edges are connected by one worker; more take a dozen shuffles."""


def pairs(
    docs: DataFrame,
    base: DataFrame | None = None,
    *,
    key: str,
    text: str,
    threshold: float = 0.8,
    k: int = 3,
    unit: str = "word",
    fold: str = "case",
    exceptions: DataFrame | None = None,
    most: int | None = None,
) -> DataFrame:
    """Return all pairs of similar documents as ``DataFrame(a, b, similarity)``, as ``near_dup_pairs`` does in SQL.

    ``key`` and ``text`` name columns; keys are unique and not NULL. ``a`` is the smaller key. NULL and empty texts are
    similar to nothing. With ``base``, return the pairs of a document of ``docs`` and one of ``base`` instead, as
    ``near_dup_join``. ``exceptions`` is a DataFrame of two columns: pairs of keys that count as not similar. With
    ``most``, each document has up to this many partners, identical ones first, besides the documents that list it.

    The search runs during the call, except for its last step.
    """
    if most is not None and (base is not None or not 1 <= most <= 1000):
        raise ValueError("most must be 1 to 1000, and is not for two DataFrames")
    search = _Search(docs, base, key, text, threshold, (k, unit, fold), exceptions)
    near = search.compared(search.meeting(search.sets))
    rows = search.items.where("id IS NOT NULL").select("id", "key", "side")
    if most is not None:
        return _few(rows, near, most)
    a = rows.select(F.col("id").alias("a"), F.col("key").alias("key_a"), F.col("side").alias("side_a"))
    b = rows.select(F.col("id").alias("b"), F.col("key").alias("key_b"), F.col("side").alias("side_b"))
    same = a.join(b, F.col("a") == F.col("b")).withColumn("similarity", F.lit(1.0))
    different = near.join(a, "a").join(b, "b")
    if base is None:
        found = same.where("key_a < key_b").unionByName(different)
        first, second = F.least("key_a", "key_b"), F.greatest("key_a", "key_b")
    else:
        found = same.where("side_a = 1 AND side_b = 2").unionByName(different.where("side_a != side_b"))
        first, second = (F.when(F.col("side_a") == side, F.col("key_a")).otherwise(F.col("key_b")) for side in (1, 2))
    return found.select(first.alias("a"), second.alias("b"), "similarity")


def clusters(
    docs: DataFrame,
    *,
    key: str,
    text: str,
    threshold: float = 0.8,
    k: int = 3,
    unit: str = "word",
    fold: str = "case",
    exceptions: DataFrame | None = None,
) -> DataFrame:
    """Return the connected cluster of every document as ``DataFrame(key, cluster)``, named by its smallest key.

    As ``near_dup_clusters(method => 'connected')`` in SQL; the arguments are the same as for `pairs`. The search runs during
    the call, except for its last step.
    """
    search = _Search(docs, None, key, text, threshold, (k, unit, fold), exceptions)
    near = search.compared(search.meeting(search.sets, HOT))
    labels = _components(near)
    if near.where("a = b").head(1):
        # Sets that are already connected need not be compared.
        labeled = search.sets.drop("label").join(labels, "id", "left").withColumn("label", F.coalesce("label", "id"))
        more = search.compared(search.meeting(labeled, HOT, by_label=True))
        tree = labels.where("id != label").select(F.col("label").alias("a"), F.col("id").alias("b"))
        labels = _components(more.select("a", "b").unionByName(tree))
    rows = search.items.select("key", "id").join(labels, "id", "left")
    of_cluster = Window.partitionBy(F.coalesce("label", "id"))
    named = rows.where("id IS NOT NULL").select("key", F.min("key").over(of_cluster).alias("cluster"))
    alone = search.items.where("id IS NULL").select("key", F.col("key").alias("cluster"))
    return named.unionByName(alone)


class _Search:
    """The sets of one or two DataFrames, and the steps from them to pairs of similar ones."""

    def __init__(
        self,
        docs: DataFrame,
        base: DataFrame | None,
        key: str,
        text: str,
        threshold: float,
        shingling: tuple[int, str, str],
        exceptions: DataFrame | None,
    ) -> None:
        empty = signature("", *shingling)
        near_dup(empty, empty, threshold)
        self.threshold = threshold
        rows = _rows(docs, "docs", key, text).withColumn("side", F.lit(3 if base is None else 1))
        if base is not None:
            rows = rows.unionByName(_rows(base, "base", key, text).withColumn("side", F.lit(2)))
        rows = rows.withColumn("own", F.lit(False))
        if exceptions is not None:
            exceptions = _excepted(exceptions)
            # A document with an exception counts separately, so that the exception belongs to its own set.
            keys = exceptions.select(F.col("x").alias("key")).union(exceptions.select("y")).distinct()
            marked = keys.withColumn("marked", F.lit(True))
            rows = rows.join(marked, "key", "left").withColumn("own", F.col("marked").isNotNull())
        schema = rows.select("key", "side").schema.add("id", "long").add("set", "binary")
        items = rows.select("key", "side", "own", "text").mapInArrow(partial(_cut, shingling), schema)
        self.items = _kept(items)
        found = self.items.where("id IS NOT NULL").groupBy("id")
        sets = found.agg(F.first("set").alias("set"), F.bit_or("side").alias("sides"), F.lit(0).cast("long").alias("label"))
        self.sets = _kept(sets)
        self.frequencies = self._frequencies()
        self.exceptions = None
        if exceptions is not None:
            ids = self.items.select("key", "id")
            x, y = (ids.toDF(name, f"id_{name}") for name in "xy")
            found = exceptions.join(x, "x").join(y, "y").where("id_x != id_y")
            self.exceptions = found.select(F.least("id_x", "id_y").alias("a"), F.greatest("id_x", "id_y").alias("b"))

    def _frequencies(self) -> bytes:
        """Return, for each counter, how many sets have its shingles."""
        wanted = 8 * max(self.sets.count(), 512) - 1
        counters = min(1 << wanted.bit_length(), MOST_COUNTERS)
        parts = self.sets.select("set").mapInArrow(partial(_count, counters), "part int, counts binary")
        summed = parts.repartition("part").mapInArrow(_sum, "part int, counts binary").collect()
        return b"".join(row.counts for row in sorted(summed))

    def meeting(self, sets: DataFrame, hot: int = 1 << 62, by_label: bool = False) -> DataFrame:
        """Return the pairs of sets that can be similar, each once.

        In groups of more than `hot` sets only one set meets the others, and itself; with `by_label`, sets meet in these
        groups only, and only sets of different labels.
        """
        elements = int(np.frombuffer(self.frequencies, np.uint32).sum(dtype=np.int64))
        parts = max(elements // MEMBERS_IN_A_PART, 4 * sets.sparkSession.sparkContext.defaultParallelism)
        cut = partial(_members, (self.threshold, self.frequencies, hot if by_label else 0, parts))
        members = sets.select("id", "set", "sides", "label").mapInArrow(cut, "part int, members binary")
        meet = partial(_meet, (self.threshold, hot, by_label))
        grouped = members.repartition("part").sortWithinPartitions("part")
        return grouped.mapInArrow(meet, "a long, b long").distinct()

    def compared(self, met: DataFrame) -> DataFrame:
        """Return the pairs that are similar, with their similarity."""
        if self.exceptions is not None:
            met = met.join(self.exceptions, ["a", "b"], "left_anti")
        a, b = (self.sets.select(F.col("id").alias(name), F.col("set").alias(f"set_{name}")) for name in "ab")
        both = met.join(a, "a").join(b, "b").select("a", "b", "set_a", "set_b")
        return _kept(both.mapInArrow(partial(_compare, self.threshold), "a long, b long, similarity double"))


def _column(name: str) -> Column:
    return F.col("`" + name.replace("`", "``") + "`")


def _kept(frame: DataFrame) -> DataFrame:
    """Compute and return the frame: in the checkpoint directory if there is one, otherwise on the workers."""
    directory = frame.sparkSession.sparkContext.getCheckpointDir()
    return frame.localCheckpoint() if directory is None else frame.checkpoint()


def _rows(docs: DataFrame, name: str, key: str, text: str) -> DataFrame:
    """Return keys and texts."""
    types: dict[str, DataType] = {field.name: field.dataType for field in docs.schema}
    for column in (key, text):
        if column not in types:
            raise ValueError(f"{name} has no column {column!r}\nHINT:  Its columns are {', '.join(types)}.")
    if not isinstance(types[text], StringType):
        raise ValueError(f"column {text!r} of {name} is of type {types[text].simpleString()}, not string")
    if isinstance(types[key], (ArrayType, MapType, StructType)):
        raise ValueError(f"a key cannot be of type {types[key].simpleString()}\nHINT:  Valid types are numbers, texts and times.")
    rows = docs.select(_column(key).alias("key"), _column(text).alias("text"))
    odd = rows.groupBy("key").count().where("key IS NULL OR count > 1").head(1)
    if odd and odd[0].key is None:
        raise ValueError(f"column {key!r} of {name} has NULL\nHINT:  Every document needs a key.")
    if odd:
        raise ValueError(f"key {odd[0].key!r} of {name} is there {odd[0]['count']} times\nHINT:  Keys are unique.")
    return rows


def _excepted(exceptions: DataFrame) -> DataFrame:
    if len(exceptions.columns) != 2:
        raise ValueError(f"exceptions has {len(exceptions.columns)} columns\nHINT:  It must have two: pairs of keys.")
    return exceptions.toDF("x", "y")


def _cut(
    shingling: tuple[int, str, str], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Return the set of each document and its number, a hash of the set; NULL for an empty one."""
    for batch in _sliced(batches):
        key, side, own, text = batch.columns
        sets = [of_row or None for of_row in _native.sets(text, *shingling)]
        ids = [
            _id(of_row, (side[row].as_py(), key[row].as_py()) if own[row].as_py() else None)
            for row, of_row in enumerate(sets)
        ]
        columns = [key, side, pa.array(ids, pa.int64()), pa.array(sets, pa.binary())]
        yield pa.RecordBatch.from_arrays(columns, ["key", "side", "id", "set"])


def _id(found: bytes | None, owner: object) -> int | None:
    if found is None:
        return None
    digest = hashlib.blake2b(found, digest_size=8)
    if owner is not None:
        digest.update(repr(owner).encode())
    return int.from_bytes(digest.digest(), "little", signed=True)


def _sliced(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the batches in slices of which an array can hold the sets and members: it has at most 2 GiB."""
    for batch in batches:
        rows = max(SLICE_BYTES * batch.num_rows // max(batch.nbytes, 1), 1)
        yield from (batch.slice(start, rows) for start in range(0, batch.num_rows, rows))


def _count(counters: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return, for each counter, how many sets have its shingles, with several counters in a row."""
    total = np.zeros(counters, np.uint32)
    for batch in batches:
        total += np.frombuffer(_native.frequencies(batch.column("set"), counters), np.uint32)
    parts = np.split(total, max(counters // COUNTERS_IN_A_ROW, 1))
    yield _parts({number: part for number, part in enumerate(parts)})


def _sum(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    sums: dict[int, Any] = {}
    for batch in batches:
        for part, counts in zip(batch.column("part").to_pylist(), batch.column("counts").to_pylist()):
            sums[part] = sums.get(part, 0) + np.frombuffer(counts, np.uint32)
    yield _parts(sums)


def _parts(parts: dict[int, Any]) -> pa.RecordBatch:
    counts = pa.array([part.tobytes() for part in parts.values()], pa.binary())
    return pa.RecordBatch.from_arrays([pa.array(list(parts), pa.int32()), counts], ["part", "counts"])


def _members(
    prefixes: tuple[float, bytes, int, int], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Return every set under the shingles of its prefix, packed by parts of all shingles."""
    for batch in _sliced(batches):
        ids, sets, *others = batch.columns
        columns = [column.to_numpy().tobytes() for column in (ids, *others)]
        packed = _native.members(sets, columns, *prefixes)
        parts = [part for part, members in enumerate(packed) if members]
        members = pa.array([packed[part] for part in parts], pa.binary())
        yield pa.RecordBatch.from_arrays([pa.array(parts, pa.int32()), members], ["part", "members"])


def _meet(meeting: tuple[float, int, bool], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the pairs of each part, whose members are in several rows."""
    columns = (zip(batch.column("part").to_pylist(), batch.column("members")) for batch in batches)
    for _, rows in groupby(chain.from_iterable(columns), lambda row: row[0]):
        members = b"".join(of_row.as_py() for _, of_row in rows)
        for sides in _native.Meetings(members, *meeting):
            a, b = (pa.array(np.frombuffer(side, np.int64)) for side in sides)
            yield pa.RecordBatch.from_arrays([a, b], ["a", "b"])


def _compare(threshold: float, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        a, b, set_a, set_b = batch.columns
        found = pa.RecordBatch.from_arrays(
            [a, b, pa.array(_native.set_resemblances(set_a, set_b), pa.float64())], ["a", "b", "similarity"]
        )
        yield found.filter(pa.array(found.column(2).to_numpy(zero_copy_only=False) >= threshold))


def _few(rows: DataFrame, near: DataFrame, most: int) -> DataFrame:
    """Return pairs of rows such that each row has `most` partners, if there are that many."""
    of_set = Window.partitionBy("id")
    ranked = rows.select(
        "id",
        "key",
        (F.row_number().over(of_set.orderBy("key")) - 1).alias("rank"),
        F.count("key").over(of_set).alias("copies"),
    )
    # Copies form a circle, and each takes the ones that follow it, which are half of its partners.
    step = F.explode(F.sequence(F.lit(1), F.least(F.lit((most + 1) // 2), F.floor(F.col("copies") / 2).cast("int"))))
    taking = ranked.where("copies > 1").withColumn("step", step)
    taking = taking.select("id", F.col("key").alias("x"), ((F.col("rank") + F.col("step")) % F.col("copies")).alias("rank"))
    same = taking.join(ranked, ["id", "rank"]).select("x", F.col("key").alias("y"), F.lit(1.0).alias("similarity"))
    both = near.unionByName(near.select(F.col("b").alias("a"), F.col("a").alias("b"), "similarity"))
    best = Window.partitionBy("a").orderBy(F.desc("similarity"), "b")
    best_sets = both.withColumn("place", F.row_number().over(best)).where(F.col("place") <= most)
    x = ranked.where(F.col("copies") <= most).select(F.col("id").alias("a"), F.col("key").alias("x"), "copies")
    y = ranked.where(F.col("rank") < most).select(F.col("id").alias("b"), F.col("key").alias("y"))
    others = best_sets.join(x, "a").join(y, "b")
    of_row = Window.partitionBy("x").orderBy("place", "y")
    others = others.withColumn("place", F.row_number().over(of_row)).where(F.col("place") <= most + 1 - F.col("copies"))
    found = same.unionByName(others.select("x", "y", "similarity"))
    ordered = found.select(F.least("x", "y").alias("a"), F.greatest("x", "y").alias("b"), "similarity")
    return ordered.distinct()


def _components(edges: DataFrame) -> DataFrame:
    """Return the smallest number that is connected with each number, as ``DataFrame(id, label)``.

    Alternates large-star and small-star (Kiveris and others, "Connected components in MapReduce and beyond", SoCC
    2014), until nothing changes.
    """
    neighbors = Window.partitionBy("u")
    edges = _kept(edges.select(F.greatest("a", "b").alias("u"), F.least("a", "b").alias("v")).distinct())
    if edges.count() <= FEW_EDGES:
        return edges.coalesce(1).mapInArrow(_connect, "id long, label long")
    before: Row | None = None
    while True:
        state = edges.agg(F.count("*").alias("edges"), F.bit_xor(F.xxhash64("u", "v")).alias("hash")).head()
        if state == before:
            break
        before = state
        both = edges.unionByName(edges.select(F.col("v").alias("u"), F.col("u").alias("v")))
        least = F.least(F.min("v").over(neighbors), F.col("u"))
        large = both.withColumn("m", least).where("v > u").select(F.col("v").alias("u"), F.col("m").alias("v")).distinct()
        starred = large.withColumn("m", F.min("v").over(neighbors))
        to_least = starred.select("u", F.col("m").alias("v"))
        small = to_least.unionByName(starred.where("v != m").select(F.col("v").alias("u"), F.col("m").alias("v")))
        edges = _kept(small.distinct())
    roots = edges.select(F.col("v").alias("id"), F.col("v").alias("label"))
    return edges.select(F.col("u").alias("id"), F.col("v").alias("label")).unionByName(roots).distinct()


def _connect(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    labels: dict[int, int] = {}

    def label(of: int) -> int:
        while (parent := labels.setdefault(of, of)) != of:
            labels[of] = of = labels[parent]
        return of

    for batch in batches:
        for edge in zip(*(column.to_pylist() for column in batch.columns)):
            ends = [label(end) for end in edge]
            labels[max(ends)] = min(ends)
    found = [pa.array(list(labels), pa.int64()), pa.array([label(of) for of in list(labels)], pa.int64())]
    yield pa.RecordBatch.from_arrays(found, ["id", "label"])
