//! All pairs of a large collection, its clusters, and the memory that they take.

use anyhow::Result;
use testbed::documents::generator::{Generator, Plan};
use testbed::documents::load_generated;
use testbed::progress::bar;
use testbed::server::database::Database;
use testbed::server::memory;

use crate::context::Bench;
use crate::measure::session::Session;
use crate::report::table::{Cell, Table, row};

/// Steps, each in a fresh backend, and the place where each leaves the number of rows that it found.
const STEPS: &[(&str, &str)] = &[
    (
        "signatures of all documents",
        "CREATE UNLOGGED TABLE sigs AS SELECT id, minhash(body) AS sig FROM docs",
    ),
    (
        "pairs by estimate, from signatures",
        "CREATE UNLOGGED TABLE found AS SELECT * FROM near_dup_pairs(NULL::bigint, 'TABLE sigs', 0.8)",
    ),
    (
        "star clusters, from signatures",
        "CREATE UNLOGGED TABLE found AS SELECT * FROM near_dup_clusters(NULL::bigint, 'TABLE sigs', 0.8)",
    ),
    (
        "connected clusters, from signatures",
        "CREATE UNLOGGED TABLE found AS SELECT * FROM near_dup_clusters(NULL::bigint, 'TABLE sigs', 0.8, 'connected')",
    ),
    (
        "star clusters, a tenth of the signatures identical",
        "CREATE UNLOGGED TABLE found AS SELECT * FROM near_dup_clusters(NULL::bigint,
             'SELECT id, CASE WHEN id % 10 = 0 THEN (SELECT sig FROM sigs LIMIT 1) ELSE sig END FROM sigs', 0.8)",
    ),
    (
        "text to clusters, by signatures",
        "CREATE UNLOGGED TABLE found AS SELECT * FROM near_dup_clusters(NULL::bigint, 'SELECT id, minhash(body) FROM docs', 0.8)",
    ),
];

/// Steps that are also measured on a table in which one template makes half of the documents.
const TEMPLATED: &[(&str, &str)] = &[
    (
        "text to verified clusters",
        "CREATE UNLOGGED TABLE found AS SELECT * FROM near_dup_clusters(NULL::bigint, 'SELECT id, body FROM docs', 0.8)",
    ),
    (
        "text to verified pairs",
        "CREATE UNLOGGED TABLE found AS SELECT * FROM near_dup_pairs(NULL::bigint, 'SELECT id, body FROM docs', 0.8)",
    ),
];

/// Pairs of a group that are truly similar, and how many of them the last step found.
const RECALL: &str = "SELECT count(*) FILTER (WHERE EXISTS (
        SELECT FROM found f WHERE f.a = least(x.id, y.id) AND f.b = greatest(x.id, y.id)
           OR f.b = least(x.id, y.id) AND f.a = greatest(x.id, y.id)))::float8 / greatest(count(*), 1)
    FROM docs x JOIN docs y ON x.grp = y.grp AND x.id < y.id WHERE resemblance(x.body, y.body) >= 0.8";

/// Returns all tables of this subject.
pub fn measure(bench: &Bench<'_>) -> Result<Vec<Table>> {
    let cluster = bench.started_cluster()?;
    let database = Database::with_extension(&cluster, "pairs")?;
    let session = Session::open(&database)?;
    let generator = Generator::new(bench.words, Plan::mixed(bench.scale.documents));
    load_generated(&mut session.client(), "docs", &generator)?;
    let mut table = million(bench, &database, &session)?;
    session.execute("DROP TABLE docs")?;
    let plan = Plan::mixed(bench.scale.documents).templated();
    load_generated(
        &mut session.client(),
        "docs",
        &Generator::new(bench.words, plan),
    )?;
    for (step, statement) in TEMPLATED {
        let step = format!("{step}, half of them one template");
        let row = measured(bench, &database, &session, &step, statement)?;
        table.push(row);
    }
    Ok(vec![table])
}

fn million(bench: &Bench<'_>, database: &Database<'_>, session: &Session) -> Result<Table> {
    let documents = bench.scale.documents as f64;
    let megabytes = session.number("SELECT sum(octet_length(body)) / 1e6 FROM docs")?;
    let mut table = Table::new(
        "pairs.million",
        "",
        "step | s | µs a document | rows | peak memory of the backend, MB | temporary files, MB",
    );
    let steps = STEPS.len() + TEMPLATED.len();
    let progress = bar(steps as u64, "pairs and clusters")?;
    for (step, statement) in STEPS.iter().chain(TEMPLATED) {
        progress.set_message(*step);
        table.push(measured(bench, database, session, step, statement)?);
        progress.inc(1);
    }
    progress.finish_and_clear();
    session
        .execute("CREATE INDEX ON found (a, b); CREATE INDEX ON docs (grp); ANALYZE found, docs")?;
    let recall = session.number(RECALL)?;
    session.execute("DROP TABLE found")?;
    table.about = format!(
        "{documents} generated documents ({megabytes:.0} MB), three in ten of them edited copies; every step in a \
         fresh backend with work_mem 64MB. Verified pairs are all true; of the pairs of an original and its copies \
         that are truly at or above 0.8 they hold {recall:.5}."
    );
    Ok(table)
}

/// Returns the row of a step.
fn measured(
    bench: &Bench<'_>,
    database: &Database<'_>,
    session: &Session,
    step: &str,
    statement: &str,
) -> Result<Vec<Cell>> {
    session.execute("DROP TABLE IF EXISTS found")?;
    let before = session.temporary_bytes()?;
    let (seconds, kilobytes) = step_cost(database, statement)?;
    let found = statement.split(' ').nth(3).unwrap_or_default();
    let rows = session.number(&format!("SELECT count(*) FROM {found}"))?;
    let temporary = (session.temporary_bytes()? - before) / 1e6;
    let each = 1e6 * seconds / bench.scale.documents as f64;
    Ok(row![step, seconds, each, rows, kilobytes / 1e3, temporary])
}

/// Returns the seconds and the peak private memory, in kB, of a statement in a backend of its own.
fn step_cost(database: &Database<'_>, statement: &str) -> Result<(f64, f64)> {
    let session = Session::open(database)?;
    let mut seconds = 0.0;
    let peak = memory::peak(session.pid()?, || {
        seconds = session.seconds(statement)?;
        Ok(())
    })?;
    Ok((seconds, peak as f64))
}
