//! Everything at the same time, for a long time: writers, lookups, refreshes, VACUUM, kills, and a replica that is
//! promoted.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use fastrand::Rng;
use postgres::Client;
use postgres::error::SqlState;
use testbed::server::Server;
use testbed::server::cluster::Cluster;

use crate::harness::{Outcome, Scale, figure};
use crate::live::{Kept, OF_SIGNATURES};
use crate::reliability::crash::ensure_sound_heap;

const KEPT: Kept = Kept::docs("place, id");

/// `docs` holds near-duplicates, in kept clusters. `kept_apart` rejects them, and so does `guarded`, by its texts,
/// except for deleted rows and for pairs in `guarded_distinct`.
const TABLES: &str = "CREATE TABLE docs (id int PRIMARY KEY, place int, body text,
         sig minhash_signature GENERATED ALWAYS AS (minhash(body, 1)) STORED);
     CREATE INDEX docs_sig ON docs USING neardup (sig);
     INSERT INTO docs SELECT i, i % 7, make_text(i % 50, i % 10) FROM generate_series(1, 2000) i;
     SELECT near_dup_track('docs', 'sig', 0.8, 'place');
     CREATE TABLE kept_apart (id bigserial PRIMARY KEY, body text,
         sig minhash_signature GENERATED ALWAYS AS (minhash(body, 1)) STORED,
         CONSTRAINT kept_apart_sig EXCLUDE USING neardup (near_dup_key(sig, 0.8) WITH %));
     CREATE TABLE guarded (id bigserial PRIMARY KEY, body text, is_gone boolean NOT NULL DEFAULT false);
     CREATE INDEX guarded_body ON guarded USING neardup (body) WHERE NOT is_gone;
     CREATE TABLE guarded_distinct (a bigint, b bigint, PRIMARY KEY (a, b));
     INSERT INTO guarded_distinct SELECT -i, -i - 1 FROM generate_series(0, 3000, 4) i;
     SELECT near_dup_protect('guarded', 'body', 0.8, condition => 'NOT is_gone', exceptions => 'guarded_distinct');
     CREATE INDEX docs_body ON docs USING neardup (body)";

/// Statements, each of which a session repeats, with an id, a document and edits to fill in.
const WRITERS: &[&str] = &[
    "INSERT INTO docs SELECT {id}, {id} % 7, make_text({document}, {edits}) ON CONFLICT DO NOTHING",
    "UPDATE docs SET body = make_text({document}, {edits}) WHERE id = {id}",
    "UPDATE docs SET place = {edits} WHERE id = {id}",
    "DELETE FROM docs WHERE id = {id}",
    "INSERT INTO kept_apart (body) VALUES (make_text({id}, {edits}))",
    "INSERT INTO kept_apart (body) VALUES (make_text({id}, {edits})) ON CONFLICT DO NOTHING",
    "DELETE FROM kept_apart WHERE id % 100 = {edits}",
    "INSERT INTO guarded (body) VALUES (make_text({id}, {edits})), (make_text({document}, {edits}))",
    "INSERT INTO guarded (body) VALUES (make_text({id}, {edits}))",
    "INSERT INTO guarded VALUES (-{id}, make_text(10000 + {id} / 2, {edits})) ON CONFLICT (id) DO NOTHING",
    "INSERT INTO guarded_distinct VALUES (-{id}, -{id} - 1) ON CONFLICT DO NOTHING",
    "UPDATE guarded SET is_gone = NOT is_gone WHERE abs(id) % 100 = {edits}",
    "DELETE FROM guarded WHERE abs(id) % 100 = {edits}",
    "SELECT near_dup_refresh('docs_clusters')",
    "VACUUM docs, docs_clusters, docs_clusters_canonical, docs_clusters_queue, kept_apart, guarded",
    "REINDEX INDEX docs_sig",
];

/// Errors that PostgreSQL can raise in such sessions: a rejected copy, a deadlock of REINDEX or of two inserts, and a
/// query that the replica cancels or makes wait.
const EXPECTED: &[SqlState] = &[
    SqlState::EXCLUSION_VIOLATION,
    SqlState::T_R_DEADLOCK_DETECTED,
    SqlState::T_R_SERIALIZATION_FAILURE,
    SqlState::LOCK_NOT_AVAILABLE,
];

