//! Inserting in bulk and row by row, and replacing every row.

use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use testbed::progress::bar;

use super::{BARE, Collection, GIN, NEARDUP};
use crate::measure::race::quantile;
use crate::report::table::{Table, row};

/// Rows of a statement, which commits.
const CHUNK: usize = 1000;

/// Every row is replaced in as many portions, with a VACUUM after each.
const PORTIONS: usize = 10;

/// One in `FLUSHED` single rows is inserted with every commit on disk before the next.
const FLUSHED: i64 = 10;

/// The tables that take turns.
const TABLES: [&str; 3] = [BARE, GIN.table, NEARDUP.table];

pub fn insert_table() -> Table {
    let about = format!(
        "Inserting signatures, {CHUNK} a statement, in turn into a table without an index and into those with one, at \
         threshold 0.8. The indexes' times are those on top of the bare row's, the merging included."
    );
    let columns = [
        "documents",
        "rows before",
        "rows",
        "bare row, µs",
        "GIN, µs",
        "neardup, µs",
        "GIN / neardup",
    ];
    Table::new("index.insert", about, &columns)
}

pub fn stall_table() -> Table {
    let about = format!(
        "One INSERT of one row a transaction, from the client, a round trip included: with fsync and synchronous_commit off, \
         and then with both on for one row in {FLUSHED}."
    );
    let columns = [
        "documents",
        "rows before",
        "index",
        "commits flushed",
        "inserts",
        "median, ms",
        "99 %, ms",
        "99.9 %, ms",
        "longest, ms",
    ];
    Table::new("index.stall", about, &columns)
}

pub fn churn_table() -> Table {
    let about = format!(
        "A neardup index whose rows have all been deleted and inserted again, and vacuumed, beside a fresh one of the same \
         rows: in {PORTIONS} portions, each followed by VACUUM, and then all at once. Lookups of documents with at most ten \
         near-duplicates."
    );
    let columns = [
        "documents",
        "index",
        "bytes a row",
        "times fresh",
        "lookup, median, ms",
        "times fresh",
    ];
    Table::new("index.churn", about, &columns)
}

pub fn wal_table() -> Table {
    let about = "WAL in bytes a row: of building each index, of inserting 5 % more rows in one statement after a checkpoint, and \
        of the VACUUM behind them, by the rows inserted. Those of the table without an index are taken off.";
    let columns = [
        "documents",
        "rows before",
        "rows",
        "index",
        "build",
        "insert",
        "VACUUM",
    ];
    Table::new("index.wal", about, &columns)
}

