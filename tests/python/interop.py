"""Runs the Python snippets of docs/python.md and compares estimates with datasketch.

Arguments: connection string, SQLAlchemy address, path of the page. Exit code 77: a package is missing.
"""

import pathlib
import random
import re
import sys
import tempfile
import warnings

try:
    import datasketch
    import django
    import pandas
    import psycopg
    import sqlalchemy
except ImportError as error:
    print(error.name)
    sys.exit(77)

dsn, address, page = sys.argv[1:]
text = open(page, encoding="utf-8").read()
table, guard = re.findall(r"```sql\n(.*?)```", text, re.S)
blocks = re.findall(r"```python\n(.*?)```", text, re.S)
blocks = [b.replace("dbname=mydb", dsn).replace("postgresql+psycopg:///mydb", address) for b in blocks]
names = "psycopg", "sqlalchemy models", "sqlalchemy", "django models", "django", "pandas", "guard", "import", "export"
snippets = dict(zip(names, blocks, strict=True))

conn = psycopg.connect(dsn, autocommit=True)
conn.execute("CREATE TABLE imported (key int PRIMARY KEY, sig minhash_signature)")


def run(name, **names):
    exec(compile(snippets[name], name, "exec"), names)
    return names


def sketch(shingles):
    m = datasketch.MinHash(num_perm=128, seed=1)
    m.update_batch([shingle.encode() for shingle in shingles])
    return m


def take_table():
    """Drops the table docs; returns what it was made of: types, expressions, GIN indexes."""
    columns = conn.execute(
        "SELECT attname, format_type(atttypid, atttypmod), pg_get_expr(adbin, adrelid)"
        " FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum"
        " WHERE attrelid = 'docs'::regclass AND attnum > 0 ORDER BY attnum"
    ).fetchall()
    indexes = conn.execute("SELECT indexdef FROM pg_indexes WHERE indexdef LIKE '% ON public.docs USING gin %'").fetchall()
    conn.execute("DROP TABLE docs")
    return columns, indexes


def sqlalchemy_reflects(models):
    """A reflected table is made again with the same types; where the type is unknown, not at all."""

    def reflect():
        metadata = sqlalchemy.MetaData()
        return sqlalchemy.Table("docs", metadata, autoload_with=models["engine"])

    assert isinstance(reflect().c.sig.type, models["MinhashSignature"])
    known = models["ischema_names"].pop("minhash_signature")
    with warnings.catch_warnings(record=True):
        unknown = reflect()
    models["ischema_names"]["minhash_signature"] = known
    try:
        sqlalchemy.schema.CreateTable(unknown).compile(models["engine"])
        raise AssertionError("a column of unknown type was made")
    except sqlalchemy.exc.CompileError:
        pass
    again = reflect()
    conn.execute("DROP TABLE docs")
    again.create(models["engine"])


def start_django():
    """The page's models as an application, whose table Django makes; what they define."""
    from django.conf import settings
    from django.core.management import call_command

    place = psycopg.conninfo.conninfo_to_dict(dsn)
    names = {"HOST": "host", "USER": "user", "NAME": "dbname"}
    database = {name: place[parameter] for name, parameter in names.items()}
    database["ENGINE"] = "django.db.backends.postgresql"
    settings.configure(INSTALLED_APPS=["archive"], DATABASES={"default": database})
    with tempfile.TemporaryDirectory() as directory:
        application = pathlib.Path(directory, "archive")
        (application / "migrations").mkdir(parents=True)
        (application / "__init__.py").touch()
        (application / "models.py").write_text(snippets["django models"])
        (application / "migrations" / "__init__.py").touch()
        sys.path.insert(0, directory)
        django.setup()
        call_command("makemigrations", verbosity=0)
        call_command("migrate", verbosity=0)
        sys.path.remove(directory)
    return vars(sys.modules["archive.models"])


conn.execute(table)
expected = take_table()
alchemy = run("sqlalchemy models")
assert take_table() == expected
alchemy["Base"].metadata.create_all(alchemy["engine"])
sqlalchemy_reflects(alchemy)
assert take_table()[0] == expected[0]
archive = start_django()
assert take_table() == expected

conn.execute(table)
similarity = run("psycopg")["rows"]
assert similarity == [(1, 1.0)], similarity
orm = run("sqlalchemy", **alchemy)["rows"]
assert orm == similarity, orm
orm = run("django", **archive)["rows"]
assert orm == similarity, orm
conn.execute("INSERT INTO docs (body) VALUES ('Some text that somebody may send again.')")
frame = run("pandas", engine=sqlalchemy.create_engine(address))["pairs"]
assert isinstance(frame, pandas.DataFrame) and frame.values.tolist() == [[1, 2, 1.0]], frame
conn.execute(guard.split(";")[0])
assert run("guard", conn=conn, psycopg=psycopg)["is_new"] is False
conn.execute("TRUNCATE docs")
assert run("guard", conn=conn, psycopg=psycopg)["is_new"] is True

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
