//! Inserts in bulk and row by row, and replacing every row.

use std::ops::Range;
use std::time::Instant;

use anyhow::Result;
use testbed::progress::bar;

use super::{BARE, Collection, GIN, NEARDUP};
use crate::measure::race::quantile;
use crate::report::table::{Table, row};

/// Rows of a statement, after which it commits.
const CHUNK: usize = 1000;

/// Every row is replaced, in this many portions, with a VACUUM after each.
const PORTIONS: usize = 10;

/// INSERTs, each followed by a VACUUM, in which a table grows tenfold.
const STEPS: usize = 90;

/// One in `FLUSHED` single rows is inserted with its commit on disk before the next insert.
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
    let about = format!(
        "WAL in bytes a row while a table grows tenfold: of building each index on the first tenth, and then of {STEPS} \
         INSERTs and the VACUUM after each, by the rows inserted and without what the table itself writes. Without images \
         of whole pages (full_page_writes is off)."
    );
    let columns = [
        "documents",
        "rows before",
        "rows inserted",
        "index",
        "build",
        "INSERT",
        "VACUUM",
        "VACUUM / INSERT",
        "index, bytes a row",
    ];
    Table::new("index.wal", about, &columns)
}

impl Collection<'_> {
    pub fn log(&self, table: &mut Table) -> Result<()> {
        self.session.execute(&format!(
            "CREATE UNLOGGED TABLE grown AS SELECT row_number() OVER (ORDER BY id) - 1 AS n, id, others, sig FROM {};
             ALTER TABLE grown ADD PRIMARY KEY (n)",
            NEARDUP.table
        ))?;
        self.session.vacuum("grown")?;
        let rows = self.session.number("SELECT count(*) FROM grown")? as usize;
        let first = rows / 10;
        let [_, bare_inserts, bare_vacuums] = self.grow(None, first, rows)?;
        for (name, method) in [
            (GIN.name, GIN.method),
            (NEARDUP.name, NEARDUP.method),
            ("B-tree of signatures", "btree (sig)"),
        ] {
            let [built, inserts, vacuums] = self.grow(Some(method), first, rows)?;
            let by_row = 1.0 / (rows - first) as f64;
            let bytes = self.session.number("SELECT pg_indexes_size('logged')")?;
            let (inserted, vacuumed) = (inserts - bare_inserts, vacuums - bare_vacuums);
            table.push(row![
                self.origin,
                first as f64,
                (rows - first) as f64,
                name,
                built / first as f64,
                inserted * by_row,
                vacuumed * by_row,
                vacuumed / inserted,
                bytes / rows as f64,
            ]);
        }
        self.session.execute("DROP TABLE logged, grown")
    }

    /// Fills `logged` again. Returns the bytes of WAL of building its index on the first rows, of inserting the
    /// other rows, and of the VACUUMs between the inserts.
    fn grow(&self, method: Option<&str>, first: usize, rows: usize) -> Result<[f64; 3]> {
        self.session.execute(&format!(
            "DROP TABLE IF EXISTS logged; CREATE TABLE logged AS SELECT id, others, sig FROM grown WHERE n < {first}"
        ))?;
        self.session.vacuum("logged")?;
        let built = match method {
            Some(method) => {
                let method = method.replace("THRESHOLD", "0.8");
                self.wal(&format!("CREATE INDEX ON logged USING {method}"))?
            }
            None => 0.0,
        };
        let [mut inserted, mut vacuumed] = [0.0; 2];
        let progress = bar(STEPS as u64, "growing a table")?;
        for step in 0..STEPS {
            let [from, to] = [step, step + 1].map(|step| first + (rows - first) * step / STEPS);
            inserted += self.wal(&format!(
                "INSERT INTO logged SELECT id, others, sig FROM grown WHERE n >= {from} AND n < {to}"
            ))?;
            vacuumed += self.wal("VACUUM logged")?;
            progress.inc(1);
        }
        progress.finish_and_clear();
        Ok([built, inserted, vacuumed])
    }

    /// Returns the bytes of WAL that a statement writes. The server has no other users, and `SERVER_SETTINGS` turns
    /// autovacuum off.
    fn wal(&self, statement: &str) -> Result<f64> {
        let position = "SELECT pg_current_wal_insert_lsn() - '0/0'";
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

    /// Makes commits wait for the disk, or not.
    fn flush_commits(&self, flushes: bool) -> Result<()> {
        let setting = if flushes { "on" } else { "off" };
        self.session
            .execute(&format!("ALTER SYSTEM SET fsync = {setting}"))?;
        self.session.execute("SELECT pg_reload_conf()")?;
        self.session
            .execute(&format!("SET synchronous_commit = {setting}"))
    }

    /// Inserts some single rows into a table, and returns the milliseconds that each takes.
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

    /// Replaces every row, and compares the index with a newly built one.
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

    /// Returns the index's bytes for each row, and the median of a lookup in milliseconds.
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
