//! Trackers whose owners have altered the tables.

use std::mem::ManuallyDrop;

use anyhow::{Context, Result, ensure};
use postgres::Client;
use postgres::error::SqlState;
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::{Outcome, figure};
use crate::sessions::{Sessions, Step};

const TABLES: &str = "
    CREATE TABLE docs (id int PRIMARY KEY, day date, body text);
    CREATE INDEX ON docs USING neardup (body);
    INSERT INTO docs SELECT i, date '2024-01-01' + i, 'one text of several words, number ' || i / 3
    FROM generate_series(1, 20) i;
    SELECT near_dup_track('docs', 'body', keep => 'day DESC');
    CREATE TYPE mood AS ENUM ('sad', 'happy');
    CREATE FUNCTION as_mood(text) RETURNS mood IMMUTABLE LANGUAGE sql RETURN 'sad'::mood;
    CREATE CAST (text AS mood) WITH FUNCTION as_mood AS IMPLICIT;
    CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
    CREATE TABLE parent (key int)";

/// Changes that owners make to the tables of a tracker.
const ALTERATIONS: &[&str] = &[
    "ALTER TABLE docs_clusters_canonical ALTER order1 TYPE int USING 1",
    "ALTER TABLE docs_clusters_canonical ALTER order1 TYPE bigint USING 1",
    "ALTER TABLE docs_clusters_canonical ALTER order2 TYPE text",
    "DROP INDEX docs_clusters_canonical_kept_idx; ALTER TABLE docs_clusters_canonical ALTER kept TYPE mood",
    "DROP INDEX docs_clusters_canonical_kept_idx; ALTER TABLE docs_clusters_canonical ALTER kept TYPE varchar",
    "ALTER TABLE docs_clusters_canonical ADD order3 int",
    "ALTER TABLE docs_clusters_canonical RENAME order1 TO order3",
    "ALTER TABLE docs_clusters_canonical DROP order1, ADD order1 date",
    "ALTER TABLE docs_clusters_canonical ALTER cluster TYPE text",
    "ALTER TABLE docs_clusters_canonical RENAME TO a; ALTER TABLE docs_clusters_log RENAME TO docs_clusters_canonical;
     ALTER TABLE docs_clusters_canonical ALTER number TYPE int",
    "ALTER TABLE docs_clusters_state ALTER refreshed_at TYPE text",
    "ALTER TABLE docs_clusters_state ALTER next_cluster TYPE text",
    "ALTER TABLE docs_clusters_state DROP seconds",
    "ALTER TABLE docs_clusters_state SET UNLOGGED",
    "ALTER TABLE docs_clusters ALTER key TYPE text",
    "ALTER TABLE docs_clusters ALTER key TYPE bigint",
    "ALTER TABLE docs_clusters RENAME cluster TO canonical2",
    "ALTER TABLE docs_clusters DROP CONSTRAINT docs_clusters_pkey",
    "CREATE RULE r AS ON INSERT TO docs_clusters DO INSTEAD NOTHING",
    "CREATE TRIGGER t BEFORE INSERT ON docs_clusters FOR EACH ROW EXECUTE FUNCTION nothing()",
    "ALTER TABLE docs_clusters FORCE ROW LEVEL SECURITY",
    "ALTER TABLE docs_clusters_log ALTER key TYPE text, ALTER replaced TYPE text",
    "ALTER TABLE docs_clusters_log DROP similarity",
    "ALTER TABLE docs_clusters_queue ADD x int",
    "ALTER TABLE docs_clusters_queue ADD x int; ALTER TABLE docs_clusters_queue DROP x",
    "ALTER TABLE docs_clusters_queue ADD UNIQUE (key)",
    "ALTER TABLE docs_clusters_queue ALTER key SET NOT NULL",
    "ALTER TABLE docs_clusters_queue DROP key",
    "ALTER TABLE docs_clusters_queue RENAME key TO k",
    "ALTER TABLE docs_clusters_queue INHERIT parent; CREATE TABLE child () INHERITS (docs_clusters_queue)",
    "CREATE RULE r AS ON DELETE TO docs_clusters_queue DO INSTEAD NOTHING",
    "ALTER TABLE docs_clusters ADD FOREIGN KEY (key) REFERENCES docs ON DELETE CASCADE",
    "CREATE TABLE reviews (doc int REFERENCES docs_clusters DEFERRABLE INITIALLY DEFERRED)",
    "CREATE CONSTRAINT TRIGGER t AFTER INSERT ON docs_clusters DEFERRABLE FOR EACH ROW EXECUTE FUNCTION nothing()",
];

