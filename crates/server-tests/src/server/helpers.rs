//! Jobs over whole collections with the help of threads.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use postgres::error::SqlState;
use postgres::{Client, SimpleQueryMessage};
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::Outcome;

/// Documents in families of four whose members differ in some words: a third of them short, a third compressed inline,
/// a third out of line; some of them copies, some empty, some NULL. `listings` has pairs of near-duplicates; two
/// fifths of their words are a template.
const DOCUMENTS: &str = "
    CREATE TABLE docs (id bigint PRIMARY KEY, body text);
    INSERT INTO docs
    SELECT id, CASE id % 50 WHEN 48 THEN NULL WHEN 49 THEN '?!' ELSE
        (SELECT string_agg(md5(CASE WHEN (w * 31 + id) % 67 < id % 4 THEN id * 1000 + w
                               ELSE id / 4 * 1000 + w END::text), ' ' ORDER BY w)
         FROM generate_series(1, (ARRAY[20, 90, 400])[1 + id / 4 % 3]) w) END
    FROM generate_series(1::bigint, 1200) id;
    INSERT INTO docs SELECT id + 5000, body FROM docs WHERE id % 7 = 0;
    CREATE TABLE listings AS
    SELECT id, (SELECT string_agg('common' || w, ' ') FROM generate_series(1, 80) w)
        || (SELECT string_agg(' own' || hashint8(id / 5 * 4 * 1000 + w), '') FROM generate_series(1, 100) w) AS body
    FROM generate_series(1::bigint, 4000) id WHERE id % 5 < 2";

/// Statements whose rows and their order must not depend on the number of helpers.
const JOBS: &[&str] = &[
    "SELECT * FROM near_dup_pairs(NULL::bigint, 'SELECT id, body FROM docs ORDER BY id', 0.5)",
    "SELECT * FROM near_dup_pairs(NULL::bigint, 'SELECT id, body FROM docs ORDER BY id', 0.8, 2, slots => 64)",
    "SELECT * FROM near_dup_pairs(NULL::bigint, 'SELECT id, minhash(body) FROM docs ORDER BY id', 0.5)",
    "SELECT * FROM near_dup_join(NULL::text, 'SELECT id::text, body FROM docs WHERE id % 2 = 0 ORDER BY id',
         'SELECT id::text, body FROM docs WHERE id % 3 = 0 ORDER BY id DESC', 0.6)",
    "SELECT * FROM near_dup_clusters(NULL::bigint, 'SELECT id, body FROM docs ORDER BY id', 0.6)",
    "SELECT * FROM near_dup_clusters(NULL::bigint, 'SELECT id, body FROM docs ORDER BY id', 0.6, 'connected')",
    "SELECT * FROM near_dup_clusters(NULL::bigint, 'SELECT id, minhash(body) FROM docs ORDER BY id', 0.6)",
    "SELECT * FROM near_dup_pairs(NULL::bigint, 'SELECT id, body FROM docs ORDER BY id', 0.5, measure => 'containment')",
    "SELECT * FROM near_dup_join(NULL::text, 'SELECT id::text, shingle_hashes(body) FROM docs ORDER BY id',
         'SELECT id::text, shingle_hashes(body) FROM docs WHERE id % 2 = 0 ORDER BY id DESC', 0.6, measure => 'containment')",
    "SELECT * FROM near_dup_pairs(NULL::bigint, 'SELECT id, simhash(body) FROM docs ORDER BY id', 3)",
    "SELECT hash, documents FROM common_shingles('SELECT body FROM docs', 3) ORDER BY 1",
    "SELECT * FROM copied_passages(NULL::bigint, 'SELECT id, body FROM docs ORDER BY id', 12)",
    "SELECT * FROM copied_passages(NULL::text, 'SELECT id::text, body FROM docs ORDER BY id', 3)",
    "SELECT * FROM copied_passages(NULL::int, 'SELECT 1, string_agg(body, '' '' ORDER BY id) FROM docs', 5)",
    "SELECT * FROM frequent_passages('SELECT body FROM docs ORDER BY id', 5, most => 1000)",
];

/// A job over `listings`. The template gives many of them a band in common.
const LISTINGS: &str =
    "SELECT * FROM near_dup_pairs(NULL::bigint, 'SELECT id, body FROM listings ORDER BY id', 0.8)";

/// Statements that sign all documents for an index.
const BUILDS: &[&str] = &[
    "CREATE INDEX built ON docs USING neardup (body); DROP INDEX built",
    "CREATE INDEX built ON docs USING neardup (body); SELECT near_dup_index_check('built'); DROP INDEX built",
];

