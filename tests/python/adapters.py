"""Sends signatures to the server and back through every library, and looks documents up.

Arguments: connection string, SQLAlchemy address without its driver.
"""

import asyncio
import datetime
import sys
import textwrap
import unittest.mock

import alembic.autogenerate
import alembic.migration
import alembic.operations
import asyncpg
import neardup
import neardup.asyncpg
import neardup.psycopg
import psycopg
import sqlalchemy
import sqlalchemy.dialects.postgresql
from neardup.alembic import Guard, Tracker, include_object
from neardup.sqlalchemy import MinhashSignature, minhash, near_dup, near_dup_constraint, near_dup_index, resemblance
from sqlalchemy.ext.asyncio import create_async_engine

dsn, address = sys.argv[1:]
TEXTS = ["Some text that somebody may send again.", "", "Something else, which nobody has sent before.", None]
SIGNATURES = neardup.signatures(TEXTS)
FIRST = SIGNATURES[0]
BARE = "adapters_without_extension"
TABLE = "CREATE TABLE {} (id int PRIMARY KEY, sig minhash_signature)"


def check(rows):
    """Check that rows of id and signature come back as they were sent."""
    assert [tuple(row) for row in rows] == list(enumerate(SIGNATURES)), rows
    assert all(type(row[1]) is neardup.Signature for row in rows if row[1] is not None)


def psycopg_both_formats():
    for binary in False, True:
        with psycopg.connect(dsn, autocommit=True) as conn:
            neardup.psycopg.register(conn)
            conn.execute(TABLE.format("by_psycopg"))
            place = "%b" if binary else "%t"
            with conn.cursor(binary=binary) as cursor:
                cursor.executemany(f"INSERT INTO by_psycopg VALUES (%s, {place})", enumerate(SIGNATURES))
                check(cursor.execute("TABLE by_psycopg ORDER BY id").fetchall())
                query = f"SELECT id FROM by_psycopg WHERE near_dup(sig, {place})"
                assert cursor.execute(query, [FIRST]).fetchall() == [(0,)]
                assert cursor.execute("SELECT sig = any(%s) FROM by_psycopg", [[FIRST]]).fetchall()[0] == (True,)
            conn.execute("TRUNCATE by_psycopg")
            form = "(FORMAT BINARY)" if binary else ""
            with conn.cursor().copy(f"COPY by_psycopg FROM STDIN {form}") as copy:
                copy.set_types(["int4", "minhash_signature"])
                for row in enumerate(SIGNATURES):
                    copy.write_row(row)
            with conn.cursor().copy(f"COPY (TABLE by_psycopg ORDER BY id) TO STDOUT {form}") as copy:
                copy.set_types(["int4", "minhash_signature"])
                check(list(copy.rows()))
            conn.execute("DROP TABLE by_psycopg")


async def psycopg_asynchronous():
    async with await psycopg.AsyncConnection.connect(dsn) as conn:
        await neardup.psycopg.register_async(conn)
        cursor = await conn.execute("SELECT %s::minhash_signature", [FIRST])
        assert await cursor.fetchone() == (FIRST,)


async def by_asyncpg():
    conn = await asyncpg.connect(address)
    await neardup.asyncpg.register(conn)
    await conn.execute(TABLE.format("by_asyncpg"))
    await conn.executemany("INSERT INTO by_asyncpg VALUES ($1, $2)", list(enumerate(SIGNATURES)))
    check(await conn.fetch("TABLE by_asyncpg ORDER BY id"))
    await conn.execute("TRUNCATE by_asyncpg")
    await conn.copy_records_to_table("by_asyncpg", records=enumerate(SIGNATURES))
    check(await conn.fetch("TABLE by_asyncpg ORDER BY id"))
    assert await conn.fetchval("SELECT id FROM by_asyncpg WHERE near_dup(sig, $1)", FIRST) == 0
    await conn.execute("DROP TABLE by_asyncpg")
    await conn.close()


