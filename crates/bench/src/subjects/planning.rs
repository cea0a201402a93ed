//! Planning of lookups in new sessions.

use std::time::Instant;

use anyhow::Result;
use testbed::progress::bar;
use testbed::server::database::Database;

use crate::context::Bench;
use crate::measure::race::quantile;
use crate::measure::session::Session;
use crate::report::table::{Table, row};

/// The tables: name, partitions, statistics target, and the group of row `i` of `n`.
const TABLES: &[(&str, u32, u32, &str)] = &[
    ("strangers", 1, 100, "i"),
    (
        "half of them one template",
        1,
        100,
        "CASE WHEN i < n / 2 THEN 0 ELSE i END",
    ),
    (
        "half of them one template, target 10000",
        1,
        10_000,
        "CASE WHEN i < n / 2 THEN 0 ELSE i END",
    ),
    ("60 partitions", 60, 100, "i"),
];

/// Returns all tables of this subject.
pub fn measure(bench: &Bench<'_>) -> Result<Vec<Table>> {
    let cluster = bench.started_cluster()?;
    let database = Database::with_extension(&cluster, "planning")?;
    let session = Session::open(&database)?;
    let progress = bar(TABLES.len() as u64, "plans of lookups")?;
    let about = format!(
        "EXPLAIN of a lookup among {} documents, {} new sessions each: the first of a session, and the second. \
         Compared with that of a row by its number, through a B-tree.",
        bench.scale.documents, bench.scale.rounds
    );
    let columns = [
        "table",
        "value",
        "first, ms",
        "second, ms",
        "B-tree's first, ms",
        "B-tree's second, ms",
    ];
    let mut table = Table::new("planning", about, &columns);
    for (number, (name, partitions, target, group)) in TABLES.iter().enumerate() {
        let docs = format!("docs_{number}");
        session.execute(&create(
            &docs,
            *partitions,
            *target,
            group,
            bench.scale.documents,
        ))?;
        session.vacuum(&docs)?;
        let value: String = session
            .row(
                &format!("SELECT quote_literal(sig::text) FROM {docs} WHERE i = 1"),
                &[],
            )?
            .get(0);
        let tree = plan(
            bench,
            &database,
            &format!("SELECT i FROM {docs} WHERE i = 1"),
        )?;
        for (kind, value) in [
            ("constant", format!("{value}::minhash_signature")),
            ("subquery", format!("(SELECT sig FROM {docs} WHERE i = 1)")),
        ] {
            let query = format!("SELECT i FROM {docs} WHERE near_dup(sig, {value}, 0.8)");
            let ours = plan(bench, &database, &query)?;
            table.push(row![*name, kind, ours[0], ours[1], tree[0], tree[1]]);
        }
        progress.inc(1);
    }
    progress.finish_and_clear();
    Ok(vec![table])
}

fn create(docs: &str, partitions: u32, target: u32, group: &str, rows: u64) -> String {
    let mut script = format!(
        "CREATE TABLE {docs} (i bigint, sig minhash_signature) PARTITION BY HASH (i);
         ALTER TABLE {docs} ALTER COLUMN sig SET STATISTICS {target};"
    );
    for part in 0..partitions {
        script += &format!(
            "CREATE TABLE {docs}_{part} PARTITION OF {docs} FOR VALUES WITH (MODULUS {partitions}, REMAINDER {part});"
        );
    }
    script
        + &format!(
            "INSERT INTO {docs} SELECT i, minhash((SELECT string_agg('w' || hashint8(grp * 100 + w), ' ')
                 FROM generate_series(1, 30) w) || ' ' || i)
             FROM (SELECT {rows} AS n) n, generate_series(1, n) i, LATERAL (SELECT ({group})::bigint AS grp) g;
             CREATE INDEX ON {docs} (i);
             CREATE INDEX ON {docs} USING neardup (sig);"
        )
}

/// Returns the medians of the milliseconds that the first and the second plan of a session take.
fn plan(bench: &Bench<'_>, database: &Database<'_>, query: &str) -> Result<[f64; 2]> {
    let mut seconds = [Vec::new(), Vec::new()];
    for _ in 0..bench.scale.rounds {
        let mut client = database.connect()?;
        for times in &mut seconds {
            let start = Instant::now();
            client.batch_execute(&format!("EXPLAIN {query}"))?;
            times.push(start.elapsed().as_secs_f64());
        }
    }
    Ok(seconds.map(|times| 1e3 * quantile(&times, 0.5)))
}
