//! The latencies of single lookups, by the clock of the server.

use anyhow::Result;

use crate::measure::session::Session;
use crate::report::table::{Cell, row};

/// Lookups to time.
pub struct Lookup<'a> {
    /// A query for the number of near-duplicates, `others`, and whatever `answer` needs.
    pub queries: &'a str,
    /// A query that counts the answers for one row of `queries`, which is called `query`.
    pub answer: &'a str,
}

/// Lookups of documents with the same number of near-duplicates.
pub struct Latency {
    pub others: i64,
    pub lookups: i64,
    /// The average number of rows found.
    pub found: f64,
    pub median: f64,
    pub p99: f64,
}

impl Latency {
    pub fn row(&self, how: &str) -> Vec<Cell> {
        let others = match self.others {
            -1 => "hot band".into(),
            others => Cell::from(others),
        };
        row![how, others, self.lookups, self.found, self.median, self.p99]
    }
}

/// Runs the lookups one after the other, and returns their latencies.
pub fn latencies(session: &Session, lookup: &Lookup<'_>) -> Result<Vec<Latency>> {
    session.execute(&format!(
        "CREATE OR REPLACE FUNCTION pg_temp.measure() RETURNS TABLE (others bigint, answers bigint, ms float8)
         LANGUAGE plpgsql AS $$
         #variable_conflict use_column
         DECLARE
             query record;
             started timestamptz;
         BEGIN
             FOR query IN {} LOOP
                 started := clock_timestamp();
                 answers := ({});
                 ms := extract(epoch FROM clock_timestamp() - started) * 1000;
                 others := query.others;
                 RETURN NEXT;
             END LOOP;
         END $$",
        lookup.queries, lookup.answer
    ))?;
    let rows = session.client().query(
        "SELECT others, count(*), avg(answers)::float8, percentile_cont(0.5) WITHIN GROUP (ORDER BY ms),
                percentile_cont(0.99) WITHIN GROUP (ORDER BY ms)
         FROM pg_temp.measure() GROUP BY 1 ORDER BY 1",
        &[],
    )?;
    let latency = |row: &postgres::Row| Latency {
        others: row.get(0),
        lookups: row.get(1),
        found: row.get(2),
        median: row.get(3),
        p99: row.get(4),
    };
    Ok(rows.iter().map(latency).collect())
}