metadata = sqlalchemy.MetaData()
DOCS = sqlalchemy.Table(
    "by_sqlalchemy",
    metadata,
    sqlalchemy.Column("id", sqlalchemy.Integer, primary_key=True),
    sqlalchemy.Column("sig", MinhashSignature),
    near_dup_index("by_sqlalchemy_sig", "sig", threshold=0.7, opclass="minhash_ops"),
)
UNIQUE = sqlalchemy.Table(
    "by_sqlalchemy_unique",
    metadata,
    sqlalchemy.Column("id", sqlalchemy.Integer, primary_key=True),
    sqlalchemy.Column("tenant", sqlalchemy.Integer, nullable=False),
    sqlalchemy.Column("sig", MinhashSignature),
    near_dup_constraint("unique_in_tenant", "sig", threshold=0.9, scope=["tenant"]),
    near_dup_index("by_sqlalchemy_tenant", "sig", threshold=0.7, scope=["tenant"], opclass="minhash_ops"),
)
TEXT = sqlalchemy.Table(
    "by_sqlalchemy_text",
    metadata,
    sqlalchemy.Column("id", sqlalchemy.Integer, primary_key=True),
    sqlalchemy.Column("tenant", sqlalchemy.String),
    sqlalchemy.Column("body", sqlalchemy.Text),
    sqlalchemy.Column("title", sqlalchemy.String),
    near_dup_index("by_sqlalchemy_text_body", "body", threshold=0.8),
    near_dup_index("by_sqlalchemy_text_title", "title", 0.6, ["tenant"], k=4, unit="char", fold="none"),
    near_dup_constraint("by_sqlalchemy_text_in_tenant", "body", threshold=0.85, scope=["tenant"], label="id::text"),
    near_dup_constraint("by_sqlalchemy_text_letters", "title", threshold=0.8, k=4, unit="char"),
)
IN_TENANT = "USING neardup (tenant, sig minhash_ops (threshold='0.7'))"
CONSTRAINT = "EXCLUDE USING neardup (tenant WITH =, near_dup_key(sig, (0.9)::double precision) WITH %)"
ON_TEXT = [
    "(body)",
    "(tenant scope_ops, near_dup_key(body, (0.85)::double precision, label => (id)::text))",
    "(near_dup_key((title)::text, (0.8)::double precision, 4, 'char'::text, 'case'::text))",
    "(tenant scope_ops, title text_ops (k='4', unit='char', fold='none'))",
]
BODY = "Some text that somebody may send again, to whoever reads it."
EDITED = "Some text that somebody may send again, to whoever reads it twice."
TITLE = "A title for a document"
TEXT_ROWS = [
    {"id": 0, "tenant": "a", "body": BODY, "title": None},
    {"id": 1, "tenant": "b", "body": EDITED, "title": TITLE},
]
ROWS = [{"id": i, "sig": signature} for i, signature in enumerate(SIGNATURES)]


def questions():
    """Return queries, each with the ids or values that it returns."""
    text = "some text that somebody MAY send again"
    yield sqlalchemy.select(DOCS.c.id).where(DOCS.c.sig.near_dup(FIRST, 0.9)), [0]
    yield sqlalchemy.select(DOCS.c.id).where(DOCS.c.sig.near_dup(minhash(text))), [0]
    yield sqlalchemy.select(DOCS.c.id).where(DOCS.c.sig == FIRST), [0]
    nearest = DOCS.c.sig.distance(minhash(text, k=3, seed=0))
    yield sqlalchemy.select(DOCS.c.id).order_by(nearest.nulls_last(), DOCS.c.id).limit(2), [0, 1]
    yield sqlalchemy.select(DOCS.c.sig.sim(FIRST)).where(DOCS.c.id == 0), [1.0]
    found = sqlalchemy.select(TEXT.c.id).order_by(resemblance(TEXT.c.body, BODY).desc())
    yield found.where(near_dup(TEXT.c.body, BODY, 0.95)), [0]
    yield found.where(near_dup(TEXT.c.body, BODY)), [0, 1]
    yield found.where(near_dup(TEXT.c.title, TITLE, 0.6, k=4, unit="char", fold="none"), TEXT.c.tenant == "b"), [1]
    by_letters = resemblance(TEXT.c.title, TITLE.upper(), k=4, unit="char")
    yield sqlalchemy.select(by_letters).where(TEXT.c.id == 1), [1.0]
    long = minhash(text, k=4, unit="char", fold="none", slots=32, seed=5)
    yield sqlalchemy.select(long), [neardup.signature(text, 4, "char", "none", 32, 5)]


