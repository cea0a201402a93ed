"""Runs the Python snippets of docs/python.md and compares estimates with datasketch.

Arguments: connection string, SQLAlchemy address, path of the page. Exit code 77: a package is missing.
"""

import random
import re
import sys

try:
    import datasketch
    import pandas
    import psycopg
    import sqlalchemy
except ImportError as error:
    print(error.name)
    sys.exit(77)

dsn, address, page = sys.argv[1:]
text = open(page, encoding="utf-8").read()
table = re.search(r"```sql\n(.*?)```", text, re.S).group(1)
blocks = re.findall(r"```python\n(.*?)```", text, re.S)
blocks = [b.replace("dbname=mydb", dsn).replace("postgresql+psycopg:///mydb", address) for b in blocks]
snippets = dict(zip(["psycopg", "sqlalchemy", "pandas", "import", "export"], blocks, strict=True))

conn = psycopg.connect(dsn, autocommit=True)
conn.execute(table)
conn.execute("CREATE TABLE imported (key int PRIMARY KEY, sig minhash_signature)")


def run(name, **names):
    exec(compile(snippets[name], name, "exec"), names)
    return names


def sketch(shingles):
    m = datasketch.MinHash(num_perm=128, seed=1)
    m.update_batch([shingle.encode() for shingle in shingles])
    return m


similarity = run("psycopg")["rows"]
assert similarity == [(1, 1.0)], similarity
orm = run("sqlalchemy")["rows"]
assert orm == similarity, orm
conn.execute("INSERT INTO docs (body) VALUES ('Some text that somebody may send again.')")
frame = run("pandas", engine=sqlalchemy.create_engine(address))["pairs"]
assert isinstance(frame, pandas.DataFrame) and frame.values.tolist() == [[1, 2, 1.0]], frame

sets = [[f"shingle {n}" for n in random.Random(key).sample(range(300), 200)] for key in range(20)]
for key, shingles in enumerate(sets):
    run("import", conn=conn, key=key, shingles=shingles)
    exported = run("export", conn=conn, key=key, MinHash=datasketch.MinHash)["m"]
    assert exported == sketch(shingles), key

pairs = conn.execute("SELECT a.key, b.key, minhash_sim(a.sig, b.sig) FROM imported a, imported b").fetchall()
for a, b, estimate in pairs:
    assert estimate == sketch(sets[a]).jaccard(sketch(sets[b])), (a, b, estimate)
native = "SELECT minhash_slots(minhash(%s, 1, slots => 64))"
left, right = (conn.execute(native, [" ".join(s)]).fetchone()[0] for s in sets[:2])
left, right = (datasketch.MinHash(scheme="affine32", hashvalues=slots) for slots in (left, right))
query = "SELECT minhash_sim(minhash(%s, 1, slots => 64), minhash(%s, 1, slots => 64))"
assert left.jaccard(right) == conn.execute(query, [" ".join(s) for s in sets[:2]]).fetchone()[0]
union = conn.execute("SELECT minhash_slots(minhash_union(sig)) FROM imported").fetchone()[0]
assert union == datasketch.MinHash.union(*map(sketch, sets)).hashvalues.tolist()
print(f"{len(pairs)} estimates equal those of datasketch {datasketch.__version__}")
