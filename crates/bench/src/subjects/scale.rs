//! Time, memory and bytes for each document as the collection grows.

use anyhow::{Context, Result};
use plotters::chart::SeriesLabelPosition;
use testbed::documents::generator::{Generator, Plan};
use testbed::documents::load_generated;
use testbed::progress::bar;
use testbed::server::cluster::Cluster;
use testbed::server::database::Database;
use testbed::server::memory;

use crate::context::Bench;
use crate::measure::latency::{Lookup, latencies};
use crate::measure::session::Session;
use crate::report::chart::{Axis, Chart, Curve};
use crate::report::table::{Cell, Table, row};

/// The number of inserts into the index, and of lookups, at every size. The inserts fill several segments, so that
/// merging is included.
const INSERTS: u64 = 10_000;
const LOOKUPS: u64 = 500;

/// One row in this many is deleted before VACUUM.
const DELETED: u64 = 20;

/// The number of documents to which costs are extrapolated.
const PRICED: f64 = 1e8;

/// The operations whose time for each document is measured, in the order in which they run; the lookup runs before
/// the insert.
const STEPS: [&str; 8] = [
    "signature",
    "pairs",
    "clusters",
    "index build",
    "lookup",
    "index insert",
    "track",
    "vacuum",
];

/// The number of first steps, which read all documents.
const JOBS: usize = 4;

/// The cost of a step.
struct Cost {
    /// Microseconds for each document.
    microseconds: f64,
    /// Microseconds of the server's processor time for each document; 0 for lookups.
    processor: f64,
    /// The most private memory of the backend, in MB.
    megabytes: f64,
}

/// The measurements at one size.
struct Costs {
    documents: u64,
    /// In the order of [`STEPS`].
    steps: Vec<Cost>,
    /// Bytes for each document: of its text in the table, its signature, its index entries, and temporary files.
    bytes: [f64; 4],
}

/// Returns all tables of this subject.
pub fn measure(bench: &Bench<'_>) -> Result<Vec<Table>> {
    let cluster = bench.cluster("bench")?;
    // The WAL of the step `track` would take as much room as the documents.
    cluster.configure(&[("max_wal_size", "4GB")])?;
    cluster.start()?;
    let sizes = bench.scale.growing();
    let progress = bar(sizes.len() as u64, "growth")?;
    let mut all = Vec::new();
    for documents in sizes {
        progress.set_message(format!("{documents} documents"));
        let database = Database::with_extension(&cluster, "scale")?;
        let measured = Measured {
            cluster: &cluster,
            session: Session::open(&database)?,
        };
        all.push(costs(bench, &measured, documents)?);
        progress.inc(1);
    }
    progress.finish_and_clear();
    chart(bench, &all)?;
    Ok(vec![
        times(&all),
        processor_times(&all),
        hours(&all),
        memory_of(&all),
        bytes(&all),
    ])
}

/// The measured server, and a session of it.
struct Measured<'a> {
    cluster: &'a Cluster,
    session: Session,
}

impl Measured<'_> {
    /// Returns the cost of statements about some rows.
    fn timed(&self, rows: u64, statements: &str) -> Result<Cost> {
        let before = self.cluster.processor_seconds()?;
        let mut seconds = 0.0;
        let kilobytes = memory::peak(self.session.pid()?, || {
            seconds = self.session.seconds(statements)?;
            Ok(())
        })?;
        let processor = self.cluster.processor_seconds()? - before;
        Ok(Cost {
            microseconds: 1e6 * seconds / rows as f64,
            processor: 1e6 * processor / rows as f64,
            megabytes: kilobytes as f64 / 1024.0,
        })
    }
}

