//! Critical moments at which a copy could slip in, or a session could wait in vain.

use std::fs::{self, File};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use postgres::error::SqlState;
use testbed::server::cluster::until;
use testbed::server::database::Database;
use testbed::server::{ScratchCluster, Server};

use super::{held_cluster, holds, prepared_cluster};
use crate::harness::Outcome;
use crate::sessions::{Sessions, Step};

/// A row that asks for it waits, when it is in the table and the index but the guard has not checked it yet, until no
/// session holds the advisory lock 1. Sessions do not wait for deadlock detection.
const PAUSING: &str = "
    CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NEW.pauses THEN PERFORM pg_advisory_xact_lock_shared(1); END IF;
        RETURN NULL;
    END $$;
    CREATE TRIGGER a_pause AFTER INSERT ON docs FOR EACH ROW EXECUTE FUNCTION pause();
    DO $$ BEGIN
        EXECUTE format('ALTER DATABASE %I SET deadlock_timeout = ''10min''', current_database());
    END $$;";

/// The maximum time for a session to proceed, and the time between two checks.
const PATIENCE: Duration = Duration::from_mins(5);
const PAUSE: Duration = Duration::from_millis(1);

/// Sessions, and the expected results of their steps.
pub(super) struct Play<'d> {
    pub sessions: Sessions,
    database: &'d Database<'d>,
}

impl<'d> Play<'d> {
    pub fn new(database: &'d Database<'d>, tables: &str, sessions: usize) -> Result<Play<'d>> {
        database.connect()?.batch_execute(tables)?;
        let sessions = Sessions::open(|| database.connect(), sessions)?;
        Ok(Play { sessions, database })
    }

    pub fn step(&mut self, session: usize, statement: &str, expected: Step) -> Result<()> {
        let step = self.sessions.step(session, statement)?;
        ensure!(step == expected, "session {session}: {statement}: {step:?}");
        Ok(())
    }

    /// Fails unless the last statement of a session has the expected state.
    pub fn ensure_state(&self, session: usize, expected: Step) -> Result<()> {
        let step = self.sessions.state(session);
        ensure!(step == expected, "session {session}: {step:?}");
        Ok(())
    }

    /// Waits until a session that is no longer held has proceeded.
    pub fn wait_for_state(&mut self, session: usize, expected: &Step) -> Result<()> {
        let goes_on = until(PATIENCE, PAUSE, || {
            self.sessions.settle()?;
            Ok(self.sessions.state(session) == *expected)
        })?;
        ensure!(goes_on, "session {session} does not go on");
        Ok(())
    }

    /// Returns the file that holds a session at a point.
    pub fn hold(&self, cluster: &ScratchCluster, session: usize, point: &str) -> PathBuf {
        holds(cluster).join(format!("{}.{point}", self.sessions.pid(session)))
    }

    pub fn ensure_rows(&self, expected: &[i32]) -> Result<()> {
        let rows = self
            .database
            .connect()?
            .query("SELECT id FROM docs ORDER BY id", &[])?;
        let ids: Vec<i32> = rows.iter().map(|row| row.get(0)).collect();
        ensure!(ids == expected, "rows {ids:?}, not {expected:?}");
        Ok(())
    }
}

pub(super) fn rejected() -> Step {
    Step::Failed(SqlState::EXCLUSION_VIOLATION)
}

/// Checks that a session that waits for a key finds the row of the session that has changed it, whichever index is
/// filled first.
pub fn changed_key(server: &Server) -> Result<Outcome> {
    let [key, sig] = [
        "ALTER TABLE docs ADD PRIMARY KEY (id);",
        "CREATE INDEX ON docs USING neardup (sig);",
    ];
    for indexes in [[key, sig], [sig, key]] {
        let database = Database::with_extension(&server.main, "guard_key")?;
        let tables = format!(
            "CREATE TABLE docs (id int, sig minhash_signature); {}
             SELECT near_dup_protect('docs', 'sig', 0.8)",
            indexes.concat()
        );
        let mut play = Play::new(&database, &tables, 2)?;
        let insert = "INSERT INTO docs VALUES (1, minhash('one two three four five'))";
        play.step(0, &format!("BEGIN; {insert}"), Step::Done)?;
        play.step(1, insert, Step::Waits)?;
        play.step(0, "UPDATE docs SET id = 2; COMMIT", Step::Done)?;
        play.ensure_state(1, rejected())?;
        play.ensure_rows(&[2])?;
    }
    Ok(Outcome::Passed)
}

