//! Whole pipelines, as users run them: from documents to one document of each cluster of near-duplicates.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use postgres::binary_copy::BinaryCopyInWriter;
use postgres::types::Type;
use serde_json::json;
use testbed::server::database::Database;
use testbed::server::memory;

use super::known_pairs::{DOCUMENTS, GENERATED, load_with_pairs};
use crate::context::Bench;
use crate::measure::race::{Contender, race};
use crate::measure::session::Session;
use crate::peers::dir;
use crate::peers::pipelines::{PIPELINES, PROCESSES, Pipelines, Run};
use crate::report::table::{Table, row};

/// A corpus with a list of all pairs, if it is present.
const CORPUS: &str = "newsgroups20";
/// Bands as users build them without an extension.
const BANDS: (&str, &str) = (
    "bands in a B-tree, plain SQL",
    include_str!("../../../../benches/peers/bands.sql"),
);
/// The slowest pipeline, which takes half an hour for a million documents.
const SLOWEST: &str = "datatrove";
const OURS: &str = "two SQL statements";
const STATEMENTS: &str = "CREATE TABLE clusters AS
    SELECT * FROM near_dup_clusters(NULL::bigint, 'SELECT id, body FROM docs ORDER BY id', 0.8, 'connected');
CREATE TABLE kept AS
    SELECT docs.* FROM docs JOIN clusters c ON c.key = docs.id WHERE c.key = c.cluster;";

/// Returns the table of this subject.
pub fn measure(bench: &Bench<'_>) -> Result<Vec<Table>> {
    let about = format!(
        "From documents (a table, files of JSON) to one document of each cluster at 0.8, shingles of three words, \
         {PROCESSES} processes each (rensa: one). Precision and recall: of the pairs of documents in one cluster, against the \
         connected components of all pairs whose Jaccard similarity is at least 0.8. datatrove with its own bands, \
         14 of 8 rows, the bands in plain SQL alike, text-dedup with those that it computes for 0.8; none of them compares what \
         its bands propose. rensa compares signatures that share one of 16 bands of 8 rows. {SLOWEST}, the slowest, gets {DOCUMENTS} documents at most. \
         Memory: private memory of the backend; resident memory of the largest process of the others. Disk: what they leave \
         there, and temporary files of the server. Lines: those that a user writes."
    );
    let columns = "documents | who | s | memory, MB | disk, MB | lines | kept | precision | recall | times ours";
    let mut table = Table::new("pipelines", &about, columns);
    let pipelines = match bench.peers.have_python() {
        true => Pipelines::install()
            .inspect_err(|error| println!("Skipping the pipelines in Python: {error:#}"))
            .ok(),
        false => None,
    };
    let cluster = bench.started_cluster()?;
    let mut collections = vec![(CORPUS, DOCUMENTS), (GENERATED, DOCUMENTS)];
    if bench.scale.documents > DOCUMENTS {
        collections.push((GENERATED, bench.scale.documents));
    }
    for (name, documents) in collections {
        let database = Database::with_extension(&cluster, "pipelines")?;
        let session = Session::open(&database)?;
        if !load_with_pairs(bench, &session, name, documents)? {
            println!("Skipping {name}: it is not present");
            continue;
        }
        make_truth(&session)?;
        contest(bench, &session, pipelines.as_ref(), name, &mut table)?;
    }
    Ok(vec![table])
}

/// Creates `truth`, the true components of the loaded documents.
pub fn make_truth(session: &Session) -> Result<()> {
    session.execute(
        "CREATE TABLE truth AS SELECT d.id, coalesce(c.component, d.id) AS cluster FROM docs d
         LEFT JOIN connected_components(NULL::bigint, 'SELECT a, b FROM true_pairs') c ON c.key = d.id",
    )
}

fn contest(
    bench: &Bench<'_>,
    session: &Session,
    pipelines: Option<&Pipelines>,
    name: &str,
    table: &mut Table,
) -> Result<()> {
    let input = dir().join("pipelines_input");
    let documents = export(session, &input)?;
    let runs: RefCell<HashMap<&str, Run>> = RefCell::default();
    let in_sql = |name, statements| {
        let runs = &runs;
        Contender::new(name, documents, move || {
            let run = run_sql(session, statements)?;
            let seconds = run.seconds;
            runs.borrow_mut().insert(name, run);
            Ok(seconds)
        })
    };
    let mut contenders = vec![in_sql(OURS, STATEMENTS)];
    if pipelines.is_some() {
        contenders.push(in_sql(BANDS.0, BANDS.1));
    }
    let bears = |peer: &&str| documents <= DOCUMENTS as usize || *peer != SLOWEST;
    for peer in pipelines.iter().flat_map(|_| PIPELINES).filter(bears) {
        let (input, runs) = (&input, &runs);
        contenders.push(Contender::new(peer, documents, move || {
            let run = pipelines.context("not there")?.run(peer, input)?;
            let seconds = run.seconds;
            runs.borrow_mut().insert(peer, run);
            Ok(seconds)
        }));
    }
    let results = race(
        &format!("pipelines of {name}"),
        bench.scale.long_rounds,
        contenders,
    )?;
    let base = results.get(OURS).context("ours did not run")?;
    for times in results.iter() {
        let run = &runs.borrow()[times.name.as_str()];
        let score = score(session, &run.clusters)?;
        table.push(row![
            format!("{name}, {documents}"),
            times.name.clone(),
            times.median(),
            run.memory,
            run.disk,
            run.lines as f64,
            score.kept,
            score.precision,
            score.recall,
            times.over(base)
        ]);
    }
    Ok(())
}

