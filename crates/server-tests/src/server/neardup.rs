//! The access method `neardup`: exactly the rows that a sequential scan finds, in any state of the index.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use postgres::error::SqlState;
use postgres::{Client, IsolationLevel};
use testbed::server::Server;
use testbed::server::cluster::Cluster;
use testbed::server::database::Database;

use crate::harness::{Missing, Outcome};
use crate::sessions::is_ended;

/// Documents in groups of ten that differ in up to nine of forty words.
pub const SIGNATURES: &str = "
    CREATE FUNCTION body(id bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
        SELECT string_agg(CASE WHEN word <= id % 10 THEN 'edit' || id || word
                               ELSE md5(id / 10 || ' ' || word) END, ' ' ORDER BY word * 7 % 40)
        FROM generate_series(1, 40) word $$;
    CREATE TABLE sigs (id bigserial, sig minhash_signature)";

/// The time after which an insert of some rows counts as hanging.
const LONGEST_INSERT: Duration = Duration::from_mins(10);

/// Returns the rows that only one of index scan and sequential scan returns, and the number of rows that the index scan
/// returns. IS TRUE keeps the planner from using the index.
fn differing(client: &mut Client, threshold: &str, every: u32) -> Result<(i64, i64)> {
    client.batch_execute("SET enable_seqscan = off; SET max_parallel_workers_per_gather = 0")?;
    let near = format!("near_dup(d.sig, q.sig, {threshold})");
    let pairs = "SELECT q.id AS q, d.id FROM queries q, sigs d WHERE";
    let row = client.query_one(
        &format!(
            "WITH queries AS MATERIALIZED (SELECT * FROM sigs WHERE id % {every} = 0),
                  scan AS MATERIALIZED ({pairs} {near} IS TRUE),
                  found AS MATERIALIZED ({pairs} {near})
             SELECT (SELECT count(*) FROM (TABLE scan EXCEPT ALL TABLE found) x)
                  + (SELECT count(*) FROM (TABLE found EXCEPT ALL TABLE scan) x),
                    (SELECT count(*) FROM found)"
        ),
        &[],
    )?;
    Ok((row.get(0), row.get(1)))
}

pub fn ensure_equal(client: &mut Client, threshold: &str, every: u32, state: &str) -> Result<()> {
    let (differing, answers) = differing(client, threshold, every)?;
    ensure!(
        differing == 0 && answers > 0,
        "{state}, threshold {threshold}: {differing} rows differ of {answers}"
    );
    Ok(())
}

/// Does some work on a replica, and retries as long as replay cancels it or ends its session. Since the primary's work
/// ends, so do the retries.
pub fn beside_replay(
    replica: &Cluster,
    mut work: impl FnMut(&mut Client) -> Result<()>,
) -> Result<()> {
    loop {
        let ended = replica
            .connect("postgres")
            .and_then(|mut client| work(&mut client));
        let error = ended.as_ref().err();
        let error = error.and_then(|error| error.downcast_ref::<postgres::Error>());
        if !error.is_some_and(is_conflict) {
            return ended;
        }
        let log = fs::read_to_string(replica.log_file())?;
        ensure!(!log.contains("terminated by signal"), "a backend died");
    }
}

fn is_conflict(error: &postgres::Error) -> bool {
    let canceled = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
    ];
    error.code().is_some_and(|code| canceled.contains(code)) || is_ended(error)
}

/// Fails if the index is damaged or lacks a row.
pub fn check(client: &mut Client) -> Result<()> {
    Ok(client.batch_execute("SELECT near_dup_index_check('sigs_sig')")?)
}