def sqlalchemy_and_alembic():
    engine = sqlalchemy.create_engine(address.replace("://", "+psycopg://"))
    migrate(engine)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.insert(DOCS), ROWS)
        check(connection.execute(sqlalchemy.select(DOCS).order_by(DOCS.c.id)).all())
        for query, expected in questions():
            assert connection.scalars(query).all() == expected, query
        connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
        by_letters = near_dup(TEXT.c.title, TITLE, 0.6, k=4, unit="char", fold="none")
        for query, index in (
            (sqlalchemy.select(DOCS.c.id).where(DOCS.c.sig.near_dup(FIRST, 0.9)), "by_sqlalchemy_sig"),
            (sqlalchemy.select(TEXT.c.id).where(near_dup(TEXT.c.body, BODY)), "by_sqlalchemy_text_body"),
            (sqlalchemy.select(TEXT.c.id).where(by_letters, TEXT.c.tenant == "b"), "by_sqlalchemy_text_title"),
        ):
            literal = query.compile(engine, compile_kwargs={"literal_binds": True})
            plan = connection.exec_driver_sql(f"EXPLAIN {literal}").scalars().all()
            assert any(index in line for line in plan), plan
        connection.execute(sqlalchemy.delete(DOCS))
    # Also with the driver's own registration.
    sqlalchemy.event.listen(engine, "connect", lambda connection, _: neardup.psycopg.register(connection))
    engine.dispose()
    with engine.begin() as connection:
        connection.execute(sqlalchemy.insert(DOCS), ROWS)
        check(connection.execute(sqlalchemy.select(DOCS).order_by(DOCS.c.id)).all())
    reflected = sqlalchemy.Table("by_sqlalchemy", sqlalchemy.MetaData(), autoload_with=engine)
    assert isinstance(reflected.c.sig.type, MinhashSignature)
    engine.dispose()


def migrate(engine):
    """Check that Alembic's migration creates the table, and then finds nothing to do."""
    with engine.begin() as connection:
        context = alembic.migration.MigrationContext.configure(connection)
        script = alembic.autogenerate.produce_migrations(context, metadata)
        written = alembic.autogenerate.render_python_code(script.upgrade_ops)
        operations = alembic.operations.Operations(context)
        names = {"op": operations, "sa": sqlalchemy, "postgresql": sqlalchemy.dialects.postgresql, "neardup": neardup}
        exec(textwrap.dedent(f"    {written}"), names)
        found = alembic.autogenerate.compare_metadata(context, metadata)
        own = [change for change in found if "by_sqlalchemy" in str(change)]
        assert not own, own
        # As the page says, only objects with other names are different.
        for name, expected in (("by_sqlalchemy_sig", set()), ("by_sqlalchemy_sig_06", {"add_index", "remove_index"})):
            changed = sqlalchemy.MetaData()
            columns = [sqlalchemy.Column("id", sqlalchemy.Integer, primary_key=True), sqlalchemy.Column("sig", MinhashSignature)]
            index = near_dup_index(name, "sig", threshold=0.6, opclass="minhash_ops")
            sqlalchemy.Table("by_sqlalchemy", changed, *columns, index)
            found = alembic.autogenerate.compare_metadata(context, changed)
            assert {change[0] for change in found if "by_sqlalchemy_sig" in str(change)} == expected, found
    with engine.connect() as connection:
        query = "SELECT indexdef FROM pg_indexes WHERE indexname = 'by_sqlalchemy_sig'"
        assert "USING neardup (sig minhash_ops (threshold='0.7'))" in connection.exec_driver_sql(query).scalar()
        check_constraint(connection.exec_driver_sql, "by_sqlalchemy_unique")
        check_text(connection.exec_driver_sql, "by_sqlalchemy_text")
        query = "SELECT indexdef FROM pg_indexes WHERE indexname = 'by_sqlalchemy_tenant'"
        assert IN_TENANT in connection.exec_driver_sql(query).scalar()
    for table, rows, rejected in (
        (UNIQUE, [{"id": i, "tenant": i, "sig": FIRST} for i in range(3)], {"id": 3, "tenant": 0, "sig": FIRST}),
        (TEXT, TEXT_ROWS, {"id": 2, "tenant": "a", "body": EDITED}),
    ):
        with engine.begin() as connection:
            connection.execute(sqlalchemy.insert(table), rows)
        try:
            with engine.begin() as connection:
                connection.execute(sqlalchemy.insert(table), rejected)
            raise AssertionError("a near-duplicate was let in")
        except sqlalchemy.exc.IntegrityError as error:
            assert isinstance(error.orig, psycopg.errors.ExclusionViolation)
            assert table is UNIQUE or "=(a, 2) conflicts with existing key" in str(error), error


def check_text(execute, table):
    """Check that the indexes on documents, including those of constraints, are as declared."""
    query = f"SELECT indexdef FROM pg_indexes WHERE tablename = '{table}' AND indexdef LIKE '%%USING neardup%%' ORDER BY indexname"
    found = [row[0].split("USING neardup ")[1] for row in execute(query).fetchall()]
    assert found == ON_TEXT, found


def check_constraint(execute, table):
    query = f"SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = '{table}'::regclass AND contype = 'x'"
    found = [row[0] for row in execute(query).fetchall()]
    assert found == [CONSTRAINT], found


