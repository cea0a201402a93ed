//! A row passes within its own statement, in every session, and the guard sees everything that others have done by
//! then.

use std::fs::{self, File};

use anyhow::{Context, Result, ensure};
use postgres::error::SqlState;
use testbed::server::Server;
use testbed::server::database::Database;

use super::held_cluster;
use super::moments::{Play, rejected};
use crate::harness::{Outcome, figure};
use crate::sessions::Step;

const DOCS: &str = "
    CREATE TABLE docs (id int PRIMARY KEY, body text);
    CREATE INDEX ON docs USING neardup (body);
    SELECT near_dup_protect('docs', 'body', 0.8);
    INSERT INTO docs VALUES (1, 'the text of the first row');
    CREATE TABLE other (id int);
    CREATE FUNCTION rewrite() RETURNS void LANGUAGE plpgsql AS $$ BEGIN
        ALTER TABLE docs ALTER id TYPE bigint;
        ALTER TABLE docs ALTER id TYPE int;
    END $$;
    CREATE FUNCTION rewrite_too() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        PERFORM rewrite();
        RETURN NULL;
    END $$;
    CREATE CONSTRAINT TRIGGER rewriting AFTER INSERT ON other DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION rewrite_too();
    CREATE FUNCTION insert_unguarded() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO docs VALUES (2, 'the text of the first row');
        SET CONSTRAINTS ALL IMMEDIATE;
        DROP TRIGGER docs_guard ON docs;
        RETURN 2;
    END $$";

/// Replaces the guard with a deferred one.
const DEFERRED: &str = "SELECT near_dup_unprotect('docs');
    CREATE CONSTRAINT TRIGGER docs_guard AFTER INSERT OR UPDATE ON docs DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION near_dup_guard('body', '0.8')";

const COPY: &str = "COPY docs FROM PROGRAM 'echo 2,the text of the first row' (FORMAT csv)";
const INSERT: &str = "INSERT INTO docs VALUES (2, 'the text of the first row')";

/// Histories of one fresh session, each statement by itself, that insert a copy. Statements that follow a failure
/// within a savepoint roll back to it, as psql does automatically if ON_ERROR_ROLLBACK is on.
const HISTORIES: &[(bool, &[&str])] = &[
    (false, &["BEGIN", COPY, "COMMIT"]),
    (
        false,
        &[
            "BEGIN",
            COPY,
            "SAVEPOINT s",
            "SET x = 1",
            "ROLLBACK TO s",
            "COMMIT",
        ],
    ),
    (
        false,
        &[
            "BEGIN",
            "SAVEPOINT s",
            COPY,
            "ROLLBACK TO s",
            COPY,
            "COMMIT",
        ],
    ),
    (false, &["BEGIN", COPY, "SELECT rewrite()", "COMMIT"]),
    (
        false,
        &[
            "BEGIN",
            COPY,
            "PREPARE TRANSACTION 'p'",
            "COMMIT PREPARED 'p'",
        ],
    ),
    (
        false,
        &["BEGIN", COPY, "DROP TRIGGER docs_guard ON docs", "COMMIT"],
    ),
    (true, &["BEGIN", INSERT, "COMMIT"]),
    (
        true,
        &["BEGIN", COPY, "INSERT INTO other VALUES (1)", "COMMIT"],
    ),
    (
        true,
        &["BEGIN", "INSERT INTO other VALUES (1)", COPY, "COMMIT"],
    ),
    (
        true,
        &[
            "BEGIN",
            COPY,
            "INSERT INTO other VALUES (1)",
            "SET CONSTRAINTS ALL IMMEDIATE",
            "COMMIT",
        ],
    ),
    (
        true,
        &[
            "BEGIN",
            COPY,
            "SAVEPOINT s",
            "SET CONSTRAINTS ALL IMMEDIATE",
            "ROLLBACK TO s",
            "COMMIT",
        ],
    ),
    (
        true,
        &["DO $$ BEGIN INSERT INTO docs VALUES (2, 'the text of the first row'); COMMIT; END $$"],
    ),
    // The first statement loads the library, so that the second one is seen to begin.
    (
        true,
        &[
            "SELECT minhash('a text')",
            "COPY (SELECT insert_unguarded()) TO PROGRAM 'cat > /dev/null'",
        ],
    ),
];

