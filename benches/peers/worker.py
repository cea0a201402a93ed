"""The peers that run in Python. `cargo xtask bench` sends them one request per line.

A request is a JSON object on standard input: {"task": "sign", "peer": ..., "documents": file} or
{"task": "pairs", ..., "threshold": ..., "into": file} or {"task": "containment", "documents": file,
"queries": file, "threshold": ..., "into": file} or {"task": "versions"}; the answer is one on
standard output. A file of documents holds one a line; the number of its line, from 0, is its key.
What a peer prepares is kept between requests, its time is not counted.
"""

import functools
import importlib.metadata
import json
import os
import re
import statistics
import sys
import time

SLOTS = 128
WORD = re.compile(r"[^\W_]+")


def shingles(text):
    """Return the distinct shingles of three words, as users write it in Python."""
    words = WORD.findall(text.lower())
    return list({" ".join(three) for three in zip(words, words[1:], words[2:])} or {" ".join(words)})


@functools.cache
def documents(file):
    with open(file, encoding="utf-8", newline="\n") as lines:
        return [line.rstrip("\n") for line in lines]


@functools.cache
def arrow(file):
    import pyarrow

    return pyarrow.array(documents(file))


@functools.cache
def shingled(file):
    return [shingles(text) for text in documents(file)]


@functools.cache
def encoded(file):
    return [[shingle.encode() for shingle in given] for given in shingled(file)]


@functools.cache
def clickhouse():
    from chdb import session

    server = session.Session()
    server.query("CREATE DATABASE bench")
    return server


@functools.cache
def clickhouse_table(file):
    """A table in memory; a process has only one server, so that every file has its own table there."""
    table = f"bench.documents_{clickhouse_table.cache_info().misses}"
    clickhouse().query(f"CREATE TABLE {table} (id UInt32, body String) ENGINE = Memory")
    clickhouse().query(
        f"INSERT INTO {table} SELECT rowNumberInAllBlocks(), line FROM "
        f"file('{file}', LineAsString) SETTINGS max_threads = 1, max_insert_threads = 1"
    )
    return table


@functools.cache
def duckdb(file):
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.execute("CREATE TABLE documents (body VARCHAR)")
    connection.executemany("INSERT INTO documents VALUES (?)", [[body] for body in documents(file)])
    return connection


def datasketch(given):
    from datasketch import MinHash

    sketch = MinHash(num_perm=SLOTS)
    sketch.update_batch(given)
    return sketch


def ask_clickhouse(expression, table):
    clickhouse().query(f"SELECT {expression} FROM {table} SETTINGS max_threads = 1")


def ask_duckdb(connection):
    """MinHash as users write it in an SQL dialect with lists."""
    connection.execute(
        "WITH words AS (SELECT regexp_extract_all(lower(body), '[\\p{L}\\p{N}]+') AS w FROM documents),"
        " sets AS (SELECT list_distinct(list_transform(range(1, greatest(len(w) - 1, 2)),"
        " lambda i: hash(array_to_string(w[i:i + 2], ' ')))) AS s FROM words)"
        f" SELECT count(list_transform(range({SLOTS}), lambda n: list_min("
        "list_transform(s, lambda h: hash(h, n))))) FROM sets"
    ).fetchall()


def rensa(sets, sparse=False):
    from rensa import RMinHash

    make = RMinHash.digest_matrix_from_token_sets_rho if sparse else RMinHash.digest_matrix_from_token_sets
    return make(sets, SLOTS, 42)


def neardup_on_one(texts):
    """Our signatures on one processor, like the others."""
    import neardup

    processors = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(processors)})
    try:
        return neardup.signatures(texts)
    finally:
        os.sched_setaffinity(0, processors)


def neardup_on_all(texts):
    import neardup

    return neardup.signatures(texts)


def prepared(prepare, sign):
    """A signing function whose preparation is not timed."""
    return lambda file: functools.partial(sign, prepare(file))


def clickhouse_word_functions():
    names = {"wordShingleMinHashCaseInsensitiveUTF8": "3, 6", "wordShingleMinHash": "3, 6"}
    for name, parameters in names.items():
        yield f"ClickHouse {name}", f"sum(cityHash64({name}(body, {parameters})))"
    for name in ("wordShingleSimHash", "wordShingleSimHashCaseInsensitiveUTF8"):
        for k in (1, 3):
            yield f"ClickHouse {name}, k = {k}", f"sum(cityHash64({name}(body, {k})))"
    yield "ClickHouse reads", "sum(length(body))"


