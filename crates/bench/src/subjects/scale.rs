//! Time and bytes per document as the collection grows.

use anyhow::{Context, Result};
use plotters::chart::SeriesLabelPosition;
use testbed::documents::generator::{Generator, Plan};
use testbed::documents::load_generated;
use testbed::progress::bar;
use testbed::server::database::Database;

use crate::context::Bench;
use crate::measure::latency::{Lookup, latencies};
use crate::measure::session::Session;
use crate::report::chart::{Axis, Chart, Curve};
use crate::report::table::{Cell, Table, row};

/// Inserts into the index, and lookups, at every size. The inserts are those of several segments, so that
/// merging has its share.
const INSERTS: u64 = 10_000;
const LOOKUPS: u64 = 500;

/// Growth is looked at from here on.
const LEAST: u64 = 10_000;

/// Measurements taken at every size.
struct Costs {
    documents: u64,
    /// Microseconds a document: of every step, in the order of [`STEPS`].
    steps: Vec<f64>,
    /// Bytes a document: of its text in the table, its signature, its index entries.
    bytes: [f64; 3],
}

/// Operations timed per document.
const STEPS: [&str; 6] = [
    "signature",
    "index build",
    "index insert",
    "lookup",
    "pairs",
    "clusters",
];

/// Returns all tables of this subject.
pub fn measure(bench: &Bench<'_>) -> Result<Vec<Table>> {
    let cluster = bench.started_cluster()?;
    let mut sizes = vec![bench.scale.documents];
    while sizes[0] >= 10 * LEAST {
        sizes.insert(0, sizes[0] / 10);
    }
    let progress = bar(sizes.len() as u64, "growth")?;
    let mut all = Vec::new();
    for documents in sizes {
        progress.set_message(format!("{documents} documents"));
        let database = Database::with_extension(&cluster, "scale")?;
        all.push(costs(bench, &Session::open(&database)?, documents)?);
        progress.inc(1);
    }
    progress.finish_and_clear();
    chart(bench, &all)?;
    Ok(vec![times(&all), bytes(&all)])
}

fn costs(bench: &Bench<'_>, session: &Session, documents: u64) -> Result<Costs> {
    let plan = Plan::mixed(documents + INSERTS);
    load_generated(
        &mut session.client(),
        "texts",
        &Generator::new(bench.words, plan),
    )?;
    let each = |seconds: f64| 1e6 * seconds / documents as f64;
    let signing = format!(
        "CREATE UNLOGGED TABLE docs AS SELECT id, minhash(body) AS sig FROM texts WHERE id < {documents}"
    );
    let signature = each(session.seconds(&signing)?);
    session.vacuum("docs")?;
    let pairs = each(
        session.seconds("SELECT count(*) FROM near_dup_pairs(NULL::bigint, 'TABLE docs', 0.8)")?,
    );
    let clusters = each(
        session
            .seconds("SELECT count(*) FROM near_dup_clusters(NULL::bigint, 'TABLE docs', 0.8)")?,
    );
    let index = "CREATE INDEX measured ON docs USING neardup (sig)";
    let build = each(session.seconds(index)?);
    let size = |relation: &str| session.number(&format!("SELECT pg_relation_size('{relation}')"));
    let bytes = [
        session.number("SELECT avg(pg_column_size(body)) FROM texts")?,
        size("docs")? / documents as f64,
        size("measured")? / documents as f64,
    ];
    let lookup = Lookup {
        queries: &format!(
            "SELECT 0::bigint AS others, sig FROM docs ORDER BY hashint8(id) LIMIT {LOOKUPS}"
        ),
        answer: "SELECT count(*) FROM docs WHERE near_dup(sig, query.sig, 0.8)",
    };
    latencies(session, &lookup)?;
    let answer = latencies(session, &lookup)?
        .pop()
        .context("no lookups")?
        .median
        * 1e3;
    // From a table of their own: finding them among the others takes as long as reading these.
    session.execute(&format!(
        "CREATE UNLOGGED TABLE more AS SELECT id, body FROM texts WHERE id >= {documents}"
    ))?;
    let inserting = "INSERT INTO docs SELECT id, minhash(body) FROM more";
    let insert = 1e6 * session.seconds(inserting)? / INSERTS as f64;
    Ok(Costs {
        documents,
        steps: vec![signature, build, insert, answer, pairs, clusters],
        bytes,
    })
}

/// Returns the times, and by which power of the number of documents they grow from the last size
/// but one.
fn times(all: &[Costs]) -> Table {
    let about = format!(
        "Microseconds for a document as the collection grows (generated documents, three in ten edited copies): \
         signature is writing a table of them, insert that of {INSERTS} more rows with theirs, lookup \
         the median of {LOOKUPS}. The slope is the exponent of a document's cost from the last size but one to the last: 0 is flat, \
         1 would be quadratic growth of the whole."
    );
    let columns = [
        "documents",
        STEPS[0],
        STEPS[1],
        STEPS[2],
        STEPS[3],
        STEPS[4],
        STEPS[5],
    ];
    let mut table = Table::new("memory.growth", about, &columns);
    for costs in all {
        let mut row: Vec<Cell> = row![costs.documents as f64];
        row.extend(costs.steps.iter().map(|&us| Cell::from(us)));
        table.push(row);
    }
    if let [.., before, last] = all {
        let growth = (last.documents as f64 / before.documents as f64).ln();
        let slopes = last.steps.iter().zip(&before.steps);
        let mut row: Vec<Cell> = row!["slope"];
        row.extend(
            slopes
                .map(|(last, before)| Cell::from(format!("{:.2}", (last / before).ln() / growth))),
        );
        table.push(row);
    }
    table
}

fn bytes(all: &[Costs]) -> Table {
    let about = "Bytes a document: its text in the table, a table of identifiers and signatures of 128 slots, the index \
                 at threshold 0.8.";
    let mut table = Table::new(
        "memory.bytes",
        about,
        &["documents", "text", "signature", "index"],
    );
    for costs in all {
        let [text, signature, index] = costs.bytes;
        table.push(row![costs.documents as f64, text, signature, index]);
    }
    table
}

fn chart(bench: &Bench<'_>, all: &[Costs]) -> Result<()> {
    let curve = |(nth, name): (usize, &&str)| Curve {
        label: name.to_string(),
        points: all
            .iter()
            .map(|costs| (costs.documents as f64, costs.steps[nth]))
            .collect(),
    };
    let [Some(first), Some(last)] = [all.first(), all.last()] else {
        return Ok(());
    };
    let chart = Chart {
        title: "Cost of a document as the collection grows".to_string(),
        below: Axis::powers("documents", first.documents as f64, last.documents as f64),
        beside: Axis::powers("microseconds a document", 0.1, 1e5),
        legend: SeriesLabelPosition::UpperLeft,
        curves: STEPS.iter().enumerate().map(curve).collect(),
    };
    chart.draw(&bench.results.join("growth.svg"))
}