/// Checks that of two rows that are both in the index before either is checked, the row whose statement ends first
/// passes first.
pub fn first_to_pass(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "guard_order")?;
    let tables = "CREATE TABLE docs (id int PRIMARY KEY, sig minhash_signature, pauses bool);
        CREATE INDEX ON docs USING neardup (sig); SELECT near_dup_protect('docs', 'sig', 0.8);";
    let mut play = Play::new(&database, &format!("{tables} {PAUSING}"), 3)?;
    let insert =
        |id, text, pauses| format!("INSERT INTO docs VALUES ({id}, minhash('{text}'), {pauses})");
    play.step(2, "SELECT pg_advisory_lock(1)", Step::Done)?;
    play.step(0, &insert(1, "commits", true), Step::Waits)?;
    play.step(1, &insert(2, "commits", false), Step::Done)?;
    play.step(2, "SELECT pg_advisory_unlock(1)", Step::Done)?;
    play.ensure_state(0, rejected())?;

    play.step(2, "SELECT pg_advisory_lock(1)", Step::Done)?;
    play.step(0, &insert(3, "rolls back", true), Step::Waits)?;
    let open = format!("BEGIN; {}", insert(4, "rolls back", false));
    play.step(1, &open, Step::Done)?;
    play.step(2, "SELECT pg_advisory_unlock(1)", Step::Done)?;
    play.ensure_state(0, Step::Waits)?;
    play.step(1, "ROLLBACK", Step::Done)?;
    play.ensure_state(0, Step::Done)?;
    play.ensure_rows(&[2, 3])?;
    Ok(Outcome::Passed)
}

/// Checks that a transaction that passes between another transaction's search and its passing is not missed, however it
/// ends, and whatever it does to the row.
pub fn passed_meanwhile(server: &Server) -> Result<Outcome> {
    const COPY: &str = "minhash('a copy')";
    let cluster = held_cluster(server, "guard_meanwhile")?;
    // How the row comes in, before or after the search, the next events, and which sessions succeed.
    let insert = format!("INSERT INTO docs VALUES (2, {COPY})");
    let update = format!("UPDATE docs SET sig = {COPY} WHERE id = 9");
    let nested = format!("SAVEPOINT s; {insert}; RELEASE s");
    let undone = format!("SAVEPOINT s; {insert}; ROLLBACK TO s; INSERT INTO docs VALUES (3)");
    let cases: [(&str, &[&str], Step); 7] = [
        (&insert, &["COMMIT"], rejected()),
        (&insert, &["ROLLBACK"], Step::Done),
        (&update, &["COMMIT"], rejected()),
        (&nested, &["COMMIT"], rejected()),
        (&undone, &["COMMIT"], Step::Done),
        (
            &insert,
            &["PREPARE TRANSACTION 'p'", "COMMIT PREPARED 'p'"],
            rejected(),
        ),
        (
            &insert,
            &["PREPARE TRANSACTION 'p'", "ROLLBACK PREPARED 'p'"],
            Step::Done,
        ),
    ];
    for (change, ends, outcome) in cases {
        for is_in_before in [false, true] {
            let database = Database::with_extension(&cluster, "guard_meanwhile")?;
            let tables = "CREATE TABLE docs (id int PRIMARY KEY, sig minhash_signature);
                CREATE INDEX ON docs USING neardup (sig); SELECT near_dup_protect('docs', 'sig', 0.8);
                INSERT INTO docs VALUES (9, minhash('unlike all others'))";
            let mut play = Play::new(&database, tables, 2)?;
            let [ours, theirs] =
                [0, 1].map(|session| play.hold(&cluster, session, "guard_has_searched"));
            File::create(&ours)?;
            if is_in_before {
                File::create(&theirs)?;
                play.step(1, "BEGIN", Step::Done)?;
                play.step(1, change, Step::Waits)?;
            }
            play.step(
                0,
                &format!("INSERT INTO docs VALUES (1, {COPY})"),
                Step::Waits,
            )?;
            match is_in_before {
                // An UPDATE announces nothing beforehand, so our search waits for its end.
                true => {
                    fs::remove_file(&theirs)?;
                    play.wait_for_state(1, &Step::Done)?;
                }
                false => {
                    play.step(1, "BEGIN", Step::Done)?;
                    play.step(1, change, Step::Done)?;
                }
            }
            let (last, first) = ends.split_last().context("no end")?;
            for end in first {
                play.step(1, end, Step::Done)?;
            }
            fs::remove_file(&ours)?;
            play.sessions.settle()?;
            if change != undone {
                play.ensure_state(0, Step::Waits)?;
            }
            play.step(1, last, Step::Done)?;
            play.wait_for_state(0, &outcome)
                .with_context(|| format!("{change}, {ends:?}, {is_in_before}"))?;
        }
    }
    Ok(Outcome::Passed)
}

