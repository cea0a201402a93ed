//! Lookups in both indexes.

use anyhow::Result;

use super::{Collection, GIN, Indexed, NEARDUP};
use crate::measure::latency::{Latency, Lookup, latencies};
use crate::measure::race::{quantile, spread};
use crate::measure::session::Session;
use crate::report::table::{Cell, Table, row};

/// Stand for the number of near-duplicates if it has not been counted, and for rows with boilerplate.
pub const ANY: i64 = -2;
const BOILERPLATE: i64 = -1;
const HALF_BOILERPLATE: i64 = -3;

/// Lookups of documents with the same number of near-duplicates.
const LOOKUPS: usize = 500;
const HOT_LOOKUPS: usize = 20;

/// Turns of each contender.
const ROUNDS: usize = 5;

pub fn table() -> Table {
    let about = format!(
        "Rows at or above 0.8 of a document, by how many near-duplicates it has; a loop over a prepared lookup in the \
         server, warm, up to {ROUNDS} times in turn. Hot bands belong to texts of which a further tenth of the rows share 80 or 57 of 98 words."
    );
    let columns = [
        "documents",
        "index",
        "near-duplicates",
        "lookups",
        "rows found",
        "GIN, median, ms",
        "neardup, median, ms",
        "GIN / neardup",
        "neardup, 99 %, ms",
    ];
    Table::new("index.lookup", about, &columns)
}

/// Creates the table of values to look up.
pub fn choose_queries(session: &Session) -> Result<()> {
    session.execute(&format!(
        "CREATE UNLOGGED TABLE queries AS SELECT others, sig FROM (
             SELECT *, row_number() OVER (PARTITION BY others ORDER BY hashint8(id)) AS nth FROM {}) d
         WHERE nth <= {LOOKUPS}",
        NEARDUP.table
    ))
}

impl Collection<'_> {
    /// Measures lookups in both indexes in turn, in the state that `when` names.
    pub fn look_up(&self, when: &str, rounds: usize, table: &mut Table) -> Result<()> {
        let queries = "SELECT others, sig AS q FROM queries";
        let mut turns = Vec::new();
        self.answer(&GIN, queries)?;
        self.answer(&NEARDUP, queries)?;
        for _ in 0..rounds.min(ROUNDS) {
            let gin = self.answer(&GIN, queries)?;
            turns.push((gin, self.answer(&NEARDUP, queries)?));
        }
        for group in 0..turns[0].0.len() {
            let of = |figure: fn(&Latency) -> f64| -> (Vec<f64>, Vec<f64>) {
                let both = turns.iter().map(|(gin, neardup)| {
                    let (gin, neardup) = (&gin[group], &neardup[group]);
                    (figure(gin), figure(neardup))
                });
                both.unzip()
            };
            let (gin, neardup) = of(|latency| latency.median);
            let ratios: Vec<f64> = gin.iter().zip(&neardup).map(|(g, n)| g / n).collect();
            let latency = &turns[0].1[group];
            table.push(row![
                self.origin,
                when,
                group_name(latency.others),
                latency.lookups,
                latency.found,
                quantile(&gin, 0.5),
                quantile(&neardup, 0.5),
                spread(&ratios),
                quantile(&of(|latency| latency.p99).1, 0.5),
            ]);
        }
        Ok(())
    }

    /// Returns the latencies of lookups in one table, by its index.
    pub fn answer(&self, indexed: &Indexed, queries: &str) -> Result<Vec<Latency>> {
        let (table, condition) = (indexed.table, indexed.condition);
        self.session
            .execute("SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off")?;
        let answer = format!("SELECT count(*) FROM {table} WHERE {condition}");
        let lookup = Lookup {
            queries,
            answer: &answer,
        };
        let groups = latencies(&self.session, &lookup)?;
        self.session
            .execute("RESET plan_cache_mode; RESET enable_seqscan")?;
        Ok(groups)
    }

    /// Inserts boilerplate twice, a tenth as many rows each time: rows that share most of their text, then rows that
    /// share half.
    pub fn insert_boilerplate(&self) -> Result<()> {
        for (group, shared) in [(BOILERPLATE, 80), (HALF_BOILERPLATE, 57)] {
            self.session.execute(&format!(
                "DROP TABLE IF EXISTS hot;
                 CREATE UNLOGGED TABLE hot AS SELECT {group} - 4 * n::bigint AS id, {group}::bigint AS others, minhash(
                     (SELECT string_agg('b{shared}' || i, ' ') FROM generate_series(1, {shared}) i)
                     || (SELECT string_agg(format(' u%sx%s', n, i), '') FROM generate_series(1, 98 - {shared}) i)) AS sig
                 FROM generate_series(1, {}) n;
                 INSERT INTO {} TABLE hot;
                 INSERT INTO {} TABLE hot;
                 INSERT INTO queries SELECT others, sig FROM hot LIMIT {HOT_LOOKUPS}",
                self.rows / 10,
                GIN.table,
                NEARDUP.table
            ))?;
        }
        Ok(())
    }
}

fn group_name(others: i64) -> Cell {
    match others {
        BOILERPLATE => "hot bands, 80 of 98 words".into(),
        HALF_BOILERPLATE => "hot bands, 57 of 98 words".into(),
        ANY => "".into(),
        others => others.into(),
    }
}