/// Checks that every alteration causes an error with a hint, either in the refresh or in a write that would note a
/// change; that other trackers are shown as before; and that the tracker can be removed.
pub fn altered(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "live_altered")?;
    let mut client = database.connect()?;
    client.batch_execute(TABLES)?;
    client.batch_execute(
        "CREATE TABLE others (id int PRIMARY KEY, body text); CREATE INDEX ON others USING neardup (body);
         SELECT near_dup_track('others', 'body')",
    )?;
    for clusters in ["docs_clusters", "others_clusters"] {
        client.execute("SELECT near_dup_refresh($1::text::regclass)", &[&clusters])?;
    }
    for alteration in ALTERATIONS {
        is_noticed(&mut client, alteration).with_context(|| (*alteration).to_string())?;
    }
    // Changes that keep the meaning of a table are not noticed.
    client.batch_execute(
        "ALTER TABLE docs_clusters ADD CHECK (cluster > 0); CREATE INDEX ON docs_clusters_log (at);
         CREATE TRIGGER t AFTER INSERT ON docs_clusters_log FOR EACH ROW EXECUTE FUNCTION nothing();
         UPDATE docs SET day = '2025-01-01' WHERE id = 1; SELECT near_dup_refresh('docs_clusters')",
    )?;
    figure!("{} alterations noticed", ALTERATIONS.len());
    Ok(Outcome::Passed)
}

fn is_noticed(client: &mut Client, alteration: &str) -> Result<()> {
    client.batch_execute("BEGIN")?;
    client.batch_execute(alteration)?;
    let shown =
        "SELECT count(*) FROM near_dup_tracked WHERE relation = 'others'::regclass AND behind = 0";
    let shown: i64 = client.query_one(shown, &[])?.get(0);
    ensure!(shown == 1, "another tracker is not shown");
    let refreshed = client.batch_execute(
        "SAVEPOINT s; UPDATE docs SET day = '2025-01-01' WHERE id = 2; SELECT near_dup_refresh('docs_clusters')",
    );
    let error = refreshed.err().context("it is refreshed")?;
    let hint = error.as_db_error().and_then(|error| error.hint());
    ensure!(
        error.code() == Some(&SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE)
            && hint.is_some_and(|hint| hint.contains("near_dup_untrack('public.docs_clusters')")),
        "{error:?}"
    );
    client.batch_execute(
        "ROLLBACK TO s; SELECT near_dup_untrack('docs_clusters'); INSERT INTO docs VALUES (100)",
    )?;
    client.batch_execute("ROLLBACK")?;
    Ok(())
}