impl Collection<'_> {
    pub fn log(&self, table: &mut Table) -> Result<()> {
        self.stop_autovacuum()?;
        let bulk = self.session.number("SELECT count(*) FROM bulk")?;
        let rows = (self.rows as f64 / 20.0).floor().min(bulk).max(1.0);
        let indexes = [
            ("none", None),
            (GIN.name, Some(GIN.method)),
            (NEARDUP.name, Some(NEARDUP.method)),
            ("B-tree of signatures", Some("btree (sig)")),
        ];
        let mut bare = [0.0; 2];
        for (name, method) in indexes {
            let source = NEARDUP.table;
            self.session.execute(&format!(
                "DROP TABLE IF EXISTS logged; CREATE TABLE logged AS SELECT id, others, sig FROM {source}"
            ))?;
            let built = match method {
                Some(method) => {
                    let method = method.replace("THRESHOLD", "0.8");
                    self.wal(&format!("CREATE INDEX ON logged USING {method}"))?
                }
                None => 0.0,
            };
            self.session.vacuum("logged")?;
            self.session.execute("CHECKPOINT")?;
            let inserted = self.wal(&format!(
                "INSERT INTO logged SELECT id, others, sig FROM bulk WHERE n < {rows}"
            ))?;
            let vacuumed = self.wal("VACUUM logged")?;
            if method.is_none() {
                bare = [inserted, vacuumed];
                continue;
            }
            let before = self.session.number("SELECT count(*) FROM logged")? - rows;
            table.push(row![
                self.origin,
                before,
                rows,
                name,
                built / before,
                (inserted - bare[0]) / rows,
                (vacuumed - bare[1]) / rows,
            ]);
        }
        self.session.execute("DROP TABLE logged")
    }

    /// Returns the bytes of WAL that a statement writes.
    /// Ends automatic VACUUM, whose WAL nothing tells from that of a statement.
    fn stop_autovacuum(&self) -> Result<()> {
        self.session.execute("ALTER SYSTEM SET autovacuum = off")?;
        self.session.execute("SELECT pg_reload_conf()")?;
        let workers =
            "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'autovacuum worker'";
        while self.session.number(workers)? > 0.0 {
            thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    fn wal(&self, statement: &str) -> Result<f64> {
        let position = "SELECT (pg_current_wal_insert_lsn() - '0/0')::float8";
        let before = self.session.number(position)?;
        self.session.execute(statement)?;
        Ok(self.session.number(position)? - before)
    }

    pub fn insert(&self, table: &mut Table) -> Result<()> {
        let rows = self.session.number("SELECT count(*) FROM bulk")? as usize;
        let progress = bar(rows.div_ceil(CHUNK) as u64, "inserting")?;
        let mut seconds = [0.0; 3];
        for from in (0..rows).step_by(CHUNK) {
            for (table, seconds) in TABLES.iter().zip(&mut seconds) {
                *seconds += self.session.seconds(&format!(
                    "INSERT INTO {table} SELECT id, others, sig FROM bulk WHERE n >= {from} AND n < {}",
                    from + CHUNK
                ))?;
            }
            progress.inc(1);
        }
        progress.finish_and_clear();
        let [bare, gin, neardup] = seconds.map(|seconds| 1e6 * seconds / rows as f64);
        table.push(row![
            self.origin,
            self.rows as f64,
            rows as f64,
            bare,
            gin - bare,
            neardup - bare,
            (gin - bare) / (neardup - bare),
        ]);
        Ok(())
    }

    pub fn insert_singly(&self, table: &mut Table) -> Result<()> {
        let rows = self.session.number("SELECT count(*) FROM single")? as i64;
        let flushed = rows - rows / FLUSHED;
        for (flushes, rows) in [(false, 0..flushed), (true, flushed..rows)] {
            self.flush_commits(flushes)?;
            for (into, name) in TABLES.into_iter().zip(["none", GIN.name, NEARDUP.name]) {
                let before = self
                    .session
                    .number(&format!("SELECT count(*) FROM {into}"))?;
                let milliseconds = self.latencies(into, rows.clone())?;
                let [median, p99, p999, longest] =
                    [0.5, 0.99, 0.999, 1.0].map(|share| quantile(&milliseconds, share));
                table.push(row![
                    self.origin,
                    before,
                    name,
                    if flushes { "yes" } else { "no" },
                    milliseconds.len() as i64,
                    median,
                    p99,
                    p999,
                    longest
                ]);
            }
        }
        self.flush_commits(false)
    }

    /// Lets commits wait for the disk, or not.
    fn flush_commits(&self, flushes: bool) -> Result<()> {
        let setting = if flushes { "on" } else { "off" };
        self.session
            .execute(&format!("ALTER SYSTEM SET fsync = {setting}"))?;
        self.session.execute("SELECT pg_reload_conf()")?;
        self.session
            .execute(&format!("SET synchronous_commit = {setting}"))
    }

    /// Inserts some of the single rows into a table, and returns the milliseconds that each took.
    fn latencies(&self, into: &str, rows: Range<i64>) -> Result<Vec<f64>> {
        let mut client = self.session.client();
        let insert = client.prepare(&format!(
            "INSERT INTO {into} SELECT id, others, sig FROM single WHERE n = $1"
        ))?;
        let progress = bar((rows.end - rows.start) as u64, "inserting single rows")?;
        let mut milliseconds = Vec::new();
        for n in rows {
            let start = Instant::now();
            client.execute(&insert, &[&n])?;
            milliseconds.push(1e3 * start.elapsed().as_secs_f64());
            progress.inc(1);
        }
        progress.finish_and_clear();
        Ok(milliseconds)
    }

    /// Replaces every row, and compares the index with a fresh one.
    pub fn churn(&self, rounds: usize, table: &mut Table) -> Result<()> {
        let name = NEARDUP.table;
        self.session.execute(&format!("REINDEX TABLE {name}"))?;
        let fresh = self.figures(rounds)?;
        let mut tell = |what: &str, [bytes, lookup]: [f64; 2]| {
            table.push(row![
                self.origin,
                what,
                bytes,
                bytes / fresh[0],
                lookup,
                lookup / fresh[1]
            ]);
        };
        tell("fresh", fresh);
        let progress = bar(PORTIONS as u64 + 1, "replacing every row")?;
        for portion in 0..PORTIONS {
            self.replace(&format!("abs(id % {PORTIONS}) = {portion}"))?;
            progress.inc(1);
        }
        tell("replaced in portions", self.figures(rounds)?);
        self.replace("true")?;
        progress.finish_and_clear();
        tell("replaced at once", self.figures(rounds)?);
        Ok(())
    }

    fn replace(&self, condition: &str) -> Result<()> {
        let name = NEARDUP.table;
        self.session.execute(&format!(
            "WITH gone AS (DELETE FROM {name} WHERE {condition} RETURNING *) INSERT INTO {name} TABLE gone"
        ))?;
        self.session.vacuum(name)
    }

    /// Returns the bytes a row of the index, and the median of a lookup in milliseconds.
    fn figures(&self, rounds: usize) -> Result<[f64; 2]> {
        let queries = "SELECT 0::bigint AS others, sig AS q FROM queries WHERE others BETWEEN 0 AND 10 OR others = -2";
        self.answer(&NEARDUP, queries)?;
        let mut medians = Vec::new();
        for _ in 0..rounds.min(5) {
            medians.extend(
                self.answer(&NEARDUP, queries)?
                    .iter()
                    .map(|group| group.median),
            );
        }
        Ok([self.bytes(&NEARDUP)?, quantile(&medians, 0.5)])
    }
}