/// A copy is rejected by the guard, or by PostgreSQL, which does not rewrite a table with pending row checks.
const REJECTIONS: [SqlState; 2] = [SqlState::EXCLUSION_VIOLATION, SqlState::OBJECT_IN_USE];

/// Checks that a copy inserted by the first statement of a session is rejected by that statement, or, if the guard is
/// deferred, when the transaction ends, whatever happens in between.
pub fn passes_in_its_statement(server: &Server) -> Result<Outcome> {
    for &(is_deferred, history) in HISTORIES {
        let database = Database::with_extension(&server.main, "guard_statement")?;
        database.connect()?.batch_execute(DOCS)?;
        if is_deferred {
            database.connect()?.batch_execute(DEFERRED)?;
        }
        let mut client = database.connect()?;
        let mut rejections = Vec::new();
        for statement in history {
            if let Err(error) = client.batch_execute(statement)
                && let Some(code) = error.code()
                && REJECTIONS.contains(code)
            {
                rejections.push(*statement);
            }
        }
        let rows: i64 = client.query_one("SELECT count(*) FROM docs", &[])?.get(0);
        ensure!(rows == 1, "{history:?}: {rows} rows");
        let is_expected = match is_deferred {
            true => !rejections.is_empty(),
            false => rejections.first() == Some(&COPY),
        };
        ensure!(is_expected, "{history:?}: rejected by {rejections:?}");
    }
    Ok(Outcome::Passed)
}

const PARTED: &str = "
    CREATE TABLE docs (id int, part int, body text, PRIMARY KEY (id, part)) PARTITION BY LIST (part);
    CREATE TABLE docs_1 PARTITION OF docs FOR VALUES IN (1);
    CREATE INDEX ON docs USING neardup (body);
    CREATE TABLE below (id int NOT NULL, part int NOT NULL, body text) PARTITION BY LIST (part);
    CREATE TABLE docs_2 PARTITION OF below FOR VALUES IN (2)";

/// Checks that a partition that is attached while a session is about to pass is searched, too, including rows that are
/// added later.
pub fn attached_while_waiting(server: &Server) -> Result<Outcome> {
    let cluster = held_cluster(server, "guard_attached")?;
    let copy = "'one and the same text'";
    let attach = "ALTER TABLE docs ATTACH PARTITION docs_2 FOR VALUES IN (2)";
    let below = "ALTER TABLE docs ATTACH PARTITION below FOR VALUES IN (2)";
    let insert = format!("INSERT INTO docs VALUES (2, 2, {copy})");
    let first = format!("INSERT INTO docs_2 VALUES (2, 2, {copy})");
    let alone = "ALTER TABLE below DETACH PARTITION docs_2";
    for action in ["reject", "note"] {
        for steps in [
            vec![alone, attach, &insert],
            vec![below, &insert],
            vec![alone, &first, attach],
            vec![below],
        ] {
            let database = Database::with_extension(&cluster, "guard_attached")?;
            let tables = format!(
                "{PARTED}; SELECT near_dup_protect('docs', 'body', 0.8, action => '{action}'{})",
                if action == "note" {
                    ", key => 'id'"
                } else {
                    ""
                }
            );
            let mut play = Play::new(&database, &tables, 2)?;
            let hold = play.hold(&cluster, 0, "guard_has_searched");
            File::create(&hold)?;
            let ours = format!("INSERT INTO docs_1 VALUES (1, 1, {copy})");
            play.step(0, &ours, Step::Waits)?;
            for step in &steps {
                play.step(1, step, Step::Done)?;
            }
            fs::remove_file(&hold)?;
            let has_copy = steps.len() > 1;
            let expected = match action {
                "reject" if has_copy => rejected(),
                _ => Step::Done,
            };
            play.wait_for_state(0, &expected)
                .with_context(|| format!("{action}: {steps:?}"))?;
            if action == "note" {
                let notes = "SELECT count(*) FROM docs_near_dups WHERE (key, near_key) = (1, 2)";
                let notes: i64 = database.connect()?.query_one(notes, &[])?.get(0);
                ensure!(notes == i64::from(has_copy), "{steps:?}: {notes} notes");
            }
        }
    }
    Ok(Outcome::Passed)
}