/// Checks that every job returns the same rows in the same order with any number of helpers, and the same rows with any
/// work_mem.
pub fn change_no_answer(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "helpers")?;
    let mut client = database.connect()?;
    client.batch_execute(DOCUMENTS)?;
    for job in JOBS.iter().chain([&LISTINGS]) {
        let mut sorted = Vec::new();
        for work_mem in ["64kB", "1MB"] {
            let mut alone = answer(&mut client, job, 0, work_mem)?;
            ensure!(alone.len() > 300, "{job}: {} rows", alone.len());
            for helpers in [1, 2, 4] {
                ensure!(
                    answer(&mut client, job, helpers, work_mem)? == alone,
                    "{helpers} helpers with work_mem {work_mem} change the answer of {job}"
                );
            }
            alone.sort_unstable();
            sorted.push(alone);
        }
        ensure!(
            sorted[0] == sorted[1],
            "work_mem changes the answer of {job}"
        );
    }
    signed_inside_equals_signed_before(&mut client)?;
    clusters_are_those_of_the_pairs(&mut client)?;
    Ok(Outcome::Passed)
}

/// Indexes on text: one within scopes, some of which are NULL, and a partial one over an expression.
const INDEXES: &[&str] = &[
    "docs USING neardup (body)",
    "docs USING neardup ((NULLIF(id % 3, 0)), body text_ops (unit = 'char', k = 5, seed = 7))",
    "docs USING neardup ((body || ' end')) WHERE id % 5 > 0",
];

/// Checks that helpers build the same index, byte by byte except for WAL positions, and that it passes the check.
pub fn build_the_same_index(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "helpers_build")?;
    let mut client = database.connect()?;
    client.batch_execute(DOCUMENTS)?;
    client.batch_execute(
        "INSERT INTO docs SELECT id + 10000, body FROM docs;
         INSERT INTO docs SELECT id + 20000, reverse(body) FROM docs;
         SET maintenance_work_mem = '1MB'",
    )?;
    for index in INDEXES {
        let mut built = |helpers: u32, work_mem: &str| -> Result<Vec<u8>> {
            client.batch_execute(&format!(
                "SET max_parallel_maintenance_workers = {helpers}; SET work_mem = '{work_mem}';
                 DROP INDEX IF EXISTS built; CREATE INDEX built ON {index}; CHECKPOINT"
            ))?;
            client.batch_execute("SELECT near_dup_index_check('built')")?;
            Ok(client.query_one(PAGES, &[])?.get(0))
        };
        let alone = built(0, "4MB")?;
        for (helpers, work_mem) in [(1, "4MB"), (4, "4MB"), (4, "64kB")] {
            ensure!(
                built(helpers, work_mem)? == alone,
                "{helpers} helpers with work_mem {work_mem} change the index on {index}"
            );
        }
    }
    Ok(Outcome::Passed)
}

/// The pages of the index without their WAL positions and checksums.
const PAGES: &str = "SELECT string_agg(substr(page, 11), ''::bytea ORDER BY number)
    FROM generate_series(0, pg_relation_size('built') / 8192 - 1) number,
         pg_read_binary_file(pg_relation_filepath('built'), number * 8192, 8192) page";

/// Documents in families of a hundred, which have too many pairs for all of them to be compared.
const CROWD: &str = "
    CREATE TABLE crowd (id bigint PRIMARY KEY, body text);
    INSERT INTO crowd
    SELECT id, (SELECT string_agg(md5(CASE WHEN (w * 31 + id * 7) % 97 < id % 9 THEN id * 1000 + w
                                      ELSE id / 100 * 1000 + w END::text), ' ' ORDER BY w)
                FROM generate_series(1, 120) w)
    FROM generate_series(1::bigint, 800) id";

/// Checks both methods of `near_dup_clusters`, whether or not they compare all pairs.
fn clusters_are_those_of_the_pairs(client: &mut Client) -> Result<()> {
    client.batch_execute(CROWD)?;
    for (table, documents) in [
        ("docs", "body"),
        ("crowd", "body"),
        ("crowd", "minhash(body)"),
    ] {
        let rows = format!("FROM {table} WHERE length(body) > 10 ORDER BY id");
        let call = |function: &str, method: &str| {
            format!(
                "SELECT * FROM {function}(NULL::bigint, 'SELECT id, {documents} {rows}', 0.7{method})"
            )
        };
        let pairs = call("near_dup_pairs", "");
        client.batch_execute(&format!(
            "DROP TABLE IF EXISTS pairs; CREATE TABLE pairs AS {pairs}"
        ))?;
        let stars = answer(client, &call("near_dup_clusters", ""), 2, "1MB")?;
        let of_pairs =
            format!("SELECT * FROM star_clusters(NULL::bigint, 'SELECT id {rows}', 'TABLE pairs')");
        ensure!(
            stars == answer(client, &of_pairs, 0, "1MB")?,
            "star clusters of {documents} of {table} are not those of their pairs"
        );
        let connected = call("near_dup_clusters", ", 'connected'");
        let connected = format!("SELECT key, cluster FROM ({connected}) c ORDER BY key");
        let of_pairs = format!(
            "SELECT * FROM connected_components(NULL::bigint,
                 'SELECT a, b FROM pairs UNION ALL (SELECT id, NULL {rows})') ORDER BY 1"
        );
        ensure!(
            answer(client, &connected, 2, "1MB")? == answer(client, &of_pairs, 0, "1MB")?,
            "connected clusters of {documents} of {table} are not those of their pairs"
        );
    }
    Ok(())
}

