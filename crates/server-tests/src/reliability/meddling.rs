//! Owners and strangers who change all objects that the extension leaves in users' hands: columns, types, keys,
//! triggers, indexes, rules, owners and comments of the tables that trackers create and use.
//!
//! Whatever they do, no statement ends the server or causes an internal error; the kept state equals the computed one,
//! or there is an error; and nobody else is affected. Another feature, such as a guard with notes, is one more
//! [`Subject`].

use anyhow::{Context, Result, bail, ensure};
use fastrand::Rng;
use postgres::Client;
use postgres::error::SqlState;
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::{Outcome, Scale, figure};

/// A feature that leaves objects in users' hands.
struct Subject {
    name: &'static str,
    /// Statements with which its owner creates it, in the first schema of the search path.
    create: &'static str,
    /// The tables whose columns are changed; other changes affect all tables of the schema.
    tables: &'static [&'static str],
    /// Statements that write, with random numbers `{n}`.
    writes: &'static [&'static str],
    /// Brings it up to date, as its owner. Fails if its state differs from the computed one.
    law: fn(&mut Client) -> std::result::Result<(), Broken>,
}

/// A rule that is violated, or that cannot be checked.
enum Broken {
    Law(String),
    Error(postgres::Error),
}

impl From<postgres::Error> for Broken {
    fn from(error: postgres::Error) -> Self {
        Self::Error(error)
    }
}

const DOCS: &str = "
    CREATE TABLE docs (id int PRIMARY KEY, other int UNIQUE, day date, body text);
    CREATE INDEX ON docs USING neardup (body);
    INSERT INTO docs SELECT i, 1000 - i, date '2024-01-01' + i % 7, text_of(i % 9, i) FROM generate_series(1, 60) i;";

const SUBJECTS: &[Subject] = &[
    Subject {
        name: "tracker",
        create: "SELECT near_dup_track('docs', 'body', 0.8, 'day DESC')",
        tables: &[
            "docs",
            "docs_clusters",
            "docs_clusters_log",
            "docs_clusters_canonical",
            "docs_clusters_queue",
            "docs_clusters_state",
        ],
        writes: WRITES,
        law: kept_is_computed,
    },
    Subject {
        name: "tracker with a condition",
        create: "SELECT near_dup_track('docs', 'body', 0.8, key => 'other', condition => 'day > ''2024-01-02''')",
        tables: &[
            "docs",
            "docs_clusters",
            "docs_clusters_canonical",
            "docs_clusters_queue",
            "docs_clusters_state",
        ],
        writes: WRITES,
        law: kept_is_computed,
    },
    Subject {
        name: "tracker with exceptions",
        create: "CREATE TABLE docs_distinct (a int, b int, PRIMARY KEY (a, b));
            INSERT INTO docs_distinct SELECT i, i + 9 FROM generate_series(1, 20) i;
            SELECT near_dup_track('docs', 'body', 0.8, exceptions => 'docs_distinct')",
        tables: &[
            "docs",
            "docs_clusters",
            "docs_clusters_queue",
            "docs_distinct",
            "docs_distinct",
        ],
        writes: WRITES_WITH_EXCEPTIONS,
        law: kept_is_computed,
    },
];

const WRITES_WITH_EXCEPTIONS: &[&str] = &[
    "INSERT INTO docs_distinct VALUES ({n}, {n} + 9) ON CONFLICT DO NOTHING",
    "INSERT INTO docs_distinct SELECT {n} + i * 9, {n} FROM generate_series(1, 3) i ON CONFLICT DO NOTHING",
    "DELETE FROM docs_distinct WHERE a % 5 = {n} % 5",
    "UPDATE docs_distinct SET b = b + 100 WHERE a % 5 = {n} % 5",
    "UPDATE docs SET body = text_of({n} % 9, 1) WHERE id % 7 = {n} % 7",
    "SELECT near_dup_refresh('docs_clusters')",
];

const WRITES: &[&str] = &[
    "INSERT INTO docs SELECT 100 + {n}, 2000 + {n}, '2024-01-03', text_of({n} % 9, {n}) ON CONFLICT DO NOTHING",
    "UPDATE docs SET body = text_of({n} % 9, 1) WHERE id % 7 = {n} % 7",
    "UPDATE docs SET day = day + 1 WHERE id % 5 = {n} % 5",
    "UPDATE docs SET id = id + 500 WHERE id = {n}",
    "DELETE FROM docs WHERE id % 11 = {n} % 11",
    "SELECT near_dup_refresh('docs_clusters')",
];