/// Copies of the triggers of others, on a stranger's own table, with any tables in their conditions.
const FORGERIES: &str = r#"
    CREATE TABLE stolen (id int PRIMARY KEY, day date, body text);
    CREATE INDEX ON stolen USING neardup (body);
    DO $$ DECLARE definition text;
    BEGIN
        FOR definition IN SELECT replace(pg_get_triggerdef(oid), 'ON public.docs ', 'ON stolen ')
            FROM pg_trigger WHERE tgrelid = 'docs'::regclass AND NOT tgisinternal LOOP
            EXECUTE definition;
        END LOOP;
    END $$;
    CREATE TABLE odd (id int PRIMARY KEY, body text);
    CREATE TRIGGER whole_row AFTER UPDATE ON odd FOR EACH ROW
        WHEN (ROW('odd'::regclass, 'odd'::regclass, 'odd'::regclass, 'odd'::regclass, 'odd'::regclass) IS NOT NULL
            AND (ROW(NEW, NEW.body) IS NULL OR true)) EXECUTE FUNCTION near_dup_track('0.8', '0', '0', '3', 'word', 'case');
    CREATE TRIGGER of_indexes AFTER UPDATE ON odd FOR EACH ROW
        WHEN (ROW('odd_pkey'::regclass, 'odd_pkey'::regclass, 'odd_pkey'::regclass, 'odd_pkey'::regclass, 'odd_pkey'::regclass) IS NOT NULL
            AND (ROW(NEW.id, NEW.body, NEW.tableoid) IS NULL OR true)) EXECUTE FUNCTION near_dup_track('0.8', '1', '0', '3', 'word', 'case');
    CREATE TRIGGER mixed AFTER INSERT OR UPDATE ON odd FOR EACH ROW
        WHEN (ROW('docs_clusters'::regclass, 'odd'::regclass, 'odd'::regclass, 'odd'::regclass, 'odd'::regclass) IS NOT NULL)
        EXECUTE FUNCTION near_dup_track('NaN', '255', '1');
    CREATE TRIGGER unnamed AFTER DELETE ON odd FOR EACH ROW EXECUTE FUNCTION near_dup_track()"#;

/// Checks that triggers that a stranger has copied have no effect on the tracker, its owner or a superuser, and that
/// the owner's triggers on another table are not trusted.
pub fn forged(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "live_forged")?;
    let role = &database.name;
    let mut owner = database.connect()?;
    owner.batch_execute(TABLES)?;
    owner.batch_execute("SELECT near_dup_refresh('docs_clusters')")?;
    owner.batch_execute(&format!(
        "DROP ROLE IF EXISTS {role}; CREATE ROLE {role}; GRANT CREATE ON SCHEMA public TO {role}"
    ))?;
    let mut stranger = database.connect()?;
    stranger.batch_execute(&format!("SET ROLE {role}"))?;
    stranger.batch_execute(FORGERIES)?;
    let tried = try_forgeries(&mut owner, &mut stranger);
    owner.batch_execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}"))?;
    tried.map(|()| Outcome::Passed)
}

fn try_forgeries(owner: &mut Client, stranger: &mut Client) -> Result<()> {
    for client in [&mut *owner, &mut *stranger] {
        for statement in [
            "INSERT INTO stolen VALUES (1, NULL, 'one text of several words, number 1')",
            "INSERT INTO odd VALUES (1, 'one text')",
        ] {
            let written = client.batch_execute(statement).err();
            let error = written.with_context(|| format!("{statement} notes something"))?;
            let hint = error
                .as_db_error()
                .and_then(|error| error.hint())
                .unwrap_or_default();
            ensure!(
                error.code() == Some(&SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE)
                    && !hint.contains("OWNER TO"),
                "{error:?}"
            );
        }
        client.batch_execute("SELECT * FROM near_dup_tracked")?;
    }
    // A temporary table, with a trigger, that its owner locks.
    stranger.batch_execute(
        "CREATE TEMP TABLE locked (id int);
         CREATE TRIGGER t AFTER UPDATE ON locked FOR EACH ROW EXECUTE FUNCTION near_dup_track();
         GRANT SELECT ON locked TO PUBLIC; BEGIN; LOCK TABLE locked",
    )?;
    owner.batch_execute("SET lock_timeout = '10s'; SELECT * FROM near_dup_tracked")?;
    stranger.batch_execute("COMMIT; DROP TABLE locked")?;
    let shown = "SELECT relation::regclass::text, problem FROM near_dup_tracked WHERE clusters = 'docs_clusters'::regclass";
    let rows = owner.query(shown, &[])?;
    ensure!(
        rows.len() == 1
            && rows[0].get::<_, &str>(0) == "docs"
            && rows[0].get::<_, Option<&str>>(1).is_none(),
        "other trackers are shown: {rows:?}"
    );
    let refreshed = stranger.batch_execute("SELECT near_dup_refresh('docs_clusters')");
    ensure!(refreshed.is_err(), "a stranger refreshes clusters");
    // The owner copies triggers, too.
    owner.batch_execute(
        &FORGERIES[..FORGERIES.find("CREATE TABLE odd").unwrap_or(0)].replace("stolen", "copied"),
    )?;
    owner.batch_execute("INSERT INTO docs VALUES (50, NULL, 'a text of its own')")?;
    for rebuild in [false, true] {
        owner.execute("SELECT near_dup_refresh('docs_clusters', $1)", &[&rebuild])?;
    }
    let kept: i64 = owner
        .query_one("SELECT count(*) FROM docs_clusters", &[])?
        .get(0);
    ensure!(kept == 21, "{kept} rows in the clusters");
    stranger.batch_execute("DROP TABLE stolen")?;
    owner.batch_execute("DROP TABLE copied")?;
    let left =
        "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'docs'::regclass AND NOT tgisinternal";
    let left: i64 = owner.query_one(left, &[])?.get(0);
    ensure!(left == 2, "{left} triggers are left");
    ensure_described_once(owner, stranger)?;
    stranger.batch_execute(&FORGERIES[..FORGERIES.find("CREATE TABLE odd").unwrap_or(0)])?;
    owner
        .batch_execute("SELECT near_dup_untrack('docs_clusters'); INSERT INTO docs VALUES (51)")?;
    Ok(())
}