fn signed_inside_equals_signed_before(client: &mut Client) -> Result<()> {
    for job in JOBS {
        let has_parameters = job.contains("slots") || job.contains("measure");
        if has_parameters || !job.contains(", body") || !job.contains("near_dup") {
            continue;
        }
        let before = job.replace(", body", ", minhash(body), body");
        // The threshold determines the number of slots of the internal signatures, and this determines the order.
        let mut inside = answer(client, job, 2, "1MB")?;
        inside.sort_unstable();
        for helpers in [0, 2] {
            let mut before = answer(client, &before, helpers, "1MB")?;
            before.sort_unstable();
            ensure!(
                before == inside,
                "signatures made before change the answer of {job}"
            );
        }
    }
    Ok(())
}

/// Returns the rows of a statement, in their order.
fn answer(
    client: &mut Client,
    statement: &str,
    helpers: u32,
    work_mem: &str,
) -> Result<Vec<String>> {
    client.batch_execute(&format!(
        "SET max_parallel_maintenance_workers = {helpers}; SET work_mem = '{work_mem}'"
    ))?;
    let messages = client.simple_query(statement)?;
    let row = |message: SimpleQueryMessage| match message {
        SimpleQueryMessage::Row(row) => Some(
            (0..row.len())
                .map(|i| row.get(i).unwrap_or("NULL"))
                .collect::<Vec<_>>()
                .join(" "),
        ),
        _ => None,
    };
    Ok(messages.into_iter().filter_map(row).collect())
}

/// Checks that after an end, a cancel at any moment and an error, a session has no remaining thread and no temporary
/// file; and that a terminated session leaves the server as it was.
pub fn leave_nothing(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "helpers_end")?;
    let mut client = database.connect()?;
    client.batch_execute(DOCUMENTS)?;
    client.batch_execute("SET max_parallel_maintenance_workers = 4; SET work_mem = '256kB'")?;
    let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[])?.get(0);
    let mut most = 1;
    for job in JOBS.iter().chain(BUILDS) {
        // On a busy machine, a build may be over before anyone looks.
        let mut tries = if BUILDS.contains(job) { 100 } else { 1 };
        let whole = loop {
            let start = Instant::now();
            let threads = most_threads(pid, || Ok(client.batch_execute(job)?))?;
            ensure_alone(&mut client, pid).context("after the end")?;
            most = most.max(threads);
            tries -= 1;
            if threads > 1 || tries == 0 {
                ensure!(threads > 1 || !BUILDS.contains(job), "nobody helped: {job}");
                break start.elapsed();
            }
        };
        for tenth in 1..10 {
            let timeout = (whole * tenth / 10).as_millis().max(1);
            let ended = client.batch_execute(&format!(
                "BEGIN; SET LOCAL statement_timeout = {timeout}; {job}; COMMIT"
            ));
            client.batch_execute("ROLLBACK")?;
            if let Err(error) = ended {
                ensure!(error.code() == Some(&SqlState::QUERY_CANCELED), "{error:?}");
            }
            ensure_alone(&mut client, pid).context("after a cancel")?;
        }
        let failing = job
            .replace(
                "FROM docs",
                "FROM (SELECT id, body || repeat('', (1 / (500 - id))::int) AS body FROM docs) d",
            )
            .replace("(body)", "((body || repeat('', (1 / (500 - id))::int)))");
        ensure!(client.batch_execute(&failing).is_err(), "{failing}");
        ensure_alone(&mut client, pid).context("after an error")?;
    }
    ensure!(most > 1, "nobody helped");
    for (number, job) in (0..).zip(JOBS.iter().chain(BUILDS)) {
        terminate(&database, job, Duration::from_millis(20 + 10 * number))?;
    }
    ensure!(
        client.query_one("SELECT 1", &[]).is_ok(),
        "the server restarted"
    );
    Ok(Outcome::Passed)
}