/// Changes by owners: `{table}` is one of the tables, `{column}` one of its columns, `{type}` a type, `{trigger}` a
/// trigger of `docs`, `{index}` an index, `{role}` a role, `{n}` a number.
const MEDDLING: &[&str] = &[
    "ALTER TABLE {table} ALTER {column} TYPE {type} USING NULL",
    "ALTER TABLE {table} ALTER {column} TYPE {type} USING 1",
    "ALTER TABLE {table} ALTER {column} TYPE {type} USING {column}::text::{type}",
    "ALTER TABLE {table} ALTER {column} TYPE {type}",
    "ALTER TABLE {table} RENAME {column} TO x{n}",
    "ALTER TABLE {table} DROP {column}",
    "ALTER TABLE {table} DROP {column} CASCADE",
    "ALTER TABLE {table} ADD x{n} {type}",
    "ALTER TABLE {table} ADD x{n} {type}; ALTER TABLE {table} DROP x{n}",
    "ALTER TABLE {table} ALTER {column} SET NOT NULL",
    "ALTER TABLE {table} ALTER {column} DROP NOT NULL",
    "ALTER TABLE {table} ALTER {column} SET DEFAULT NULL",
    "ALTER TABLE {table} ADD CHECK ({column} IS NOT NULL) NOT VALID",
    "ALTER TABLE {table} RENAME TO x{n}",
    "ALTER TABLE docs_clusters_queue RENAME TO x{n}; ALTER TABLE docs_clusters_log RENAME TO docs_clusters_queue",
    "ALTER TABLE {table} SET SCHEMA public",
    "ALTER TABLE {table} OWNER TO {role}",
    "ALTER TABLE {table} SET UNLOGGED",
    "ALTER TABLE {table} SET LOGGED",
    "ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE {table} FORCE ROW LEVEL SECURITY; ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE {table} DROP CONSTRAINT {table}_pkey",
    "ALTER TABLE {table} DROP CONSTRAINT {table}_pkey CASCADE; ALTER TABLE {table} ADD PRIMARY KEY ({column})",
    "ALTER TABLE docs DROP CONSTRAINT docs_pkey; ALTER TABLE docs ADD PRIMARY KEY (other)",
    "ALTER TABLE {table} ADD UNIQUE ({column})",
    "CREATE INDEX ON {table} ({column})",
    "DROP INDEX {index}",
    "REINDEX TABLE {table}",
    "CLUSTER {table} USING {table}_pkey",
    "CREATE TABLE child{n} () INHERITS ({table})",
    "CREATE TABLE parent{n} (LIKE {table}); ALTER TABLE {table} INHERIT parent{n}",
    "CREATE TABLE parent{n} (LIKE {table}) PARTITION BY LIST ({column}); ALTER TABLE parent{n} ATTACH PARTITION {table} DEFAULT",
    "CREATE RULE r{n} AS ON INSERT TO {table} DO INSTEAD NOTHING",
    "CREATE RULE r{n} AS ON DELETE TO {table} DO INSTEAD NOTHING",
    "CREATE TRIGGER t{n} BEFORE INSERT OR UPDATE OR DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION nothing()",
    "CREATE TRIGGER t{n} AFTER INSERT OR UPDATE OR DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION nothing()",
    "CREATE TRIGGER t{n} AFTER INSERT OR UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION alters()",
    "ALTER TABLE docs DISABLE TRIGGER {trigger}",
    "ALTER TABLE docs ENABLE TRIGGER {trigger}",
    "ALTER TABLE docs ENABLE REPLICA TRIGGER {trigger}",
    "ALTER TABLE docs ENABLE ALWAYS TRIGGER {trigger}",
    "ALTER TRIGGER {trigger} ON docs RENAME TO t{n}",
    "DROP TRIGGER {trigger} ON docs",
    "CALL forge('docs', 'docs', '''0.8''', '''0.9''')",
    "CALL forge('docs', 'docs', 'WHEN (', 'WHEN (NEW.id > 30 AND ')",
    "CALL forge('docs', 'docs', 'WHEN (', 'WHEN (OLD.id > 30 AND ')",
    "CALL forge('docs', 'docs', 'AFTER UPDATE', 'AFTER UPDATE OF other')",
    "CALL forge('docs', 'docs', 'new.day', 'new.id')",
    "CALL forge('docs', 'docs', 'old.body, ', '')",
    "CREATE TABLE copy{n} (LIKE docs INCLUDING ALL); CALL forge('docs', 'copy{n}', '', '');
     INSERT INTO copy{n} SELECT * FROM docs LIMIT 5",
    "CREATE DOMAIN d{n} AS {type}; ALTER TABLE {table} ADD x{n} d{n}",
    "CREATE TYPE e{n} AS ENUM ('a', 'b'); CREATE FUNCTION to_e{n}({type}) RETURNS e{n} IMMUTABLE LANGUAGE sql
         RETURN 'a'::e{n}; CREATE CAST ({type} AS e{n}) WITH FUNCTION to_e{n} AS IMPLICIT;
     ALTER TABLE {table} ALTER {column} TYPE e{n} USING NULL",
    "COMMENT ON TABLE {table} IS 'x'; COMMENT ON COLUMN {table}.{column} IS NULL",
    "COMMENT ON TRIGGER {trigger} ON docs IS 'x'",
    "GRANT ALL ON {table} TO PUBLIC",
    "REVOKE ALL ON {table} FROM PUBLIC, {role}",
    "CREATE SCHEMA s{n}; GRANT ALL ON SCHEMA s{n} TO {role}; ALTER TABLE {table} SET SCHEMA s{n}; REVOKE ALL ON SCHEMA s{n} FROM {role}",
    "ALTER TABLE {table} SET SCHEMA others",
    "CREATE VIEW v{n} AS SELECT * FROM {table}",
    "DROP TABLE {table}",
    "DROP TABLE {table} CASCADE",
    "TRUNCATE docs",
    "VACUUM FULL {table}",
    "SELECT near_dup_untrack('docs_clusters')",
];

