//! VACUUM frees pages of an index, and they are reused, while other work continues.

use std::fs;

use anyhow::{Context, Result, bail, ensure};
use postgres::Client;
use testbed::server::Server;
use testbed::server::database::Database;

use super::estimates::number_after;
use super::neardup::{self, SIGNATURES, check, ensure_equal};
use crate::harness::{Outcome, figure};

/// Replaces every row.
const REPLACE: &str =
    "WITH gone AS (DELETE FROM sigs RETURNING sig) INSERT INTO sigs (sig) SELECT sig FROM gone";

/// Number of rows of an index of a few hundred pages.
const ROWS: u32 = 12_000;

/// Number of inserts during which another session vacuums.
const INSERTS: usize = 60;

/// Creates the rows and their index.
fn create(client: &mut Client, kind: &str) -> Result<()> {
    let made = SIGNATURES.replace("CREATE TABLE", &format!("CREATE {kind} TABLE"));
    client.batch_execute(&made)?;
    client.batch_execute(&format!(
        "INSERT INTO sigs (sig) SELECT minhash(body(i)) FROM generate_series(1, {ROWS}) i;
         CREATE INDEX sigs_sig ON sigs USING neardup (sig)"
    ))?;
    Ok(())
}

fn blocks(client: &mut Client) -> Result<i64> {
    let query = "SELECT pg_relation_size('sigs_sig') / 8192";
    Ok(client.query_one(query, &[])?.get(0))
}

/// Fails unless the file is at most `times` times as long as before.
fn ensure_short(client: &mut Client, fresh: i64, times: f64, state: &str) -> Result<()> {
    let blocks = blocks(client)?;
    ensure!(
        blocks as f64 <= fresh as f64 * times,
        "{state}: {blocks} pages, of which a fresh index has {fresh}"
    );
    Ok(())
}

/// Checks that after all rows have been replaced in portions, with a VACUUM after each, a lookup reads at most half
/// again as many pages as in a fresh index.
pub fn lookups_after_portions(server: &Server) -> Result<Outcome> {
    const PORTIONS: u32 = 10;
    let cluster = server.quiet_cluster("reuse_portions", &[])?;
    let database = Database::with_extension(&cluster, "reuse")?;
    let mut client = database.connect()?;
    create(&mut client, "")?;
    client.batch_execute("VACUUM ANALYZE sigs")?;
    client.batch_execute("SET enable_seqscan = off")?;
    let fresh = pages_of_lookups(&mut client)?;
    for portion in 0..PORTIONS {
        let portion = format!("WHERE id <= {ROWS} AND id % {PORTIONS} = {portion} RETURNING");
        client.batch_execute(&REPLACE.replace("RETURNING", &portion))?;
        client.batch_execute("VACUUM sigs")?;
    }
    let pages = pages_of_lookups(&mut client)?;
    ensure!(
        pages * 2 <= fresh * 3,
        "lookups read {pages} pages, and {fresh} of a fresh index"
    );
    figure!("{:.2} times the pages", pages as f64 / fresh as f64);
    Ok(Outcome::Passed)
}

/// Returns the number of pages that ten lookups read.
fn pages_of_lookups(client: &mut Client) -> Result<u64> {
    let mut pages = 0;
    for i in 1..=10 {
        let query = format!(
            "EXPLAIN (ANALYZE, BUFFERS) SELECT FROM sigs WHERE near_dup(sig, minhash(body({i})), 0.8)"
        );
        client.query(&query, &[])?;
        let plan = client.query(&query, &[])?;
        let plan: Vec<&str> = plan.iter().map(|row| row.get(0)).collect();
        pages += number_after(&plan.join("\n"), "shared hit=")?;
    }
    Ok(pages)
}

/// Replaces all rows, at once and in portions. Checks that the file grows no further than in the first round, and is
/// never shortened, and that VACUUM (VERBOSE) reports the number of free pages.
pub fn keeps_the_file(server: &Server) -> Result<Outcome> {
    let cluster = server.quiet_cluster("reuse_file", &[])?;
    for kind in ["", "UNLOGGED", "TEMPORARY"] {
        let database = Database::with_extension(&cluster, "reuse")?;
        let mut client = database.connect()?;
        create(&mut client, kind)?;
        let fresh = blocks(&mut client)?;
        let mut before = fresh;
        for round in 0..4 {
            client.batch_execute(REPLACE)?;
            client.batch_execute("VACUUM sigs")?;
            let state = format!("{kind} table, round {round}");
            ensure!(
                blocks(&mut client)? >= before,
                "{state}: the file was shortened"
            );
            before = blocks(&mut client)?;
            ensure_short(&mut client, fresh, 2.7, &state)?;
            ensure_equal(&mut client, "0.8", 1009, &state)?;
            check(&mut client)?;
        }
        for portion in 0..10 {
            client.batch_execute(
                &REPLACE.replace("RETURNING", &format!("WHERE id % 10 = {portion} RETURNING")),
            )?;
            client.batch_execute("VACUUM sigs")?;
        }
        let state = format!("{kind} table, in portions");
        ensure_short(&mut client, fresh, 2.7, &state)?;
        ensure_equal(&mut client, "0.8", 1009, &state)?;
        client.batch_execute("DELETE FROM sigs")?;
        client.batch_execute("VACUUM sigs")?;
        ensure!(blocks(&mut client)? >= before, "{kind} table, empty");
        check(&mut client)?;
        if kind.is_empty() {
            ensure_reusable(&database, &mut client)?;
            ensure_found_again(&database, client)?;
        }
    }
    Ok(Outcome::Passed)
}