/// Checks slot counts and thresholds: in the log, in segments, after deletes, VACUUM and REINDEX, and if half of the
/// table follows one template.
pub fn equals_scan(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "neardup")?;
    let mut client = database.connect()?;
    client.batch_execute(SIGNATURES)?;
    for (slots, index_threshold) in [(1, 0.5), (64, 0.5), (100, 0.9), (128, 0.8), (1024, 0.6)] {
        client.batch_execute(&format!(
            "DROP INDEX IF EXISTS sigs_sig;
             TRUNCATE sigs;
             CREATE INDEX sigs_sig ON sigs USING neardup (sig minhash_ops (threshold = {index_threshold}));
             INSERT INTO sigs (sig) SELECT minhash(body(i), slots => {slots}) FROM generate_series(1, 2000) i;
             INSERT INTO sigs (sig) VALUES (NULL), (minhash('', slots => {slots}))"
        ))?;
        let template = format!(
            "UPDATE sigs SET sig = minhash(body(id % 4), slots => {slots}) WHERE id % 2 = 0"
        );
        for change in [
            "",
            "DELETE FROM sigs WHERE id % 7 = 0",
            "UPDATE sigs SET sig = minhash(body(id + 1), slots => 128) WHERE id % 5 = 0",
            &template,
            "VACUUM sigs",
            "REINDEX INDEX sigs_sig",
            "DELETE FROM sigs WHERE id % 3 > 0",
            "VACUUM sigs",
            "INSERT INTO sigs (sig) SELECT sig FROM sigs",
        ] {
            client.batch_execute(change)?;
            let state = format!("{slots} slots, index at {index_threshold}, after {change:?}");
            for threshold in ["0.9", "1", "(SELECT 0.3::float8)"] {
                ensure_equal(&mut client, threshold, 101, &state)?;
            }
            check(&mut client)?;
        }
    }
    Ok(Outcome::Passed)
}

/// Statements that concurrent sessions repeat. The first rows stay, so that some lookup has an answer no matter how far
/// the deletes run ahead of the inserts.
const WORK: &[&str] = &[
    "INSERT INTO sigs (sig) SELECT minhash(body(i)) FROM generate_series(1, 300) i",
    "INSERT INTO sigs (sig) SELECT minhash(body(i)) FROM generate_series(5000, 5100) i",
    "DELETE FROM sigs WHERE id % 19 = (SELECT max(id) % 19 FROM sigs) AND id > 400",
    "VACUUM sigs",
    "WITH gone AS (DELETE FROM sigs WHERE id % 2 = (SELECT max(id) % 2 FROM sigs) AND id > 400 RETURNING sig)
         INSERT INTO sigs (sig) SELECT sig FROM gone",
    "DROP INDEX IF EXISTS built; CREATE INDEX built ON sigs USING neardup (sig)",
];

/// Number of statements per session that a replica replays while it answers: its comparisons with a scan take time in
/// proportion to the square of the number of rows.
const REPLAYED: usize = 40;

/// Runs each statement in a separate session, up to `most` times or until it fails, while `end` runs.
pub fn work(
    cluster: &Cluster,
    statements: &[&str],
    most: usize,
    mut end: impl FnMut() -> Result<()>,
) -> Result<()> {
    thread::scope(|scope| {
        for statement in statements {
            let mut client = cluster.connect("postgres")?;
            client.batch_execute("SET statement_timeout = '3s'")?;
            scope.spawn(move || (0..most).all(|_| client.batch_execute(statement).is_ok()));
        }
        end()
    })
}

fn prepare(cluster: &Cluster) -> Result<Client> {
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(SIGNATURES)?;
    client.batch_execute("CREATE INDEX sigs_sig ON sigs USING neardup (sig)")?;
    Ok(client)
}

/// Kills the server during inserts with merging, VACUUM and builds.
pub fn crash(server: &Server) -> Result<Outcome> {
    let cluster = server.scratch_cluster("neardup_crash")?;
    cluster.create(&[("full_page_writes", "on"), ("synchronous_commit", "on")])?;
    cluster.start()?;
    cluster
        .connect("postgres")?
        .batch_execute("CREATE EXTENSION pg_neardup")?;
    drop(prepare(&cluster)?);
    for kill in 0..5 {
        work(&cluster, WORK, usize::MAX, || {
            thread::sleep(Duration::from_millis(1000 + 370 * kill));
            cluster.crash()
        })?;
        cluster.start()?;
        let mut client = cluster.connect("postgres")?;
        check(&mut client)?;
        ensure_equal(&mut client, "0.8", 197, &format!("kill {kill}"))?;
    }
    Ok(Outcome::Passed)
}