/// Changes by strangers to tables that they can name.
const STRANGE: &[&str] = &[
    "CREATE TABLE mine{n} (id int PRIMARY KEY, other int, day date, body text); CALL forge('docs', 'mine{n}', '', '')",
    "CREATE TABLE mine{n} (id int PRIMARY KEY, other int, day date, body text); CALL forge('others.docs', 'mine{n}', '', '')",
    "CREATE TABLE mine{n} (id int PRIMARY KEY, other int, day date, body text); CALL forge('docs', 'mine{n}', '_queue', '_canonical')",
    "CREATE TABLE mine{n} (id int, body {type}); CREATE TRIGGER t AFTER INSERT OR UPDATE ON mine{n} FOR EACH ROW
         EXECUTE FUNCTION near_dup_track('0.8', '0', '0')",
    "CREATE TABLE mine{n} (id int, body {type}); CREATE TRIGGER t AFTER UPDATE ON mine{n} FOR EACH ROW
         WHEN (ROW('{table}'::regclass, '{table}'::regclass, '{table}'::regclass, '{table}'::regclass, '{table}'::regclass) IS NOT NULL
             AND (ROW(NEW, NEW.body, NEW.tableoid) IS NULL OR true)) EXECUTE FUNCTION near_dup_track('NaN', '1', '1')",
    "INSERT INTO mine{m} VALUES ({n})",
    "UPDATE mine{m} SET body = NULL",
    "DROP TABLE mine{m}",
    "ALTER TABLE {table} RENAME {column} TO x{n}",
    "SELECT near_dup_refresh('docs_clusters', true)",
    "SELECT near_dup_untrack('docs_clusters')",
    "SELECT count(*) FROM near_dup_tracked",
    "CREATE VIEW v{n} AS SELECT '{table}'::regclass",
];

const TYPES: &[&str] = &[
    "int",
    "bigint",
    "text",
    "date",
    "timestamptz",
    "bool",
    "float8",
    "numeric",
    "name",
    "bigint[]",
    "point",
    "varchar(3)",
    "bit(8)",
    "minhash_signature",
    "oid",
    "regclass",
    "json",
];

