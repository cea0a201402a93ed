//! From text to pairs, beside the peers, on documents of which all true pairs are known.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::path::Path;

use anyhow::{Context, Result};
use testbed::corpora::Corpus;
use testbed::documents::generator::{Generator, Plan};
use testbed::documents::{load, load_generated, on_one_line, write_lines};
use testbed::server::database::Database;

use crate::context::Bench;
use crate::measure::race::{Contender, race};
use crate::measure::session::Session;
use crate::peers::dir;
use crate::report::table::{Table, row};
use crate::score::{self, Pair, Scored};

/// Corpora with a list of all pairs at or above 0.5, where they are present.
const CORPORA: [&str; 2] = ["reuters21578", "newsgroups20"];
/// Those who pair documents by themselves.
pub const PEERS: [&str; 4] = ["ClickHouse", "gaoya", "rensa", "datasketch"];
/// Generated documents that every peer can bear.
const GENERATED: u64 = 20_000;
const OURS: &str = "near_dup_pairs, verified";
const THRESHOLD: f64 = 0.8;

/// Returns all tables of this subject.
pub fn measure(bench: &Bench<'_>) -> Result<Vec<Table>> {
    let about = "From text to pairs at or above 0.8, one thread each, in turn. Precision and recall against all pairs \
                 whose Jaccard similarity of three-word shingles is that (generated documents: against those of an \
                 original and its copies). Ours verifies from the documents; the others say what their bands and \
                 signatures of 128 slots (ClickHouse: 6 hashes) propose: datasketch and rensa candidates, gaoya those \
                 with such an estimate.";
    let columns = [
        "documents",
        "who",
        "s",
        "µs a document",
        "pairs",
        "precision",
        "recall",
        "times ours",
    ];
    let mut table = Table::new("pairs.peers", about, &columns);
    let cluster = bench.started_cluster()?;
    for name in CORPORA.into_iter().chain(["generated"]) {
        let database = Database::with_extension(&cluster, "pairs_peers")?;
        let session = Session::open(&database)?;
        let Some(truth) = prepare(bench, &session, name)? else {
            println!("Skipping {name}: it is not present");
            continue;
        };
        contest(bench, &session, name, &truth, &mut table)?;
    }
    Ok(vec![table])
}

/// Loads documents as `docs`, with ids from 0; the true pairs. None if they are absent.
fn prepare(
    bench: &Bench<'_>,
    session: &Session,
    name: &'static str,
) -> Result<Option<HashSet<Pair>>> {
    if name == "generated" {
        let documents = GENERATED.min(bench.scale.documents);
        let generator = Generator::new(bench.words, Plan::mixed(documents));
        load_generated(&mut session.client(), "docs", &generator)?;
        return true_pairs(
            session,
            "SELECT a.id, b.id FROM docs a JOIN docs b ON a.grp = b.grp AND a.id < b.id
             WHERE resemblance(a.body, b.body) >= $1",
        )
        .map(Some);
    }
    let Some(corpus) = Corpus::find(name) else {
        return Ok(None);
    };
    // On ASCII documents words are the same by every rule.
    load_keyed(session, &corpus, str::is_ascii)?;
    corpus.load_exact(&mut session.client(), "exact_w3", "exact")?;
    true_pairs(
        session,
        "SELECT a.id, b.id FROM exact e JOIN docs a ON a.key = e.a JOIN docs b ON b.key = e.b WHERE e.jaccard >= $1",
    )
    .map(Some)
}

/// Loads some documents of a corpus as `docs`, with ids from 0; its own ids are in the column key.
pub fn load_keyed(session: &Session, corpus: &Corpus, takes: impl Fn(&str) -> bool) -> Result<()> {
    let documents = corpus.documents()?;
    let taken = documents.iter().filter(|(_, body)| takes(body));
    let (keys, bodies): (Vec<i64>, Vec<String>) =
        taken.map(|(key, body)| (*key, on_one_line(body))).unzip();
    load(
        &mut session.client(),
        "docs",
        bodies.iter().map(String::as_str),
    )?;
    session.client().execute(
        "CREATE TABLE keyed AS SELECT d.id, k.key, d.body FROM docs d
         JOIN unnest($1::bigint[]) WITH ORDINALITY k (key, nth) ON k.nth = d.id + 1 ORDER BY d.id",
        &[&keys],
    )?;
    session.execute("DROP TABLE docs; ALTER TABLE keyed RENAME TO docs")?;
    session.vacuum("docs")
}

/// Returns the pairs that a query yields for the threshold.
fn true_pairs(session: &Session, query: &str) -> Result<HashSet<Pair>> {
    let rows = session.client().query(query, &[&THRESHOLD])?;
    let pair = |row: &postgres::Row| {
        let (a, b): (i64, i64) = (row.get(0), row.get(1));
        (a.min(b) as u32, a.max(b) as u32)
    };
    Ok(rows.iter().map(pair).collect())
}

/// Writes the documents of the server's table into a file for the peers.
pub fn export(session: &Session, file: &Path) -> Result<usize> {
    let rows = session
        .client()
        .query("SELECT body FROM docs ORDER BY id", &[])?;
    write_lines(rows.iter().map(|row| row.get(0)), file)?;
    Ok(rows.len())
}

fn contest(
    bench: &Bench<'_>,
    session: &Session,
    name: &'static str,
    truth: &HashSet<Pair>,
    table: &mut Table,
) -> Result<()> {
    let file = dir().join(format!("{name}.txt"));
    let documents = export(session, &file)?;
    let found: RefCell<HashMap<&str, Vec<Scored>>> = RefCell::default();
    let mut contenders = vec![Contender::new(OURS, documents, || {
        let (seconds, pairs) = ours(session)?;
        found.borrow_mut().insert(OURS, pairs);
        Ok(seconds)
    })];
    for peer in PEERS {
        let (file, found) = (&file, &found);
        contenders.push(Contender::new(peer, documents, move || {
            let (seconds, pairs) = bench.peers.worker(peer)?.pairs(peer, file, THRESHOLD)?;
            found.borrow_mut().insert(peer, pairs);
            Ok(seconds)
        }));
    }
    let results = race(
        &format!("pairs of {name}"),
        bench.scale.long_rounds,
        contenders,
    )?;
    let base = results.get(OURS).context("ours did not run")?;
    for times in results.iter() {
        let pairs = &found.borrow()[times.name.as_str()];
        let score = score::at(pairs, truth, 0.0);
        let us = times.microseconds();
        table.push(row![
            format!("{name}, {documents}"),
            times.name.clone(),
            us * documents as f64 / 1e6,
            us,
            pairs.len() as f64,
            score.precision,
            score.recall,
            times.over(base)
        ]);
    }
    Ok(())
}

fn ours(session: &Session) -> Result<(f64, Vec<Scored>)> {
    let start = std::time::Instant::now();
    let rows = session.client().query(
        "SELECT * FROM near_dup_pairs(NULL::bigint, 'SELECT id, body FROM docs', $1)",
        &[&THRESHOLD],
    )?;
    let seconds = start.elapsed().as_secs_f64();
    Ok((seconds, rows.iter().map(scored).collect()))
}

/// Returns a row of two ids and their similarity.
pub fn scored(row: &postgres::Row) -> Scored {
    let (a, b): (i64, i64) = (row.get(0), row.get(1));
    (a.min(b) as u32, a.max(b) as u32, row.get(2))
}
