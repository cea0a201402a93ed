//! Planning of lookups in new sessions.

use std::time::Instant;

use anyhow::{Context, Result};
use postgres::SimpleQueryMessage;
use serde_json::Value;
use testbed::progress::bar;
use testbed::server::cluster::Cluster;
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

/// The most new sessions of each query before which the server is restarted.
const RESTARTS: usize = 5;

/// Returns all tables of this subject.
pub fn measure(bench: &Bench<'_>) -> Result<Vec<Table>> {
    let cluster = bench.started_cluster()?;
    let database = Database::with_extension(&cluster, "planning")?;
    let session = Session::open(&database)?;
    let progress = bar(TABLES.len() as u64 + 2, "plans of lookups")?;
    let about = format!(
        "EXPLAIN of a lookup among {} documents, {} new sessions each ({RESTARTS} where a server is restarted): the first \
         of a session, and the second. Pages: of catalogs and indexes, touched while planning. A server is restarted \
         before each session, so that its buffers are empty, or keeps running. Compared with the lookup of a row by its \
         number, through a B-tree.",
        bench.scale.documents, bench.scale.rounds
    );
    let columns = [
        "table",
        "value",
        "server",
        "first, ms",
        "second, ms",
        "first, pages",
        "second, pages",
        "B-tree's first, ms",
        "B-tree's second, ms",
        "B-tree's first, pages",
        "B-tree's second, pages",
    ];
    let mut table = Table::new("planning", about, &columns);
    let mut tables = Vec::new();
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
        let value = format!("SELECT quote_literal(body) FROM {docs} WHERE i = 1");
        tables.push((name, session.row(&value, &[])?.get::<_, String>(0), docs));
        progress.inc(1);
    }
    // A restart ends the session.
    drop(session);
    for restarted in [None, Some(&*cluster)] {
        for (name, value, docs) in &tables {
            let by_number = format!("SELECT i FROM {docs} WHERE i = 1");
            let tree = plan(bench, &database, restarted, &by_number)?;
            for (kind, value) in [
                ("constant", value),
                (
                    "subquery",
                    &format!("(SELECT body FROM {docs} WHERE i = 1)"),
                ),
            ] {
                let query = format!("SELECT i FROM {docs} WHERE near_dup(body, {value}, 0.8)");
                let ours = plan(bench, &database, restarted, &query)?;
                table.push(row![
                    **name,
                    kind,
                    restarted.map_or("", |_| "restarted"),
                    ours.milliseconds[0],
                    ours.milliseconds[1],
                    ours.pages[0],
                    ours.pages[1],
                    tree.milliseconds[0],
                    tree.milliseconds[1],
                    tree.pages[0],
                    tree.pages[1]
                ]);
            }
        }
        progress.inc(1);
    }
    progress.finish_and_clear();
    Ok(vec![table])
}

fn create(docs: &str, partitions: u32, target: u32, group: &str, rows: u64) -> String {
    let mut script = format!(
        "CREATE TABLE {docs} (i bigint, body text) PARTITION BY HASH (i);
         ALTER TABLE {docs} ALTER COLUMN body SET STATISTICS {target};"
    );
    for part in 0..partitions {
        script += &format!(
            "CREATE TABLE {docs}_{part} PARTITION OF {docs} FOR VALUES WITH (MODULUS {partitions}, REMAINDER {part});"
        );
    }
    script
        + &format!(
            "INSERT INTO {docs} SELECT i, (SELECT string_agg('w' || hashint8(grp * 100 + w), ' ')
                 FROM generate_series(1, 30) w) || ' ' || i
             FROM (SELECT {rows} AS n) n, generate_series(1, n) i, LATERAL (SELECT ({group})::bigint AS grp) g;
             CREATE INDEX ON {docs} (i);
             CREATE INDEX ON {docs} USING neardup (body);"
        )
}

/// The cost of the first and the second plan of a query in a session.
struct Planned {
    milliseconds: [f64; 2],
    pages: [f64; 2],
}

/// Returns the medians over new sessions; the named server is restarted before each.
fn plan(
    bench: &Bench<'_>,
    database: &Database<'_>,
    restarted: Option<&Cluster>,
    query: &str,
) -> Result<Planned> {
    let explain = format!("EXPLAIN (BUFFERS, FORMAT JSON) {query}");
    let (mut seconds, mut pages) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    let rounds = match restarted {
        None => bench.scale.rounds,
        Some(_) => bench.scale.rounds.min(RESTARTS),
    };
    for _ in 0..rounds {
        if let Some(server) = restarted {
            server.stop()?;
            server.start()?;
        }
        let mut client = database.connect()?;
        for (seconds, pages) in seconds.iter_mut().zip(&mut pages) {
            let start = Instant::now();
            let rows = client.simple_query(&explain)?;
            seconds.push(start.elapsed().as_secs_f64());
            let plan = rows.iter().find_map(|message| match message {
                SimpleQueryMessage::Row(row) => row.get(0),
                _ => None,
            });
            let plan: Value = serde_json::from_str(plan.context("no plan")?)?;
            let of = |name: &str| plan[0]["Planning"][name].as_f64();
            let touched = of("Shared Hit Blocks").zip(of("Shared Read Blocks"));
            pages.push(touched.map_or(0.0, |(hit, read)| hit + read));
        }
    }
    Ok(Planned {
        milliseconds: seconds.map(|times| 1e3 * quantile(&times, 0.5)),
        pages: pages.map(|pages| quantile(&pages, 0.5)),
    })
}
