//! Aggregates in parallel plans.

use anyhow::{Result, ensure};
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::{Outcome, Scale, figure};

const AGGREGATES: &[&str] = &[
    "minhash_agg(element)::text",
    "minhash_agg(number)::text",
    "minhash_agg(element, 32)::text",
    "minhash_agg(number, 200, 7)::text",
    "minhash_union(sig)::text",
    "simhash_agg(element, weight)::text",
    "simhash_agg(element, weight, 256, 7)::text",
];

/// Checks that every aggregate returns the same bits with 0 to 4 workers, with NULL rows and empty partitions.
pub fn parallel_as_serial(server: &Server, scale: Scale) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "aggregates")?;
    let mut client = database.connect()?;
    let rows = scale.of(30_000, 1_000_000);
    client.batch_execute(&format!(
        "CREATE TABLE elements (id int, element text, number bigint, weight float8,
                                sig minhash_signature) PARTITION BY RANGE (id);
         CREATE TABLE elements_1 PARTITION OF elements FOR VALUES FROM (0) TO ({0});
         CREATE TABLE elements_2 PARTITION OF elements FOR VALUES FROM ({0}) TO (2000000);
         CREATE TABLE elements_3 PARTITION OF elements FOR VALUES FROM (2000000) TO (3000000);
         INSERT INTO elements
         SELECT i, CASE WHEN i % 7 <> 0 THEN 'element ' || i % 5000 END,
                CASE WHEN i % 5 <> 0 THEN i::bigint * i END, (i % 1000 - 300) / 7.0,
                CASE WHEN i % 3 <> 0 THEN minhash('some words and ' || i % 100, slots => 16) END
         FROM generate_series(1, {rows}) i;
         ALTER TABLE elements_1 SET (parallel_workers = 4);
         ALTER TABLE elements_2 SET (parallel_workers = 4);
         ANALYZE elements;
         SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
         SET min_parallel_table_scan_size = 0; SET enable_partitionwise_aggregate = on",
        rows / 3
    ))?;
    let query = format!("SELECT {} FROM elements", AGGREGATES.join(", "));
    let mut serial = None;
    for workers in 0..=4 {
        client.batch_execute(&format!("SET max_parallel_workers_per_gather = {workers}"))?;
        let plan = client.query(&format!("EXPLAIN {query}"), &[])?;
        let parallel = plan
            .iter()
            .any(|row| row.get::<_, String>(0).contains("Gather"));
        ensure!(
            parallel == (workers > 0),
            "{workers} workers do not plan so"
        );
        let row = client.query_one(&query, &[])?;
        let values: Vec<String> = (0..AGGREGATES.len()).map(|i| row.get(i)).collect();
        let wanted = serial.get_or_insert_with(|| values.clone());
        ensure!(
            values == *wanted,
            "{workers} workers give other bits than a serial plan"
        );
    }
    figure!("bit-identical over {rows} rows with 0 to 4 workers");
    Ok(Outcome::Passed)
}
