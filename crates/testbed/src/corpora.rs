//! Real texts with known answers, where they are present: tests and benchmarks use them, a clone
//! of the project need not have them.
//!
//! Directory `NEARDUP_CORPORA`, else `../shared/corpora` beside the checkout. Each corpus is a
//! folder with `docs.tsv.gz` (id, body) and `exact_*.tsv.gz` (id_a, id_b, Jaccard).

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::server::database::Database;
use crate::workspace;

/// One corpus.
pub struct Corpus {
    dir: PathBuf,
}

impl Corpus {
    /// The corpus of this name; None where it is absent.
    pub fn find(name: &str) -> Option<Corpus> {
        let corpora = std::env::var_os("NEARDUP_CORPORA").map_or_else(
            || workspace::root().join("../shared/corpora"),
            PathBuf::from,
        );
        let dir = corpora.join(name);
        dir.join("docs.tsv.gz").exists().then_some(Corpus { dir })
    }

    /// The documents: id and body.
    pub fn documents(&self) -> Result<Vec<(i64, String)>> {
        let file = self.dir.join("docs.tsv.gz");
        let output = Command::new("gzip").arg("-dc").arg(&file).output()?;
        ensure!(output.status.success(), "cannot read {}", file.display());
        let document = |line: &str| {
            let (id, body) = line.split_once('\t').context("a line without a tab")?;
            Ok((id.parse()?, body.replace("\\\\", "\\")))
        };
        String::from_utf8(output.stdout)?
            .lines()
            .map(document)
            .collect()
    }

    /// Loads the documents into a new table (id bigint, body text).
    pub fn load(&self, database: &Database<'_>, table: &str) -> Result<()> {
        self.copy(database, "docs", &format!("{table} (id bigint, body text)"))
    }

    /// Loads a list of pairs into a new table (a bigint, b bigint, jaccard float8). Returns
    /// whether the corpus has the list.
    pub fn load_exact(&self, database: &Database<'_>, list: &str, table: &str) -> Result<bool> {
        let present = self.dir.join(format!("{list}.tsv.gz")).exists();
        if present {
            let table = format!("{table} (a bigint, b bigint, jaccard float8)");
            self.copy(database, list, &table)?;
        }
        Ok(present)
    }

    /// Loads a list of labelled pairs into a new table (a bigint, b bigint).
    pub fn load_truth(&self, database: &Database<'_>, table: &str) -> Result<()> {
        self.copy(database, "truth", &format!("{table} (a bigint, b bigint)"))
    }

    fn copy(&self, database: &Database<'_>, file: &str, table: &str) -> Result<()> {
        let name = table.split(' ').next().unwrap_or(table);
        let file = self.dir.join(format!("{file}.tsv.gz"));
        let output = database.psql(&format!(
            "CREATE TABLE {table};\n\\copy {name} from program 'gzip -dc \"{}\"'\n",
            file.display()
        ))?;
        ensure!(output.is_empty(), "loading {} : {output}", file.display());
        Ok(())
    }
}