fn costs(bench: &Bench<'_>, measured: &Measured<'_>, documents: u64) -> Result<Costs> {
    let session = &measured.session;
    let plan = Plan {
        length: bench.scale.length,
        ..Plan::mixed(documents + INSERTS)
    };
    let generator = Generator::new(bench.words, plan);
    load_generated(&mut session.client(), "texts", &generator)?;
    // From a separate table: finding these rows among the others would take as long as reading them.
    session.execute(&format!(
        "CREATE UNLOGGED TABLE more AS SELECT id, body FROM texts WHERE id >= {documents}"
    ))?;
    let text = session.number("SELECT avg(pg_column_size(body)) FROM texts")?;
    let mut steps = of_collection(measured, documents)?;
    let size = |relation: &str| session.number(&format!("SELECT pg_relation_size('{relation}')"));
    let bytes = [
        text,
        size("docs")? / documents as f64,
        size("measured")? / documents as f64,
        session.temporary_bytes()? / documents as f64,
    ];
    steps.extend(of_changes(measured, documents)?);
    Ok(Costs {
        documents,
        steps,
        bytes,
    })
}

/// Returns the costs of the steps over all documents.
fn of_collection(measured: &Measured<'_>, documents: u64) -> Result<Vec<Cost>> {
    let timed = |statements: &str| measured.timed(documents, statements);
    let signature = timed(&format!(
        "CREATE UNLOGGED TABLE docs AS SELECT id, minhash(body) AS sig FROM texts WHERE id < {documents}"
    ))?;
    // The disk must hold the most during the jobs, for their temporary files.
    measured.session.execute("DROP TABLE texts")?;
    measured.session.vacuum("docs")?;
    let job = |name: &str| format!("SELECT count(*) FROM {name}(NULL::bigint, 'TABLE docs', 0.8)");
    Ok(vec![
        signature,
        timed(&job("near_dup_pairs"))?,
        timed(&job("near_dup_clusters"))?,
        timed("CREATE INDEX measured ON docs USING neardup (sig)")?,
    ])
}

/// Returns the costs of the steps that use the index, and change the table.
fn of_changes(measured: &Measured<'_>, documents: u64) -> Result<Vec<Cost>> {
    let session = &measured.session;
    let lookup = lookups(session)?;
    let insert = "INSERT INTO docs SELECT id, minhash(body) FROM more";
    let insert = measured.timed(INSERTS, insert)?;
    session.execute("ALTER TABLE docs ADD PRIMARY KEY (id)")?;
    let track = "SELECT near_dup_track('docs', 'sig', 0.8)";
    let track = measured.timed(documents, track)?;
    session.execute(&format!(
        "SELECT near_dup_untrack('docs_clusters'); DELETE FROM docs WHERE id % {DELETED} = 0"
    ))?;
    let vacuum = measured.timed(documents, "VACUUM docs")?;
    Ok(vec![lookup, insert, track, vacuum])
}

fn lookups(session: &Session) -> Result<Cost> {
    let lookup = Lookup {
        queries: &format!(
            "SELECT 0::bigint AS others, sig FROM docs ORDER BY hashint8(id) LIMIT {LOOKUPS}"
        ),
        answer: "SELECT count(*) FROM docs WHERE near_dup(sig, query.sig, 0.8)",
    };
    latencies(session, &lookup)?;
    let mut median = 0.0;
    let kilobytes = memory::peak(session.pid()?, || {
        let measured = latencies(session, &lookup)?.pop().context("no lookups")?;
        median = measured.median;
        Ok(())
    })?;
    Ok(Cost {
        microseconds: 1e3 * median,
        processor: 0.0,
        megabytes: kilobytes as f64 / 1024.0,
    })
}

/// Returns the exponents with which a cost of steps grows between the last two sizes.
fn slopes(all: &[Costs], of: fn(&Cost) -> f64) -> Option<Vec<f64>> {
    let [.., before, last] = all else {
        return None;
    };
    let growth = (last.documents as f64 / before.documents as f64).ln();
    let steps = last.steps.iter().zip(&before.steps);
    let slope = |(last, before): (&Cost, &Cost)| (of(last) / of(before)).ln() / growth;
    Some(steps.map(slope).collect())
}

fn columns(steps: usize) -> String {
    [&["documents"], &STEPS[..steps]].concat().join(" | ")
}

