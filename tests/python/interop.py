"""Runs the Python snippets of docs/python.md and compares estimates with datasketch.

Arguments: connection string, SQLAlchemy address, path of the page. Exit code 77: a package is missing.
"""

import random
import re
import sys
import types
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
conn.execute(table)
conn.execute("CREATE TABLE imported (key int PRIMARY KEY, sig minhash_signature)")


def run(name, **names):
    exec(compile(snippets[name], name, "exec"), names)
    return names


def sketch(shingles):
    m = datasketch.MinHash(num_perm=128, seed=1)
    m.update_batch([shingle.encode() for shingle in shingles])
    return m


def stored(schema):
    """What the table docs of a schema is made of: types, expressions, indexes."""
    columns = conn.execute(
        "SELECT attname, format_type(atttypid, atttypmod), pg_get_expr(adbin, adrelid)"
        " FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum"
        " WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY attnum",
        [f"{schema}.docs"],
    )
    indexes = conn.execute(
        "SELECT replace(indexdef, schemaname || '.', '') FROM pg_indexes"
        " WHERE schemaname = %s AND indexdef LIKE '%%gin%%'",
        [schema],
    )
    return columns.fetchall(), indexes.fetchall()


def sqlalchemy_makes_the_table():
    models = run("sqlalchemy models")
    conn.execute("CREATE SCHEMA alchemy")
    arguments = {"options": "-c search_path=alchemy,public"}
    engine = sqlalchemy.create_engine(address, connect_args=arguments)
    models["Base"].metadata.create_all(engine)
    assert stored("alchemy") == stored("public"), (stored("alchemy"), stored("public"))

    # A reflected table is made again with the same types.
    metadata = sqlalchemy.MetaData()
    reflected = sqlalchemy.Table("docs", metadata, autoload_with=engine)
    assert isinstance(reflected.c.sig.type, models["MinhashSignature"]), reflected.c.sig.type
    metadata.drop_all(engine)
    metadata.create_all(engine)
    assert stored("alchemy")[0] == stored("public")[0], stored("alchemy")
    return models


def reflection_of_an_unknown_type_is_no_text():
    types_by_name = sqlalchemy.dialects.postgresql.base.ischema_names
    known = types_by_name.pop("minhash_signature")
    engine = sqlalchemy.create_engine(address)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = sqlalchemy.Table("docs", sqlalchemy.MetaData(), autoload_with=engine)
    assert any("minhash_signature" in str(warning.message) for warning in caught), caught
    try:
        sqlalchemy.schema.CreateTable(table).compile(engine)
        raise AssertionError("a column of unknown type was made")
    except sqlalchemy.exc.CompileError:
        types_by_name["minhash_signature"] = known


def run_django():
    """An application of one module, whose table Django makes in a schema of its own."""
    from django.conf import settings
    from django.core.management import call_command

    application = types.ModuleType("archive")
    application.__path__ = ["archive"]
    sys.modules["archive"] = application
    place = psycopg.conninfo.conninfo_to_dict(dsn)
    database = {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": place["host"],
        "USER": place["user"],
        "NAME": place["dbname"],
    }
    schema = {"OPTIONS": {"options": "-c search_path=django,public"}}
    settings.configure(
        INSTALLED_APPS=["archive"],
        DATABASES={"default": database, "empty": database | schema},
    )
    django.setup()
    models = run("django models", __name__="archive.models")
    conn.execute("CREATE SCHEMA django")
    call_command("migrate", run_syncdb=True, database="empty", verbosity=0)
    (columns, indexes), expected = stored("django"), stored("public")
    assert columns == expected[0] and indexes == expected[1], (columns, indexes, expected)
    made = models["Doc"].objects.using("empty").create(body="Some text, made by Django.")
    made.refresh_from_db()
    assert made.sig.startswith("minhash:1:word:3:"), made.sig
    return run("django", **models)["rows"]


similarity = run("psycopg")["rows"]
assert similarity == [(1, 1.0)], similarity
orm = run("sqlalchemy", **sqlalchemy_makes_the_table())["rows"]
assert orm == similarity, orm
reflection_of_an_unknown_type_is_no_text()
orm = run_django()
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