async def sqlalchemy_asyncpg():
    for is_registered in False, True:
        engine = create_async_engine(address.replace("://", "+asyncpg://"))
        if is_registered:

            @sqlalchemy.event.listens_for(engine.sync_engine, "connect")
            def register(connection, _):
                connection.run_async(neardup.asyncpg.register)

        async with engine.begin() as connection:
            await connection.execute(sqlalchemy.delete(DOCS))
            await connection.execute(sqlalchemy.insert(DOCS), ROWS)
            check((await connection.execute(sqlalchemy.select(DOCS).order_by(DOCS.c.id))).all())
            for query, expected in questions():
                assert (await connection.scalars(query)).all() == expected, query
            await connection.run_sync(UNIQUE.drop)
            await connection.run_sync(UNIQUE.create)
        await engine.dispose()
    with psycopg.connect(dsn) as conn:
        check_constraint(conn.execute, "by_sqlalchemy_unique")


def left(relation):
    """Return the triggers of a table, and the other tables whose names begin with its name."""
    with psycopg.connect(dsn) as conn:
        triggers = conn.execute(
            "SELECT tgname FROM pg_trigger WHERE tgrelid = %s::regclass AND NOT tgisinternal ORDER BY 1", [f'"{relation}"']
        ).fetchall()
        tables = conn.execute(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname ^@ %s ORDER BY 1", [f"{relation}_"]
        ).fetchall()
    return [name for (name,) in triggers], [name for (name,) in tables]


def tables_of(relation):
    """Return the tables of a noting guard and of a tracker."""
    suffixes = "clusters", "clusters_canonical", "clusters_log", "clusters_queue", "clusters_state", "near_dups"
    return [f"{relation}_{suffix}" for suffix in suffixes]


def by_alembic():
    """Check that guard and tracker are created and dropped completely, twice, and that --autogenerate ignores their tables."""
    engine = sqlalchemy.create_engine(address.replace("://", "+psycopg://"))
    made = sqlalchemy.MetaData()
    columns = [sqlalchemy.Column("id", sqlalchemy.Integer, primary_key=True), sqlalchemy.Column("body", sqlalchemy.Text)]
    sqlalchemy.Table("by alembic", made, *columns, near_dup_index("by_alembic_body", "body"))
    excepted = [sqlalchemy.Column(name, sqlalchemy.Integer, nullable=False) for name in "ab"]
    sqlalchemy.Table("different", made, *excepted)
    made.create_all(engine)
    condition = "body NOT LIKE '%:draft%' AND body <> 'it''s 12:30'"
    options = {"condition": condition, "exceptions": "different"}
    guard = Guard("by alembic", "body", action="note", key=None, **options)
    recent = Guard("by alembic", "body", 0.9, schema="public", trigger_name="recent", k=3)
    tracker = Tracker("by alembic", "body", keep="length(body) DESC", **options)
    for _ in range(2):
        with engine.begin() as connection:
            context = alembic.migration.MigrationContext.configure(connection, opts={"include_object": include_object})
            operations = alembic.operations.Operations(context)
            for part in guard, recent, tracker:
                part.create(operations)
        triggers, tables = left("by alembic")
        assert {"by alembic_guard", "recent"} < set(triggers) and tables == tables_of("by alembic"), (triggers, tables)
        with engine.begin() as connection:
            context = alembic.migration.MigrationContext.configure(connection, opts={"include_object": include_object})
            found = alembic.autogenerate.compare_metadata(context, made)
            removed = [change[1].name for change in found if change[0] == "remove_table"]
            assert "by_sqlalchemy" in removed and not [name for name in removed if name.startswith("by alembic")], removed
            operations = alembic.operations.Operations(context)
            for part in tracker, recent, guard:
                part.drop(operations)
        assert left("by alembic") == ([], [])
    made.drop_all(engine)
    engine.dispose()


def migration_of_a_long_name():
    """Check that a migration's reverse drops what it created for a table whose name has 63 bytes."""
    name = "é" * 31 + "x"
    engine = sqlalchemy.create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(dsn))
    parts = Guard(name, "body", action="note", notes=None, trigger_name=None), Tracker(name, "body", clusters=None)
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(f'CREATE TABLE "{name}" (id int PRIMARY KEY, body text)')
        conn.execute(f'CREATE INDEX ON "{name}" USING neardup (body)')
        for step, count in ("create", 7), ("drop", 1):
            with engine.begin() as connection:
                operations = alembic.operations.Operations(alembic.migration.MigrationContext.configure(connection))
                for part in parts:
                    getattr(part, step)(operations)
            tables = conn.execute("SELECT relname FROM pg_class WHERE relkind = 'r' AND relname ^@ 'é'").fetchall()
            assert len(tables) == count, tables
        conn.execute(f'DROP TABLE "{name}"')


