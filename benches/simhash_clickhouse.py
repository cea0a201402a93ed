#!/usr/bin/env python3
"""simhash() in PostgreSQL beside ClickHouse's wordShingleSimHash, in turns, one thread each.

    pip install chdb
    benches/simhash_clickhouse.py docs.tsv.gz psql -h SOCKET -d DATABASE

The database has the extension. Prints the median microseconds a document of each query, the time
to read the table taken off.
"""

import gzip
import statistics
import subprocess
import sys
import tempfile
import time

from chdb import session

ROUNDS = 15

CLICKHOUSE = {
    f"ClickHouse {name}, k = {k}": f"sum(cityHash64({name}(body, {k})))"
    for name in ("wordShingleSimHash", "wordShingleSimHashCaseInsensitiveUTF8")
    for k in (1, 3)
}
POSTGRESQL = {
    f"simhash, k = {k}, {weighting}": f"count(simhash(body, {k}, weighting => '{weighting}'))"
    for k in (1, 3)
    for weighting in ("tf", "log", "set")
}


def load_clickhouse(documents):
    clickhouse = session.Session()
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
        file.write(documents)
        file.flush()
        clickhouse.query("CREATE DATABASE bench")
        clickhouse.query("CREATE TABLE bench.docs (id Int64, body String) ENGINE = Memory")
        clickhouse.query(
            f"INSERT INTO bench.docs SELECT * FROM file('{file.name}', TSV, 'id Int64, body String')"
        )
    return clickhouse


class Psql:
    """A session that answers one query at a time with its time in milliseconds."""

    def __init__(self, command, documents):
        self.process = subprocess.Popen(
            [*command, "-XqAt"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.send("CREATE TEMP TABLE docs (id bigint, body text);\nCOPY docs FROM stdin;\n")
        self.send(documents.rstrip("\n") + "\n\\.\n")
        self.send("SET max_parallel_workers_per_gather = 0;\n\\timing on\n")

    def send(self, text):
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def milliseconds(self, query):
        self.send(query + ";\n")
        for line in self.process.stdout:
            if line.startswith("Time: "):
                return float(line.split()[1])
        sys.exit("psql ended")


def main():
    with gzip.open(sys.argv[1], "rt") as file:
        documents = file.read()
    count = documents.count("\n")
    clickhouse, postgresql = load_clickhouse(documents), Psql(sys.argv[2:], documents)

    def ask_clickhouse(expression):
        start = time.perf_counter()
        clickhouse.query(f"SELECT {expression} FROM bench.docs SETTINGS max_threads = 1")
        return (time.perf_counter() - start) * 1e3

    def ask_postgresql(expression):
        return postgresql.milliseconds(f"SELECT {expression} FROM docs")

    contenders = {name: (ask_clickhouse, expression) for name, expression in CLICKHOUSE.items()}
    contenders |= {name: (ask_postgresql, expression) for name, expression in POSTGRESQL.items()}
    contenders["ClickHouse reads"] = (ask_clickhouse, "sum(length(body))")
    contenders["PostgreSQL reads"] = (ask_postgresql, "sum(ascii(body))")
    times = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        for name, (ask, expression) in contenders.items():
            times[name].append(ask(expression))
    medians = {name: statistics.median(rounds) for name, rounds in times.items()}
    for name in CLICKHOUSE | POSTGRESQL:
        reads = medians["ClickHouse reads" if name in CLICKHOUSE else "PostgreSQL reads"]
        print(f"{name:56} {(medians[name] - reads) * 1e3 / count:7.2f} us")


main()
