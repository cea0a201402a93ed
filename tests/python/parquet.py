"""Runs the commands of docs/adopting.md that import and export Parquet files.

Arguments: connection string, the page, the directory of psql.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

import psycopg
import pyarrow
import pyarrow.parquet

dsn, page, programs = sys.argv[1:]
ARTICLES = [
    ("agency", "2026-01-02", 'Quotes "as these",\nlines, commas, \\ and é'),
    ("site", None, ""),
    (None, None, None),
]

text = pathlib.Path(page).read_text(encoding="utf-8")
recipe = re.search(r"^```sh\n(.*?duckdb.*?)^```$", text, re.DOTALL | re.MULTILINE).group(1)
settings = psycopg.conninfo.conninfo_to_dict(dsn)
path = [str(pathlib.Path(sys.executable).parent), programs, os.environ["PATH"]]
environment = os.environ | {
    "PGHOST": settings["host"],
    "PGUSER": settings["user"],
    "PATH": os.pathsep.join(path),
}
with psycopg.connect(dsn, autocommit=True) as server, tempfile.TemporaryDirectory() as directory:
    server.execute("CREATE TABLE articles (source text, published date, body text)")
    server.execute("CREATE TABLE removed (id bigint, stays bigint, similarity float8, at timestamptz, body text)")
    server.execute("INSERT INTO removed VALUES (2, 1, 0.9, '2026-01-01 10:00+00', %s)", [ARTICLES[0][2]])
    crawl = pathlib.Path(directory) / "crawl"
    crawl.mkdir()
    for number, row in enumerate(ARTICLES):
        columns = dict(zip(["source", "published", "body"], ([value] for value in row), strict=True))
        table = pyarrow.table(columns, pyarrow.schema([(name, pyarrow.string()) for name in columns]))
        pyarrow.parquet.write_table(table, crawl / f"{number}.parquet")
    command = "set -euo pipefail\n" + recipe.replace("psql news", f"psql {settings['dbname']}")
    subprocess.run(["bash", "-c", command], cwd=directory, env=environment, check=True, stdout=subprocess.DEVNULL)
    arrived = server.execute("SELECT source, published::text, body FROM articles").fetchall()
    assert sorted(arrived, key=str) == sorted(ARTICLES, key=str), arrived
    left = pyarrow.parquet.read_table(pathlib.Path(directory) / "removed.parquet").to_pylist()
    assert [(row["id"], row["similarity"], row["body"]) for row in left] == [(2, 0.9, ARTICLES[0][2])], left
print(f"{len(arrived)} documents in, {len(left)} out")