const SETUP: &str = r#"
    CREATE FUNCTION text_of(document int, edits int) RETURNS text LANGUAGE sql IMMUTABLE AS $$
        SELECT string_agg(CASE WHEN w < edits % 4 THEN 'e' ELSE 'w' END || document || 'x' || w, ' ' ORDER BY w)
        FROM generate_series(0, 29) w $$;
    CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
    CREATE FUNCTION alters() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        EXECUTE format('ALTER TABLE %I.docs_clusters_canonical ADD by_trigger int', TG_TABLE_SCHEMA);
        RETURN NULL;
    EXCEPTION WHEN object_in_use OR undefined_table OR insufficient_privilege OR duplicate_column THEN RETURN NULL;
    END $$;
    CREATE PROCEDURE forge(source regclass, target text, old text, new text) LANGUAGE plpgsql AS $$
    DECLARE definition text;
    BEGIN
        FOR definition IN SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = source AND NOT tgisinternal LOOP
            definition := replace(definition, 'CREATE TRIGGER', 'CREATE OR REPLACE TRIGGER');
            definition := regexp_replace(definition, ' ON \S+ ', format(' ON %s ', target));
            EXECUTE CASE old WHEN '' THEN definition ELSE replace(definition, old, new) END;
        END LOOP;
    END $$"#;

/// Number of changes of a history.
const CHANGES: usize = 10;

/// Runs random histories of changes by an owner, a stranger and a superuser.
pub fn ends_in_errors(server: &Server, scale: Scale) -> Result<Outcome> {
    let histories = scale.of(12, 100);
    let seed = fastrand::u64(..);
    let mut rng = Rng::with_seed(seed);
    let database = Database::with_extension(&server.main, "meddling")?;
    let mut client = database.connect()?;
    client.batch_execute(SETUP)?;
    let roles = ["owner", "stranger"].map(|role| format!("{}_{role}", database.name));
    for role in &roles {
        client.batch_execute(&format!(
            "DROP ROLE IF EXISTS {role}; CREATE ROLE {role}; GRANT CREATE ON SCHEMA public TO {role}"
        ))?;
    }
    let mut counts = [0; 2];
    let mut run = || -> Result<()> {
        for number in 0..histories {
            let mut history = History::new(&database, rng.fork(), &roles)?;
            let what = format!(
                "seed {seed}, history {number} of a {}",
                history.subject.name
            );
            let looks = history
                .run()
                .with_context(|| format!("{what}: {}", history.done.join("; ")))?;
            for (count, look) in counts.iter_mut().zip(looks) {
                *count += look;
            }
        }
        Ok(())
    };
    let ran = run();
    for role in &roles {
        client.batch_execute(&format!("DROP OWNED BY {role} CASCADE; DROP ROLE {role}"))?;
    }
    ran?;
    figure!(
        "{histories} histories of {CHANGES} changes: the law held {} times, and {} times there was an error",
        counts[0],
        counts[1]
    );
    Ok(Outcome::Passed)
}

struct History<'a> {
    rng: Rng,
    subject: &'static Subject,
    roles: &'a [String; 2],
    /// The sessions of the owner, the stranger and a superuser.
    sessions: [Client; 3],
    done: Vec<String>,
}

impl<'a> History<'a> {
    fn new(database: &Database<'_>, mut rng: Rng, roles: &'a [String; 2]) -> Result<Self> {
        let mut sessions = [
            database.connect()?,
            database.connect()?,
            database.connect()?,
        ];
        let subject = rng.choice(SUBJECTS).context("there are some")?;
        let [owner, stranger] = roles;
        sessions[2].batch_execute(&format!(
            "SET client_min_messages = error; DROP OWNED BY {owner}, {stranger} CASCADE;
             DROP SCHEMA IF EXISTS of_owner, of_stranger, others CASCADE;
             GRANT CREATE ON SCHEMA public TO {owner}, {stranger};
             CREATE SCHEMA of_owner AUTHORIZATION {owner}; CREATE SCHEMA of_stranger AUTHORIZATION {stranger};
             GRANT USAGE ON SCHEMA of_owner TO {stranger}; CREATE SCHEMA others;
             GRANT USAGE ON SCHEMA others TO PUBLIC"
        ))?;
        let paths = [
            "of_owner, public",
            "of_stranger, of_owner, public",
            "of_owner, public",
        ];
        for (session, path) in sessions.iter_mut().zip(paths) {
            session.batch_execute(&format!(
                "SET search_path = {path}; SET client_min_messages = error; SET lock_timeout = '5s'"
            ))?;
        }
        sessions[0].batch_execute(&format!("SET ROLE {owner}; {DOCS}"))?;
        sessions[0].batch_execute(subject.create)?;
        sessions[1].batch_execute(&format!("SET ROLE {stranger}"))?;
        // A superuser's tracker, which nobody else may affect.
        let others =
            "SET search_path = others, public; {docs} {create}; SET search_path = of_owner, public";
        sessions[2].batch_execute(
            &others
                .replace("{docs}", DOCS)
                .replace("{create}", SUBJECTS[0].create),
        )?;
        Ok(Self {
            rng,
            subject,
            roles,
            sessions,
            done: Vec::new(),
        })
    }

