//! Memory of a backend while it works through many rows.

use anyhow::{Result, ensure};
use testbed::server::database::Database;
use testbed::server::{Server, memory};

use super::collection;
use crate::harness::{Outcome, Scale, figure};

/// Statements whose memory must not depend on the number of rows, which replaces ROWS. A series in the target list is
/// streamed; in FROM, it would fill work_mem.
const STATEMENTS: &[&str] = &[
    "SELECT count(minhash('some words of text number ' || i)) FROM (SELECT generate_series(1, ROWS) AS i) s",
    "SELECT count(minhash('sömé words of text number ' || i, 5, 'char', 'marks')) FROM (SELECT generate_series(1, ROWS) AS i) s",
    "SELECT count(cut_passages('some words of text number ' || i, '{[3,6)}')) FROM (SELECT generate_series(1, ROWS) AS i) s",
    "SELECT sum(n) FROM (SELECT generate_series(1, ROWS / 10) AS i) s, LATERAL (SELECT count(*) AS n FROM split_text('One. Two, ' || i || '. Three.', 'sentence')) p",
    "SELECT count(minhash_sim(sig, (SELECT sig FROM docs WHERE id = 1))) FROM docs, (SELECT generate_series(1, ROWS / 1000)) s",
    "SELECT count(cardinality(minhash_bands(sig, 0.8))) FROM docs, (SELECT generate_series(1, ROWS / 10000)) s",
    "SELECT minhash_agg(i) FROM (SELECT generate_series(1::bigint, ROWS) AS i) s",
    "SELECT count(simhash('some words of text number ' || i)) FROM (SELECT generate_series(1, ROWS) AS i) s",
    "SELECT simhash_agg(i::text, 1) FROM (SELECT generate_series(1, ROWS) AS i) s",
    "SELECT sum(n) FROM (SELECT generate_series(1, ROWS / 100) AS i) s, LATERAL (SELECT count(*) AS n FROM docs d
         WHERE near_dup(d.sig, (SELECT sig FROM docs WHERE id = 1 + i % 900), 0.8)) c",
    "SET enable_seqscan = off; SET enable_sort = off; SET enable_memoize = off;
         SELECT count(n.id) FROM (SELECT sig FROM docs, generate_series(1, 100) LIMIT ROWS / 20) p,
             LATERAL (SELECT d.id FROM docs d ORDER BY d.sig <=> p.sig LIMIT 1) n",
];

/// Checks that ten times as many rows take the same memory.
pub fn does_not_grow(server: &Server, scale: Scale) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "memory")?;
    let mut client = database.connect()?;
    collection::create(&mut client)?;
    collection::insert(&mut client, 1, 1000)?;
    client.batch_execute("VACUUM ANALYZE docs")?;
    let rows = scale.of(10_000, 100_000);
    let mut steepest = f64::MIN;
    for statement in STATEMENTS {
        let few = peak(&database, &statement.replace("ROWS", &rows.to_string()))?;
        let many = peak(
            &database,
            &statement.replace("ROWS", &(10 * rows).to_string()),
        )?;
        let growth = (many as f64 - few as f64) / few as f64;
        // The allocators work in units of a quarter of a megabyte.
        ensure!(
            growth <= 0.01 || many - few <= 256,
            "{few} kB for {rows} rows, {many} kB for ten times as many:\n{statement}"
        );
        steepest = steepest.max(growth);
    }
    figure!(
        "steepest slope {:.1} % over ten times the rows",
        100.0 * steepest
    );
    Ok(Outcome::Passed)
}

/// Returns the maximum private memory of a new backend while it runs a statement, in kB.
fn peak(database: &Database<'_>, statement: &str) -> Result<u64> {
    let mut client = database.connect()?;
    client.batch_execute(
        "SET max_parallel_workers_per_gather = 0; SET jit = off; SET enable_material = off",
    )?;
    let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[])?.get(0);
    memory::peak(pid, || Ok(client.batch_execute(statement)?))
}
