//! Containment: documents that contain a passage, compared with the sketches of LSH Ensemble and with array
//! operators on GIN.

use std::collections::HashSet;
use std::fs;

use anyhow::{Context, Result};
use serde_json::json;
use testbed::documents::generator::{Generator, Plan};
use testbed::documents::{load_generated, write_lines};
use testbed::server::database::Database;

use super::pairs_peers::export;
use crate::context::Bench;
use crate::measure::latency::{Lookup, latencies};
use crate::measure::session::Session;
use crate::peers;
use crate::report::table::{Cell, Table, row};

const PEER: &str = "datasketch LSH Ensemble";
const THRESHOLD: f64 = 0.8;
const QUERIES: u32 = 200;

/// Maximum number of documents that the sketches can handle.
const MOST: u64 = 20_000;

/// Passages of forty words, a tenth of them lost.
const PASSAGES: &str = "
    CREATE TABLE passages AS
    SELECT id, string_agg(word, ' ' ORDER BY nth) AS body
    FROM (SELECT id, word, nth FROM docs, regexp_split_to_table(body, '\\s+') WITH ORDINALITY w (word, nth)
          WHERE nth BETWEEN 21 AND 60 AND nth % 40 >= 4) words
    GROUP BY id HAVING count(*) = 36 ORDER BY hashint8(id) LIMIT {};
    ALTER TABLE passages ADD prints bigint[];
    UPDATE passages SET prints = shingle_hashes(body);
    ALTER TABLE docs ADD prints bigint[];
    UPDATE docs SET prints = shingle_hashes(body)";

/// The ways in which we and GIN look up a passage.
const METHODS: [[&str; 3]; 2] = [
    [
        "near_contained, neardup",
        "neardup (prints)",
        "near_contained((query.p).prints, d.prints, 0.8)",
    ],
    [
        "`&&` on GIN, rechecked",
        "gin (prints)",
        "d.prints && (query.p).prints AND near_contained((query.p).prints, d.prints, 0.8) IS TRUE",
    ],
];

/// Returns all tables of this subject.
pub fn measure(bench: &Bench<'_>) -> Result<Vec<Table>> {
    let about = "Which documents contain 0.8 of the shingles of a passage of 36 words? Sets are at hand; \
                 the sketches of LSH Ensemble (128 values, 32 parts) are made of them as part of its time. \
                 Precision and recall against counting.";
    let columns =
        "how | documents | built, s | median, ms | found | precision | recall | bytes a row";
    let mut table = Table::new("containment", about, columns);
    let documents = MOST.min(bench.scale.documents);
    let cluster = bench.started_cluster()?;
    let database = Database::with_extension(&cluster, "containment")?;
    let session = Session::open(&database)?;
    load_passages(bench, &session, Plan::mixed(documents).templated())?;
    let templated = METHODS.map(|[how, index, condition]| {
        let how = format!("{how}, half of them one template");
        by_index(&session, [&how, index, condition], documents)
    });
    session.execute("DROP TABLE docs, passages")?;
    load_passages(bench, &session, Plan::mixed(documents))?;
    for method in METHODS {
        table.push(by_index(&session, method, documents)?);
    }
    match by_sketches(bench, &session, documents) {
        Ok(row) => table.push(row),
        Err(error) => println!("Skipping {PEER}: {error:#}"),
    }
    for row in templated {
        table.push(row?);
    }
    Ok(vec![table])
}

fn load_passages(bench: &Bench<'_>, session: &Session, plan: Plan) -> Result<()> {
    let generator = Generator::new(bench.words, plan);
    load_generated(&mut session.client(), "docs", &generator)?;
    session.execute(&PASSAGES.replace("{}", &QUERIES.to_string()))?;
    session.vacuum("docs, passages")
}

fn by_index(
    session: &Session,
    [how, index, condition]: [&str; 3],
    documents: u64,
) -> Result<Vec<Cell>> {
    session.execute("DROP INDEX IF EXISTS measured; SET enable_seqscan = off")?;
    let built = session.seconds(&format!("CREATE INDEX measured ON docs USING {index}"))?;
    let bytes = session.number("SELECT pg_relation_size('measured')")? / documents as f64;
    let lookup = Lookup {
        queries: "SELECT 0::bigint AS others, p FROM passages p",
        answer: &format!("SELECT count(*) FROM docs d WHERE {condition}"),
    };
    latencies(session, &lookup)?;
    let measured = latencies(session, &lookup)?;
    let measured = measured.first().context("no lookups")?;
    let found = found(session, condition)?;
    let [precision, recall] = judged(session, &found)?;
    Ok(row![
        how,
        documents as f64,
        built,
        measured.median,
        found.len() as f64,
        precision,
        recall,
        bytes
    ])
}

/// A passage and a document.
type Found = HashSet<(i64, i64)>;

fn found(session: &Session, condition: &str) -> Result<Found> {
    let query = format!("SELECT p.id, d.id FROM passages p, docs d WHERE {condition}");
    let query = query.replace("(query.p)", "p");
    let rows = session.client().query(&query, &[])?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// Returns precision and recall, compared with the counted elements.
fn judged(session: &Session, found: &Found) -> Result<[f64; 2]> {
    session.execute("SET enable_indexscan = off; SET enable_bitmapscan = off")?;
    let truth = self::found(session, "containment(p.prints, d.prints) >= 0.8")?;
    session.execute("RESET enable_indexscan; RESET enable_bitmapscan")?;
    let shared = found.intersection(&truth).count() as f64;
    let of = |all: usize| shared / all.max(1) as f64;
    Ok([of(found.len()), of(truth.len())])
}

fn by_sketches(bench: &Bench<'_>, session: &Session, documents: u64) -> Result<Vec<Cell>> {
    let [file, queries, into] = ["containment.txt", "passages.txt", "containment.pairs"]
        .map(|name| peers::dir().join(name));
    export(session, &file)?;
    let rows = session
        .client()
        .query("SELECT id, body FROM passages ORDER BY id", &[])?;
    write_lines(rows.iter().map(|row| row.get(1)), &queries)?;
    let request = json!({ "task": "containment", "documents": file, "queries": queries,
                          "threshold": THRESHOLD, "into": into });
    let answer = bench.peers.worker(PEER)?.ask(&request)?;
    let pair = |line: &str| {
        let (passage, document) = line.split_once('\t')?;
        let passage: usize = passage.parse().ok()?;
        Some((rows.get(passage)?.get(0), document.parse().ok()?))
    };
    let pairs: Option<Found> = fs::read_to_string(&into)?.lines().map(pair).collect();
    let found = pairs.context("a line that is no pair")?;
    let [precision, recall] = judged(session, &found)?;
    let number = |name: &str| answer[name].as_f64().context("no figure");
    Ok(row![
        PEER,
        documents as f64,
        number("built")?,
        number("median")?,
        found.len() as f64,
        precision,
        recall,
        ""
    ])
}
