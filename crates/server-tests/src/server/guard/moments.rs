//! Single moments at which a copy could slip in, or a session could wait in vain.

use anyhow::{Result, ensure};
use postgres::error::SqlState;
use testbed::server::Server;
use testbed::server::database::Database;

use super::prepared_cluster;
use crate::harness::Outcome;
use crate::sessions::{Sessions, Step};

/// A row that says so waits, when it is in table and index but before the guard looks at it, until
/// nobody holds the advisory lock 1. No session waits for a deadlock to be noticed.
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

/// Sessions and what each of their steps must come to.
struct Play<'d> {
    sessions: Sessions,
    database: &'d Database<'d>,
}

impl<'d> Play<'d> {
    fn new(database: &'d Database<'d>, tables: &str, sessions: usize) -> Result<Play<'d>> {
        database.connect()?.batch_execute(tables)?;
        let sessions = Sessions::open(|| database.connect(), sessions)?;
        Ok(Play { sessions, database })
    }

    fn step(&mut self, session: usize, statement: &str, expected: Step) -> Result<()> {
        let step = self.sessions.step(session, statement)?;
        ensure!(step == expected, "session {session}: {statement}: {step:?}");
        Ok(())
    }

    /// Ensures how the last statement of a session stands now.
    fn stands(&self, session: usize, expected: Step) -> Result<()> {
        let step = self.sessions.state(session);
        ensure!(step == expected, "session {session}: {step:?}");
        Ok(())
    }

    fn ensure_rows(&self, expected: &[i32]) -> Result<()> {
        let rows = self
            .database
            .connect()?
            .query("SELECT id FROM docs ORDER BY id", &[])?;
        let ids: Vec<i32> = rows.iter().map(|row| row.get(0)).collect();
        ensure!(ids == expected, "rows {ids:?}, not {expected:?}");
        Ok(())
    }
}

fn refused() -> Step {
    Step::Failed(SqlState::EXCLUSION_VIOLATION)
}

/// Checks that a session that waits for a key finds the row of the one that has changed it, whichever
/// of the indexes is filled first.
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
        play.stands(1, refused())?;
        play.ensure_rows(&[2])?;
    }
    Ok(Outcome::Passed)
}

/// Of two rows that are both in the index before either is checked, the later waits for the earlier,
/// and not the other way round.
pub fn earlier_first(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "guard_order")?;
    let tables = "CREATE TABLE docs (id int PRIMARY KEY, sig minhash_signature, pauses bool);
        CREATE INDEX ON docs USING neardup (sig); SELECT near_dup_protect('docs', 'sig', 0.8);";
    let mut play = Play::new(&database, &format!("{tables} {PAUSING}"), 3)?;
    let insert =
        |id, text, pauses| format!("INSERT INTO docs VALUES ({id}, minhash('{text}'), {pauses})");
    play.step(2, "SELECT pg_advisory_lock(1)", Step::Done)?;
    play.step(0, &insert(1, "commits", true), Step::Waits)?;
    play.step(1, &insert(2, "commits", false), Step::Waits)?;
    play.step(2, "SELECT pg_advisory_unlock(1)", Step::Done)?;
    play.stands(0, Step::Done)?;
    play.stands(1, refused())?;

    play.step(2, "SELECT pg_advisory_lock(1)", Step::Done)?;
    play.step(
        0,
        &format!("BEGIN; {}", insert(3, "rolls back", true)),
        Step::Waits,
    )?;
    play.step(1, &insert(4, "rolls back", false), Step::Waits)?;
    play.step(2, "SELECT pg_advisory_unlock(1)", Step::Done)?;
    play.stands(0, Step::Done)?;
    play.stands(1, Step::Waits)?;
    play.step(0, "ROLLBACK", Step::Done)?;
    play.stands(1, Step::Done)?;
    play.ensure_rows(&[1, 4])?;
    Ok(Outcome::Passed)
}

/// Checks that a row that is changed between the search of the index and the look at the row is not
/// missed.
pub fn changed_while_searched(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "guard_search")?;
    // The comparison of tenants can be made to wait, in the middle of a search.
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
        SELECT near_dup_protect('docs', 'sig', 0.8, '{tenant}');
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
    play.stands(0, refused())?;
    play.ensure_rows(&[1, 20])?;
    Ok(Outcome::Passed)
}