    /// Runs the history. Returns how often the rule held, and how often an error explained why it cannot be checked.
    fn run(&mut self) -> Result<[usize; 2]> {
        let mut counts = [0; 2];
        for _ in 0..CHANGES {
            let (session, changes) = match self.rng.u32(0..10) {
                0..7 => (0, MEDDLING),
                7..9 => (1, STRANGE),
                _ => (2, MEDDLING),
            };
            let change = *self.rng.choice(changes).context("there are some")?;
            self.try_statement(session, change)?;
            let write = *self
                .rng
                .choice(self.subject.writes)
                .context("there are some")?;
            let session = self.rng.usize(..2) * 2;
            self.try_statement(session, write)?;
            self.try_statement(2, "SELECT count(*) FROM near_dup_tracked")?;
            counts[usize::from(!self.look_at_law()?)] += 1;
        }
        self.others_are_untouched()?;
        self.try_statement(0, "SELECT near_dup_untrack('docs_clusters')")?;
        self.try_statement(0, "INSERT INTO docs (id, body) VALUES (9999, 'after all')")?;
        Ok(counts)
    }

    /// Runs a statement, which may fail with any error except an internal one.
    fn try_statement(&mut self, session: usize, statement: &str) -> Result<()> {
        let mut pick = |from: &[&str]| from[self.rng.usize(..from.len())].to_string();
        let table = pick(self.subject.tables);
        let statement = statement
            .replace("{table}", &table)
            .replace("{type}", &pick(TYPES))
            .replace("{role}", &self.roles[self.rng.usize(..2)])
            .replace("{n}", &self.rng.u32(0..60).to_string())
            .replace("{m}", &self.rng.u32(0..60).to_string());
        let client = &mut self.sessions[session];
        let mut statement = statement;
        for (name, query) in [
            (
                "{column}",
                "SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = to_regclass($1::text) AND attnum > 0 AND NOT attisdropped",
            ),
            (
                "{trigger}",
                "SELECT quote_ident(tgname) FROM pg_trigger WHERE tgrelid = to_regclass('docs') AND NOT tgisinternal AND $1::text IS NOT NULL",
            ),
            (
                "{index}",
                "SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = to_regclass($1::text)",
            ),
        ] {
            if statement.contains(name) {
                let found = client.query(query, &[&table])?;
                let names: Vec<String> = found.iter().map(|row| row.get(0)).collect();
                let any = self.rng.usize(..names.len().max(1));
                let name_found = names.get(any).map_or("missing", String::as_str);
                statement = statement.replace(name, name_found);
            }
        }
        // VACUUM and other commands run alone, several statements run together.
        let result = match statement.contains(';') {
            true => client.batch_execute(&statement),
            false => client.simple_query(&statement).map(drop),
        };
        self.done.push(format!("{session}: {statement}"));
        match result {
            Ok(()) => Ok(()),
            Err(error) => tolerate(error),
        }
    }

    fn look_at_law(&mut self) -> Result<bool> {
        match (self.subject.law)(&mut self.sessions[0]) {
            Ok(()) => Ok(true),
            Err(Broken::Law(difference)) => bail!("{difference}"),
            Err(Broken::Error(error)) => tolerate(error).map(|()| false),
        }
    }

