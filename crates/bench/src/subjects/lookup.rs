//! Lookup among a million documents: building the index, its size, and the time of an answer.

use anyhow::Result;
use testbed::documents::edit::Edit;
use testbed::documents::generator::{Generator, Groups, Plan};
use testbed::documents::load_generated;
use testbed::progress::waiting;
use testbed::server::database::Database;

use crate::context::Bench;
use crate::measure::latency::{Lookup, latencies};
use crate::measure::race::{Contender, race};
use crate::measure::session::Session;
use crate::report::table::{Table, row};

/// The number of near-duplicates of each document that is looked up, and the number of such groups among a million
/// documents.
const GROUPS: [(u64, f64); 3] = [(1, 2000.0), (10, 2000.0), (1000, 20.0)];

/// Names of the indexes in the table of results and in the server, and their definitions.
const INDEXES: &[(&str, &str, &str)] = &[
    (PLAIN, "plain", "keys USING gin (keys)"),
    (
        "neardup, threshold 0.8",
        "at_80",
        "docs USING neardup (sig)",
    ),
    (
        "neardup, threshold 0.9",
        "at_90",
        "docs USING neardup (sig minhash_ops (threshold = 0.9))",
    ),
];
const PLAIN: &str = "GIN, the same keys as bigint[]";

/// Number of turns of each index; a build on a million rows takes a minute.
const BUILDS: usize = 2;

/// Returns all tables of this subject.
pub fn measure(bench: &Bench<'_>) -> Result<Vec<Table>> {
    let cluster = bench.started_cluster()?;
    let database = Database::with_extension(&cluster, "lookup")?;
    let session = Session::open(&database)?;
    prepare(bench, &session)?;
    let built = build(bench, &session)?;
    Ok(vec![built, answers(bench, &session)?])
}

/// Groups of documents that differ slightly.
pub fn plan(documents: u64) -> Plan {
    let share = documents as f64 / 1e6;
    let groups = GROUPS.map(|(others, number)| Groups {
        others,
        number: (number * share).ceil() as u64,
    });
    Plan::new(documents, groups.to_vec(), Edit::SLIGHT)
}

/// Creates the tables of documents with their signatures, and of the documents to look up.
fn prepare(bench: &Bench<'_>, session: &Session) -> Result<()> {
    load_generated(
        &mut session.client(),
        "generated",
        &Generator::new(bench.words, plan(bench.scale.documents)),
    )?;
    let progress = waiting("signing the documents")?;
    session.execute(
        "CREATE UNLOGGED TABLE docs AS SELECT id, others, minhash(body) AS sig FROM generated;
         CREATE UNLOGGED TABLE keys AS SELECT minhash_bands(sig, 0.8) AS keys FROM docs;
         CREATE UNLOGGED TABLE queries AS
             SELECT others, id, sig FROM (SELECT *, row_number() OVER (PARTITION BY others ORDER BY hashint8(id)) AS nth
                                          FROM docs) d WHERE nth <= 1000",
    )?;
    session.vacuum("docs, keys, queries")?;
    progress.finish_and_clear();
    Ok(())
}

/// Measures builds in turn, and sizes. The index at 0.8 remains.
fn build(bench: &Bench<'_>, session: &Session) -> Result<Table> {
    let rows = bench.scale.documents as usize;
    let contenders = INDEXES.iter().map(|(what, name, index)| {
        Contender::new(*what, rows, move || {
            session.execute(&format!("DROP INDEX IF EXISTS {name}; CHECKPOINT"))?;
            session.seconds(&format!("CREATE INDEX {name} ON {index}"))
        })
    });
    let rounds = bench.scale.long_rounds.min(BUILDS);
    let results = race("building indexes", rounds, contenders.collect())?;
    let about = format!("Building indexes on {rows} rows, one process, {rounds} times in turn.");
    let columns = "index | s | bytes a row | times GIN";
    let mut table = Table::new("lookup.build", about, columns);
    for (what, name, _) in INDEXES {
        let bytes = session.number(&format!("SELECT pg_relation_size('{name}')"))? / rows as f64;
        if let (Some(times), Some(plain)) = (results.get(what), results.get(PLAIN)) {
            table.push(row![*what, times.median(), bytes, times.over(plain)]);
        }
    }
    session.execute("DROP TABLE keys; DROP INDEX at_90")?;
    Ok(table)
}

/// Returns the times with the index and with the scan, then among a hundred thousand rows of the same boilerplate.
fn answers(bench: &Bench<'_>, session: &Session) -> Result<Table> {
    let about = "Rows at or above 0.8 of a document among all, by how many near-duplicates it has; answers counted in \
                 the server, warm. Hot bands belong to a text that a further tenth of the rows share.";
    let columns = "how | near-duplicates | lookups | rows found | median, ms | 99 %, ms";
    let mut table = Table::new("lookup.answers", about, columns);
    let near_dup = Lookup {
        queries: "SELECT others, sig AS q FROM queries",
        answer: "SELECT count(*) FROM docs WHERE near_dup(sig, query.q, 0.8)",
    };
    latencies(session, &near_dup)?;
    for group in latencies(session, &near_dup)? {
        table.push(group.row("neardup index"));
    }
    let scanned = Lookup {
        queries: "SELECT others, sig AS q FROM (SELECT *, row_number() OVER (PARTITION BY others) AS nth FROM queries) q
                  WHERE nth <= 2",
        ..near_dup
    };
    session.execute("SET enable_bitmapscan = off; SET enable_indexscan = off")?;
    for group in latencies(session, &scanned)? {
        table.push(group.row("sequential scan"));
    }
    session.execute("RESET enable_bitmapscan; RESET enable_indexscan")?;
    let rows = bench.scale.documents / 10;
    session.execute(&format!(
        "INSERT INTO docs SELECT -n, -1, minhash((SELECT string_agg('b' || i, ' ') FROM generate_series(1, 80) i)
             || (SELECT string_agg(format(' u%sx%s', n, i), '') FROM generate_series(1, 18) i))
         FROM generate_series(1, {rows}) n;
         INSERT INTO queries SELECT others, id, sig FROM docs WHERE others = -1 LIMIT 20"
    ))?;
    session.vacuum("docs")?;
    for group in latencies(session, &near_dup)? {
        table.push(group.row("neardup index, with hot bands"));
    }
    Ok(table)
}
