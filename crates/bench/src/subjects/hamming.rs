//! Lookup of bit strings within a Hamming distance: with our exact index, a graph, and a scan.

use anyhow::{Context, Result};
use testbed::progress::waiting;
use testbed::server::database::Database;

use crate::context::Bench;
use crate::measure::latency::{Lookup, latencies};
use crate::measure::session::Session;
use crate::peers;
use crate::report::table::{Cell, Table, row};

/// Half of the strings are random, half in groups of ten with up to 6 bits flipped.
const STRINGS: &str = "CREATE UNLOGGED TABLE strings (id bigint, b bit(64)); INSERT INTO strings
    SELECT i::bigint AS id, CASE WHEN i % 2 = 0 THEN hashint8extended(i, 0)::bit(64)
        ELSE hashint8extended(i / 20, 1)::bit(64) # (SELECT coalesce(bit_or(1::bit(64) << (hashint4(i * 8 + j) & 63)), 0::bit(64))
                                                     FROM generate_series(1, i / 2 % 7) j) END AS b
    FROM generate_series(1, ROWS) i";

const WITHIN: &str = "SELECT count(*) FROM strings WHERE hamming_within(b, query.b, 3)";
/// A query of a graph for the nearest strings; those within the distance count.
const NEAREST: &str =
    "SELECT count(*) FROM (SELECT b FROM strings ORDER BY b <~> query.b LIMIT 40) n
    WHERE bit_hamming(b, query.b) <= 3";

/// Maximum number of rows on which a graph is built.
const HNSW_ROWS: u64 = 100_000;

/// A way to look up.
struct Contest {
    how: &'static str,
    /// The most rows that it is measured on.
    rows: u64,
    /// The index; empty for a sequential scan.
    index: &'static str,
    answer: &'static str,
    lookups: u32,
}

const CONTESTS: &[Contest] = &[
    Contest {
        how: "neardup",
        rows: u64::MAX,
        index: "neardup (b hamming_ops (distance = 3))",
        answer: WITHIN,
        lookups: 1000,
    },
    Contest {
        how: "sequential scan",
        rows: u64::MAX,
        index: "",
        answer: WITHIN,
        lookups: 3,
    },
    Contest {
        how: "neardup",
        rows: HNSW_ROWS,
        index: "neardup (b hamming_ops (distance = 3))",
        answer: WITHIN,
        lookups: 1000,
    },
    Contest {
        how: "pgvector HNSW, ef_search 40",
        rows: HNSW_ROWS,
        index: "hnsw (b bit_hamming_ops)",
        answer: NEAREST,
        lookups: 1000,
    },
    Contest {
        how: "pgvector HNSW, ef_search 200",
        rows: HNSW_ROWS,
        index: "hnsw (b bit_hamming_ops)",
        answer: NEAREST,
        lookups: 1000,
    },
];

/// Returns all tables of this subject.
pub fn measure(bench: &Bench<'_>) -> Result<Vec<Table>> {
    let about = "Strings of 64 bits within distance 3 of one of them; half of the strings are random, half in groups of \
                 ten with up to 6 bits flipped. Candidates are the rows that an index leads to; rows found by the graph \
                 are those among its 40 nearest.";
    let columns = "how | rows | lookups | candidates | rows found | median, ms | 99 %, ms | built, s | bytes a row";
    let mut table = Table::new("lookup.hamming", about, columns);
    let cluster = bench.started_cluster()?;
    for contest in CONTESTS {
        let progress = waiting(contest.how)?;
        let database = Database::with_extension(&cluster, "hamming")?;
        let measured = contest.measure(bench, &database);
        progress.finish_and_clear();
        match measured {
            Ok(row) => table.push(row),
            Err(error) => println!("Skipping {}: {error:#}", contest.how),
        }
    }
    Ok(vec![table])
}

impl Contest {
    fn measure(&self, bench: &Bench<'_>, database: &Database<'_>) -> Result<Vec<Cell>> {
        let rows = self.rows.min(bench.scale.documents);
        let session = Session::open(database)?;
        peers::create_extensions(&mut session.client())?;
        session.execute(&STRINGS.replace("ROWS", &rows.to_string()))?;
        session.vacuum("strings")?;
        let (mut built, mut bytes) = (Cell::from(""), Cell::from(""));
        if !self.index.is_empty() {
            let index = format!("CREATE INDEX measured ON strings USING {}", self.index);
            built = session.seconds(&index)?.into();
            bytes = (session.number("SELECT pg_relation_size('measured')")? / rows as f64).into();
        }
        if let Some((_, candidates)) = self.how.split_once("ef_search ") {
            session.execute(&format!("SET hnsw.ef_search = {candidates}"))?;
        }
        let queries = format!(
            "SELECT 0::bigint AS others, b FROM strings WHERE id % 2 = 1 ORDER BY hashint8(id) LIMIT {}",
            self.lookups
        );
        let lookup = Lookup {
            queries: &queries,
            answer: self.answer,
        };
        latencies(&session, &lookup)?;
        let group = latencies(&session, &lookup)?.pop().context("no lookups")?;
        let (found, median, p99) = (group.found, group.median, group.p99);
        let candidates = candidates(&session)?;
        Ok(row![
            self.how,
            rows as f64,
            group.lookups,
            candidates,
            found,
            median,
            p99,
            built,
            bytes
        ])
    }
}

/// Returns the mean number of rows to which the index leads; an empty cell if it is not used.
fn candidates(session: &Session) -> Result<Cell> {
    let query = "SELECT b::text FROM strings WHERE id % 2 = 1 ORDER BY hashint8(id) LIMIT 20";
    let strings = session.client().query(query, &[])?;
    let mut rows = 0.0;
    for string in &strings {
        let plan = format!(
            "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT FROM strings WHERE hamming_within(b, B'{}', 3)",
            string.get::<_, String>(0)
        );
        for line in session.client().query(&plan, &[])? {
            let line: String = line.get(0);
            if let Some((_, found)) = line.split_once("Bitmap Index Scan on measured (actual rows=")
            {
                let digits: String = found.chars().take_while(char::is_ascii_digit).collect();
                rows += digits.parse::<f64>()?;
            }
        }
    }
    Ok(match rows {
        0.0 => "".into(),
        rows => (rows / strings.len() as f64).into(),
    })
}