/// Finds rows that only one of index and scan returns, for one text or signature and one snapshot.
const LOOKUPS: [&str; 2] = [
    "WITH one AS MATERIALIZED (SELECT minhash(make_text({document}, {edits}), 1) AS q)
    SELECT count(*) FROM (SELECT id FROM docs, one WHERE near_dup(sig, q, 0.8)) a
    FULL JOIN (SELECT id FROM docs, one WHERE minhash_sim(sig, q) + 0 >= 0.8) b USING (id)
    WHERE a.id IS NULL OR b.id IS NULL",
    "WITH one AS MATERIALIZED (SELECT make_text({document}, {edits}) AS q)
    SELECT count(*) FROM (SELECT id FROM docs, one WHERE near_dup(body, q, 0.8)) a
    FULL JOIN (SELECT id FROM docs, one WHERE resemblance(body, q) + 0 >= 0.8) b USING (id)
    WHERE a.id IS NULL OR b.id IS NULL",
];

/// The duration of the work between two kills.
const ROUND: Duration = Duration::from_secs(20);

/// Checks after every kill, and on the promoted replica, that the kept clusters equal those computed from scratch,
/// that no constraint is violated, and that the indexes are sound.
pub fn holds(server: &Server, scale: Scale) -> Result<Outcome> {
    let primary = server.scratch_cluster("soak")?;
    primary.create(&[
        ("full_page_writes", "on"),
        ("synchronous_commit", "on"),
        ("autovacuum_naptime", "5s"),
        ("wal_keep_size", "2GB"),
    ])?;
    primary.start()?;
    let mut client = primary.connect("postgres")?;
    client.batch_execute("CREATE EXTENSION pg_neardup; CREATE EXTENSION amcheck")?;
    client.batch_execute(&OF_SIGNATURES.texts())?;
    client.batch_execute(TABLES)?;
    let replica = server.scratch_cluster("soak_replica")?;
    replica.create_replica_of(&primary)?;

    let rounds = scale.of(1, 130);
    let length = scale.of(ROUND / 4, ROUND);
    let done = Done::default();
    for round in 0..rounds {
        work_until_killed(&primary, &replica, &done, round, length)?;
        primary.start()?;
        check(&primary).with_context(|| format!("after kill {}", round + 1))?;
        check_log(&replica)?;
        replica.wait_for(&primary)?;
    }
    primary.stop()?;
    replica
        .connect("postgres")?
        .batch_execute("SELECT pg_promote()")?;
    check(&replica).context("on the promoted replica")?;
    work_until_killed(&replica, &replica, &done, rounds, length)?;
    replica.start()?;
    check(&replica).context("after the promoted replica was killed")?;
    let (statements, lookups) = (done.statements.into_inner(), done.lookups.into_inner());
    ensure!(statements > 100 && lookups > 10, "hardly anything was done");
    figure!(
        "{} kills, {statements} statements, {lookups} lookups on primary and replica, a promotion: 0 differences",
        rounds + 1
    );
    Ok(Outcome::Passed)
}

/// Numbers of successful statements and lookups.
#[derive(Default)]
struct Done {
    statements: AtomicU64,
    lookups: AtomicU64,
}