    fn others_are_untouched(&mut self) -> Result<()> {
        let client = &mut self.sessions[2];
        client.batch_execute("SET search_path = others, public; INSERT INTO docs VALUES (5000, 5000, NULL, text_of(1, 1))")?;
        let held = match kept_is_computed(client) {
            Ok(()) => Ok(()),
            Err(Broken::Law(difference)) => Err(anyhow::anyhow!("of others: {difference}")),
            Err(Broken::Error(error)) => Err(error.into()),
        };
        held?;
        let triggers =
            "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'docs'::regclass AND NOT tgisinternal";
        let triggers: i64 = client.query_one(triggers, &[])?.get(0);
        ensure!(triggers == 2, "others have {triggers} triggers");
        client.batch_execute("SET search_path = of_owner, public")?;
        Ok(())
    }
}

/// Fails for errors that indicate a case that the extension does not handle.
fn tolerate(error: postgres::Error) -> Result<()> {
    let foreseen = error
        .code()
        .is_some_and(|code| *code != SqlState::INTERNAL_ERROR && *code != SqlState::DATA_CORRUPTED);
    // Some errors of PostgreSQL have no code of their own.
    let message = error.as_db_error().map_or("", |error| error.message());
    const OWN: &[&str] = &[
        "could not open relation with OID",
        "tuple concurrently updated",
    ];
    let is_own = OWN.iter().any(|own| message.starts_with(own));
    ensure!(foreseen || is_own, "{error:?}");
    if error.code() == Some(&SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE)
        && message.contains("near_dup")
    {
        let hint = error.as_db_error().and_then(|error| error.hint());
        ensure!(hint.is_some(), "no hint: {error:?}");
    }
    Ok(())
}

/// Refreshes the clusters of `docs`, and compares them with clusters computed from the parameters in
/// `near_dup_tracked`.
fn kept_is_computed(client: &mut Client) -> std::result::Result<(), Broken> {
    const TRACKED: &str =
        "SELECT relation::text, clusters::text, column_name, threshold, keep, key,
            coalesce(condition, 'true'), exceptions::text
        FROM near_dup_tracked WHERE clusters = to_regclass('docs_clusters')";
    client.batch_execute("SELECT near_dup_refresh('docs_clusters')")?;
    let Some(row) = client.query_opt(TRACKED, &[])? else {
        return Err(Broken::Law("it is refreshed and not tracked".into()));
    };
    let [table, clusters, column, keep, key, condition] =
        [0, 1, 2, 4, 5, 6].map(|number| row.get::<_, String>(number));
    let (threshold, exceptions): (f64, Option<String>) = (row.get(3), row.get(7));
    let documents = format!(
        "SELECT b.\"{key}\"::text AS key_of_row, b.\"{column}\" AS value_of_row
         FROM (SELECT * FROM {table} WHERE {condition} ORDER BY {keep}) b"
    );
    let computed = match exceptions {
        None => format!("near_dup_clusters(NULL::text, $q${documents}$q$, {threshold})"),
        Some(exceptions) => format!(
            "star_clusters(NULL::text, $q$SELECT key_of_row FROM ({documents}) d$q$,
                 $q$SELECT p.key_a, p.key_b, p.similarity
                    FROM near_dup_pairs(NULL::text, $p${documents}$p$, {threshold}) p
                    WHERE NOT EXISTS (SELECT FROM {exceptions} e
                        WHERE (e.a::text, e.b::text) IN ((p.key_a, p.key_b), (p.key_b, p.key_a)))$q$)"
        ),
    };
    let differences = format!(
        "SELECT coalesce(k.key::text, c.key), concat_ws(' ', k.canonical, k.similarity), concat_ws(' ', c.cluster, c.similarity)
         FROM {clusters} k FULL JOIN {computed} c ON c.key = k.key::text
         WHERE (k.canonical::text, coalesce(k.similarity, 1)) IS DISTINCT FROM (c.cluster, coalesce(c.similarity, 1))"
    );
    let differences = client.query(&differences, &[])?;
    match differences.first() {
        None => Ok(()),
        Some(first) => {
            let [key, kept, computed] = [0, 1, 2].map(|number| first.get::<_, String>(number));
            Err(Broken::Law(format!(
                "{} rows differ: {key} is kept with {kept}, computed with {computed}",
                differences.len()
            )))
        }
    }
}