/// Writes the documents as JSON lines, one file for each process. Returns their number.
pub fn export(session: &Session, into: &Path) -> Result<usize> {
    fs::create_dir_all(into)?;
    let rows = session
        .client()
        .query("SELECT id, body FROM docs ORDER BY id", &[])?;
    let files = (0..PROCESSES).map(|part| File::create(into.join(format!("{part}.jsonl"))));
    let mut files = files.collect::<std::io::Result<Vec<_>>>()?;
    for (number, row) in rows.iter().enumerate() {
        let (id, body): (i64, &str) = (row.get(0), row.get(1));
        let line = json!({ "id": id.to_string(), "text": body });
        writeln!(files[number % PROCESSES], "{line}")?;
    }
    Ok(rows.len())
}

/// Runs statements that write each document's cluster into the table `clusters`.
fn run_sql(session: &Session, statements: &str) -> Result<Run> {
    session.execute(&format!(
        "SET max_parallel_maintenance_workers = {}; DROP TABLE IF EXISTS slots, bands, edges, clusters, kept",
        PROCESSES - 1
    ))?;
    let written = || {
        let kept = session.number("SELECT pg_database_size(current_database())")?;
        anyhow::Ok(kept + session.temporary_bytes()?)
    };
    let (before, mut seconds) = (written()?, 0.0);
    let kilobytes = memory::peak(session.pid()?, || {
        seconds = session.seconds(statements)?;
        Ok(())
    })?;
    let disk = (written()? - before) / 1e6;
    let rows = session
        .client()
        .query("SELECT key, cluster FROM clusters", &[])?;
    Ok(Run {
        seconds,
        memory: kilobytes as f64 / 1024.0,
        disk,
        lines: statements.lines().count(),
        clusters: rows.iter().map(|row| (row.get(0), row.get(1))).collect(),
    })
}

/// The documents kept, and precision and recall of the pairs in one cluster.
pub struct Score {
    pub kept: i64,
    pub precision: f64,
    pub recall: f64,
}

/// Creates the table `found` from a program's results.
pub fn load_found(session: &Session, a: &str, b: &str, found: &[(i64, i64)]) -> Result<()> {
    session.execute(&format!(
        "DROP TABLE IF EXISTS found; CREATE TABLE found ({a} bigint, {b} bigint)"
    ))?;
    let mut client = session.client();
    let copy = client.copy_in("COPY found FROM STDIN BINARY")?;
    let mut writer = BinaryCopyInWriter::new(copy, &[Type::INT8, Type::INT8]);
    for (a, b) in found {
        writer.write(&[a, b])?;
    }
    writer.finish()?;
    Ok(())
}

/// Compares clusters with the true components. A document that a pipeline does not list is in a cluster of its own.
pub fn score(session: &Session, clusters: &[(i64, i64)]) -> Result<Score> {
    load_found(session, "id", "cluster", clusters)?;
    let row = session.client().query_one(
        "WITH placed AS (SELECT t.id, t.cluster AS truth, coalesce(f.cluster, -1 - t.id) AS found
                         FROM truth t LEFT JOIN found f USING (id)),
              agreed AS (SELECT sum(n * (n - 1) / 2) AS pairs FROM
                       (SELECT count(*) AS n FROM placed GROUP BY truth, found) a),
              found AS (SELECT sum(n * (n - 1) / 2) AS pairs, count(*) AS kept FROM
                        (SELECT count(*) AS n FROM placed GROUP BY found) f),
              wanted AS (SELECT sum(n * (n - 1) / 2) AS pairs FROM
                         (SELECT count(*) AS n FROM placed GROUP BY truth) t)
         SELECT found.kept, coalesce(agreed.pairs / nullif(found.pairs, 0), 1)::float8,
                coalesce(agreed.pairs / nullif(wanted.pairs, 0), 1)::float8
         FROM agreed, found, wanted",
        &[],
    )?;
    Ok(Score {
        kept: row.get(0),
        precision: row.get(1),
        recall: row.get(2),
    })
}
