//! From text to pairs, compared with the peers, on documents whose true pairs are all known.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::path::Path;

use anyhow::{Context, Result};
use testbed::documents::write_lines;
use testbed::server::database::Database;

use super::known_pairs::{DOCUMENTS, GENERATED, THRESHOLD, load_with_pairs, true_pairs};
use crate::context::Bench;
use crate::measure::race::{Contender, race};
use crate::measure::session::Session;
use crate::peers::dir;
use crate::report::table::{Table, row};
use crate::score::{self, Pair, Scored};

/// Corpora with a list of all pairs at or above 0.5, if they are present.
const CORPORA: [&str; 2] = ["reuters21578", "newsgroups20"];
/// Peers that find pairs of documents themselves.
pub const PEERS: [&str; 4] = ["ClickHouse", "gaoya", "rensa", "datasketch"];
const OURS: &str = "near_dup_pairs, verified";

/// Returns all tables of this subject.
pub fn measure(bench: &Bench<'_>) -> Result<Vec<Table>> {
    let about = "From text to pairs at or above 0.8, one thread each, in turn. Precision and recall against all pairs \
                 whose Jaccard similarity of three-word shingles is that (generated documents: against those of an \
                 original and its copies). Ours verifies from the documents; the others say what their bands and \
                 signatures of 128 slots (ClickHouse: 6 hashes) propose: datasketch and rensa candidates, gaoya those \
                 with such an estimate.";
    let columns = "documents | who | s | µs a document | pairs | precision | recall | times ours";
    let mut table = Table::new("pairs.peers", about, columns);
    let cluster = bench.started_cluster()?;
    for name in CORPORA.into_iter().chain([GENERATED]) {
        let database = Database::with_extension(&cluster, "pairs_peers")?;
        let session = Session::open(&database)?;
        if !load_with_pairs(bench, &session, name, DOCUMENTS)? {
            println!("Skipping {name}: it is not present");
            continue;
        }
        let truth = true_pairs(&session, "SELECT a, b FROM true_pairs")?;
        contest(bench, &session, name, &truth, &mut table)?;
    }
    Ok(vec![table])
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
        table.push(row![
            format!("{name}, {documents}"),
            times.name.clone(),
            times.median(),
            times.microseconds(),
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