/// Checks that the trigger that announces that a transaction will pass has no effect without the other trigger, or if
/// that one is disabled.
pub fn triggers(server: &Server) -> Result<Outcome> {
    const COUNT: &str = "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'docs'::regclass";
    let database = Database::with_extension(&server.main, "guard_triggers")?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE docs (id int, part int, sig minhash_signature) PARTITION BY LIST (part);
         CREATE TABLE docs_1 PARTITION OF docs FOR VALUES IN (1);
         CREATE INDEX ON docs USING neardup (sig);
         SELECT near_dup_protect('docs', 'sig', 0.8);
         CREATE TABLE docs_2 PARTITION OF docs FOR VALUES IN (2)",
    )?;
    let mut triggers = || -> Result<i64> { Ok(client.query_one(COUNT, &[])?.get(0)) };
    ensure!(triggers()? == 2, "{} triggers", triggers()?);
    for [without, with] in [
        [
            "ALTER TABLE docs DISABLE TRIGGER docs_guard",
            "ALTER TABLE docs ENABLE TRIGGER docs_guard",
        ],
        [
            "DROP TRIGGER docs_guard ON docs",
            "SELECT near_dup_protect('docs', 'sig', 0.8)",
        ],
    ] {
        client.batch_execute(&format!(
            "{without}; DELETE FROM docs; BEGIN; INSERT INTO docs VALUES (1, 1, minhash('a copy'))"
        ))?;
        let announced =
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()";
        let announced: i64 = client.query_one(announced, &[])?.get(0);
        ensure!(announced == 0, "{without}: {announced} announcements");
        client.batch_execute(&format!("COMMIT; {with}"))?;
    }
    let copy = client.batch_execute("INSERT INTO docs VALUES (1, 2, minhash('a copy'))");
    let code = copy.err().and_then(|error| error.code().cloned());
    ensure!(code == Some(SqlState::EXCLUSION_VIOLATION), "{code:?}");
    Ok(Outcome::Passed)
}

/// Checks that a row that changes between the search of the index and the check of the row is not missed.
pub fn changed_while_searched(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "guard_search")?;
    // The comparison of tenants can be made to wait in the middle of a search.
    let tables = "
        CREATE TYPE tenant AS (name text);
        CREATE FUNCTION tenant_equal(a tenant, b tenant) RETURNS bool LANGUAGE plpgsql AS $$
        BEGIN
            IF current_setting('guard_test.pauses', true) = 'on' THEN
                PERFORM pg_advisory_lock_shared(1), pg_advisory_unlock_shared(1);
            END IF;
            RETURN a.name = b.name;
        END $$;
        CREATE OPERATOR = (LEFTARG = tenant, RIGHTARG = tenant, FUNCTION = tenant_equal);
        CREATE FUNCTION tenant_order(a tenant, b tenant) RETURNS int LANGUAGE sql
            RETURN btrecordcmp(a, b);
        CREATE OPERATOR CLASS tenant_ops DEFAULT FOR TYPE tenant USING btree
            AS OPERATOR 3 =, FUNCTION 1 tenant_order(tenant, tenant);
        CREATE TABLE docs (id int PRIMARY KEY, tenant tenant, sig minhash_signature);
        CREATE INDEX ON docs USING neardup (sig);
        SELECT near_dup_protect('docs', 'sig', 0.8, scope => '{tenant}');
        INSERT INTO docs VALUES (1, '(a)', minhash('a text')), (2, '(b)', minhash('a text'))";
    let mut play = Play::new(&database, tables, 3)?;
    play.step(2, "SELECT pg_advisory_lock(1)", Step::Done)?;
    let insert = "INSERT INTO docs VALUES (3, '(b)', minhash('a text'))";
    play.step(
        0,
        &format!("SET guard_test.pauses = on; {insert}"),
        Step::Waits,
    )?;
    play.step(1, "UPDATE docs SET id = 20 WHERE id = 2", Step::Done)?;
    play.step(2, "SELECT pg_advisory_unlock(1)", Step::Done)?;
    play.ensure_state(0, rejected())?;
    play.ensure_rows(&[1, 20])?;
    Ok(Outcome::Passed)
}

