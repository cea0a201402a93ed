//! Kills the server in the middle of work.

use std::thread::{self, Scope};
use std::time::Duration;

use anyhow::{Result, ensure};
use fastrand::Rng;
use postgres::Client;
use postgres::error::SqlState;
use testbed::server::Server;
use testbed::server::cluster::Cluster;

use super::collection;
use crate::harness::{Outcome, Scale, figure};
use crate::sessions::is_ended;

/// Statements that sessions repeat until the server is killed.
const WORK: &[&str] = &[
    "INSERT INTO docs SELECT i, make_body(i) FROM generate_series(
         (SELECT max(id) + 1 FROM docs), (SELECT max(id) + 50 FROM docs)) i",
    "DELETE FROM docs WHERE id % 97 = (SELECT max(id) % 97 FROM docs)",
    "VACUUM docs",
    "REINDEX INDEX docs_sig",
    // Built by helpers.
    "REINDEX INDEX docs_body",
];

const GUARDED: &str = "CREATE TABLE guarded (id bigserial PRIMARY KEY, body text,
         sig minhash_signature GENERATED ALWAYS AS (minhash(body)) STORED);
     CREATE INDEX guarded_sig ON guarded USING neardup (sig);
     SELECT near_dup_protect('guarded', 'sig', 0.8)";

const GUARDED_SESSIONS: u64 = 4;

/// Kills the server during load, VACUUM, index build and guarded inserts. Checks that afterward the indexes give the
/// same answers as a scan, no two guarded rows are near-duplicates, and heaps and indexes are sound.
pub fn loses_nothing(server: &Server, scale: Scale) -> Result<Outcome> {
    let cluster = server.scratch_cluster("kills")?;
    cluster.create(&[
        ("full_page_writes", "on"),
        ("synchronous_commit", "on"),
        ("autovacuum_naptime", "1s"),
    ])?;
    cluster.start()?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute("CREATE EXTENSION pg_neardup; CREATE EXTENSION amcheck")?;
    collection::create(&mut client)?;
    collection::insert(&mut client, 1, 2000)?;
    client.batch_execute("CREATE INDEX docs_body ON docs USING neardup (body)")?;
    client.batch_execute(GUARDED)?;

    let kills = scale.of(2, 20);
    let (mut accepted, mut rejected) = (0, 0);
    for kill in 0..kills {
        let seen = work_until_killed(&cluster, kill)?;
        cluster.start()?;
        let mut client = cluster.connect("postgres")?;
        collection::ensure_index_equals_scan(&mut client)?;
        ensure_guarded(&mut client, &seen)?;
        ensure_sound(&mut client)?;
        accepted += seen.accepted.len();
        rejected += seen.rejected;
    }
    ensure!(
        accepted > 0 && rejected > 0,
        "the guard accepted {accepted} rows and rejected {rejected}: nothing was tested"
    );
    figure!(
        "{kills} kills, 0 differences; {accepted} guarded rows accepted, none lost, and {rejected} rejected"
    );
    Ok(Outcome::Passed)
}

/// The answers to the sessions that insert guarded rows.
#[derive(Default)]
struct Seen {
    accepted: Vec<i64>,
    rejected: u64,
}

/// Starts a session for each statement that repeats it until it fails, at the latest when the server ends.
pub(super) fn repeat<'scope>(
    scope: &'scope Scope<'scope, '_>,
    cluster: &Cluster,
    statements: &'static [&'static str],
) {
    for statement in statements {
        let connection = cluster.connect("postgres");
        scope.spawn(move || {
            let Ok(mut client) = connection else { return };
            while client.batch_execute(statement).is_ok() {}
        });
    }
}

fn work_until_killed(cluster: &Cluster, kill: u64) -> Result<Seen> {
    thread::scope(|scope| {
        repeat(scope, cluster, WORK);
        let mut sessions = Vec::new();
        for session in 0..GUARDED_SESSIONS {
            let client = cluster.connect("postgres")?;
            let rng = Rng::with_seed(kill * GUARDED_SESSIONS + session);
            sessions.push(scope.spawn(move || insert_guarded(client, rng)));
        }
        thread::sleep(Duration::from_millis(300 + 170 * kill % 1000));
        cluster.crash()?;
        let mut all = Seen::default();
        for session in sessions {
            let seen = session.join().expect("the session does not panic")?;
            all.accepted.extend(seen.accepted);
            all.rejected += seen.rejected;
        }
        Ok(all)
    })
}

/// Inserts variants of a few documents until the connection is lost.
fn insert_guarded(mut client: Client, mut rng: Rng) -> Result<Seen> {
    let mut seen = Seen::default();
    loop {
        let document = rng.u32(0..3000);
        let word = |word: u32| match rng.u32(0..30) {
            0 => format!("edit{}", rng.u64(..)),
            _ => format!("w{document}x{word}"),
        };
        let body = (0..60).map(word).collect::<Vec<_>>().join(" ");
        let insert = "INSERT INTO guarded (body) VALUES ($1) RETURNING id";
        match client.query_one(insert, &[&body]) {
            Ok(row) => seen.accepted.push(row.get(0)),
            Err(error) => match error.code() {
                Some(&SqlState::EXCLUSION_VIOLATION) => seen.rejected += 1,
                Some(&SqlState::T_R_DEADLOCK_DETECTED) => {}
                _ if is_ended(&error) => return Ok(seen),
                _ => return Err(error.into()),
            },
        }
    }
}

/// Checks that no accepted row is lost, and that no two rows are near-duplicates.
fn ensure_guarded(client: &mut Client, seen: &Seen) -> Result<()> {
    let row = client.query_one(
        "SELECT (SELECT count(*) FROM near_dup_pairs(NULL::bigint, 'SELECT id, sig FROM guarded', 0.8)),
                (SELECT count(*) FROM unnest($1::bigint[]) a (id) WHERE NOT EXISTS (
                     SELECT FROM guarded g WHERE g.id = a.id))",
        &[&seen.accepted],
    )?;
    let (pairs, lost): (i64, i64) = (row.get(0), row.get(1));
    ensure!(pairs == 0, "{pairs} pairs of near-duplicates were let in");
    ensure!(
        lost == 0,
        "{lost} of {} accepted rows are lost",
        seen.accepted.len()
    );
    Ok(())
}

fn ensure_sound(client: &mut Client) -> Result<()> {
    for table in ["docs", "guarded"] {
        ensure_sound_heap(client, table)?;
        client.batch_execute(&format!(
            "SELECT bt_index_parent_check('{table}_pkey', true)"
        ))?;
        client.batch_execute(&format!("SELECT near_dup_index_check('{table}_sig')"))?;
    }
    client.batch_execute("SELECT near_dup_index_check('docs_body')")?;
    Ok(())
}

/// Fails if amcheck finds a defect of a table's heap.
pub(super) fn ensure_sound_heap(client: &mut Client, table: &str) -> Result<()> {
    let defects: i64 = client
        .query_one(
            "SELECT count(*) FROM verify_heapam($1::text::regclass)",
            &[&table],
        )?
        .get(0);
    ensure!(
        defects == 0,
        "amcheck reports {defects} defects of the heap of {table}"
    );
    Ok(())
}
