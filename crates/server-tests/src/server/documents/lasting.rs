//! Compares everything that keeps near-duplicates out, or together, with the star clusters of the counted pairs.

use anyhow::{Context, Result};
use postgres::Client;

use super::class;
use crate::harness::ensure_same_rows;

/// Returns the query for the star clusters, by definition, of the pairs in the table `counted (q, id, similarity)`.
pub fn stars(threshold: &str) -> String {
    format!(
        "SELECT key, cluster FROM star_clusters(NULL::bigint, 'SELECT id FROM docs ORDER BY id',
             'SELECT q, id, similarity FROM counted WHERE q < id AND similarity >= {threshold}')"
    )
}

/// Checks that constraint and guard accept, row by row, exactly the rows that begin a star cluster, and that a tracker
/// maintains these clusters. `cut` has k, unit and fold, as after the threshold.
pub fn ensure_lasting(client: &mut Client, threshold: &str, cut: &str) -> Result<()> {
    let let_in = format!(
        "SELECT key FROM ({}) s WHERE key = cluster",
        stars(threshold)
    );
    ensure_constraint(client, threshold, cut, &let_in).context("constraint")?;
    let (options, arguments) = (assigned(cut, "="), assigned(cut, "=>"));
    let index = format!("neardup (body{})", class(&options));
    ensure_guard(client, &index, &format!("{threshold}{arguments}"), &let_in).context("guard")?;
    ensure_tracker(
        client,
        &index,
        &format!("{threshold}{arguments}"),
        threshold,
    )
    .context("tracker")
}

/// Returns the k, unit and fold of a cut as named arguments.
fn assigned(cut: &str, sign: &str) -> String {
    let values = cut.split(", ").skip(1);
    let named = ["k", "unit", "fold"].into_iter().zip(values);
    named
        .map(|(name, value)| format!(", {name} {sign} {value}"))
        .collect()
}

fn ensure_constraint(client: &mut Client, threshold: &str, cut: &str, let_in: &str) -> Result<()> {
    client.batch_execute(&format!(
        "CREATE TABLE kept (id bigint, body text,
             EXCLUDE USING neardup (near_dup_key(body, {threshold}{cut}) WITH %));
         INSERT INTO kept SELECT id, body FROM docs ORDER BY id ON CONFLICT DO NOTHING"
    ))?;
    ensure_same_rows(client, "SELECT id FROM kept", let_in)?;
    client.batch_execute("DROP TABLE kept")?;
    Ok(())
}

fn ensure_guard(client: &mut Client, index: &str, arguments: &str, let_in: &str) -> Result<()> {
    client.batch_execute(&format!(
        "CREATE TABLE guarded (id bigint PRIMARY KEY, body text);
         CREATE INDEX ON guarded USING {index};
         SELECT near_dup_protect('guarded', 'body', {arguments});
         DO $$
         DECLARE
             row docs;
         BEGIN
             FOR row IN SELECT * FROM docs ORDER BY id LOOP
                 BEGIN
                     INSERT INTO guarded VALUES (row.id, row.body);
                 EXCEPTION WHEN exclusion_violation THEN
                 END;
             END LOOP;
         END $$"
    ))?;
    ensure_same_rows(client, "SELECT id FROM guarded", let_in)?;
    client.batch_execute("DROP TABLE guarded")?;
    Ok(())
}

/// Tracks half of the rows at once, then adds most of the others, and then the last few.
fn ensure_tracker(
    client: &mut Client,
    index: &str,
    arguments: &str,
    threshold: &str,
) -> Result<()> {
    let tracked =
        |rows: &str| format!("INSERT INTO tracked SELECT id, body FROM docs WHERE {rows}");
    let (first, most, last) = (
        tracked("id % 2 = 0"),
        tracked("id % 20 IN (1, 3, 5)"),
        tracked("id % 2 = 1 AND id % 20 NOT IN (1, 3, 5)"),
    );
    client.batch_execute(&format!(
        "CREATE TABLE tracked (id bigint PRIMARY KEY, body text);
         CREATE INDEX ON tracked USING {index};
         {first};
         SELECT near_dup_track('tracked', 'body', {arguments});
         {most};
         SELECT near_dup_refresh('tracked_clusters');
         {last};
         SELECT near_dup_refresh('tracked_clusters')"
    ))?;
    let kept = "SELECT key, canonical FROM tracked_clusters";
    ensure_same_rows(client, kept, &stars(threshold))?;
    client.batch_execute("DROP TABLE tracked, tracked_clusters")?;
    Ok(())
}