def archives():
    """Check that a migration's reverse drops what it created, and no table of the same name in an earlier schema."""
    engine = sqlalchemy.create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(dsn, options="-c search_path=app,public"))
    parts = Guard("by archive", "body", action="note"), Tracker("by archive", "body")
    suffixes = "near_dups", "clusters"

    def migrate(step):
        with engine.begin() as connection:
            operations = alembic.operations.Operations(alembic.migration.MigrationContext.configure(connection))
            for part in parts:
                getattr(part, step)(operations)

    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute('CREATE SCHEMA app; CREATE TABLE "by archive" (id int PRIMARY KEY, body text)')
        conn.execute('CREATE INDEX ON "by archive" USING neardup (body)')
        migrate("create")
        for suffix in suffixes:
            conn.execute(f'CREATE TABLE app."by archive_{suffix}" AS TABLE "by archive_{suffix}"')
        migrate("drop")
        query = "SELECT relnamespace::regnamespace::text, relname FROM pg_class WHERE relkind = 'r' AND relname ^@ 'by archive_'"
        assert set(conn.execute(query).fetchall()) == {("app", f"by archive_{suffix}") for suffix in suffixes}
        assert conn.execute("SELECT count(*) FROM near_dup_tracked").fetchone() == (0,)
        migrate("create")
        migrate("drop")
        conn.execute('DROP TABLE "by archive"; DROP SCHEMA app CASCADE')
    engine.dispose()


def operations_of_django():
    """Check that guard and tracker are created and dropped completely, twice; without the extension, they name what is missing."""
    from django.contrib.postgres.operations import CreateExtension
    from django.db import NotSupportedError, connections, models
    from django.db.migrations.state import ModelState, ProjectState
    from django.db.migrations.writer import OperationWriter
    from neardup.django import NearDupConstraint, NearDupExtension, NearDupGuard, NearDupIndex, NearDupTracker

    table = "Odd articles"

    class Article(models.Model):
        id = models.IntegerField(primary_key=True)
        tenant = models.IntegerField(db_column="owner")
        text = models.TextField(db_column="body")
        published = models.DateField()

        class Meta:
            app_label = "archive"
            db_table = table
            indexes = [
                NearDupIndex(name="odd_body", fields=["text"]),
                NearDupIndex(name="odd_owned", fields=["text"], condition=models.Q(tenant__gt=0)),
            ]
            constraints = [NearDupConstraint(name="odd_exact", field="text", condition=models.Q(tenant__lt=0))]

    class Different(models.Model):
        pk = models.CompositePrimaryKey("a", "b")
        a = models.IntegerField()
        b = models.IntegerField()

        class Meta:
            app_label = "archive"

    options = {
        "scope": ("tenant",),
        "condition": models.Q(tenant__gt=0) & ~models.Q(text__contains="it's 100% :draft"),
        "exceptions": "different",
    }
    operations = [
        NearDupGuard("article", "text", 0.8, action="note", most=3, **options),
        NearDupGuard(
            "article", "text", within="published", by=datetime.timedelta(days=7, hours=1), trigger_name="recent", fold="case"
        ),
        NearDupTracker("article", "text", 0.85, keep="published DESC", **(options | {"scope": ()})),
    ]
    for operation in operations:
        text, imports = OperationWriter(operation, indentation=0).serialize()
        names = {}
        exec("\n".join(["import datetime", "from django.db import models", *imports]), names)
        copy = eval(text.rstrip(","), names)
        same = "model_name", "field", "threshold", "options"
        assert [getattr(copy, name) == getattr(operation, name) for name in same] == [True] * 4, text
    state = ProjectState()
    for model in Article, Different:
        state.add_model(ModelState.from_model(model))

    def run(alias, step, operation):
        with connections[alias].schema_editor() as editor:
            getattr(operation, step)("archive", editor, state, state)

    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(f"CREATE DATABASE {BARE}")
    lacking = [
        lambda editor: editor.create_model(Article),
        lambda editor: editor.add_constraint(Article, NearDupConstraint(name="odd", field="text")),
        lambda editor: operations[0].database_forwards("archive", editor, state, state),
        lambda editor: operations[2].database_forwards("archive", editor, state, state),
    ]
    for make in lacking:
        try:
            with connections["bare"].schema_editor() as editor:
                make(editor)
            raise AssertionError("made without the extension")
        except NotSupportedError as error:
            assert "NearDupExtension()" in str(error)
    run("bare", "database_forwards", NearDupExtension())

    def newer(self, name, hints=None):
        self.name, self.hints = name, hints or {}

    # Newer versions of Django use more attributes than the name.
    with unittest.mock.patch.object(CreateExtension, "__init__", newer):
        assert (NearDupExtension().name, NearDupExtension().hints) == ("pg_neardup", {})
        assert NearDupExtension(hints={"part": 1}).hints == {"part": 1}
    for alias in "bare", "default":
        with connections[alias].schema_editor() as editor:
            editor.create_model(Different)
            editor.create_model(Article)
        with connections[alias].cursor() as cursor:
            cursor.execute("SELECT indexdef FROM pg_indexes WHERE tablename = %s AND indexdef ~ 'WHERE' ORDER BY 1", [table])
            partial = [definition.split(" WHERE ")[1] for (definition,) in cursor.fetchall()]
            assert partial == ["(owner < 0)", "(owner > 0)"], partial
        for _ in range(2):
            for operation in operations:
                run(alias, "database_forwards", operation)
            if alias == "default":
                triggers, tables = left(table)
                assert {f"{table}_guard", "recent"} < set(triggers) and tables == tables_of(table), (triggers, tables)
            for operation in reversed(operations):
                run(alias, "database_backwards", operation)
        with connections[alias].schema_editor() as editor:
            editor.delete_model(Article)
            editor.delete_model(Different)
    connections["bare"].close()
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(f"DROP DATABASE {BARE}")


