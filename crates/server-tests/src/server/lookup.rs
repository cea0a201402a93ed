//! Lookup through the B-tree of band keys: all rows that a sequential scan finds, and no others.

use anyhow::{Context, Result};
use postgres::Client;
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::{Outcome, ensure_same_rows};
use crate::known::{Collection, Generated};

/// Looks up every document of a collection, at several thresholds and numbers of slots, by counting intact bands and by
/// probing.
pub fn btree_equals_scan(server: &Server) -> Result<Outcome> {
    for collection in Collection::all(Generated::english(), &["msr_paraphrase"]) {
        let database = Database::with_extension(&server.main, "lookup")?;
        let mut client = database.connect()?;
        // With compilation, as on a server with default settings.
        client.batch_execute("SET jit = on")?;
        collection.load(&mut client, "docs")?;
        check_collection(&mut client).with_context(|| collection.name().to_string())?;
    }
    Ok(Outcome::Passed)
}

fn check_collection(client: &mut Client) -> Result<()> {
    for slots in [64, 128, 200] {
        client.batch_execute(&format!(
            "DROP TABLE IF EXISTS sigs, bands, scan;
             CREATE TABLE sigs AS SELECT id, minhash(body, slots => {slots}) AS sig
                 FROM docs WHERE id % 3 = 0;
             CREATE TABLE bands AS SELECT id, unnest(minhash_bands(sig, 0.8)) AS band FROM sigs;
             CREATE INDEX ON bands (band, id);
             CREATE TABLE scan AS SELECT q.id AS q, d.id, minhash_sim(q.sig, d.sig) AS similarity
                 FROM sigs q, sigs d WHERE minhash_sim(q.sig, d.sig) >= 0.8;
             ANALYZE sigs, bands, scan"
        ))?;
        for threshold in [0.8, 0.85, 0.9, 0.95, 1.0] {
            let wanted = format!("SELECT q, id FROM scan WHERE similarity >= {threshold}");
            // b keys, and at most (1 - t) k differing slots, each of which spoils at most one key.
            let counted = format!(
                "SELECT b.id FROM bands b WHERE b.band = ANY (minhash_bands(q.sig, 0.8))
                 GROUP BY b.id
                 HAVING count(*) >= cardinality(minhash_bands(q.sig, 0.8)) - floor((1 - {threshold}) * {slots} + 1e-9)"
            );
            let probed = format!(
                "SELECT DISTINCT b.id FROM bands b
                 WHERE b.band = ANY (minhash_probe(q.sig, 0.8, {threshold}))"
            );
            for candidates in [counted, probed] {
                let found = format!(
                    "SELECT q.id AS q, d.id FROM sigs q, LATERAL ({candidates}) c JOIN sigs d USING (id)
                     WHERE minhash_sim(q.sig, d.sig) >= {threshold}"
                );
                ensure_same_rows(client, &found, &wanted)
                    .with_context(|| format!("{slots} slots"))?;
            }
        }
    }
    Ok(())
}