/// Returns the times, and the power of the number of documents with which they grow.
fn times(all: &[Costs]) -> Table {
    let about = format!(
        "Microseconds for a document as the collection grows (generated documents, three in ten edited copies): \
         signature is writing a table of them, insert that of {INSERTS} more rows with theirs, lookup \
         the median of {LOOKUPS}, track begins to keep clusters, vacuum follows the deletion of one row in {DELETED}. \
         The slope is the exponent of a document's cost from the last size but \
         one to the last: 0 is flat, 1 would be quadratic growth of the whole."
    );
    growth("scale.growth", about, all, STEPS.len(), |cost| {
        cost.microseconds
    })
}

/// Returns the processor times of the steps over all documents.
fn processor_times(all: &[Costs]) -> Table {
    let about = "Microseconds of processor time of the server, system calls included: the rest of a step is waiting for the storage.";
    growth("scale.processor", about.to_string(), all, JOBS, |cost| {
        cost.processor
    })
}

/// Returns a cost of the first `steps` steps at every size, and the power of the number of documents with which it
/// grows.
fn growth(name: &str, about: String, all: &[Costs], steps: usize, of: fn(&Cost) -> f64) -> Table {
    let mut table = Table::new(name, about, &columns(steps));
    for costs in all {
        let mut row: Vec<Cell> = row![costs.documents as f64];
        row.extend(costs.steps[..steps].iter().map(|cost| Cell::from(of(cost))));
        table.push(row);
    }
    if let Some(slopes) = slopes(all, of) {
        let mut row: Vec<Cell> = row!["slope"];
        let shown = |slope: &f64| Cell::from(format!("{slope:.2}"));
        row.extend(slopes[..steps].iter().map(shown));
        table.push(row);
    }
    table
}

/// Returns the hours of steps over all documents, and those extrapolated by the slope to more documents.
fn hours(all: &[Costs]) -> Table {
    let about = "Hours of one core for a step over all documents: those of the largest size as measured, those of 10^8 with the \
                 slope, or none where it is below 0.";
    let mut table = Table::new("scale.hours", about, &columns(STEPS.len()));
    let Some(last) = all.last() else {
        return table;
    };
    let slopes = slopes(all, |cost| cost.microseconds).unwrap_or_else(|| vec![0.0; STEPS.len()]);
    let measured = last.documents as f64;
    for documents in [measured, PRICED] {
        let grown = |slope: &f64| (documents / measured).powf(slope.max(0.0));
        let hours = |(cost, slope): (&Cost, &f64)| {
            Cell::from(format!(
                "{:.3}",
                cost.microseconds * grown(slope) * documents / 3.6e9
            ))
        };
        let mut row: Vec<Cell> = row![documents];
        row.extend(last.steps.iter().zip(&slopes).map(hours));
        table.push(row);
    }
    table
}

fn memory_of(all: &[Costs]) -> Table {
    let about = "The most private memory of the backend, in MB, shared buffers not counted.";
    let mut table = Table::new("scale.memory", about, &columns(STEPS.len()));
    for costs in all {
        let mut row: Vec<Cell> = row![costs.documents as f64];
        row.extend(costs.steps.iter().map(|cost| Cell::from(cost.megabytes)));
        table.push(row);
    }
    table
}

fn bytes(all: &[Costs]) -> Table {
    let about = "Bytes a document: its text in the table, a table of identifiers and signatures of 128 slots, the index \
                 at threshold 0.8, temporary files of pairs, clusters and the index build.";
    let mut table = Table::new(
        "scale.bytes",
        about,
        "documents | text | signature | index | temporary files",
    );
    for costs in all {
        let [text, signature, index, temporary] = costs.bytes;
        table.push(row![
            costs.documents as f64,
            text,
            signature,
            index,
            temporary
        ]);
    }
    table
}

fn chart(bench: &Bench<'_>, all: &[Costs]) -> Result<()> {
    let curve = |(nth, name): (usize, &&str)| Curve {
        label: name.to_string(),
        points: all
            .iter()
            .map(|costs| (costs.documents as f64, costs.steps[nth].microseconds))
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