def by_django():
    import django
    from django.conf import settings
    from django.core.exceptions import ValidationError

    place = psycopg.conninfo.conninfo_to_dict(dsn)
    database = {"HOST": place["host"], "USER": place["user"], "NAME": place["dbname"]}
    databases = {
        "default": {**database, "ENGINE": "django.db.backends.postgresql"},
        "binding": {
            **database,
            "ENGINE": "django.db.backends.postgresql",
            "OPTIONS": {"server_side_binding": True},
        },
    }
    bare = {**databases["default"], "NAME": BARE}
    settings.configure(INSTALLED_APPS=[], DATABASES={**databases, "bare": bare})
    django.setup()
    from django.db import IntegrityError, connections, migrations, models
    from django.db.migrations.writer import MigrationWriter
    from neardup.django import (
        Minhash,
        MinhashDistance,
        MinhashSignatureField,
        MinhashSim,
        NearDup,
        NearDupConstraint,
        NearDupIndex,
        Resemblance,
    )

    class Doc(models.Model):
        id = models.IntegerField(primary_key=True)
        sig = MinhashSignatureField(null=True)

        class Meta:
            app_label = "archive"
            db_table = "by_django"
            indexes = [NearDupIndex(name="by_django_sig", fields=["sig"], threshold=0.9, opclass="minhash_ops")]

    constraint = NearDupConstraint(name="near", field="sig", threshold=0.9, scope=["tenant"])
    index = NearDupIndex(name="in_tenant", fields=["tenant", "sig"], threshold=0.7, opclass="minhash_ops")
    letters = {"k": 4, "unit": "char"}
    text_constraints = [
        NearDupConstraint(
            name="by_django_text_in_tenant", field="body", threshold=0.85, scope=["tenant"], label="id"
        ),
        NearDupConstraint(name="by_django_text_letters", field="title", **letters),
    ]
    text_indexes = [
        NearDupIndex(name="by_django_text_body", fields=["body"]),
        NearDupIndex(name="by_django_text_title", fields=["tenant", "title"], threshold=0.6, fold="none", **letters),
    ]
    for written in constraint, index, *text_constraints, *text_indexes:
        text = MigrationWriter.serialize(written)[0]
        assert eval(text, {"neardup": neardup}) == written, text

    class Unique(models.Model):
        id = models.IntegerField(primary_key=True)
        tenant = models.IntegerField()
        body = models.TextField()
        sig = models.GeneratedField(
            expression=Minhash("body"), output_field=MinhashSignatureField(), db_persist=True
        )

        class Meta:
            app_label = "archive"
            db_table = "by_django_unique"
            constraints = [constraint]
            indexes = [index]

    for alias in databases:
        with connections[alias].schema_editor() as editor:
            editor.create_model(Unique)
        with connections[alias].cursor() as cursor:
            check_constraint(lambda query: (cursor.execute(query), cursor)[1], "by_django_unique")
            cursor.execute("SELECT indexdef FROM pg_indexes WHERE indexname = 'in_tenant'")
            assert IN_TENANT in cursor.fetchone()[0]
        rows = [Unique(id=i, tenant=i % 2, body=TEXTS[0]) for i in range(3)]
        rows[0].save(using=alias)
        rows[1].validate_constraints()
        rows[1].save(using=alias)
        for reject, expected in ((rows[2].validate_constraints, ValidationError), (rows[2].save, IntegrityError)):
            try:
                reject()
                raise AssertionError("a near-duplicate was let in")
            except expected:
                pass
        with connections[alias].schema_editor() as editor:
            editor.delete_model(Unique)
    class Text(models.Model):
        id = models.IntegerField(primary_key=True)
        tenant = models.CharField(null=True)
        body = models.TextField(null=True)
        title = models.CharField(null=True)

        class Meta:
            app_label = "archive"
            db_table = "by_django_text"
            constraints = text_constraints
            indexes = text_indexes

    for alias in databases:
        with connections[alias].schema_editor() as editor:
            editor.create_model(Text)
        texts = Text.objects.using(alias)
        texts.bulk_create(Text(**row) for row in TEXT_ROWS)
        body, title = models.Value(BODY), models.Value(TITLE)
        resemblance_of_titles = Resemblance("title", models.Value(TITLE.upper()), **letters)
        found = {
            "by_django_text_body": texts.filter(body__near_dup=BODY),
            "by_django_text_in_tenant": texts.filter(NearDup("body", body, 0.85), tenant="a"),
            "by_django_text_title": texts.filter(NearDup("title", title, 0.6, fold="none", **letters), tenant="b"),
        }
        expected = [[0, 1], [0], [1]]
        for rows, ids in zip(found.values(), expected, strict=True):
            ordered = rows.order_by(Resemblance("body", body).desc())
            assert list(ordered.values_list("id", flat=True)) == ids, rows.query
        assert texts.annotate(similarity=resemblance_of_titles).get(id=1).similarity == 1.0
        with connections[alias].cursor() as cursor:
            check_text(lambda query: (cursor.execute(query), cursor)[1], "by_django_text")
            cursor.execute("SET enable_seqscan = off")
        for index_name, rows in found.items():
            assert index_name in rows.explain(), rows.explain()
            with connections[alias].cursor() as cursor:
                # In such a small table, it is as cheap as the constraint's index.
                cursor.execute("DROP INDEX IF EXISTS by_django_text_body")
        rejected = Text(id=2, tenant="a", body=EDITED)
        try:
            rejected.save(using=alias)
            raise AssertionError("a near-duplicate was let in")
        except IntegrityError as error:
            assert "=(a, 2) conflicts with existing key" in str(error), error
        with connections[alias].schema_editor() as editor:
            editor.delete_model(Text)
    for alias in databases:
        with connections[alias].schema_editor() as editor:
            editor.create_model(Doc)
        docs = Doc.objects.using(alias)
        docs.bulk_create(Doc(id=i, sig=signature) for i, signature in enumerate(SIGNATURES))
        check(docs.order_by("id").values_list("id", "sig"))
        text = Minhash(models.Value("some text that somebody MAY send again"))
        found = [
            docs.filter(sig__near_dup=FIRST),
            docs.filter(sig__near_dup=(FIRST, 0.9)),
            docs.filter(sig__near_dup=text),
            docs.filter(NearDup("sig", FIRST)),
            docs.filter(NearDup("sig", text, 0.9)),
            docs.filter(sig=FIRST),
            docs.filter(sig__isnull=False).order_by(MinhashDistance("sig", text), "id")[:1],
        ]
        for rows in found:
            assert list(rows.values_list("id", flat=True)) == [0], rows.query
        with connections[alias].cursor() as cursor:
            cursor.execute("SET enable_seqscan = off")
        # These use the threshold of the index.
        for rows in found[1], found[4]:
            plan = rows.explain()
            assert "by_django_sig" in plan, plan
        assert docs.annotate(similarity=MinhashSim("sig", FIRST)).get(id=0).similarity == 1.0
        other = Minhash(models.Value("some text"), k=4, unit="char", fold="none", slots=32, seed=5)
        expected = neardup.signature("some text", 4, "char", "none", 32, 5)
        assert docs.annotate(other=other).get(id=0).other == expected
        field = Doc._meta.get_field("sig")
        written = field.value_to_string(docs.get(id=0))
        assert field.to_python(written) == FIRST and written == str(FIRST)
        with connections[alias].schema_editor() as editor:
            editor.delete_model(Doc)
    try:
        MinhashSignatureField().clean("no signature", None)
        raise AssertionError("no error")
    except ValidationError as error:
        assert "neardup.signature(text). The text form is" in str(error)