/// Checks that a change that makes no new index entry waits for all other transactions.
pub fn hot_update(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "guard_hot")?;
    let tables = "CREATE TABLE docs (id int PRIMARY KEY, tenant int, body text);
        CREATE INDEX ON docs USING neardup (body);
        SELECT near_dup_protect('docs', 'body', 0.8, scope => '{tenant}');
        INSERT INTO docs VALUES (1, 1, 'any'), (2, 2, 'any')";
    let mut play = Play::new(&database, tables, 2)?;
    let update = |id| format!("UPDATE docs SET tenant = 3 WHERE id = {id}");
    for (end, outcome) in [("ROLLBACK", Step::Done), ("COMMIT", rejected())] {
        for (first, second) in [(1, 2), (2, 1)] {
            play.step(0, &format!("BEGIN; {}", update(first)), Step::Done)?;
            play.step(1, &format!("BEGIN; {}", update(second)), Step::Waits)?;
            play.step(0, end, Step::Done)?;
            play.ensure_state(1, outcome.clone())?;
            play.step(1, "ROLLBACK", Step::Done)?;
            play.step(0, "UPDATE docs SET tenant = id", Step::Done)?;
        }
    }
    let hot = "SELECT pg_stat_get_xact_tuples_hot_updated('docs'::regclass) > 0";
    play.step(0, &format!("BEGIN; {}", update(1)), Step::Done)?;
    play.step(
        0,
        &format!("DO $$ BEGIN ASSERT ({hot}); END $$"),
        Step::Done,
    )?;
    Ok(Outcome::Passed)
}

/// Checks that while a REINDEX CONCURRENTLY maintains a second index, sessions that number rows by different indexes do
/// not wait for each other.
pub fn twin_index(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "guard_twin")?;
    let tables = "CREATE TABLE docs (id int PRIMARY KEY, sig minhash_signature, pauses bool);
        CREATE INDEX docs_sig ON docs USING neardup (sig);
        SELECT near_dup_protect('docs', 'sig', 0.8);";
    let mut play = Play::new(&database, &format!("{tables} {PAUSING}"), 5)?;
    let insert =
        |id, text, pauses| format!("INSERT INTO docs VALUES ({id}, minhash('{text}'), {pauses})");
    // The second index exists while the REINDEX waits for session 3, and receives rows while it waits for session 4.
    play.step(
        3,
        &format!("BEGIN; {}", insert(10, "the first", false)),
        Step::Done,
    )?;
    play.step(2, "REINDEX INDEX CONCURRENTLY docs_sig", Step::Waits)?;
    play.step(
        4,
        &format!("BEGIN; {}", insert(11, "the second", false)),
        Step::Done,
    )?;
    play.step(3, "COMMIT", Step::Done)?;
    play.ensure_state(2, Step::Waits)?;
    play.step(3, "SELECT pg_advisory_lock(1)", Step::Done)?;
    play.step(0, &insert(1, "a copy", true), Step::Waits)?;
    play.step(1, &insert(2, "a copy", false), Step::Done)?;
    play.sessions.step(3, "SELECT pg_advisory_unlock(1)")?;
    play.sessions.step(4, "COMMIT")?;
    play.sessions.finish()?;
    play.ensure_state(2, Step::Done)?;
    play.ensure_state(0, rejected())?;
    play.ensure_state(1, Step::Done)?;
    play.ensure_rows(&[2, 10, 11])?;
    Ok(Outcome::Passed)
}

/// Checks that the other session waits for the end of a prepared transaction, even after a crash.
pub fn prepared_transaction(server: &Server) -> Result<Outcome> {
    let cluster = prepared_cluster(server, "guard_prepared")?;
    let database = Database::with_extension(&cluster, "guard_prepared")?;
    let tables = "CREATE TABLE docs (id int PRIMARY KEY, body text);
        CREATE INDEX ON docs USING neardup (body); SELECT near_dup_protect('docs', 'body', 0.8);";
    let mut play = Play::new(&database, tables, 2)?;
    let cases = [
        ("ROLLBACK", 2, Step::Done, false),
        ("COMMIT", 3, rejected(), false),
        ("ROLLBACK", 4, Step::Done, true),
        ("COMMIT", 5, rejected(), true),
    ];
    for (end, id, outcome, crashes) in cases {
        let insert = |id: i32, number| format!("INSERT INTO docs VALUES ({id}, 'text {number}')");
        play.step(0, &format!("BEGIN; {}", insert(id * 10, id)), Step::Done)?;
        play.step(0, "PREPARE TRANSACTION 'p'", Step::Done)?;
        if crashes {
            drop(play);
            cluster.crash()?;
            cluster.start()?;
            play = Play::new(&database, "", 2)?;
        }
        play.step(1, &insert(id, id), Step::Waits)?;
        play.step(0, &format!("{end} PREPARED 'p'"), Step::Done)?;
        play.ensure_state(1, outcome)?;
    }
    play.ensure_rows(&[2, 4, 30, 50])?;
    Ok(Outcome::Passed)
}

