//! An index on text, compared with an index on signatures of the same documents: sizes, inserts, lookups, and how
//! many documents are compared for each one found.

use anyhow::Result;
use testbed::documents::generator::Generator;
use testbed::documents::{load, load_generated};
use testbed::progress::waiting;
use testbed::server::database::Database;

use crate::context::Bench;
use crate::measure::latency::{Latency, Lookup, latencies};
use crate::measure::race::quantile;
use crate::measure::session::Session;
use crate::report::table::{Cell, Table, row};
use crate::subjects::lookup::plan;

/// One in this many documents is inserted after the indexes have been built.
const PARTS: u64 = 10;

/// Number of rows of a statement.
const CHUNK: usize = 1000;

/// Number of documents that are looked up, with the same number of near-duplicates if it is known.
const LOOKUPS: usize = 200;

/// With fewer documents, the figures say nothing about an index.
const LEAST: usize = 1000;

/// A table of the documents with an index.
struct Indexed {
    name: &'static str,
    table: &'static str,
    index: &'static str,
    /// The values of a document for the columns id, others, body and sig.
    row: &'static str,
    /// The rows at or above 0.8 of the row `query`.
    condition: &'static str,
}

const BARE: &str = "bare";

const INDEXES: [Indexed; 2] = [
    Indexed {
        name: "text",
        table: "by_text",
        index: "neardup (body)",
        row: "id, others, body, NULL",
        condition: "near_dup(body, (query.q).body, 0.8)",
    },
    Indexed {
        name: "signature",
        table: "by_sig",
        index: "neardup (sig minhash_ops (threshold = 0.8))",
        row: "id, others, body, minhash(body)",
        condition: "near_dup(sig, (query.q).sig, 0.8)",
    },
];

/// Returns all tables of this subject.
pub fn measure(bench: &Bench<'_>) -> Result<Vec<Table>> {
    let about = format!(
        "Indexes for 0.8 on the documents and on their signatures, each with a table of its own. Inserted in turn, {CHUNK} rows a \
         statement: the time on top of a bare row's, with the signature where there is one. Lookups of documents with up to ten \
         near-duplicates, of real ones any, with their text or signature at hand; candidates are the rows that the index hands on \
         to be compared, for each that is found. Bytes are the index's; a signature takes 528 more in the table."
    );
    let columns = "documents | rows | index on | built, s | bytes a row | segments | inserted, µs a row | \
         near-duplicates | rows found | candidates a row found | lookup, median, ms | 99 %, ms";
    let mut table = Table::new("index.documents", about, columns);
    let cluster = bench.started_cluster()?;
    for generated in [true, false] {
        if !generated && bench.texts.bodies.len() < LEAST {
            continue;
        }
        let database = Database::with_extension(&cluster, "documents")?;
        let session = Session::open(&database)?;
        let origin = fill(bench, &session, generated)?;
        let built = INDEXES
            .iter()
            .map(|indexed| build(&session, indexed))
            .collect::<Result<Vec<_>>>()?;
        let inserted = insert(&session)?;
        session.vacuum("by_text, by_sig")?;
        let rows = session.number("SELECT count(*) FROM by_text")?;
        for ((indexed, built), inserted) in INDEXES.iter().zip(built).zip(inserted) {
            let of_index = |query: &str| session.number(&query.replace("TABLE", indexed.table));
            let bytes = of_index("SELECT pg_relation_size('TABLE_index')")?;
            let segments = of_index("SELECT segments FROM near_dup_index_stats('TABLE_index')")?;
            for found in look_up(&session, indexed, bench.scale.rounds)? {
                let candidates = candidates(&session, indexed, found.others)?;
                table.push(row![
                    origin,
                    rows,
                    indexed.name,
                    built,
                    bytes / rows,
                    segments,
                    inserted,
                    match generated {
                        true => Cell::from(found.others),
                        false => Cell::from(""),
                    },
                    found.found,
                    candidates,
                    found.median,
                    found.p99,
                ]);
            }
        }
    }
    Ok(vec![table])
}