def constraints_of_django():
    """Check that the index of a constraint finds copies for full_clean, also where a form excludes the label."""
    from django.core.exceptions import ValidationError
    from django.db import connections, models
    from django.test.utils import CaptureQueriesContext
    from neardup.django import MinhashSignatureField, NearDupConstraint

    for name, field, value, options in (
        ("signed", MinhashSignatureField(), FIRST, {}),
        ("exact", models.TextField(), BODY, {"threshold": 1}),
        ("labeled", models.CharField(max_length=200), BODY, {"label": "id"}),
    ):
        constraint = NearDupConstraint(name=f"{name}_near", field="body", **options)
        meta = type("Meta", (), {"app_label": "archive", "constraints": [constraint]})
        attributes = {"__module__": __name__, "id": models.BigAutoField(primary_key=True), "body": field, "Meta": meta}
        kind = type(name, (models.Model,), attributes)
        for alias in "default", "binding":
            with connections[alias].schema_editor() as editor:
                editor.create_model(kind)
            kind.objects.using(alias).create(body=value)
            copy = kind(id="not yet", body=value)
            copy._state.db = alias
            with CaptureQueriesContext(connections[alias]) as queries:
                try:
                    copy.full_clean(exclude={"id"})
                    raise AssertionError(f"a near-duplicate is valid: {name}")
                except ValidationError:
                    query = queries.captured_queries[-1]["sql"]
            with connections[alias].cursor() as cursor:
                cursor.execute("SET enable_seqscan = off")
                cursor.execute(f"EXPLAIN {query}")
                plan = cursor.fetchall()
                assert any(constraint.name in line for (line,) in plan), plan
            with connections[alias].schema_editor() as editor:
                editor.delete_model(kind)


