//! Declarative partitions: every partition's index is used, also by parallel workers.

use anyhow::{Result, ensure};
use postgres::Client;
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::Outcome;

const TABLE: &str = "
    CREATE TABLE docs (id bigint PRIMARY KEY, body text,
        sig minhash_signature GENERATED ALWAYS AS (minhash(body)) STORED) PARTITION BY HASH (id);
    SELECT format('CREATE TABLE docs_%s PARTITION OF docs FOR VALUES WITH (MODULUS 4, REMAINDER %s)', i, i)
    FROM generate_series(0, 3) i \\gexec
    INSERT INTO docs (id, body)
    SELECT i, 'Document about ' || string_agg('topic' || (i % 1500 * 31 + w * 7) % 9973, ' ' ORDER BY w)
    FROM generate_series(1, 3000) i, generate_series(1, 30) w GROUP BY i;
    CREATE INDEX docs_sig ON docs USING neardup (sig);
    ANALYZE docs";

/// Makes parallel plans for tables of any size.
const PARALLEL: &str = "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
    SET min_parallel_table_scan_size = 0; SET min_parallel_index_scan_size = 0;
    SET max_parallel_workers_per_gather = 4";

const LOOKUP: &str =
    "SELECT id FROM docs WHERE near_dup(sig, minhash((SELECT body FROM docs WHERE id = 42)))";
const JOIN: &str = "SELECT a.id, b.id FROM docs a JOIN docs b ON near_dup(b.sig, a.sig, 0.8)
    AND a.id < b.id WHERE a.id <= 100";
const UNION: &str = "SELECT minhash_union(sig)::text FROM docs";

/// Checks that the plans and their answers are as expected.
pub fn parallel_plans(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "partitions")?;
    let output = database.psql(TABLE)?;
    ensure!(output.is_empty(), "{output}");
    let mut client = database.connect()?;
    client.batch_execute("SET enable_indexscan = off; SET enable_bitmapscan = off")?;
    client.batch_execute("SET max_parallel_workers_per_gather = 0")?;
    let queries = [LOOKUP, JOIN, UNION];
    let wanted = queries.map(|query| answers(&mut client, query));
    client.batch_execute(&format!(
        "RESET enable_indexscan; RESET enable_bitmapscan; {PARALLEL}"
    ))?;

    // Such a small table would be scanned.
    client.batch_execute("SET enable_seqscan = off")?;
    let lookup = plan(&mut client, LOOKUP)?;
    expect(
        &lookup,
        [0, 1, 2, 3].map(|part| format!("docs_{part}_sig_idx")),
    )?;
    expect(&plan(&mut client, JOIN)?, ["Gather", "docs_3_sig_idx"])?;
    client.batch_execute("RESET enable_seqscan")?;
    expect(&plan(&mut client, UNION)?, ["Gather", "Partial Aggregate"])?;
    for (query, wanted) in queries.iter().zip(wanted) {
        let (wanted, found) = (wanted?, answers(&mut client, query)?);
        ensure!(
            wanted == found && !found.is_empty(),
            "{query}: {found:?}, not {wanted:?}"
        );
    }
    Ok(Outcome::Passed)
}

fn expect<const N: usize>(plan: &str, parts: [impl AsRef<str>; N]) -> Result<()> {
    for part in parts.iter().map(AsRef::as_ref) {
        ensure!(plan.contains(part), "{part} is missing in\n{plan}");
    }
    Ok(())
}

fn plan(client: &mut Client, query: &str) -> Result<String> {
    let rows = client.query(&format!("EXPLAIN (COSTS OFF) {query}"), &[])?;
    let lines: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    Ok(lines.join("\n"))
}

/// Returns the rows as text, sorted.
fn answers(client: &mut Client, query: &str) -> Result<Vec<String>> {
    let rows = client.query(
        &format!("SELECT answer::text FROM ({query}) answer ORDER BY 1"),
        &[],
    )?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}
