//! The memory and files of jobs over whole collections, and their progress as other sessions see it.

use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};
use postgres::error::SqlState;
use testbed::server::cluster::until;
use testbed::server::database::Database;
use testbed::server::{Server, memory};

use crate::harness::Outcome;

/// Checks that keys go to temporary files: 160 MB of them with work_mem of 4 MB. And that large documents, which the
/// query computes, are fetched one by one.
pub fn keys_in_files(server: &Server) -> Result<Outcome> {
    const MOST: u64 = 64_000;
    let database = Database::with_extension(&server.main, "keys")?;
    let mut client = database.connect()?;
    client.batch_execute("SET work_mem = '4MB'; SET jit = off; SELECT minhash('a')")?;
    let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[])?.get(0);
    let before = memory::private(pid)?;
    let peak = memory::peak(pid, || {
        let row = client.query_one(
            "SELECT count(*), count(*) FILTER (WHERE left(a, 6)::int + 2500 = left(b, 6)::int
                 AND length(a) = 32006 AND left(a, 6) || repeat('k', 32000) = a)
             FROM near_dup_pairs(NULL::text, $$SELECT lpad(i::text, 6, '0') || repeat('k', 32000),
                 minhash('text ' || i % 2500 || ' of ' || i % 2500) FROM generate_series(1, 5000) i$$, 1)",
            &[],
        )?;
        let (pairs, right): (i64, i64) = (row.get(0), row.get(1));
        ensure!(
            (pairs, right) == (2500, 2500),
            "{right} of {pairs} pairs are right"
        );
        client.batch_execute(
            "SELECT count(*) FROM near_dup_pairs(NULL::int,
                 $$SELECT i, repeat(i || ' ', 200000) FROM generate_series(1000, 1150) i$$, 1)",
        )?;
        Ok(())
    })?;
    ensure!(peak - before < MOST, "{} kB", peak - before);
    Ok(Outcome::Passed)
}

/// Checks that a function of one query of a join cannot close the other query, and that the session survives it; and that
/// a query which changes rows is run once.
pub fn queries_that_interfere(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "interfering")?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE FUNCTION closes() RETURNS int LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'CLOSE ALL'; RETURN 1; END $$;
         CREATE TABLE pages AS SELECT 'all rights reserved by the press'::text AS body FROM generate_series(1, 3)",
    )?;
    let join = |function: &str| {
        format!(
            "SELECT b FROM near_dup_join(NULL::int, 'SELECT {function}, ''one two three four''::text',
                 'SELECT 2, ''one two three four''::text', 0.5)"
        )
    };
    let closed = client.query(&join("closes()"), &[]).err();
    let code = closed.as_ref().and_then(|error| error.code());
    ensure!(code == Some(&SqlState::INVALID_CURSOR_STATE), "{closed:?}");
    let row = client.query_one(&join("1"), &[])?;
    ensure!(row.get::<_, i32>(0) == 2, "{row:?}");
    let query = "SELECT count(*) FROM common_shingles('DELETE FROM pages RETURNING body', 3)";
    let common: i64 = client.query_one(query, &[])?.get(0);
    ensure!(common == 4, "{common} common shingles");
    Ok(Outcome::Passed)
}

/// Documents in families of 14 whose members differ in one word each: 7 similar pairs per document.
const FAMILIES: &str = "CREATE TABLE families AS
    SELECT id, minhash((SELECT string_agg(CASE w WHEN id % 14 THEN 'own' || id ELSE id / 14 || 'w' || w END, ' ')
                        FROM generate_series(1, 40) w), 1) AS sig
    FROM generate_series(1, 42000) id";

