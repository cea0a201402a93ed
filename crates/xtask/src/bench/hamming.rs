//! Lookup of bit strings within a Hamming distance: our exact index, a graph, a scan.

use anyhow::{Context, Result};

use super::Bench;
use super::latency::{Lookup, latencies};
use super::peers;
use super::progress::waiting;
use super::report::{Cell, Table};
use super::session::Session;
use crate::row;
use crate::server::database::Database;

/// Half of the strings are random, half in groups of ten with up to 6 bits flipped.
const STRINGS: &str = "CREATE UNLOGGED TABLE strings AS
    SELECT i::bigint AS id, CASE WHEN i % 2 = 0 THEN hashint8extended(i, 0)::bit(64)
        ELSE hashint8extended(i / 20, 1)::bit(64) # (SELECT coalesce(bit_or(1::bit(64) << (hashint4(i * 8 + j) & 63)), 0::bit(64))
                                                     FROM generate_series(1, i / 2 % 7) j) END AS b
    FROM generate_series(1, ROWS) i";

const WITHIN: &str = "SELECT count(*) FROM strings WHERE hamming_within(b, query.b, 3)";
/// The graph is asked for the nearest, as many as a group has; those within the distance count.
const NEAREST: &str =
    "SELECT count(*) FROM (SELECT b FROM strings ORDER BY b <~> query.b LIMIT 12) n
    WHERE bit_hamming(b, query.b) <= 3";

/// How, with which index if any, which lookups, and how many.
const CONTESTS: &[(&str, &str, &str, u32)] = &[
    (
        "hamming_ops, 4 blocks",
        "gin (b hamming_ops (distance = 3, blocks = 4))",
        WITHIN,
        1000,
    ),
    (
        "hamming_ops, 6 blocks",
        "gin (b hamming_ops (distance = 3, blocks = 6))",
        WITHIN,
        1000,
    ),
    ("sequential scan", "", WITHIN, 3),
    ("pgvector HNSW", "hnsw (b bit_hamming_ops)", NEAREST, 1000),
];

/// Rows that a graph is built over, if there are more.
const HNSW_ROWS: u64 = 200_000;

/// All tables of this subject.
pub fn measure(bench: &Bench<'_>) -> Result<Vec<Table>> {
    let about = "Strings of 64 bits within distance 3 of one of them. Rows found by the graph are those among its 12 \
                 nearest, at `hnsw.ef_search` 100.";
    let columns = [
        "how",
        "rows",
        "lookups",
        "rows found",
        "median, ms",
        "99 %, ms",
        "built, s",
        "bytes a row",
    ];
    let mut table = Table::new("lookup.hamming", about, &columns);
    let cluster = bench.started_cluster()?;
    for contest in CONTESTS {
        let progress = waiting(contest.0)?;
        let database = Database::with_extension(&cluster, "hamming")?;
        let measured = measure_one(bench, &database, contest);
        progress.finish_and_clear();
        match measured {
            Ok(row) => table.push(row),
            Err(error) => println!("Skipping {}: {error:#}", contest.0),
        }
    }
    Ok(vec![table])
}

fn measure_one(
    bench: &Bench<'_>,
    database: &Database<'_>,
    &(how, index, answer, lookups): &(&str, &str, &str, u32),
) -> Result<Vec<Cell>> {
    let rows = match how.starts_with("pgvector") {
        true => HNSW_ROWS.min(bench.scale.documents),
        false => bench.scale.documents,
    };
    let session = Session::open(database)?;
    peers::create_extensions(&mut session.client())?;
    session.execute(&STRINGS.replace("ROWS", &rows.to_string()))?;
    session.vacuum("strings")?;
    let (mut built, mut bytes) = (Cell::from(""), Cell::from(""));
    if !index.is_empty() {
        built = session
            .seconds(&format!("CREATE INDEX measured ON strings USING {index}"))?
            .into();
        bytes = (session.number("SELECT pg_relation_size('measured')")? / rows as f64).into();
    }
    let queries = format!(
        "SELECT 0::bigint AS others, b FROM strings WHERE id % 2 = 1 ORDER BY hashint8(id) LIMIT {lookups}"
    );
    let lookup = Lookup {
        queries: &queries,
        answer,
    };
    session.execute("SET hnsw.ef_search = 100")?;
    latencies(&session, &lookup)?;
    let group = latencies(&session, &lookup)?.pop().context("no lookups")?;
    let (found, median, p99) = (group.found, group.median, group.p99);
    Ok(row![
        how,
        rows as f64,
        group.lookups,
        found,
        median,
        p99,
        built,
        bytes
    ])
}
