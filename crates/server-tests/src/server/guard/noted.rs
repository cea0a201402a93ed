//! The law of notes: of every two similar rows that are there the one that passed later is noted beside the other,
//! and nothing else is.

use anyhow::{Result, ensure};
use postgres::Client;

/// Notes that should not be there, pairs of similar rows without a note, and rows with as many notes as another one of
/// the same documents, which no order of passing leads to.
const WRONG: &str = "
    WITH docs AS (SELECT {KEY}::text AS key, tenant, body FROM {TABLE} WHERE {OF_ROW}),
        notes AS (SELECT key::text, near_key::text, similarity FROM {TABLE}_near_dups WHERE {OF_NOTE}),
        pairs AS (SELECT a.key, b.key AS near_key FROM docs a JOIN docs b USING (tenant, body) WHERE a.key <> b.key)
    SELECT (SELECT count(*) FROM notes n WHERE similarity <> 1
            OR NOT EXISTS (SELECT FROM pairs p WHERE (p.key, p.near_key) = (n.key, n.near_key))),
        (SELECT count(*) FROM pairs p WHERE NOT EXISTS (SELECT FROM notes n
            WHERE (n.key, n.near_key) IN ((p.key, p.near_key), (p.near_key, p.key)))),
        (SELECT count(*) FROM (
            SELECT FROM (SELECT tenant, body, (SELECT count(*) FROM notes n WHERE n.key = d.key) AS earlier FROM docs d) d
            GROUP BY tenant, body, earlier HAVING count(*) > 1) d),
        (SELECT count(*) FROM notes)";

/// Returns whether a table's guard notes near-duplicates.
pub fn is_noted(table: &str) -> bool {
    table.ends_with("_noted")
}

/// Checks the rows of a table that meet a condition on {ID}. Returns the number of their notes.
pub fn ensure_noted(client: &mut Client, table: &str, condition: &str) -> Result<u32> {
    let [key, key_id] = match table.starts_with("parted") {
        true => ["(id, part)", "(key).id"],
        false => ["id", "key"],
    };
    let wrong = WRONG
        .replace("{KEY}", key)
        .replace("{TABLE}", table)
        .replace("{OF_ROW}", &condition.replace("{ID}", "id"))
        .replace("{OF_NOTE}", &condition.replace("{ID}", key_id));
    let row = client.query_one(&wrong, &[])?;
    let [unfounded, missing, disordered, notes] =
        [0, 1, 2, 3].map(|column| row.get::<_, i64>(column));
    ensure!(
        unfounded + missing + disordered == 0,
        "{unfounded} notes unfounded, {missing} missing, {disordered} out of order"
    );
    Ok(u32::try_from(notes)?)
}