/// Checks that bands and similar pairs are in temporary files: the bands alone would take 9 MB. Star clusters, which
/// need all similar pairs, take little more memory than the pairs, which are passed on.
pub fn bands_and_pairs_in_files(server: &Server) -> Result<Outcome> {
    const MOST: u64 = 16_000;
    const MORE: u64 = 2_500;
    let database = Database::with_extension(&server.main, "families")?;
    database.connect()?.batch_execute(FAMILIES)?;
    let peak_and_rows = |call: &str| {
        let mut client = database.connect()?;
        client.batch_execute("SET work_mem = '1MB'; SET jit = off; SELECT minhash('a')")?;
        let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[])?.get(0);
        let statement = format!("SELECT count(*) FROM {call}(NULL::int, 'TABLE families', 0.8)");
        let mut rows: i64 = 0;
        let peak = memory::peak(pid, || {
            rows = client.query_one(&statement, &[])?.get(0);
            Ok(())
        })?;
        anyhow::Ok((peak, rows))
    };
    let (of_pairs, pairs) = peak_and_rows("near_dup_pairs")?;
    let (of_clusters, rows) = peak_and_rows("near_dup_clusters")?;
    ensure!(
        rows == 42000 && pairs > 6 * rows,
        "{pairs} pairs of {rows} rows"
    );
    ensure!(of_pairs < MOST, "{of_pairs} kB for pairs");
    ensure!(
        of_clusters < of_pairs + MORE,
        "{of_clusters} kB for clusters, {of_pairs} kB for pairs"
    );
    Ok(Outcome::Passed)
}

/// Jobs that take long, a stage of each, and the number of different reports to see of it: one of a short stage. All
/// rows of `template` are almost near enough to each other, so that each is compared with all.
const LONG_JOBS: &[(&str, &str, usize)] = &[
    (
        "SELECT count(*) FROM near_dup_pairs(NULL::int,
            'SELECT i, minhash(i::text) FROM generate_series(1, 1000000) i, pg_sleep(0.003 + 0 * i)', 1)",
        "reading",
        2,
    ),
    (
        "SELECT count(*) FROM near_dup_clusters(NULL::int, 'SELECT id, sig FROM template ORDER BY id', 0.7)",
        "clustering",
        2,
    ),
    (
        "SELECT count(*) FROM near_dup_clusters(NULL::int, 'SELECT i, NULL FROM generate_series(1, 1000000) i', 0.7)",
        "listing rows without a value",
        1,
    ),
    (
        "SELECT count(*) FROM connected_components(NULL::int,
            'SELECT hashint4(i), hashint4(-i) FROM generate_series(1, 2000000) i')",
        "connecting keys",
        1,
    ),
    ("SELECT near_dup_track('template', 'sig', 0.7)", "clustering", 2),
    ("SELECT kind FROM long, near_dup_explain(a, b)", "comparing", 2),
];

/// Checks that other sessions see a stage of a job before its statement, from the beginning of the stage and with
/// increasing progress, and afterward only the statement; and that the stage is canceled.
pub fn seen_by_others(server: &Server) -> Result<Outcome> {
    const SEEN: &str = "SELECT query FROM pg_stat_activity WHERE pid = $1";
    let database = Database::with_extension(&server.main, "seen")?;
    let (mut client, mut other) = (database.connect()?, database.connect()?);
    client.batch_execute(
        "CREATE TABLE template AS
         SELECT i AS id, body, minhash(body, 1) AS sig FROM generate_series(1, 30000) i, LATERAL (
             SELECT string_agg(CASE WHEN w < 30 THEN 'w' || w ELSE 'w' || w || 'x' || i END, ' ') AS body
             FROM generate_series(1, 40) w) d;
         ALTER TABLE template ADD PRIMARY KEY (id);
         CREATE INDEX ON template USING neardup (sig minhash_ops (threshold = 0.6));
         CREATE TABLE long AS
         SELECT string_agg('w' || hashint4(i) % 300000, ' ') AS a, string_agg('w' || hashint4(i + 1000) % 300000, ' ') AS b
         FROM generate_series(1, 2000000) i",
    )?;
    let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[])?.get(0);
    // A short stage can pass between two looks: then the job is run again.
    let mut is_canceled = |(job, stage, wanted): (&str, &str, usize)| {
        thread::scope(|scope| {
            let running = scope.spawn(|| client.batch_execute(job));
            let mut seen: Vec<String> = Vec::new();
            while !running.is_finished() && reports(&seen, stage, job) < wanted {
                let now: String = other.query_one(SEEN, &[&pid])?.get(0);
                if seen.last() != Some(&now) {
                    seen.push(now);
                }
                thread::sleep(Duration::from_millis(5));
            }
            other.execute("SELECT pg_cancel_backend($1)", &[&pid])?;
            match running.join().expect("the statement does not panic") {
                Err(error) if error.code() == Some(&SqlState::QUERY_CANCELED) => Ok(true),
                ended => ended.map(|()| false).map_err(anyhow::Error::from),
            }
        })
    };
    for &long_job in LONG_JOBS {
        let is_seen = until(Duration::from_mins(5), Duration::ZERO, || {
            is_canceled(long_job)
        })?;
        ensure!(is_seen, "{long_job:?} ended before its stage was seen");
    }
    let job = "SELECT count(*), pg_sleep(1) FROM near_dup_pairs(NULL::int, 'SELECT 1, minhash(''a'')', 1)";
    client.batch_execute(job)?;
    let seen: String = other.query_one(SEEN, &[&pid])?.get(0);
    ensure!(seen == job, "{seen}");
    Ok(Outcome::Passed)
}

