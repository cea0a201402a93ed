//! Documents whose true pairs are all known.

use std::collections::HashSet;

use anyhow::Result;
use testbed::corpora::Corpus;
use testbed::documents::generator::{Generator, Plan};
use testbed::documents::{load, load_generated, on_one_line};

use crate::context::Bench;
use crate::measure::session::Session;
use crate::score::Pair;

/// The minimum similarity of a true pair.
pub const THRESHOLD: f64 = 0.8;
/// The name of the generated documents.
pub const GENERATED: &str = "generated";
/// Maximum number of generated documents that the slowest peer can handle.
pub const DOCUMENTS: u64 = 20_000;

/// Loads a corpus, or up to `documents` generated documents, as `docs`, with ids from 0, and the true pairs as
/// `true_pairs`. Returns false if the corpus is absent.
pub fn load_with_pairs(
    bench: &Bench<'_>,
    session: &Session,
    name: &'static str,
    documents: u64,
) -> Result<bool> {
    let pairs = match (name, Corpus::find(name)) {
        (GENERATED, _) => {
            let documents = documents.min(bench.scale.documents);
            let generator = Generator::new(bench.words, Plan::mixed(documents));
            load_generated(&mut session.client(), "docs", &generator)?;
            "SELECT a.id AS a, b.id AS b, resemblance(a.body, b.body) AS jaccard
             FROM docs a JOIN docs b ON a.grp = b.grp AND a.id < b.id"
        }
        (_, Some(corpus)) => {
            // In ASCII documents, words are the same by every rule.
            load_keyed(bench, session, &corpus, str::is_ascii)?;
            corpus.load_exact(&mut session.client(), "exact_w3", "exact")?;
            "SELECT least(a.id, b.id) AS a, greatest(a.id, b.id) AS b, e.jaccard
             FROM exact e JOIN docs a ON a.key = e.a JOIN docs b ON b.key = e.b"
        }
        (_, None) => return Ok(false),
    };
    session.execute(&format!(
        "CREATE TABLE true_pairs AS SELECT a, b FROM ({pairs}) pairs WHERE jaccard >= {THRESHOLD}"
    ))?;
    Ok(true)
}

/// Loads some documents of a corpus as `docs`, with ids from 0; the corpus's ids are in the column key.
pub fn load_keyed(
    bench: &Bench<'_>,
    session: &Session,
    corpus: &Corpus,
    takes: impl Fn(&str) -> bool,
) -> Result<()> {
    let documents = corpus.documents()?;
    let taken = documents.iter().filter(|(_, body)| takes(body));
    let taken = taken.take(bench.scale.documents as usize);
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

/// Returns the pairs of documents that a query yields.
pub fn true_pairs(session: &Session, query: &str) -> Result<HashSet<Pair>> {
    let rows = session.client().query(query, &[])?;
    let pair = |row: &postgres::Row| {
        let (a, b): (i64, i64) = (row.get(0), row.get(1));
        (a.min(b) as u32, a.max(b) as u32)
    };
    Ok(rows.iter().map(pair).collect())
}
