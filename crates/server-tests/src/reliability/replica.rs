//! A streaming replica.

use anyhow::{Context, Result, ensure};
use postgres::Client;
use postgres::error::SqlState;
use testbed::server::Server;

use super::collection;
use crate::harness::{Outcome, Scale, figure};

/// Checks that the replica gives the same answers as the primary after delete, VACUUM and insert, and rejects
/// refreshes.
pub fn answers_alike(server: &Server, scale: Scale) -> Result<Outcome> {
    let primary = server.scratch_cluster("primary")?;
    primary.create(&[])?;
    primary.start()?;
    let mut writer = primary.connect("postgres")?;
    writer.batch_execute("CREATE EXTENSION pg_neardup")?;
    collection::create(&mut writer)?;
    collection::insert(&mut writer, 1, 1000)?;
    writer.batch_execute("SELECT near_dup_track('docs', 'sig', 0.8)")?;
    let replica = server.scratch_cluster("replica")?;
    replica.create_replica_of(&primary)?;
    let mut reader = replica.connect("postgres")?;

    ensure_rejected(&mut reader, "cannot write on a standby")?;
    writer.batch_execute("SET default_transaction_read_only = on")?;
    ensure_rejected(&mut writer, "cannot write in a read-only transaction")?;
    writer.batch_execute("RESET default_transaction_read_only")?;
    writer.batch_execute("SELECT near_dup_untrack('docs_clusters')")?;
    let cycles = scale.of(2, 10);
    for cycle in 1..=cycles {
        writer.batch_execute(&format!("DELETE FROM docs WHERE id % 11 = {cycle}"))?;
        writer.batch_execute("VACUUM docs")?;
        collection::insert(&mut writer, cycle * 1000 + 1, cycle * 1000 + 500)?;
        replica.wait_for(&primary)?;
        collection::ensure_index_equals_scan(&mut reader)?;
        let (wanted, found) = (digest(&mut writer)?, digest(&mut reader)?);
        ensure!(
            wanted == found,
            "cycle {cycle}: the replica answers otherwise"
        );
    }
    figure!("{cycles} cycles, 0 mismatches");
    Ok(Outcome::Passed)
}

/// Fails unless a refresh raises an ERROR with a hint.
fn ensure_rejected(client: &mut Client, message: &str) -> Result<()> {
    let refresh = client.batch_execute("SELECT near_dup_refresh('docs_clusters')");
    let error = refresh.err().context("the refresh wrote")?;
    let error = error.as_db_error().context("not an error of the server")?;
    let is_right = error.code() == &SqlState::READ_ONLY_SQL_TRANSACTION
        && error.message().ends_with(message)
        && error.hint().is_some();
    ensure!(is_right, "{error:?}");
    Ok(())
}

fn digest(client: &mut Client) -> Result<String> {
    let row = client.query_one(
        "SELECT md5(string_agg(concat(q.id, ' ', d.id, ' ', minhash_sim(q.sig, d.sig)), ','
                               ORDER BY q.id, d.id))
         FROM (SELECT * FROM docs ORDER BY id LIMIT 50) q
         JOIN docs d ON near_dup(d.sig, q.sig, 0.8)",
        &[],
    )?;
    Ok(row.get(0))
}
