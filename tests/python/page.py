"""Runs the Python snippets of docs/python.md and compares estimates with datasketch.

Arguments: connection string, address, path of the page. What a snippet prints is compared with the
block of text after it.
"""

import asyncio
import contextlib
import io
import pathlib
import random
import re
import sys
import tempfile

import datasketch
import neardup
import pandas
import psycopg
import sqlalchemy

dsn, address, page = sys.argv[1:]
text = open(page, encoding="utf-8").read()
table, guard = re.findall(r"```sql\n(.*?)```", text, re.S)
names = (
    "psycopg",
    "sqlalchemy models",
    "sqlalchemy",
    "alembic",
    "django models",
    "django",
    "django operations",
    "pandas",
    "guard",
    "exact",
    "signatures",
    "copy",
    "asyncpg",
    "import",
    "export",
)
places = {
    "dbname=mydb": dsn,
    "postgresql+psycopg:///mydb": address.replace("://", "+psycopg://"),
    "postgresql:///mydb": address,
}
snippets, printed = {}, {}
blocks = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", text, re.S)
for name, (code, output) in zip(names, blocks, strict=True):
    for documented, place in places.items():
        code = code.replace(documented, place)
    snippets[name], printed[name] = code, output

conn = psycopg.connect(dsn, autocommit=True)
conn.execute("CREATE TABLE imported (key int PRIMARY KEY, sig minhash_signature)")


def run(name, **names):
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(snippets[name], name, "exec"), names)
    assert output.getvalue() == printed[name], f"{name} printed:\n{output.getvalue()}"
    return names


def sketch(shingles):
    m = datasketch.MinHash(num_perm=128, seed=1)
    m.update_batch([shingle.encode() for shingle in shingles])
    return m


def take_table():
    """Drops the table docs. Returns its definition: types, expressions, indexes."""
    columns = conn.execute(
        "SELECT attname, format_type(atttypid, atttypmod), pg_get_expr(adbin, adrelid)"
        " FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum"
        " WHERE attrelid = 'docs'::regclass AND attnum > 0 ORDER BY attnum"
    ).fetchall()
    indexes = conn.execute("SELECT indexdef FROM pg_indexes WHERE indexdef LIKE '% ON public.docs USING neardup %'").fetchall()
    conn.execute("DROP TABLE docs")
    return columns, indexes


def reflect_sqlalchemy(models):
    """Creates the table again as SQLAlchemy reflects it."""
    reflected = sqlalchemy.Table("docs", sqlalchemy.MetaData(), autoload_with=models["engine"])
    conn.execute("DROP TABLE docs")
    reflected.create(models["engine"])


def start_django():
    """Makes the page's models an application, whose table Django creates. Returns their definitions."""
    import django
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


def check_migrations():
    """Creates and drops guard and tracker with the page's migrations, twice."""
    import alembic.migration
    import alembic.operations
    from django.apps import apps
    from django.db import connection, models
    from django.db.migrations.state import ProjectState

    def ensure(expected):
        query = (
            "SELECT (SELECT count(*) FROM pg_trigger WHERE tgname = 'docs_guard'),"
            " (SELECT count(*) FROM near_dup_tracked),"
            " (SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relname ^@ 'docs_')"
        )
        assert conn.execute(query).fetchone() == (expected, expected, 6 * expected)

    for step, expected in (("upgrade", 1), ("downgrade", 0)) * 2:
        with alchemy["engine"].begin() as migrated:
            op = alembic.operations.Operations(alembic.migration.MigrationContext.configure(migrated))
            run("alembic", op=op)[step]()
        ensure(expected)
    operations = run("django operations", models=models)["operations"]
    state = ProjectState.from_apps(apps)
    for step, expected in (("database_forwards", 1), ("database_backwards", 0)) * 2:
        for operation in operations:
            with connection.schema_editor() as editor:
                getattr(operation, step)("archive", editor, state, state)
        ensure(expected)


conn.execute(table)
expected = take_table()
alchemy = run("sqlalchemy models")
assert take_table() == expected
alchemy["Base"].metadata.create_all(alchemy["engine"])
reflect_sqlalchemy(alchemy)
assert take_table()[0] == expected[0]
archive = start_django()
assert take_table() == expected

conn.execute(table)
check_migrations()
similarity = run("psycopg")["rows"]
assert similarity == [(1, 1.0)], similarity
orm = run("sqlalchemy", **alchemy)["rows"]
assert orm == similarity, orm
orm = run("django", **archive)["rows"]
assert orm == similarity, orm
run("exact")
run("signatures")
run("copy", psycopg=psycopg, neardup=neardup)
similar = run("asyncpg", neardup=neardup)["similar"]
assert asyncio.run(similar("some text that somebody may send again")) == ["/a"]
conn.execute("INSERT INTO docs (body) VALUES ('Some text that somebody may send again.')")
frame = run("pandas", engine=alchemy["engine"])["pairs"]
assert isinstance(frame, pandas.DataFrame) and frame.values.tolist() == [[1, 2, 1.0]], frame
conn.execute(guard)
assert run("guard", conn=conn, psycopg=psycopg)["found"] == 1
conn.execute("TRUNCATE docs")
assert run("guard", conn=conn, psycopg=psycopg)["found"] > 1

sets = [[f"shingle {n}" for n in random.Random(key).sample(range(300), 200)] for key in range(20)]
for key, shingles in enumerate(sets):
    run("import", conn=conn, key=key, shingles=shingles)
    exported = run("export", conn=conn, key=key, MinHash=datasketch.MinHash)["m"]
    assert exported == sketch(shingles), key

pairs = conn.execute("SELECT a.key, b.key, minhash_sim(a.sig, b.sig) FROM imported a, imported b").fetchall()
for a, b, estimate in pairs:
    assert estimate == sketch(sets[a]).jaccard(sketch(sets[b])), (a, b, estimate)
native = "SELECT slots FROM minhash_describe(minhash(%s, 1, slots => 64))"
left, right = (conn.execute(native, [" ".join(s)]).fetchone()[0] for s in sets[:2])
left, right = (datasketch.MinHash(scheme="affine32", hashvalues=slots) for slots in (left, right))
query = "SELECT minhash_sim(minhash(%s, 1, slots => 64), minhash(%s, 1, slots => 64))"
assert left.jaccard(right) == conn.execute(query, [" ".join(s) for s in sets[:2]]).fetchone()[0]
union = conn.execute("SELECT (minhash_describe(minhash_union(sig))).slots FROM imported").fetchone()[0]
assert union == datasketch.MinHash.union(*map(sketch, sets)).hashvalues.tolist()
print(f"{len(pairs)} estimates equal those of datasketch {datasketch.__version__}")
