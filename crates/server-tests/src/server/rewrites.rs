//! Commands that rewrite a table keep its index, guard and tracker: VACUUM FULL, CLUSTER, REPACK.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Result, ensure};
use postgres::Client;
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::Outcome;

/// A table with an index, a guard that notes, and a tracker; three similar documents of every kind.
const TABLE: &str = "
    CREATE FUNCTION document(i int) RETURNS text LANGUAGE sql IMMUTABLE AS $$
        SELECT string_agg('w' || (i / 3 * 7919 + w * w + CASE WHEN w % 30 < i % 3 THEN i ELSE 0 END) % 9973, ' ' ORDER BY w)
        FROM generate_series(1, 60) w $$;
    CREATE TABLE docs (id int PRIMARY KEY, body text NOT NULL);
    CREATE INDEX docs_body ON docs USING neardup (body);
    CREATE INDEX docs_sig ON docs USING neardup (minhash(body));
    SELECT near_dup_protect('docs', 'body', 0.8, action => 'note'), near_dup_track('docs', 'body', 0.8);
    INSERT INTO docs SELECT i, document(i) FROM generate_series(1, 600) i";

const PAIRS: &str = "
    SELECT count(*), coalesce(sum(hashint8(a.id * 100000 + b.id)), 0)::text FROM docs a
    JOIN docs b ON a.id < b.id AND near_dup(b.body, a.body, 0.8)";

/// Counts the rows whose cluster differs from the one computed from scratch.
const WRONG_CLUSTERS: &str = "
    SELECT count(*) FROM docs_clusters kept
    FULL JOIN near_dup_clusters(NULL::int, 'SELECT id, body FROM docs ORDER BY id', 0.8) anew USING (key)
    WHERE kept.canonical IS DISTINCT FROM anew.cluster";

/// After each command that rewrites the table, and after VACUUM with several processes, compares everything with the
/// results of a scan.
pub fn keep_everything(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "rewrites")?;
    let mut client = database.connect()?;
    client.batch_execute(TABLE)?;
    let mut commands = vec![
        "VACUUM (FULL) docs",
        "CLUSTER docs USING docs_pkey",
        "SET min_parallel_index_scan_size = 0; VACUUM (PARALLEL 2) docs",
    ];
    if server.pg.major >= 19 {
        commands.extend(["REPACK docs", "REPACK docs USING INDEX docs_pkey"]);
        commands.push("REPACK (CONCURRENTLY) docs");
    }
    for (number, command) in (1..).zip(commands) {
        client.execute("DELETE FROM docs WHERE id % 50 = $1", &[&number])?;
        for command in command.split("; ") {
            client.batch_execute(command)?;
        }
        check(&mut client, command, number)?;
    }
    if server.pg.major >= 19 {
        repack_beside_inserts(&database)?;
        check(&mut client, "REPACK (CONCURRENTLY) beside inserts", 0)?;
    }
    Ok(Outcome::Passed)
}

/// Checks lookups, the index, the guard's notes, and that the tracker handles a new copy of a row.
fn check(client: &mut Client, command: &str, number: i32) -> Result<()> {
    let pairs = |client: &mut Client| -> Result<(i64, String)> {
        let row = client.query_one(PAIRS, &[])?;
        Ok((row.get(0), row.get(1)))
    };
    client.batch_execute(
        "SELECT near_dup_index_check('docs_body'), near_dup_index_check('docs_sig')",
    )?;
    client.batch_execute("SET enable_seqscan = off")?;
    let found = pairs(client)?;
    client.batch_execute(
        "RESET enable_seqscan; SET enable_indexscan = off; SET enable_bitmapscan = off",
    )?;
    let all = pairs(client)?;
    client.batch_execute("RESET enable_indexscan; RESET enable_bitmapscan")?;
    ensure!(
        found == all,
        "{command}: {found:?}, but a scan finds {all:?}"
    );
    let copy = 10_000 + number;
    client.execute(
        "INSERT INTO docs SELECT $1, body FROM docs WHERE id = 299",
        &[&copy],
    )?;
    let noted: i64 = client
        .query_one(
            "SELECT count(*) FROM docs_near_dups WHERE key = $1",
            &[&copy],
        )?
        .get(0);
    ensure!(noted > 0, "{command}: the copy is not noted");
    client.batch_execute("SELECT near_dup_refresh('docs_clusters')")?;
    let wrong: i64 = client.query_one(WRONG_CLUSTERS, &[])?.get(0);
    ensure!(wrong == 0, "{command}: {wrong} clusters differ");
    Ok(())
}

/// Repacks the table again and again while another session inserts into it.
fn repack_beside_inserts(database: &Database) -> Result<()> {
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        let inserts = scope.spawn(|| -> Result<()> {
            let mut client = database.connect()?;
            for id in 20_000.. {
                if ends.load(Ordering::Relaxed) {
                    break;
                }
                client.execute("INSERT INTO docs VALUES ($1, document($1 % 700))", &[&id])?;
            }
            Ok(())
        });
        let repacked = database.connect().and_then(|mut client| {
            (0..3).try_for_each(|_| Ok(client.batch_execute("REPACK (CONCURRENTLY) docs")?))
        });
        ends.store(true, Ordering::Relaxed);
        inserts.join().expect("the session does not panic")?;
        repacked
    })
}
