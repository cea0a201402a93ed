//! A made collection with near-duplicates, and the comparison of its index with its scan.

use anyhow::{Result, ensure};
use postgres::Client;

/// Makes `docs (id, body, sig)` with an index, and `make_body(id)`: fifty families of documents
/// whose members differ in up to a quarter of sixty words.
pub fn create(client: &mut Client) -> Result<()> {
    client.batch_execute(
        "CREATE FUNCTION make_body(id int) RETURNS text LANGUAGE sql IMMUTABLE AS $$
             SELECT string_agg('w' || CASE WHEN abs(hashint4(id * 64 + w)) % 100 < id % 25
                                           THEN id * 100 + w ELSE id % 50 * 1000 + w END,
                               ' ' ORDER BY w)
             FROM generate_series(1, 60) w $$;
         CREATE TABLE docs (id int PRIMARY KEY, body text,
             sig minhash_signature GENERATED ALWAYS AS (minhash(body)) STORED);
         CREATE INDEX docs_sig ON docs USING neardup (sig)",
    )?;
    Ok(())
}

/// Adds documents `from` to `to`.
pub fn insert(client: &mut Client, from: i32, to: i32) -> Result<u64> {
    Ok(client.execute(
        "INSERT INTO docs SELECT i, make_body(i) FROM generate_series($1::int, $2::int) i",
        &[&from, &to],
    )?)
}

/// Compares what the index finds for some of the documents with what a scan finds, and checks the
/// index's pages.
pub fn ensure_index_equals_scan(client: &mut Client) -> Result<i64> {
    client.batch_execute("SELECT near_dup_index_check('docs_sig')")?;
    // The sum keeps the planner from deriving an index condition for the scan.
    let found = "SELECT q.id AS q, d.id FROM (SELECT * FROM docs ORDER BY hashint4(id) LIMIT 40) q
                 JOIN docs d ON ";
    client.batch_execute("SET enable_seqscan = off; SET plan_cache_mode = force_custom_plan")?;
    let plan = client.query(&format!("EXPLAIN {found} near_dup(d.sig, q.sig, 0.8)"), &[])?;
    let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
    ensure!(
        plan.iter().any(|line| line.contains("docs_sig")),
        "the index is not used:\n{}",
        plan.join("\n")
    );
    let row = client.query_one(
        &format!(
            "WITH index AS MATERIALIZED ({found} near_dup(d.sig, q.sig, 0.8)),
                  scan AS MATERIALIZED ({found} minhash_sim(d.sig, q.sig) + 0 >= 0.8)
             SELECT (SELECT count(*) FROM scan),
                    (SELECT count(*) FROM (TABLE scan EXCEPT ALL TABLE index) x),
                    (SELECT count(*) FROM (TABLE index EXCEPT ALL TABLE scan) x)"
        ),
        &[],
    )?;
    client.batch_execute("RESET enable_seqscan; RESET plan_cache_mode")?;
    let (pairs, lost, added): (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
    ensure!(
        lost == 0 && added == 0,
        "of {pairs} rows of the scan the index lost {lost}, and added {added}"
    );
    Ok(pairs)
}
