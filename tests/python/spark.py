"""Compares pairs and clusters on Spark with the server's.

Arguments: connection string, directory for files, tables of (id bigint, body text).
"""

import os
import pathlib
import re
import sys

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
from pyspark.sql import SparkSession

import neardup.spark
from neardup.spark import clusters, pairs

dsn, directory, *tables = sys.argv[1:]
os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
connection = psycopg.connect(dsn, autocommit=True)
connection.execute("SET client_min_messages = warning")


def session(master):
    builder = SparkSession.builder.master(master).appName("neardup")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.driver.memory": "2g",
        "spark.executor.memory": "512m",
        "spark.sql.warehouse.dir": f"{directory}/warehouse",
        "spark.local.dir": f"{directory}/local",
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def frame(table):
    """Write a table as a file, and return it as a DataFrame."""
    rows = connection.execute(f"SELECT id, body FROM {table}").fetchall()
    columns = {"id": pa.array([id for id, _ in rows], pa.int64()), "body": pa.array([body for _, body in rows])}
    file = pathlib.Path(directory) / f"{table}.parquet"
    pq.write_table(pa.table(columns), file, row_group_size=5000)
    return spark.read.parquet(str(file))


def ordered(rows):
    return sorted((min(a, b), max(a, b), similarity) for a, b, similarity in rows)


def found_pairs(docs, **arguments):
    return ordered(pairs(docs, key="id", text="body", **arguments).collect())


def grouped(rows):
    """Return the clusters' keys, after checking that each cluster is named by its smallest key."""
    groups = {}
    for key, cluster in rows:
        groups.setdefault(cluster, []).append(key)
    assert all(name == min(keys) for name, keys in groups.items())
    return sorted(sorted(keys) for keys in groups.values())


def found_clusters(docs, **arguments):
    return grouped(clusters(docs, key="id", text="body", **arguments).collect())


def pairs_of(table, threshold, more=""):
    query = f"SELECT * FROM near_dup_pairs(NULL::bigint, 'SELECT id, body FROM {table} ORDER BY id', {threshold}{more})"
    return ordered(connection.execute(query).fetchall())


def clusters_of(table, threshold, more=""):
    query = (
        f"SELECT key, cluster FROM near_dup_clusters(NULL::bigint, 'SELECT id, body FROM {table} ORDER BY id',"
        f" {threshold}, 'connected'{more})"
    )
    return grouped(connection.execute(query).fetchall())


def compare(table, threshold):
    docs = frame(table)
    expected = pairs_of(table, threshold)
    assert found_pairs(docs, threshold=threshold) == expected, f"pairs of {table} at {threshold}"
    assert found_clusters(docs, threshold=threshold) == clusters_of(table, threshold), f"clusters of {table}"
    return len(expected)


def raises(words, call):
    try:
        call()
    except ValueError as error:
        assert words in str(error), str(error)
    else:
        raise AssertionError(f"no error: {words}")


def check_excepted_selves():
    """Test that an exception of a key with itself counts for two documents only, in a group that is not compared whole."""
    connection.execute("CREATE TABLE selves AS SELECT i::bigint AS id, 'one text that all of them have' AS body FROM generate_series(1, 1100) i")
    docs = frame("selves")
    same = docs.selectExpr("id AS x").crossJoin(docs.selectExpr("id AS y")).where("x % 3 = y % 3")
    more = ", exceptions => 'SELECT x.id, y.id FROM selves x JOIN selves y ON x.id % 3 = y.id % 3'"
    assert found_clusters(docs, threshold=0.8, exceptions=same) == clusters_of("selves", 0.8, more)
    one = docs.where("id = 5")
    assert pairs(one, one, key="id", text="body").count() == 1
    assert pairs(one, one, key="id", text="body", exceptions=same).count() == 0