/// Checks that inserts continue if, after a crash, the free space map lists pages that are in use, including the page
/// that the insert itself has locked.
pub fn old_map_of_free_space(server: &Server) -> Result<Outcome> {
    let cluster = server.quiet_cluster("neardup_free_space", &[])?;
    cluster
        .connect("postgres")?
        .batch_execute("CREATE EXTENSION pg_neardup")?;
    let mut client = prepare(&cluster)?;
    let insert = |rows: u32| {
        format!("INSERT INTO sigs (sig) SELECT minhash(body(i)) FROM generate_series(1, {rows}) i")
    };
    client.batch_execute(&insert(8000))?;
    client.batch_execute("DELETE FROM sigs WHERE id % 4 > 0")?;
    client.batch_execute("VACUUM sigs")?;
    for rows in (50..500).step_by(50) {
        client.batch_execute("CHECKPOINT")?;
        client.batch_execute(&insert(rows))?;
        cluster.crash()?;
        cluster.start()?;
        client = cluster.connect("postgres")?;
        let (ended, end) = mpsc::channel();
        let inserted = thread::scope(|scope| {
            let insert = scope.spawn(|| {
                client.batch_execute(&insert(200))?;
                ended.send(())?;
                check(&mut client)
            });
            if end.recv_timeout(LONGEST_INSERT).is_err() {
                cluster.crash()?;
                bail!("the insert does not end");
            }
            insert.join().expect("the insert does not panic")
        });
        inserted.with_context(|| format!("after a crash behind {rows} rows"))?;
    }
    Ok(Outcome::Passed)
}

/// Checks an index in a transaction that is older than the index, and sees a row as it was before.
pub fn checked_by_old_transaction(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "neardup_old")?;
    let mut client = database.connect()?;
    client.batch_execute(SIGNATURES)?;
    client.batch_execute(
        "INSERT INTO sigs (sig) SELECT minhash(body(i)) FROM generate_series(1, 10) i",
    )?;
    let mut reader = database.connect()?;
    let mut old = reader
        .build_transaction()
        .isolation_level(IsolationLevel::RepeatableRead)
        .start()?;
    old.query_one("SELECT count(*) FROM pg_class", &[])?;
    client.batch_execute("UPDATE sigs SET sig = minhash(body(77)) WHERE id = 3")?;
    client.batch_execute("CREATE INDEX sigs_sig ON sigs USING neardup (sig)")?;
    old.batch_execute("SELECT near_dup_index_check('sigs_sig')")?;
    old.commit()?;
    Ok(Outcome::Passed)
}

/// Builds an index, with the least memory, on rows that each become a segment: fewer than a build merges of each size,
/// but more than an index has room for.
pub fn build_of_many_sizes(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "neardup_sizes")?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE sets (elements bigint[]);
         ALTER TABLE sets ALTER elements SET STORAGE EXTERNAL;
         INSERT INTO sets SELECT elements FROM (VALUES (290000), (140000), (66000)) sizes (size),
             LATERAL (SELECT array_agg(hashint8extended(e, 0)) AS elements FROM generate_series(1, size) e) sets,
             generate_series(1, 31) ORDER BY size DESC;
         SET maintenance_work_mem = '1MB';
         CREATE INDEX sets_elements ON sets USING neardup (elements)",
    )?;
    let segments = "SELECT segments FROM near_dup_index_stats('sets_elements')";
    let segments: i32 = client.query_one(segments, &[])?.get(0);
    ensure!(segments == 1, "{segments} segments");
    client.batch_execute("SELECT near_dup_index_check('sets_elements')")?;
    Ok(Outcome::Passed)
}