/// Triggers for updates that name the tables of the tracker of `docs`, before and after its own by name.
const DESCRIPTIONS: [&str; 2] = [
    "CREATE TRIGGER aaa AFTER UPDATE ON docs FOR EACH ROW WHEN ({named} AND (ROW(NEW.id, NEW.id) IS NULL OR true) AND false)
         EXECUTE FUNCTION near_dup_track()",
    "CREATE TRIGGER zzz AFTER UPDATE ON docs FOR EACH ROW WHEN ({named} AND (ROW(NEW.id, NEW.body, trap(NEW.id)) IS NULL OR true))
         EXECUTE FUNCTION near_dup_track('0.8', '0', '1', '3', 'word', 'case')",
];

/// Checks that a stranger with the privilege TRIGGER on the tracked table causes an error, and no other change.
fn ensure_described_once(owner: &mut Client, stranger: &mut Client) -> Result<()> {
    let role: String = stranger.query_one("SELECT current_user::text", &[])?.get(0);
    owner.batch_execute(&format!("GRANT TRIGGER ON docs TO {role}"))?;
    stranger.batch_execute(
        "CREATE FUNCTION trap(int) RETURNS bool LANGUAGE plpgsql AS 'BEGIN RAISE ''a trap''; END'",
    )?;
    let named = ["", "_log", "_canonical", "_queue", "_state"]
        .map(|table| format!("'docs_clusters{table}'::regclass"));
    let named = format!("ROW({}) IS NOT NULL", named.join(", "));
    for description in DESCRIPTIONS {
        stranger.batch_execute(&description.replace("{named}", &named))?;
        for statement in [
            "SELECT near_dup_refresh('docs_clusters')",
            "UPDATE docs SET body = body || ' and more' WHERE id = 1",
        ] {
            let done = owner.batch_execute(statement).err();
            let error = done.with_context(|| format!("{statement} beside {description}"))?;
            let code = error.code();
            ensure!(
                code == Some(&SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE),
                "{error:?}"
            );
        }
        owner.batch_execute(&format!("DROP TRIGGER {} ON docs", &description[15..18]))?;
        owner.batch_execute("SELECT near_dup_refresh('docs_clusters')")?;
    }
    Ok(stranger.batch_execute("DROP FUNCTION trap(int)")?)
}

