"""Deduplicates a directory of JSON lines with rensa, in one process: python rensa_pipeline.py DOCUMENTS INTO."""

import glob
import json
import re
import sys

from rensa import RMinHash, RMinHashLSH

DOCUMENTS, INTO = sys.argv[1:3]
THRESHOLD, SLOTS, BANDS = 0.8, 128, 16


def shingles(text):
    words = re.findall(r"\w+", text.lower())
    return {" ".join(words[i : i + 3]) for i in range(max(len(words) - 2, 1))}


def root(parents, key):
    while parents[key] != key:
        parents[key] = parents[parents[key]]
        key = parents[key]
    return key


def main():
    index, sketches, parents = RMinHashLSH(threshold=THRESHOLD, num_perm=SLOTS, num_bands=BANDS), {}, {}
    with open(f"{INTO}/kept.jsonl", "w") as kept:
        for name in sorted(glob.glob(f"{DOCUMENTS}/*.jsonl")):
            for line in open(name, encoding="utf-8"):
                document = json.loads(line)
                key = int(document["id"])
                parents[key] = key
                sketch = sketches[key] = RMinHash(num_perm=SLOTS, seed=42)
                sketch.update(shingles(document["text"]))
                near = [other for other in index.query(sketch) if sketch.jaccard(sketches[other]) >= THRESHOLD]
                for other in near:
                    parents[root(parents, other)] = root(parents, key)
                if not near:
                    kept.write(line)
                index.insert(key, sketch)
    with open(f"{INTO}/clusters.json", "w") as file:
        json.dump([(key, root(parents, key)) for key in parents], file)


main()