/// Checks that an index written by another version is rejected, naming the version, until REINDEX.
pub fn other_version(server: &Server) -> Result<Outcome> {
    const VERSION_AT: u64 = 28;
    let cluster = server.scratch_cluster("neardup_version")?;
    cluster.create(&[])?;
    cluster.start()?;
    cluster
        .connect("postgres")?
        .batch_execute("CREATE EXTENSION pg_neardup")?;
    let mut client = prepare(&cluster)?;
    let path = "SELECT pg_relation_filepath('sigs_sig')";
    let path: String = client.query_one(path, &[])?.get(0);
    drop(client);
    cluster.stop()?;
    let file = cluster.data_dir().join(path);
    let file = OpenOptions::new().write(true).open(file)?;
    file.write_all_at(&999u32.to_ne_bytes(), VERSION_AT)?;
    cluster.start()?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute("SET ignore_checksum_failure = on")?;
    let insert = "INSERT INTO sigs (sig) VALUES (minhash('a text'))";
    let error = client.batch_execute(insert).err().context("accepted")?;
    let error = error.as_db_error().context("no error of the server")?;
    ensure!(
        error.code() == &SqlState::FEATURE_NOT_SUPPORTED
            && error.message().contains("version 999")
            && error.hint().is_some_and(|hint| hint.contains("REINDEX")),
        "{error}"
    );
    client.batch_execute("REINDEX INDEX sigs_sig")?;
    client.batch_execute(insert)?;
    check(&mut client)?;
    Ok(Outcome::Passed)
}

/// Checks that EXPLAIN ANALYZE counts the searches of an index, one for each row of a join. Before PostgreSQL 18, it
/// counts none.
pub fn explains_searches(server: &Server) -> Result<Outcome> {
    if server.pg.major < 18 {
        return Ok(Outcome::Skipped(Missing::ServerVersion));
    }
    let database = Database::with_extension(&server.main, "neardup_searches")?;
    let mut client = database.connect()?;
    client.batch_execute(SIGNATURES)?;
    client.batch_execute(
        "INSERT INTO sigs (sig) SELECT minhash(body(i)) FROM generate_series(1, 100) i;
         CREATE INDEX sigs_sig ON sigs USING neardup (sig);
         SET enable_seqscan = off",
    )?;
    for other in ["enable_bitmapscan", "enable_indexscan"] {
        client.batch_execute(&format!("SET {other} = off"))?;
        let plan = client.query(
            "EXPLAIN (ANALYZE, COSTS OFF, BUFFERS OFF) SELECT count(*)
             FROM (SELECT sig FROM sigs OFFSET 97) q JOIN sigs s ON near_dup(s.sig, q.sig)",
            &[],
        )?;
        let plan: Vec<String> = plan.iter().map(|line| line.get(0)).collect();
        ensure!(
            plan.iter().any(|line| line.trim() == "Index Searches: 3"),
            "{}",
            plan.join("\n")
        );
        client.batch_execute(&format!("RESET {other}"))?;
    }
    Ok(Outcome::Passed)
}

/// Checks that a replica replays every page as the primary wrote it, gives the same answers as a scan while it replays,
/// and continues by itself.
pub fn replica(server: &Server) -> Result<Outcome> {
    let primary = server.scratch_cluster("neardup_primary")?;
    primary.create(&[
        ("wal_level", "replica"),
        ("wal_consistency_checking", "generic"),
    ])?;
    primary.start()?;
    primary
        .connect("postgres")?
        .batch_execute("CREATE EXTENSION pg_neardup")?;
    let mut client = prepare(&primary)?;
    let replica = server.scratch_cluster("neardup_replica")?;
    replica.create_replica_of(&primary)?;
    for _ in 0..8 {
        client.batch_execute(WORK[0])?;
    }
    replica.wait_for(&primary)?;
    work(&primary, &WORK[..5], REPLAYED, || {
        for lookup in 0..8 {
            let state = format!("replica, lookup {lookup}");
            beside_replay(&replica, |client| ensure_equal(client, "0.8", 197, &state))?;
        }
        primary.stop()
    })?;
    beside_replay(&replica, check)?;
    let mut client = replica.connect("postgres")?;
    client.batch_execute("SELECT pg_promote()")?;
    check(&mut client)?;
    client.batch_execute(WORK[0])?;
    client.batch_execute("VACUUM sigs")?;
    check(&mut client)?;
    ensure_equal(&mut client, "0.8", 197, "promoted")?;
    Ok(Outcome::Passed)
}