/// Checks that helpers work together with callbacks that others register for the end of a session, and with callbacks
/// that others remove.
pub fn beside_other_callbacks(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "helpers")?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE docs (id int PRIMARY KEY, body text);
         INSERT INTO docs SELECT i, 'the same text of document ' || i / 2 FROM generate_series(1, 100) i;
         CREATE INDEX ON docs USING neardup (body);
         CREATE FUNCTION in_a_table() RETURNS SETOF docs LANGUAGE plpgsql AS $$ BEGIN
             CREATE TEMPORARY TABLE IF NOT EXISTS copied AS TABLE docs;
             RETURN QUERY TABLE copied ORDER BY id;
         END $$",
    )?;
    let count = |client: &mut Client, rows: &str| -> Result<i64> {
        let query = format!("SELECT count(*) FROM near_dup_pairs(NULL::int, '{rows}', 1)");
        Ok(client.query_one(&query, &[])?.get(0))
    };
    let expected = count(&mut client, "TABLE docs ORDER BY id")?;
    // More jobs in one session than PostgreSQL has room for callbacks: the first job registers one of its own.
    let mut client = database.connect()?;
    for _ in 0..30 {
        let found = count(&mut client, "SELECT * FROM in_a_table()")?;
        ensure!(found == expected, "{found} pairs, not {expected}");
    }
    // The first job of a session registers a callback, and fails after that.
    client.batch_execute(
        "CREATE FUNCTION fails() RETURNS SETOF docs LANGUAGE plpgsql AS $$ BEGIN
             CREATE TEMPORARY TABLE IF NOT EXISTS copied AS TABLE docs;
             RAISE check_violation USING MESSAGE = 'no rows today', CONSTRAINT = 'daily';
         END $$",
    )?;
    let mut client = database.connect()?;
    for _ in 0..2 {
        let error = count(&mut client, "SELECT * FROM fails()").err();
        let error = format!("{:#}", error.context("no error")?);
        ensure!(error.contains("no rows today"), "{error}");
        let found = count(&mut client, "TABLE docs ORDER BY id")?;
        ensure!(found == expected, "{found} pairs after an error");
    }
    if server.pg.major >= 19 {
        // In a new session, which has not loaded the library.
        database
            .connect()?
            .batch_execute("REPACK (CONCURRENTLY) docs")?;
        let found = count(&mut client, "TABLE docs ORDER BY id")?;
        ensure!(found == expected, "{found} pairs after REPACK");
    }
    Ok(Outcome::Passed)
}

/// Returns the number of threads of a process.
fn threads(pid: i32) -> Result<usize> {
    Ok(fs::read_dir(format!("/proc/{pid}/task"))?.count())
}

/// Returns the maximum number of threads of a process while `work` runs.
fn most_threads(pid: i32, work: impl FnOnce() -> Result<()> + Send) -> Result<usize> {
    thread::scope(|scope| {
        let worker = scope.spawn(work);
        let mut most = 0;
        while !worker.is_finished() {
            most = most.max(threads(pid)?);
            thread::sleep(Duration::from_millis(1));
        }
        worker.join().expect("the statement does not panic")?;
        Ok(most)
    })
}

fn ensure_alone(client: &mut Client, pid: i32) -> Result<()> {
    // A joined thread is listed until the kernel has finished with it.
    let end = Instant::now() + Duration::from_mins(10);
    while threads(pid)? > 1 && Instant::now() < end {
        thread::sleep(Duration::from_millis(1));
    }
    let left = threads(pid)?;
    ensure!(left == 1, "{left} threads");
    let files: i64 = client
        .query_one("SELECT count(*) FROM pg_ls_tmpdir()", &[])?
        .get(0);
    ensure!(files == 0, "{files} temporary files");
    Ok(())
}

/// Ends a session in the middle of a job.
fn terminate(database: &Database<'_>, job: &str, after: Duration) -> Result<()> {
    let mut client = database.connect()?;
    client.batch_execute("SET max_parallel_maintenance_workers = 4; SET work_mem = '256kB'")?;
    let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[])?.get(0);
    thread::scope(|scope| {
        // The job may have finished earlier.
        scope.spawn(move || client.batch_execute(job).is_ok());
        thread::sleep(after);
        let mut other = database.connect()?;
        other.query_one("SELECT pg_terminate_backend($1, 600000)", &[&pid])?;
        let sessions: i64 = other
            .query_one(
                "SELECT count(*) FROM pg_stat_activity WHERE pid = $1",
                &[&pid],
            )?
            .get(0);
        ensure!(sessions == 0, "the session did not end");
        Ok(())
    })
}