/// Fails unless VACUUM finds the free pages of an empty index after a crash, in which the map of free space has lost
/// them.
fn ensure_found_again(database: &Database, mut client: Client) -> Result<()> {
    let before = blocks(&mut client)?;
    // The commit writes the WAL of the VACUUM before it, which has nothing of the map.
    client.batch_execute("SET synchronous_commit = on; CREATE TABLE later ()")?;
    database.cluster.crash()?;
    database.cluster.start()?;
    let mut client = database.connect()?;
    client.batch_execute("VACUUM sigs")?;
    client.batch_execute(
        "INSERT INTO sigs (sig) SELECT minhash(body(i)) FROM generate_series(1, 2000) i",
    )?;
    ensure_short(&mut client, before, 1.0, "after a crash")?;
    check(&mut client)
}

/// Fails unless VACUUM (VERBOSE) counts nearly all pages as reusable.
fn ensure_reusable(database: &Database, client: &mut Client) -> Result<()> {
    let told = database.psql("VACUUM (VERBOSE, INDEX_CLEANUP ON) sigs")?;
    let pages = told
        .lines()
        .find_map(|line| line.split_once("index \"sigs_sig\": pages: "));
    let pages = pages.with_context(|| told.clone())?.1.split(", ");
    let counts: Vec<i64> = pages
        .filter_map(|count| count.split(' ').next()?.parse().ok())
        .collect();
    let &[all, _, deleted, reusable] = &counts[..] else {
        bail!("{told}");
    };
    ensure!(
        all == blocks(client)? && deleted == reusable && all - 40 < reusable && reusable < all,
        "{counts:?}"
    );
    Ok(())
}

/// Checks that a scan that has begun returns all rows although VACUUM frees pages that it has not reached yet, and
/// inserts reuse them.
pub fn beside_a_scan(server: &Server) -> Result<Outcome> {
    let cluster = server.quiet_cluster("reuse_scan", &[])?;
    let database = Database::with_extension(&cluster, "reuse")?;
    let mut client = database.connect()?;
    create(&mut client, "")?;
    let fresh = blocks(&mut client)?;
    for _ in 0..2 {
        client.batch_execute(REPLACE)?;
        let mut reader = database.connect()?;
        let rows: i64 = reader.query_one("SELECT count(*) FROM sigs", &[])?.get(0);
        reader.batch_execute("SET enable_seqscan = off; SET enable_sort = off")?;
        let mut scan = reader.transaction()?;
        scan.batch_execute(
            "DECLARE nearest CURSOR FOR SELECT id FROM sigs ORDER BY sig <=> minhash(body(77))",
        )?;
        // Fetching more rows would read all rows.
        ensure!(scan.query("FETCH 1 FROM nearest", &[])?.len() == 1);
        client.batch_execute("VACUUM sigs")?;
        client.batch_execute(REPLACE)?;
        let rest = scan.query("FETCH ALL FROM nearest", &[])?.len();
        ensure!(
            rest as i64 == rows - 1,
            "{rest} rows of {} after the first",
            rows - 1
        );
        scan.commit()?;
        check(&mut client)?;
        client.batch_execute("VACUUM sigs")?;
        check(&mut client)?;
    }
    ensure_short(&mut client, fresh, 3.7, "after both scans")?;
    Ok(Outcome::Passed)
}

/// Performs lookups and inserts while pages are freed and reused, on a primary and its replica.
pub fn beside_everything(server: &Server) -> Result<Outcome> {
    let checked = [
        ("wal_level", "replica"),
        ("wal_consistency_checking", "generic"),
    ];
    let primary = server.quiet_cluster("reuse_primary", &checked)?;
    let mut client = primary.connect("postgres")?;
    client.batch_execute("CREATE EXTENSION pg_neardup")?;
    create(&mut client, "")?;
    let replica = server.scratch_cluster("reuse_replica")?;
    replica.create_replica_of(&primary)?;
    replica.wait_for(&primary)?;
    let statements = [
        "INSERT INTO sigs (sig) SELECT minhash(body(i)) FROM generate_series(1, 20) i",
        "WITH gone AS (DELETE FROM sigs WHERE id % 3 = (SELECT max(id) % 3 FROM sigs) RETURNING sig)
             INSERT INTO sigs (sig) SELECT sig FROM gone",
        "VACUUM sigs",
        "SET enable_seqscan = off; SELECT count(*) FROM sigs WHERE near_dup(sig, minhash(body(77)), 0.8)",
    ];
    neardup::work(&primary, &statements, INSERTS, || {
        for lookup in 0..4 {
            ensure_equal(&mut client, "0.8", 1009, &format!("primary, {lookup}"))?;
            let state = format!("replica, {lookup}");
            neardup::beside_replay(&replica, |client| ensure_equal(client, "0.8", 1009, &state))?;
        }
        Ok(())
    })?;
    check(&mut client)?;
    let log = fs::read_to_string(primary.log_file())?;
    ensure!(!log.contains("own a lock"), "a lock was given back twice");
    client.batch_execute(REPLACE)?;
    client.batch_execute("VACUUM sigs")?;
    // While a reader keeps VACUUM from removing rows, the file grows. After that, the freed pages suffice.
    let before = blocks(&mut client)?;
    client.batch_execute(REPLACE)?;
    client.batch_execute("VACUUM sigs")?;
    ensure_short(&mut client, before, 1.0, "after all has been free once")?;
    replica.wait_for(&primary)?;
    let mut reader = replica.connect("postgres")?;
    let (there, here) = (blocks(&mut reader)?, blocks(&mut client)?);
    ensure!(there == here, "{there} pages on the replica, {here} here");
    check(&mut reader).context("replica")?;
    ensure_equal(&mut reader, "0.8", 1009, "replica, at the end")?;
    Ok(Outcome::Passed)
}
