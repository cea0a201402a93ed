"""Clusters documents on Spark, with neardup.spark or with the steps of a peer.

python spark.py WHO DOCUMENTS INTO: DOCUMENTS is a directory of JSON lines with `id` and `text`, INTO one that is
emptied. The clusters go to INTO/clusters.csv as `id,cluster`, or the pairs as `a,b`; a JSON object on standard output has
the seconds and the processor's, without the start of Spark, and the bytes shuffled.
"""

import csv
import glob
import json
import os
import shutil
import sys
import time

import numpy as np
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

THRESHOLD, WORDS, SLOTS = 0.8, 3, 128
PARTITIONS = 8
SETTINGS = {
    "spark.driver.memory": "2g",
    "spark.default.parallelism": PARTITIONS,
    "spark.sql.shuffle.partitions": PARTITIONS,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def ours(docs, into):
    from neardup.spark import clusters

    clusters(docs, key="id", text="text", threshold=THRESHOLD, k=WORDS).write.parquet(f"{into}/found")


def our_pairs(docs, into):
    from neardup.spark import pairs

    pairs(docs, key="id", text="text", threshold=THRESHOLD, k=WORDS).write.parquet(f"{into}/found")


def text_dedup(docs, into):
    """Makes signatures, groups by band, and edges, with the functions of its program for Spark, in its order.

    Its program has GraphFrames connect the edges, which needs a jar. Here they are connected without Spark, in a moment.
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components
    from text_dedup import minhash_spark as peer

    bands, rows = peer.optimal_param(THRESHOLD, SLOTS)
    ranges = [(band * rows, (band + 1) * rows) for band in range(bands)]
    factors = peer.RNG.randint(1, peer.MOD_PRIME, size=(SLOTS,), dtype=peer.DTYPE)
    terms = peer.RNG.randint(0, peer.MOD_PRIME, size=(SLOTS,), dtype=peer.DTYPE)

    def keys(row):
        return peer.generate_hash_values(row[1], row[0], SLOTS, WORDS, 1, ranges, (factors, terms))

    groups = docs.select("id", "text").rdd.flatMap(keys).groupBy(lambda key: (key[0], key[1]))
    edges = groups.flatMap(lambda group: peer.generate_edges([key[2] for key in group[1]])).distinct().collect()
    if edges:
        ids, ends = np.unique(np.array(edges), return_inverse=True)
        ends = ends.reshape(-1, 2)
        graph = coo_matrix((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(len(ids), len(ids)))
        _, components = connected_components(graph)
        with open(f"{into}/clusters.csv", "w", newline="") as file:
            csv.writer(file).writerows(zip(ids.tolist(), components.tolist()))


WHO = {"neardup.spark, clusters": ours, "neardup.spark, pairs": our_pairs, "text-dedup": text_dedup}


def main():
    who, documents, into = sys.argv[1:]
    shutil.rmtree(into, ignore_errors=True)
    os.makedirs(into)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master("local[2]").config("spark.local.dir", f"{into}/local")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    docs = spark.read.schema("id string, text string").json(documents)
    docs.selectExpr("cast(id AS long) AS id", "text").write.parquet(f"{into}/docs")
    docs = spark.read.parquet(f"{into}/docs")
    before, used, start = shuffled(spark), processor(), time.perf_counter()
    WHO[who](docs, into)
    seconds, used, bytes_after = time.perf_counter() - start, processor() - used, shuffled(spark)
    print(json.dumps({"seconds": seconds, "processor": used, "shuffled": bytes_after - before}))
    spark.stop()
    if os.path.exists(f"{into}/found"):
        columns = pq.read_table(f"{into}/found").columns[:2]
        with open(f"{into}/clusters.csv", "w", newline="") as file:
            csv.writer(file).writerows(zip(*(column.to_pylist() for column in columns)))


def shuffled(spark):
    executors = spark.sparkContext._jsc.sc().statusStore().executorList(False)
    return sum(executors.apply(at).totalShuffleWrite() for at in range(executors.size()))


def processor():
    """Return the seconds of processor time of this process and of all processes that it started."""
    children, times = {}, {}
    for status in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(status) as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        process = int(status.split("/")[2])
        children.setdefault(int(fields[1]), []).append(process)
        times[process] = sum(map(int, fields[11:15]))
    found = [os.getpid()]
    for process in found:
        found += children.get(process, [])
    return sum(times.get(process, 0) for process in found) / os.sysconf("SC_CLK_TCK")


main()