/// A build that waits at row 3 000 as long as another session holds the advisory lock 1.
const HELD_BUILD: &str = "
    SET max_parallel_maintenance_workers = 0;
    CREATE FUNCTION held(id int, body text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
    BEGIN
        IF id = 3000 THEN PERFORM pg_advisory_xact_lock(1); END IF;
        RETURN body;
    END $$;
    CREATE TABLE rows AS SELECT i AS id, 'some words of row ' || i AS body FROM generate_series(1, 5000) i;
    CREATE INDEX ON rows USING neardup (held(id, body))";

/// Checks that other sessions see the phase of a build and the number of rows that it has read.
pub fn builds_seen_by_others(server: &Server) -> Result<Outcome> {
    const SEEN: &str =
        "SELECT phase, tuples_done FROM pg_stat_progress_create_index WHERE pid = $1";
    let database = Database::with_extension(&server.main, "builds_seen")?;
    let (mut client, mut other) = (database.connect()?, database.connect()?);
    let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[])?.get(0);
    other.batch_execute("SELECT pg_advisory_lock(1)")?;
    thread::scope(|scope| {
        let running = scope.spawn(|| client.batch_execute(HELD_BUILD));
        let seen = loop {
            let row = other.query_opt(SEEN, &[&pid])?;
            let seen = row.map(|row| (row.get::<_, String>(0), row.get::<_, i64>(1)));
            if running.is_finished() || seen.as_ref().is_some_and(|(_, rows)| *rows > 0) {
                break seen;
            }
            thread::sleep(Duration::from_millis(20));
        };
        other.batch_execute("SELECT pg_advisory_unlock(1)")?;
        running.join().expect("the statement does not panic")?;
        ensure!(
            seen.as_ref()
                .is_some_and(|(phase, rows)| phase == "building index: scanning table"
                    && (1..3000).contains(rows)),
            "{seen:?}"
        );
        Ok(Outcome::Passed)
    })
}

/// Returns how many different numbers of completed steps of a job's stage were seen, or 0 if one exceeds the total.
fn reports(seen: &[String], stage: &str, job: &str) -> usize {
    let steps = |seen: &String| {
        let told = seen
            .strip_prefix("/* pg_neardup: ")?
            .strip_suffix(&format!(" */ {job}"))?;
        let (done, of) = told
            .strip_prefix(stage)?
            .strip_prefix(": ")?
            .split_once(" of ")?;
        let total = of.trim_start_matches("about ").split(',').next()?;
        Some((done.parse::<u64>().ok()?, total.parse::<u64>().ok()?))
    };
    let mut steps: Vec<_> = seen.iter().filter_map(steps).collect();
    steps.dedup();
    match steps.iter().all(|(done, total)| done <= total) {
        true => steps.len(),
        false => 0,
    }
}
