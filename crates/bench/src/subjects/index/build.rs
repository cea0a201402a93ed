//! Builds of the indexes, and their sizes.

use anyhow::{Context, Result};

use super::{Collection, GIN, Indexed, NEARDUP};
use crate::measure::race::{Contender, race};
use crate::report::table::{Table, row};

/// The thresholds of builds; the index of the last one remains.
const THRESHOLDS: [&str; 2] = ["0.9", "0.8"];

pub fn table() -> Table {
    let about = "Building both indexes over the same rows, in one process, one after the other.";
    let columns = [
        "documents",
        "rows",
        "threshold",
        "GIN, s",
        "neardup, s",
        "GIN / neardup",
        "GIN, bytes a row",
        "neardup, bytes a row",
    ];
    Table::new("index.build", about, &columns)
}

impl Collection<'_> {
    pub fn build(&self, table: &mut Table) -> Result<()> {
        for threshold in THRESHOLDS {
            let contenders = [GIN, NEARDUP].map(|indexed| {
                Contender::new(indexed.name, self.rows, move || {
                    self.build_one(&indexed, threshold)
                })
            });
            let results = race("building indexes", 1, contenders.into())?;
            let gin = results.get(GIN.name).context("GIN could not be built")?;
            let neardup = results
                .get(NEARDUP.name)
                .context("neardup could not be built")?;
            let seconds = |microseconds: f64| microseconds * self.rows as f64 / 1e6;
            table.push(row![
                self.origin,
                self.rows as f64,
                threshold,
                seconds(gin.microseconds()),
                seconds(neardup.microseconds()),
                gin.over(neardup).median,
                self.bytes(&GIN)?,
                self.bytes(&NEARDUP)?,
            ]);
        }
        Ok(())
    }

    fn build_one(&self, indexed: &Indexed, threshold: &str) -> Result<f64> {
        let (table, method) = (indexed.table, indexed.method);
        let method = method.replace("THRESHOLD", threshold);
        self.session
            .execute(&format!("DROP INDEX IF EXISTS {table}_index; CHECKPOINT"))?;
        let create = format!("CREATE INDEX {table}_index ON {table} USING {method}");
        self.session.seconds(&create)
    }
}