# Functions that sign all documents of a file once, by name.
SIGN = {
    "neardup": prepared(documents, neardup_on_one),
    "neardup, all processors": prepared(documents, neardup_on_all),
    "neardup, Arrow": prepared(arrow, neardup_on_one),
    "neardup, Arrow, all processors": prepared(arrow, neardup_on_all),
    "datasketch": prepared(encoded, lambda sets: [datasketch(given) for given in sets]),
    "datasketch with shingling": prepared(
        documents, lambda texts: [datasketch([s.encode() for s in shingles(text)]) for text in texts]
    ),
    "rensa": prepared(shingled, rensa),
    "rensa with shingling": prepared(documents, lambda texts: rensa([shingles(text) for text in texts])),
    "rensa rho": prepared(shingled, functools.partial(rensa, sparse=True)),
    "DuckDB, plain SQL": prepared(duckdb, ask_duckdb),
    **{
        name: prepared(clickhouse_table, functools.partial(ask_clickhouse, expression))
        for name, expression in clickhouse_word_functions()
    },
}


def datasketch_pairs(file, threshold):
    """Return every pair that MinHashLSH proposes, with its estimate."""
    from datasketch import MinHashLSH

    index, sketches = MinHashLSH(threshold=threshold, num_perm=SLOTS), []
    for key, text in enumerate(documents(file)):
        sketch = datasketch([s.encode() for s in shingles(text)])
        for other in index.query(sketch):
            yield other, key, sketch.jaccard(sketches[other])
        index.insert(key, sketch)
        sketches.append(sketch)


def rensa_pairs(file, threshold):
    """Return every pair that RMinHashLSH proposes with 16 bands of 8 (32 of 4 below 0.7), with its estimate."""
    from rensa import RMinHash, RMinHashLSH

    index = RMinHashLSH(threshold=threshold, num_perm=SLOTS, num_bands=16 if threshold >= 0.7 else 32)
    sketches = []
    for key, text in enumerate(documents(file)):
        sketch = RMinHash(num_perm=SLOTS, seed=42)
        sketch.update(shingles(text))
        for other in index.query(sketch):
            yield other, key, sketch.jaccard(sketches[other])
        index.insert(key, sketch)
        sketches.append(sketch)


def clickhouse_pairs(file, _threshold):
    """Return pairs that agree in the smallest or in the greatest hashes of six shingles."""
    agreeing = "SELECT a.id, b.id FROM signed AS a JOIN signed AS b ON a.h.{0} = b.h.{0} WHERE a.id < b.id"
    answer = clickhouse().query(
        f"WITH signed AS (SELECT id, wordShingleMinHashCaseInsensitiveUTF8(body, 3, 6) AS h FROM {clickhouse_table(file)})"
        f" {agreeing.format(1)} UNION DISTINCT {agreeing.format(2)} SETTINGS max_threads = 1",
        "TSV",
    )
    for line in answer.bytes().decode().splitlines():
        a, b = line.split("\t")
        yield int(a), int(b), 1.0


PAIRS = {"datasketch": datasketch_pairs, "rensa": rensa_pairs, "ClickHouse": clickhouse_pairs}


def prepare_pairs(peer, file):
    documents(file)
    if peer == "ClickHouse":
        clickhouse_table(file)


def ensemble(file, queries, threshold):
    """Find the documents that contain each of the queries according to LSH Ensemble: seconds to sign and index them, median
    milliseconds to sign and look one up, and the pairs of lines."""
    from datasketch import MinHashLSHEnsemble

    sets, asked = encoded(file), encoded(queries)

    def build():
        index = MinHashLSHEnsemble(threshold=threshold, num_perm=SLOTS, num_part=32)
        index.index((key, datasketch(given), len(given)) for key, given in enumerate(sets))
        return index

    built, index = timed(build)
    answers = [timed(lambda: list(index.query(datasketch(given), len(given)))) for given in asked]
    pairs = [(query, key) for query, (_, keys) in enumerate(answers) for key in keys]
    return built, statistics.median(seconds for seconds, _ in answers) * 1000, pairs


def timed(work):
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def answer(request):
    file = request.get("documents")
    match request["task"]:
        case "versions":
            return {name: importlib.metadata.version(name) for name in ("chdb-core", "datasketch", "duckdb", "rensa")}
        case "sign":
            seconds, _ = timed(SIGN[request["peer"]](file))
            return {"seconds": seconds}
        case "pairs":
            prepare_pairs(request["peer"], file)
            find = PAIRS[request["peer"]]
            seconds, pairs = timed(lambda: list(find(file, request["threshold"])))
            with open(request["into"], "w") as into:
                into.writelines(f"{a}\t{b}\t{similarity}\n" for a, b, similarity in pairs)
            return {"seconds": seconds}
        case "containment":
            built, median, pairs = ensemble(file, request["queries"], request["threshold"])
            with open(request["into"], "w") as into:
                into.writelines(f"{query}\t{key}\n" for query, key in pairs)
            return {"built": built, "median": median}


def main():
    for line in sys.stdin:
        try:
            reply = answer(json.loads(line))
        except Exception as error:  # The bench shows it and goes on.
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), flush=True)


main()
