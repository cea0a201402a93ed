"""Runs the pipeline of a peer from files of documents to the documents kept.

python pipelines.py PEER DOCUMENTS INTO PROCESSES: DOCUMENTS is a directory of JSON lines with `id` and `text`, INTO
one that is emptied. The clusters go to INTO/clusters.csv as `id,cluster`, without documents that are alone; a JSON
object on standard output has the seconds, the MB of the largest process's memory and on disk, and the lines that a
user writes.
"""

import csv
import functools
import glob
import json
import os
import pickle
import resource
import shutil
import subprocess
import sys
import time

TEXT_DEDUP = """\
--path json --data_files {documents}/*.jsonl --split train --column text --idx_column id
--ngram 3 --threshold 0.8 --num_perm 128 --hash_func xxh3 --num_proc {processes}
--cache_dir {into}/cache --output {into}/kept --debug
"""


def script_command(name, documents, into, processes):
    script = os.path.join(os.path.dirname(__file__), f"{name}_pipeline.py")
    with open(script) as lines:
        written = sum(bool(line.strip()) for line in lines)
    return [sys.executable, script, documents, into, processes], written


def text_dedup_command(documents, into, processes):
    options = TEXT_DEDUP.format(documents=documents, into=into, processes=processes).split()
    return [sys.executable, "-m", "text_dedup.minhash", *options], 1 + TEXT_DEDUP.count("\n")


def datatrove_clusters(into):
    for file in glob.glob(f"{into}/kept/*") + glob.glob(f"{into}/removed/*"):
        with open(file, encoding="utf-8") as lines:
            for line in lines:
                document = json.loads(line)
                cluster = document["metadata"].get("minhash_cluster_id", -1)
                if cluster >= 0:
                    yield document["id"], cluster


def rensa_clusters(into):
    with open(f"{into}/clusters.json") as file:
        return json.load(file)


def text_dedup_clusters(into):
    with open(f"{into}/kept/uf.pkl", "rb") as file:
        union = pickle.load(file)
    for document in list(union.parent):
        yield document, union.find(document)


PEERS = {
    "datatrove": (functools.partial(script_command, "datatrove"), datatrove_clusters),
    "rensa": (functools.partial(script_command, "rensa"), rensa_clusters),
    "text-dedup": (text_dedup_command, text_dedup_clusters),
}


def main():
    peer, documents, into, processes = sys.argv[1:]
    command, clusters = PEERS[peer]
    shutil.rmtree(into, ignore_errors=True)
    os.makedirs(into)
    arguments, lines = command(documents, into, processes)
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    start = time.perf_counter()
    ended = subprocess.run(arguments, env=environment, capture_output=True, text=True)
    seconds = time.perf_counter() - start
    if ended.returncode != 0:
        sys.exit(ended.stderr[-2000:])
    files = glob.glob(f"{into}/**", recursive=True)
    disk = sum(os.path.getsize(file) for file in files if os.path.isfile(file)) / 1e6
    with open(f"{into}/clusters.csv", "w", newline="") as file:
        csv.writer(file).writerows(clusters(into))
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "memory": memory, "disk": disk, "lines": lines}))


main()