/// Checks that orders and conditions over a virtual generated column are rejected: triggers find it NULL.
fn reject_virtual_columns(client: &mut Client, major: u16) -> Result<()> {
    if major < 18 {
        return Ok(());
    }
    client.batch_execute(
        "CREATE TABLE scored (id int PRIMARY KEY, body text, score int GENERATED ALWAYS AS (id * 2) VIRTUAL);
         CREATE INDEX ON scored USING neardup (body)",
    )?;
    for call in [
        "near_dup_track('scored', 'body', keep => 'score DESC')",
        "near_dup_track('scored', 'body', condition => 'score > 4')",
        "near_dup_protect('scored', 'body', 0.8, condition => 'score > 4')",
    ] {
        let made = client.batch_execute(&format!("SELECT {call}")).err();
        let code = made.as_ref().and_then(|error| error.code());
        ensure!(
            code == Some(&SqlState::FEATURE_NOT_SUPPORTED),
            "{call}: {made:?}"
        );
    }
    Ok(())
}

/// Changes of the tracked table that its triggers do not note, or note while a refresh writes.
const UNNOTED: &[&str] = &[
    "CREATE FUNCTION drop_copy() RETURNS trigger LANGUAGE plpgsql AS
         'BEGIN DELETE FROM public.docs WHERE id = NEW.key; RETURN NULL; END';
     CREATE TRIGGER t AFTER INSERT OR UPDATE ON docs_clusters FOR EACH ROW
         WHEN (NEW.key <> NEW.canonical) EXECUTE FUNCTION drop_copy();
     INSERT INTO docs SELECT 30, day, body FROM docs WHERE id = 1; SELECT near_dup_refresh('docs_clusters')",
    "BEGIN; ALTER TABLE docs DISABLE TRIGGER docs_clusters_note_rows; INSERT INTO docs VALUES (30, NULL, 'a text of its own');
     ALTER TABLE docs ENABLE ALWAYS TRIGGER docs_clusters_note_rows; SELECT near_dup_refresh('docs_clusters');
     ALTER TABLE docs DISABLE TRIGGER docs_clusters_note_rows; INSERT INTO docs VALUES (31, NULL, 'another text of its own');
     ALTER TABLE docs ENABLE ALWAYS TRIGGER docs_clusters_note_rows; COMMIT",
    "SELECT near_dup_untrack('docs_clusters'); DROP TABLE docs, docs_clusters, docs_clusters_log;
     CREATE TABLE docs (id int PRIMARY KEY, day date, body text) PARTITION BY RANGE (id);
     CREATE UNLOGGED TABLE docs_1 PARTITION OF docs DEFAULT;
     CREATE INDEX ON docs USING neardup (body); INSERT INTO docs VALUES (1, NULL, 'one text of several words');
     SELECT near_dup_track('docs', 'body', keep => 'day DESC'); SELECT near_dup_refresh('docs_clusters'); CHECKPOINT",
];

/// Checks that a refresh after such changes, and after a crash, makes the clusters equal those computed from scratch,
/// and that a refresh is rejected while other tables inherit from the tracked one.
pub fn unnoted(server: &Server) -> Result<Outcome> {
    let cluster = server.quiet_cluster("live_unnoted", &[])?;
    let made = (0..).zip(UNNOTED).map(|(number, changes)| {
        let name = format!("live_unnoted_{number}");
        // It is there until the cluster is removed.
        let database = ManuallyDrop::new(Database::with_extension(&cluster, &name)?);
        let mut client = database.connect()?;
        client.batch_execute(TABLES)?;
        client.batch_execute("SELECT near_dup_refresh('docs_clusters')")?;
        client.batch_execute(changes).context(*changes)?;
        Ok(database.name.clone())
    });
    let made = made.collect::<Result<Vec<String>>>()?;
    reject_virtual_columns(&mut cluster.connect(&made[0])?, server.pg.major)?;
    cluster.crash()?;
    cluster.start()?;
    for (name, changes) in made.iter().zip(UNNOTED) {
        let mut client = cluster.connect(name)?;
        check_clusters(&mut client).context(*changes)?;
        client.batch_execute(
            "CREATE TABLE child (LIKE docs); CREATE TABLE other () INHERITS (child)",
        )?;
        let inherits = client.batch_execute("ALTER TABLE child INHERIT docs");
        if inherits.is_ok() {
            let refreshed = client.batch_execute("SELECT near_dup_refresh('docs_clusters')");
            let error = refreshed.err().context("it is refreshed with children")?;
            ensure!(
                error.code() == Some(&SqlState::WRONG_OBJECT_TYPE),
                "{error:?}"
            );
        }
    }
    Ok(Outcome::Passed)
}