/// Checks that a change that makes no new entry in the index waits for all others.
pub fn hot_update(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "guard_hot")?;
    let tables = "CREATE TABLE docs (id int PRIMARY KEY, body text, sig minhash_signature);
        CREATE INDEX ON docs USING neardup (sig);
        SELECT near_dup_protect('docs', 'sig', 0.8, verify => 'body');
        INSERT INTO docs VALUES (1, 'one', minhash('any')), (2, 'two', minhash('any'))";
    let mut play = Play::new(&database, tables, 2)?;
    let update = |id| format!("UPDATE docs SET body = 'the same' WHERE id = {id}");
    for (end, outcome) in [("ROLLBACK", Step::Done), ("COMMIT", refused())] {
        for (first, second) in [(1, 2), (2, 1)] {
            play.step(0, &format!("BEGIN; {}", update(first)), Step::Done)?;
            play.step(1, &format!("BEGIN; {}", update(second)), Step::Waits)?;
            play.step(0, end, Step::Done)?;
            play.stands(1, outcome.clone())?;
            play.step(1, "ROLLBACK", Step::Done)?;
            play.step(0, "UPDATE docs SET body = 'row ' || id", Step::Done)?;
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

/// While a REINDEX CONCURRENTLY keeps a second index, sessions may number rows by different ones:
/// they wait for each other, and one becomes the victim of the deadlock.
pub fn twin_index(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "guard_twin")?;
    let tables = "CREATE TABLE docs (id int PRIMARY KEY, sig minhash_signature, pauses bool);
        CREATE INDEX docs_sig ON docs USING neardup (sig);
        SELECT near_dup_protect('docs', 'sig', 0.8);";
    let mut play = Play::new(&database, &format!("{tables} {PAUSING}"), 5)?;
    let insert = |id, text, pauses| {
        format!(
            "SET deadlock_timeout = '50ms'; INSERT INTO docs VALUES ({id}, minhash('{text}'), {pauses})"
        )
    };
    // The second index is there when the REINDEX waits for session 3, and takes rows when it waits
    // for session 4.
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
    play.stands(2, Step::Waits)?;
    play.step(3, "SELECT pg_advisory_lock(1)", Step::Done)?;
    play.step(0, &insert(1, "a copy", true), Step::Waits)?;
    play.step(1, &insert(2, "a copy", false), Step::Waits)?;
    play.sessions.step(3, "SELECT pg_advisory_unlock(1)")?;
    play.sessions.step(4, "COMMIT")?;
    play.sessions.finish()?;
    play.stands(2, Step::Done)?;
    let steps = [0, 1].map(|session| play.sessions.state(session));
    let deadlock = Step::Failed(SqlState::T_R_DEADLOCK_DETECTED);
    match steps {
        [Step::Done, ref other] if *other == deadlock => play.ensure_rows(&[1, 10, 11])?,
        [ref other, Step::Done] if *other == deadlock => play.ensure_rows(&[2, 10, 11])?,
        other => anyhow::bail!("{other:?}"),
    }
    Ok(Outcome::Passed)
}

/// Of a transaction that is prepared the other session waits for the end.
pub fn prepared_transaction(server: &Server) -> Result<Outcome> {
    let cluster = prepared_cluster(server, "guard_prepared")?;
    let database = Database::with_extension(&cluster, "guard_prepared")?;
    let tables = "CREATE TABLE docs (id int PRIMARY KEY, sig minhash_signature);
        CREATE INDEX ON docs USING neardup (sig); SELECT near_dup_protect('docs', 'sig', 0.8);";
    let mut play = Play::new(&database, tables, 2)?;
    for (end, id, outcome) in [("ROLLBACK", 2, Step::Done), ("COMMIT", 3, refused())] {
        let insert = |id| format!("INSERT INTO docs VALUES ({id}, minhash('{end}'))");
        play.step(0, &format!("BEGIN; {}", insert(id * 10)), Step::Done)?;
        play.step(0, "PREPARE TRANSACTION 'p'", Step::Done)?;
        play.step(1, &insert(id), Step::Waits)?;
        play.step(0, &format!("{end} PREPARED 'p'"), Step::Done)?;
        play.stands(1, outcome)?;
    }
    play.ensure_rows(&[2, 30])?;
    Ok(Outcome::Passed)
}