/// Lets all sessions work for a while, then kills the server that they write to.
fn work_until_killed(
    primary: &Cluster,
    replica: &Cluster,
    done: &Done,
    seed: u64,
    length: Duration,
) -> Result<()> {
    let killed = &AtomicBool::new(false);
    thread::scope(|scope| {
        let mut sessions = Vec::new();
        for (number, template) in (0..).zip(WRITERS) {
            let mut client = primary.connect("postgres")?;
            let rng = Rng::with_seed(seed * 100 + number);
            let write = move |statement: &str| client.batch_execute(statement).map_err(Into::into);
            sessions
                .push(scope.spawn(move || repeat(template, rng, killed, &done.statements, write)));
        }
        let readers = [("primary", primary), ("replica", replica)];
        let readers = readers
            .iter()
            .flat_map(|reader| LOOKUPS.map(|lookup| (reader, lookup)));
        for (number, (&(name, cluster), lookup)) in (50..).zip(readers) {
            let mut client = reader(cluster)?;
            let rng = Rng::with_seed(seed * 100 + number);
            let look_up = move |statement: &str| {
                let row = client.query_one(statement, &[]);
                // Recovery may end a session while the server waits for its next message; `check_log` detects a crash.
                if name == "replica" && row.as_ref().is_err_and(|error| error.code().is_none()) {
                    client = reader(cluster)?;
                    return Ok(());
                }
                let different: i64 = row.context(name)?.get(0);
                ensure!(different == 0, "index and scan differ in {different} rows");
                Ok(())
            };
            sessions.push(scope.spawn(move || repeat(lookup, rng, killed, &done.lookups, look_up)));
        }
        let started = Instant::now();
        while started.elapsed() < length && !sessions.iter().any(|session| session.is_finished()) {
            thread::sleep(Duration::from_millis(50));
        }
        killed.store(true, Ordering::SeqCst);
        primary.crash()?;
        for session in sessions {
            session.join().expect("sessions do not panic")?;
        }
        Ok(())
    })
}

/// Connects a session that performs lookups.
fn reader(cluster: &Cluster) -> Result<Client> {
    let mut client = cluster.connect("postgres")?;
    // A replica keeps the locks of a transaction whose end the killed primary did not send.
    client.batch_execute("SET enable_seqscan = off; SET lock_timeout = '10s'")?;
    Ok(client)
}

/// Fails if a server process that was not killed has died.
fn check_log(cluster: &Cluster) -> Result<()> {
    let log = fs::read_to_string(cluster.log_file())?;
    let died = |line: &&str| line.contains("terminated by signal") || line.contains("PANIC");
    ensure!(
        !log.lines().any(|line| died(&line)),
        "a process died:\n{log}"
    );
    Ok(())
}

/// Repeats a statement with new parameters until the server is killed.
fn repeat(
    template: &str,
    mut rng: Rng,
    killed: &AtomicBool,
    done: &AtomicU64,
    mut run: impl FnMut(&str) -> Result<()>,
) -> Result<()> {
    while !killed.load(Ordering::SeqCst) {
        let statement = template
            .replace("{id}", &rng.u32(0..3000).to_string())
            .replace("{document}", &rng.u32(0..50).to_string())
            .replace("{edits}", &rng.u32(0..10).to_string());
        if let Err(error) = run(&statement) {
            let code = error
                .downcast_ref::<postgres::Error>()
                .and_then(|error| error.code());
            let expected = code.is_some_and(|code| EXPECTED.contains(code));
            ensure!(
                expected || killed.load(Ordering::SeqCst),
                "{statement}: {error:#}"
            );
        }
        done.fetch_add(1, Ordering::Relaxed);
        // A few cores serve many sessions.
        thread::sleep(Duration::from_millis(rng.u64(0..20)));
    }
    Ok(())
}

/// Fails unless clusters, constraint, index and heap are sound.
fn check(cluster: &Cluster) -> Result<()> {
    let mut client = cluster.connect("postgres")?;
    KEPT.ensure_law(&mut client, false)?;
    for (rows, exceptions) in [
        ("sig FROM kept_apart", ""),
        (
            "body FROM guarded WHERE NOT is_gone",
            ", exceptions => 'SELECT a, b FROM guarded_distinct'",
        ),
    ] {
        let pairs = format!(
            "SELECT count(*) FROM near_dup_pairs(NULL::bigint, 'SELECT id, {rows}', 0.8{exceptions})"
        );
        let admitted: i64 = client.query_one(&pairs, &[])?.get(0);
        ensure!(admitted == 0, "{admitted} pairs in {rows}");
    }
    for index in [
        "docs_sig",
        "docs_body",
        "kept_apart_sig",
        "guarded_body",
        "docs_clusters_canonical_kept_idx",
    ] {
        client.execute("SELECT near_dup_index_check($1::text::regclass)", &[&index])?;
    }
    for table in ["docs", "docs_clusters", "kept_apart", "guarded"] {
        ensure_sound_heap(&mut client, table)?;
    }
    Ok(())
}