/// Creates the tables, and returns the origin of the documents.
fn fill<'a>(bench: &'a Bench<'_>, session: &Session, generated: bool) -> Result<&'a str> {
    let progress = waiting("loading the documents")?;
    if generated {
        let generator = Generator::new(bench.words, plan(bench.scale.documents));
        load_generated(&mut session.client(), "texts", &generator)?;
    } else {
        let bodies = bench.texts.bodies.iter().map(String::as_str);
        load(&mut session.client(), "texts", bodies)?;
        session.execute("ALTER TABLE texts ADD others bigint DEFAULT 1")?;
    }
    session.execute(&format!(
        "CREATE TABLE {BARE} (id bigint, others bigint, body text, sig minhash_signature);
         CREATE UNLOGGED TABLE later AS
         SELECT row_number() OVER () - 1 AS n, * FROM texts WHERE id % {PARTS} = 0;
         ALTER TABLE later ADD PRIMARY KEY (n)"
    ))?;
    for Indexed { table, row, .. } in INDEXES {
        session.execute(&format!(
            "CREATE TABLE {table} (LIKE {BARE});
             INSERT INTO {table} SELECT {row} FROM texts WHERE id % {PARTS} > 0"
        ))?;
    }
    session.vacuum("by_text, by_sig, later")?;
    progress.finish_and_clear();
    Ok(match generated {
        true => "generated",
        false => &bench.texts.origin,
    })
}

fn build(session: &Session, indexed: &Indexed) -> Result<f64> {
    let Indexed { table, index, .. } = indexed;
    session.seconds(&format!(
        "CREATE INDEX {table}_index ON {table} USING {index}"
    ))
}

/// Inserts the later documents into each table in turn. Returns the microseconds that a row takes in addition to
/// those in a table without an index.
fn insert(session: &Session) -> Result<[f64; 2]> {
    let rows = session.number("SELECT count(*) FROM later")? as usize;
    let (mut bare, mut seconds) = (0.0, [0.0; 2]);
    for from in (0..rows).step_by(CHUNK) {
        let insert = |table: &str, row: &str| {
            session.seconds(&format!(
                "INSERT INTO {table} SELECT {row} FROM later WHERE n >= {from} AND n < {}",
                from + CHUNK
            ))
        };
        bare += insert(BARE, "id, others, body, NULL")?;
        for (indexed, seconds) in INDEXES.iter().zip(&mut seconds) {
            *seconds += insert(indexed.table, indexed.row)?;
        }
    }
    Ok(seconds.map(|seconds| 1e6 * (seconds - bare) / rows as f64))
}

/// Returns the documents to look up: each with its number of near-duplicates, and its row `q`.
fn queries(table: &str) -> String {
    format!(
        "SELECT others, q FROM (
             SELECT others, d AS q, row_number() OVER (PARTITION BY others ORDER BY hashint8(id)) AS nth
             FROM {table} d WHERE others <= 10) q WHERE nth <= {LOOKUPS}"
    )
}

/// Returns the latencies of lookups by number of near-duplicates, as medians over all rounds.
fn look_up(session: &Session, indexed: &Indexed, rounds: usize) -> Result<Vec<Latency>> {
    let Indexed {
        table, condition, ..
    } = indexed;
    session.execute("SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan")?;
    let lookup = Lookup {
        queries: &queries(table),
        answer: &format!("SELECT count(*) FROM {table} WHERE {condition}"),
    };
    latencies(session, &lookup)?;
    let turns = (0..rounds.max(1))
        .map(|_| latencies(session, &lookup))
        .collect::<Result<Vec<_>>>()?;
    let groups = 0..turns[0].len();
    let median = |group: usize, figure: fn(&Latency) -> f64| {
        let figures: Vec<f64> = turns.iter().map(|turn| figure(&turn[group])).collect();
        quantile(&figures, 0.5)
    };
    Ok(groups
        .map(|group| Latency {
            median: median(group, |latency| latency.median),
            p99: median(group, |latency| latency.p99),
            ..turns[0][group]
        })
        .collect())
}

/// Returns the number of candidates for each row found, over lookups of documents with `others` near-duplicates.
fn candidates(session: &Session, indexed: &Indexed, others: i64) -> Result<f64> {
    let Indexed {
        table, condition, ..
    } = indexed;
    session.execute(&format!(
        "CREATE OR REPLACE FUNCTION pg_temp.compared() RETURNS TABLE (answers float8, removed float8) LANGUAGE plpgsql AS $$
         DECLARE
             query record;
             plan json;
         BEGIN
             FOR query IN {} LOOP
                 CONTINUE WHEN query.others <> {others};
                 EXECUTE 'EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) SELECT id FROM {table} WHERE {}' INTO plan USING query.q;
                 answers := (plan->0->'Plan'->>'Actual Rows')::float8;
                 removed := coalesce((plan->0->'Plan'->>'Rows Removed by Index Recheck')::float8, 0);
                 RETURN NEXT;
             END LOOP;
         END $$",
        queries(table),
        condition.replace("query.q", "$1")
    ))?;
    session.number("SELECT 1 + sum(removed) / greatest(sum(answers), 1) FROM pg_temp.compared()")
}