def check_arguments():
    """Test NULL and empty texts, exceptions, text keys, an increment, a limited number of partners, and errors."""
    connection.execute(
        """CREATE TABLE small (id bigint, body text);
        INSERT INTO small VALUES (1, 'one two three four five six'), (2, 'one two three four five six!'), (3, NULL),
            (4, ''), (5, '...'), (6, 'one two three four five six seven'), (7, 'One two three four five six.'),
            (8, 'nothing of the kind'), (9, '')"""
    )
    docs = frame("small")
    for threshold in (0.5, 1.0):
        compare("small", threshold)
    for k, unit, fold in [(1, "word", "none"), (5, "char", "case"), (2, "stop", "marks")]:
        more = f", k => {k}, unit => '{unit}', fold => '{fold}'"
        assert found_pairs(docs, threshold=0.3, k=k, unit=unit, fold=fold) == pairs_of("small", 0.3, more), more
    excepted = [(2, 1), (6, 7), (1, 99)]
    exceptions = spark.createDataFrame(excepted, "x bigint, y bigint")
    more = f", exceptions => 'VALUES {', '.join(f'({x}::bigint, {y}::bigint)' for x, y in excepted)}'"
    assert found_pairs(docs, threshold=0.5, exceptions=exceptions) == pairs_of("small", 0.5, more)
    assert found_clusters(docs, threshold=0.5, exceptions=exceptions) == clusters_of("small", 0.5, more)
    new, base = (docs.where(f"id % 2 = {rest}") for rest in (0, 1))
    join = "SELECT * FROM near_dup_join(NULL::bigint, 'SELECT id, body FROM small WHERE id % 2 = 0', 'SELECT id, body FROM small WHERE id % 2 = 1', 0.5)"
    joined = [tuple(row) for row in pairs(new, base, key="id", text="body", threshold=0.5).collect()]
    assert sorted(joined) == sorted(connection.execute(join).fetchall()), joined
    named = docs.selectExpr("concat('k', id) AS `the key`", "body AS `a.b`")
    named = pairs(named, key="the key", text="a.b", threshold=0.5).collect()
    assert ordered((int(a[1:]), int(b[1:]), similarity) for a, b, similarity in named) == pairs_of("small", 0.5)
    for most in (1, 2, 3, 10):
        partners, everyone = {}, {}
        for a, b, similarity in pairs_of("small", 0.5):
            everyone.setdefault(a, {})[b] = everyone.setdefault(b, {})[a] = similarity
        for a, b, similarity in found_pairs(docs, threshold=0.5, most=most):
            assert everyone[a][b] == similarity
            partners.setdefault(a, set()).add(b)
            partners.setdefault(b, set()).add(a)
        for key, others in everyone.items():
            assert len(partners[key]) >= min(most, len(others)), (most, key)
    raises("no column 'text'", lambda: pairs(docs, key="id", text="text"))
    raises("not string", lambda: pairs(docs, key="body", text="id"))
    raises("is there 2 times", lambda: pairs(docs.union(docs.limit(1)), key="id", text="body"))
    raises("has NULL", lambda: clusters(docs.selectExpr("nullif(id, 3) AS id", "body"), key="id", text="body"))
    raises("threshold", lambda: pairs(docs, key="id", text="body", threshold=1.5))
    raises("unit", lambda: clusters(docs, key="id", text="body", unit="line"))
    raises("most", lambda: pairs(docs, key="id", text="body", most=0))
    raises("columns", lambda: pairs(docs, key="id", text="body", exceptions=docs.select("id")))


def check_page():
    """Run the snippet of docs/scaling.md."""
    page = pathlib.Path(__file__).parents[2] / "docs/scaling.md"
    (snippet,) = re.findall(r"```python\n(.*?)```", page.read_text(), re.S)
    docs = frame("small")
    snippet = snippet.replace("docs.parquet", f"{directory}/small.parquet")
    names = {"spark": spark, "today": docs.where("id > 5")}
    exec(snippet, names)
    assert ordered(names["near"].collect()) == pairs_of("small", 0.8)
    assert grouped(names["groups"].collect()) == clusters_of("small", 0.8)
    expected = pairs(names["today"], docs, key="id", text="body", threshold=0.8).collect()
    assert expected and sorted(names["new"].collect()) == sorted(expected)


def check_copies(number):
    """Test copies and near copies of one text, each near copy with a different number."""
    text = "this is one text of some thirty words that is there very often and nobody knows why it is" * 2
    for table, body in {"copies": f"'{text}'", "near_copies": f"'{text} ' || id"}.items():
        connection.execute(f"CREATE TABLE {table} AS SELECT id, {body} AS body FROM generate_series(1, {number}) id")
        docs = frame(table)
        assert found_clusters(docs, threshold=0.8) == [list(range(1, number + 1))], table
    few = found_pairs(spark.read.parquet(f"{directory}/copies.parquet"), most=10)
    assert len(few) == 5 * number, len(few)


count = 0
spark = session("local[2]")
check_arguments()
check_excepted_selves()
check_page()
check_copies(100_000)
for table in tables:
    count += compare(table, 0.8)
spark.stop()
# Two workers, whose results go through a checkpoint directory; every number of edges counts as large.
neardup.spark.FEW_EDGES = 0
spark = session("local-cluster[2,1,1024]")
spark.sparkContext.setCheckpointDir(f"{directory}/checkpoints")
count += compare(tables[0], 0.5)
spark.stop()
print(f"pyspark {pyspark.__version__}: {count} pairs of {len(tables)} collections")