GUARDED = """
    CREATE TABLE by_guard (id text PRIMARY KEY, body text);
    CREATE INDEX ON by_guard USING neardup (body);
    SELECT near_dup_protect('by_guard', 'body', 0.8);
    CREATE TABLE by_constraint (id int PRIMARY KEY, body text, EXCLUDE USING neardup (near_dup_key(body, 0.8) WITH %));
    INSERT INTO by_constraint VALUES (1, 'one text');
    INSERT INTO by_guard VALUES ('the first', '{}')"""
COPY = f"INSERT INTO by_guard VALUES ('another', '{EDITED}')"
OTHERS = [
    "INSERT INTO by_guard VALUES (NULL, 'of something else')",
    "INSERT INTO by_guard VALUES ('the first', 'of something else')",
    "INSERT INTO by_constraint VALUES (2, 'one text')",
    "TABLE by_nobody",
]


def check_existing(execute):
    """Check that the rejection names the existing row, and that no other error does."""
    for statement, expected in (COPY, "the first"), *((other, None) for other in OTHERS):
        try:
            execute(statement)
            raise AssertionError(f"no error: {statement}")
        except Exception as error:
            assert not isinstance(error, AssertionError), error
            assert neardup.existing_key(error) == expected, (statement, repr(error))


def existing_keys():
    from django.db import connections

    circular = ValueError()
    circular.__cause__ = circular
    assert neardup.existing_key(circular) is None
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(GUARDED.format(BODY))
        check_existing(conn.execute)
        engine = sqlalchemy.create_engine(address.replace("://", "+psycopg://"), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            check_existing(connection.exec_driver_sql)
        engine.dispose()
        with connections["default"].cursor() as cursor:
            check_existing(cursor.execute)
        for connect in asyncpg_connection, sqlalchemy_connection:
            check_existing(lambda statement, connect=connect: asyncio.run(connect(statement)))
        conn.execute("DROP TABLE by_guard, by_constraint")


async def asyncpg_connection(statement):
    conn = await asyncpg.connect(address)
    try:
        await conn.execute(statement)
    finally:
        await conn.close()


async def sqlalchemy_connection(statement):
    engine = create_async_engine(address.replace("://", "+asyncpg://"))
    try:
        async with engine.begin() as connection:
            await connection.exec_driver_sql(statement)
    finally:
        await engine.dispose()


psycopg_both_formats()
asyncio.run(psycopg_asynchronous())
asyncio.run(by_asyncpg())
sqlalchemy_and_alembic()
by_alembic()
archives()
migration_of_a_long_name()
asyncio.run(sqlalchemy_asyncpg())
by_django()
constraints_of_django()
existing_keys()
operations_of_django()
print("psycopg, asyncpg, SQLAlchemy, Alembic and Django give back what they were sent")
