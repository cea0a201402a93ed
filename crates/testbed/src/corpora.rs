//! Real texts with known answers. Tests and benchmarks use them if they are present; a clone of the project does not
//! need them.
//!
//! They are in directory `NEARDUP_CORPORA`, by default `../shared/corpora` next to the checkout. Each corpus is a
//! folder with `docs.tsv.gz` (id, body) and `exact_*.tsv.gz` (id_a, id_b, Jaccard).

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;

use anyhow::{Context, Result};
use flate2::read::MultiGzDecoder;
use postgres::Client;

use crate::workspace;

/// One corpus.
pub struct Corpus {
    name: &'static str,
    dir: PathBuf,
}

impl Corpus {
    /// Returns the corpus of this name; None if it is absent.
    pub fn find(name: &'static str) -> Option<Corpus> {
        let corpora = std::env::var_os("NEARDUP_CORPORA").map_or_else(
            || workspace::root().join("../shared/corpora"),
            PathBuf::from,
        );
        let dir = corpora.join(name);
        let corpus = Corpus { name, dir };
        corpus.has("docs").then_some(corpus)
    }

    /// Returns the name of the corpus.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns whether the corpus has a list, such as `exact_w3` or `truth`.
    pub fn has(&self, list: &str) -> bool {
        self.file(list).exists()
    }

    /// Returns the documents: id and body.
    pub fn documents(&self) -> Result<Vec<(i64, String)>> {
        let document = |line: io::Result<String>| {
            let line = line?;
            let (id, body) = line.split_once('\t').context("a line without a tab")?;
            Ok((id.parse()?, body.replace("\\\\", "\\")))
        };
        BufReader::new(self.open("docs")?)
            .lines()
            .map(document)
            .collect()
    }

    /// Loads the documents into a new table (id bigint, body text).
    pub fn load(&self, client: &mut Client, table: &str) -> Result<()> {
        self.copy(client, "docs", table, "id bigint, body text")
    }

    /// Loads a list of pairs into a new table (a bigint, b bigint, jaccard float8).
    pub fn load_exact(&self, client: &mut Client, list: &str, table: &str) -> Result<()> {
        self.copy(client, list, table, "a bigint, b bigint, jaccard float8")
    }

    /// Loads the list of labeled pairs into a new table (a bigint, b bigint).
    pub fn load_truth(&self, client: &mut Client, table: &str) -> Result<()> {
        self.copy(client, "truth", table, "a bigint, b bigint")
    }

    /// Loads a list of labeled pairs into a new table (a bigint, b bigint, label text).
    pub fn load_labels(&self, client: &mut Client, list: &str, table: &str) -> Result<()> {
        let mut rows = String::new();
        for line in BufReader::new(self.open(list)?).lines() {
            let line = line?;
            let fields: Vec<&str> = line.splitn(4, '\t').take(3).collect();
            rows += &format!("{}\n", fields.join("\t"));
        }
        client.batch_execute(&format!(
            "CREATE TABLE {table} (a bigint, b bigint, label text)"
        ))?;
        let mut writer = client.copy_in(&format!("COPY {table} FROM STDIN"))?;
        io::copy(&mut rows.as_bytes(), &mut writer)?;
        writer.finish()?;
        Ok(())
    }

    fn copy(&self, client: &mut Client, file: &str, table: &str, columns: &str) -> Result<()> {
        client.batch_execute(&format!("CREATE TABLE {table} ({columns})"))?;
        let mut writer = client.copy_in(&format!("COPY {table} FROM STDIN"))?;
        io::copy(&mut self.open(file)?, &mut writer)?;
        writer.finish()?;
        Ok(())
    }

    fn open(&self, list: &str) -> Result<MultiGzDecoder<File>> {
        let path = self.file(list);
        let file = File::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
        Ok(MultiGzDecoder::new(file))
    }

    fn file(&self, list: &str) -> PathBuf {
        self.dir.join(format!("{list}.tsv.gz"))
    }
}