/// A table of letters, guarded against copies except for the pairs in `apart`, and a table with a guard that notes
/// them.
const EXCEPTED: &str = "
    CREATE TABLE apart (a int, b int, PRIMARY KEY (a, b));
    CREATE TABLE apart_noted (a int, b int, PRIMARY KEY (a, b));
    CREATE TABLE docs (id int PRIMARY KEY, body text);
    CREATE TABLE noted (id int PRIMARY KEY, body text);
    CREATE INDEX ON docs USING neardup (body);
    CREATE INDEX ON noted USING neardup (body);
    SELECT near_dup_protect('docs', 'body', 0.8, exceptions => 'apart');
    SELECT near_dup_protect('noted', 'body', 0.8, action => 'note', exceptions => 'apart_noted')";

/// Checks that exceptions count as soon as they are committed, and immediately for the transaction that inserts them,
/// in fresh sessions and in used ones.
pub fn excepted_meanwhile(server: &Server) -> Result<Outcome> {
    for level in ["READ COMMITTED", "REPEATABLE READ"] {
        let database = Database::with_extension(&server.main, "guard_excepted")?;
        let mut play = Play::new(&database, EXCEPTED, 3)?;
        let begin = format!("BEGIN ISOLATION LEVEL {level}; SELECT FROM docs");
        for round in 0..2 {
            let [a, b, c, d] = [1, 2, 3, 4].map(|number| 10 * round + number);
            let insert = |table: &str, id: i32| {
                format!(
                    "INSERT INTO {table} VALUES ({id}, 'a letter of round {round}, which some send twice')"
                )
            };
            // Committed while another session waits to pass.
            play.step(1, &begin, Step::Done)?;
            play.step(0, &format!("BEGIN; {}", insert("docs", a)), Step::Done)?;
            play.step(1, &insert("docs", b), Step::Waits)?;
            play.step(
                2,
                &format!("INSERT INTO apart VALUES ({b}, {a})"),
                Step::Done,
            )?;
            play.step(0, "COMMIT", Step::Done)?;
            play.ensure_state(1, Step::Done)?;
            play.step(1, "COMMIT", Step::Done)?;
            // In progress, then committed after the transaction has taken its snapshot.
            let pairs = format!("BEGIN; INSERT INTO apart VALUES ({a}, {c}), ({c}, {b})");
            play.step(2, &pairs, Step::Done)?;
            play.step(0, &insert("docs", c), rejected())?;
            play.step(1, &begin, Step::Done)?;
            play.step(2, "COMMIT", Step::Done)?;
            play.step(1, &insert("docs", c), Step::Done)?;
            play.step(1, "COMMIT", Step::Done)?;
            // In the transaction that inserts the row, and no longer after a rollback.
            let pairs =
                format!("INSERT INTO apart SELECT {d}, id FROM docs WHERE id > 10 * {round}");
            for end in ["ROLLBACK", "COMMIT"] {
                play.step(1, &format!("{begin}; {pairs}"), Step::Done)?;
                play.step(1, &insert("docs", d), Step::Done)?;
                play.step(1, end, Step::Done)?;
                let expected = if end == "COMMIT" {
                    SqlState::UNIQUE_VIOLATION
                } else {
                    SqlState::EXCLUSION_VIOLATION
                };
                play.step(0, &insert("docs", d), Step::Failed(expected))?;
            }
            // An exception waits for notes that may concern its pair, and notes wait for exceptions.
            play.step(0, &insert("noted", a), Step::Done)?;
            play.step(0, &format!("BEGIN; {}", insert("noted", b)), Step::Done)?;
            play.step(
                2,
                &format!("INSERT INTO apart_noted VALUES ({a}, {b})"),
                Step::Waits,
            )?;
            play.step(0, "COMMIT", Step::Done)?;
            play.ensure_state(2, Step::Done)?;
            let pairs = format!("BEGIN; INSERT INTO apart_noted VALUES ({c}, {a}), ({b}, {c})");
            play.step(2, &pairs, Step::Done)?;
            play.step(1, &insert("noted", c), Step::Waits)?;
            play.step(2, "COMMIT", Step::Done)?;
            play.ensure_state(1, Step::Done)?;
        }
        play.ensure_rows(&[1, 2, 3, 4, 11, 12, 13, 14])?;
        let notes = "SELECT count(*) FROM noted_near_dups";
        let notes: i64 = database.connect()?.query_one(notes, &[])?.get(0);
        ensure!(notes == 0, "{notes} notes of excepted pairs at {level}");
    }
    Ok(Outcome::Passed)
}