/// A session's number, its statement, and whether the statement waits.
type OddStep = (usize, &'static str, bool);

const FETCH_IN_VAIN: &str = "DO $$ DECLARE c refcursor := 'c'; n int; BEGIN
        FETCH c INTO n;
    EXCEPTION WHEN division_by_zero THEN NULL; END $$";

/// A guarded table with one partition, and a table to attach as another one.
const TO_ATTACH: &str = "CREATE TABLE docs (id int, part int, body text) PARTITION BY LIST (part);
     CREATE TABLE docs_1 PARTITION OF docs FOR VALUES IN (1);
     CREATE TABLE docs_2 (id int, part int, body text);
     CREATE INDEX ON docs USING neardup (body);
     SELECT near_dup_protect('docs', 'body', 0.8)";

/// Statements that create tables, and the steps of sessions. The statement that waits is rejected in the end.
const ODD_TRANSACTIONS: [(&[&str], &[OddStep]); 5] = [
    // A partition that only its own transaction knows.
    (
        &[TO_ATTACH],
        &[
            (0, "BEGIN", false),
            (0, "ALTER TABLE docs ATTACH PARTITION docs_2 FOR VALUES IN (2)", false),
            (0, "INSERT INTO docs VALUES (1, 2, 'one and the same text')", false),
            (1, "INSERT INTO docs VALUES (2, 1, 'one and the same text')", true),
            (0, "COMMIT", false),
        ],
    ),
    // A cursor of the transaction that fails in a savepoint.
    (
        &["CREATE TABLE docs (id int PRIMARY KEY, body text);
         CREATE INDEX ON docs USING neardup (body);
         SELECT near_dup_protect('docs', 'body', 0.8);
         INSERT INTO docs VALUES (0, 'nothing that resembles the others');
         CREATE FUNCTION add(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN
             INSERT INTO docs VALUES (n / (2 - n), 'one and the same text');
             RETURN n;
         END $$"],
        &[
            (0, "BEGIN", false),
            (0, "INSERT INTO docs VALUES (0, 'anything') ON CONFLICT DO NOTHING", false),
            (0, "DECLARE c CURSOR FOR SELECT add(n) FROM generate_series(1, 2) n", false),
            (0, "FETCH c", false),
            (0, FETCH_IN_VAIN, false),
            (1, "INSERT INTO docs VALUES (3, 'one and the same text')", true),
            (0, "COMMIT", false),
        ],
    ),
    // Both.
    (
        &[
            TO_ATTACH,
            "CREATE FUNCTION add(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN
             INSERT INTO docs VALUES (n / (2 - n), 2, 'one and the same text');
             RETURN n;
         END $$",
        ],
        &[
            (0, "BEGIN", false),
            (0, "ALTER TABLE docs ATTACH PARTITION docs_2 FOR VALUES IN (2)", false),
            (0, "DECLARE c CURSOR FOR SELECT add(n) FROM generate_series(1, 2) n", false),
            (0, "FETCH c", false),
            (0, FETCH_IN_VAIN, false),
            (1, "INSERT INTO docs VALUES (2, 1, 'one and the same text')", true),
            (0, "COMMIT", false),
        ],
    ),
    // A cursor that attaches the partition, and fails in a savepoint.
    (
        &[
            TO_ATTACH,
            "CREATE FUNCTION attach(n int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN
             PERFORM n / (2 - n);
             ALTER TABLE docs ATTACH PARTITION docs_2 FOR VALUES IN (2);
             RETURN n;
         END $$",
        ],
        &[
            (0, "BEGIN", false),
            (0, "DECLARE c CURSOR FOR SELECT attach(n) FROM generate_series(1, 2) n", false),
            (0, "FETCH c", false),
            (0, FETCH_IN_VAIN, false),
            (0, "INSERT INTO docs VALUES (1, 2, 'one and the same text')", false),
            (1, "INSERT INTO docs VALUES (2, 1, 'one and the same text')", true),
            (0, "COMMIT", false),
        ],
    ),
    // A row that a statement and its cascade change.
    (
        &["CREATE TABLE items (id int PRIMARY KEY);
         CREATE TABLE docs (id int PRIMARY KEY REFERENCES items ON UPDATE CASCADE, body text);
         CREATE INDEX ON docs USING neardup (body);
         SELECT near_dup_protect('docs', 'body', 0.8, key => 'id');
         INSERT INTO items VALUES (1), (2), (20), (30);
         INSERT INTO docs VALUES (1, 'a first text of its own'), (2, 'quite different words stand here')"],
        &[
            (2, "BEGIN", false),
            (2, "INSERT INTO docs VALUES (30, 'the words that make a session wait')", false),
            (
                0,
                "WITH moved AS (UPDATE items SET id = 10 WHERE id = 1)
                 UPDATE docs SET body = CASE id WHEN 1 THEN 'one and the same text'
                     ELSE 'the words that make a session wait' END WHERE id IN (1, 2)",
                true,
            ),
            (1, "INSERT INTO docs VALUES (20, 'one and the same text')", false),
            (2, "ROLLBACK", false),
        ],
    ),
];

/// Checks that no copy is accepted in or beside the odd transactions.
pub fn odd_transactions(server: &Server) -> Result<Outcome> {
    for (tables, steps) in ODD_TRANSACTIONS {
        let database = Database::with_extension(&server.main, "guard_odd_transactions")?;
        let mut play = Play::new(&database, &tables.join("; "), 3)?;
        let mut waiting = None;
        for &(session, statement, waits) in steps {
            let expected = match waits {
                true => Step::Waits,
                false => Step::Done,
            };
            play.step(session, statement, expected)?;
            waiting = waiting.or(waits.then_some(session));
        }
        play.wait_for_state(waiting.unwrap_or_default(), &rejected())?;
    }
    Ok(Outcome::Passed)
}

/// Checks that a copy is not accepted if its partition is detached before it is checked.
pub fn detached_while_waiting(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "guard_detached")?;
    let insert = |id| format!("INSERT INTO docs VALUES ({id}, 1, 'one and the same text')");
    // A row waits after the guard's trigger has fired for it.
    let tables = format!(
        "{PARTED}; SELECT near_dup_protect('docs', 'body', 0.8); {};
         CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             PERFORM pg_advisory_xact_lock_shared(1);
             RETURN NULL;
         END $$;
         CREATE TRIGGER z_pause AFTER INSERT ON docs FOR EACH ROW EXECUTE FUNCTION pause()",
        insert(1)
    );
    let mut play = Play::new(&database, &tables, 3)?;
    play.step(2, "SELECT pg_advisory_lock(1)", Step::Done)?;
    play.step(0, &insert(2), Step::Waits)?;
    let detach = "ALTER TABLE docs DETACH PARTITION docs_1 CONCURRENTLY";
    play.step(1, detach, Step::Waits)?;
    play.step(2, "SELECT pg_advisory_unlock(1)", Step::Done)?;
    play.wait_for_state(1, &Step::Done)?;
    let not_ready = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
    play.ensure_state(0, Step::Failed(not_ready))?;
    let rows = "SELECT count(*) FROM docs_1";
    let rows: i64 = database.connect()?.query_one(rows, &[])?.get(0);
    ensure!(rows == 1, "{rows} rows");
    Ok(Outcome::Passed)
}

/// Checks that after a long look, rows that others have added meanwhile are searched for before the gate is closed.
pub fn added_during_a_long_look(server: &Server) -> Result<Outcome> {
    let cluster = held_cluster(server, "guard_long_look")?;
    let database = Database::with_extension(&cluster, "guard_long_look")?;
    let tables = "CREATE TABLE docs (id int PRIMARY KEY, body text); CREATE INDEX ON docs USING neardup (body);
         SELECT near_dup_protect('docs', 'body', 0.8)";
    let mut play = Play::new(&database, tables, 2)?;
    let [looked, searched] =
        ["guard_has_looked", "guard_has_searched"].map(|point| play.hold(&cluster, 0, point));
    File::create(&looked)?;
    File::create(&searched)?;
    let insert =
        "INSERT INTO docs SELECT n, concat_ws(' a', n, n, n) FROM generate_series(1, 50) n";
    play.step(0, insert, Step::Waits)?;
    play.step(1, "INSERT INTO docs VALUES (0, '7 a7 a7')", Step::Done)?;
    fs::remove_file(&looked)?;
    play.wait_for_state(0, &rejected())?;
    fs::remove_file(&searched)?;
    Ok(Outcome::Passed)
}

/// Checks that with the gate closed, a statement of many rows searches once for each row of other sessions, not once
/// for each of its own, and finds a copy among them.
pub fn few_searches_behind_the_gate(server: &Server) -> Result<Outcome> {
    const ROWS: i64 = 2000;
    let cluster = held_cluster(server, "guard_few_searches")?;
    for (action, has_copy) in [("reject", false), ("reject", true), ("note", true)] {
        let database = Database::with_extension(&cluster, "guard_few_searches")?;
        let tables = format!(
            "CREATE TABLE docs (id int PRIMARY KEY, body text); CREATE INDEX docs_body ON docs USING neardup (body);
             SELECT near_dup_protect('docs', 'body', 0.8, action => '{action}')"
        );
        let mut play = Play::new(&database, &tables, 2)?;
        let hold = play.hold(&cluster, 0, "guard_has_searched");
        File::create(&hold)?;
        let insert = format!(
            "INSERT INTO docs SELECT n, 'w' || n || 'x a' || n || ' b' || n || ' c' || n FROM generate_series(1, {ROWS}) n"
        );
        play.step(0, &insert, Step::Waits)?;
        for id in 1..=3 {
            let other = format!("INSERT INTO docs VALUES (-{id}, 'another text of {id} alone')");
            play.step(1, &other, Step::Done)?;
        }
        if has_copy {
            let copy = "INSERT INTO docs VALUES (-4, 'w7x a7 b7 c7')";
            play.step(1, copy, Step::Done)?;
        }
        fs::remove_file(&hold)?;
        let expected = match action {
            "reject" if has_copy => rejected(),
            _ => Step::Done,
        };
        play.wait_for_state(0, &expected)?;
        drop(play);
        if action == "note" {
            let notes = "SELECT count(*) FROM docs_near_dups WHERE (key, near_key) = (7, -4)";
            let notes: i64 = database.connect()?.query_one(notes, &[])?.get(0);
            ensure!(notes == 1, "{notes} notes");
        }
        let scans = || -> Result<i64> {
            let scans = "SELECT pg_stat_clear_snapshot(), idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'docs_body'";
            Ok(database.connect()?.query_one(scans, &[])?.get(1))
        };
        // Sessions report their statistics when they end.
        let start = std::time::Instant::now();
        while scans()? < ROWS && start.elapsed().as_secs() < 60 {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        let scans = scans()?;
        figure!("{action}, {has_copy}: {scans} searches for {ROWS} rows beside a few others");
        ensure!((ROWS..ROWS + 50).contains(&scans), "{scans} searches");
    }
    Ok(Outcome::Passed)
}