/// Checks that a refresh keeps the clusters that are computed anew.
fn check_clusters(client: &mut Client) -> Result<()> {
    client.batch_execute("SELECT near_dup_refresh('docs_clusters')")?;
    let row = client.query_one(
        "SELECT count(*), count(c.key) FROM docs_clusters k FULL JOIN near_dup_clusters(NULL::int,
             'SELECT id, body FROM docs ORDER BY day DESC, id', 0.8) c ON c.key = k.key AND c.cluster = k.canonical",
        &[],
    )?;
    let [all, kept]: [i64; 2] = [row.get(0), row.get(1)];
    let anew: i64 = client.query_one("SELECT count(*) FROM docs", &[])?.get(0);
    ensure!([all, kept] == [anew, anew], "{all}, {kept}, {anew}");
    Ok(())
}

/// Changes that do not wait for a refresh, each with the statement that undoes it, and whether the refresh succeeds.
const BETWEEN: [(&str, &str, bool); 2] = [
    (
        "CREATE TABLE child () INHERITS (docs);
         INSERT INTO child VALUES (99, '2024-01-02', 'one text of several words, number 3')",
        "DROP TABLE child",
        true,
    ),
    (
        "CREATE TRIGGER t BEFORE INSERT ON docs_clusters FOR EACH ROW EXECUTE FUNCTION nothing()",
        "DROP TRIGGER t ON docs_clusters",
        false,
    ),
];

/// Checks that a child or a trigger which comes after a refresh has begun, and goes before the next one, leaves nothing
/// in the clusters.
pub fn altered_while_refreshed(server: &Server) -> Result<Outcome> {
    for (number, (change, end, succeeds)) in BETWEEN.into_iter().enumerate() {
        let database = Database::with_extension(&server.main, &format!("live_altered_{number}"))?;
        let mut client = database.connect()?;
        client.batch_execute(TABLES)?;
        let mut sessions = Sessions::open(|| database.connect(), 2)?;
        sessions.step(0, "BEGIN; SELECT FROM docs_clusters_state FOR UPDATE")?;
        client.batch_execute("INSERT INTO docs VALUES (98, '2024-01-01', 'a text of its own')")?;
        let step = sessions.step(1, "SELECT near_dup_refresh('docs_clusters', true)")?;
        ensure!(step == Step::Waits, "the refresh does not wait");
        client.batch_execute(change)?;
        sessions.step(0, "COMMIT")?;
        sessions.finish()?;
        let step = sessions.state(1);
        ensure!((step == Step::Done) == succeeds, "{change}: {step:?}");
        client.batch_execute(end)?;
        check_clusters(&mut client).context(change)?;
    }
    Ok(Outcome::Passed)
}

/// Checks that a tracker can be removed while a transaction that has written its table refreshes it.
pub fn untracked_while_refreshed(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "live_untracked")?;
    database.connect()?.batch_execute(TABLES)?;
    let mut sessions = Sessions::open(|| database.connect(), 2)?;
    for (session, statement, expected) in [
        (0, "BEGIN", Step::Done),
        (0, "INSERT INTO docs VALUES (0)", Step::Done),
        (1, "SELECT near_dup_untrack('docs_clusters')", Step::Waits),
        (0, "SELECT near_dup_refresh('docs_clusters')", Step::Done),
        (0, "COMMIT", Step::Done),
    ] {
        let step = sessions.step(session, statement)?;
        ensure!(step == expected, "{statement}: {step:?}");
    }
    sessions.settle()?;
    ensure!(sessions.state(1) == Step::Done, "{:?}", sessions.state(1));
    Ok(Outcome::Passed)
}
