//! Documents to work on: real ones if they are present, and generated ones in any number.

pub mod draft;
pub mod edit;
pub mod generator;
pub mod source;
pub mod translations;
pub mod words;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use postgres::Client;
use postgres::binary_copy::BinaryCopyInWriter;
use postgres::types::Type;

use crate::corpora::Corpus;
use crate::progress::bar;
use generator::{Generator, Plan};
use source::Source;
use words::Words;

/// News articles, if they are present. Figures are about them unless other documents are named.
const ARTICLES: &str = "mccormick_2500";
/// The corpus that generated documents take their words from.
const VOCABULARY: &str = "reuters21578";

/// Some documents and their origin.
pub struct Texts {
    pub origin: String,
    pub bodies: Vec<String>,
}

impl Texts {
    /// Returns the user's documents, or news articles, or documents that the machine has.
    pub fn real(docs: Option<&Path>) -> Result<Texts> {
        Texts::of(docs, ARTICLES)
    }

    /// Returns the words for generated documents.
    pub fn vocabulary(docs: Option<&Path>) -> Result<Words> {
        let texts = Texts::of(docs, VOCABULARY)?;
        let words = Words::of(texts.bodies.iter().map(String::as_str));
        anyhow::ensure!(!words.is_empty(), "there are no words in {}", texts.origin);
        Ok(words)
    }

    fn of(docs: Option<&Path>, corpus: &'static str) -> Result<Texts> {
        if let (None, Some(found)) = (docs, Corpus::find(corpus)) {
            let documents = found.documents()?;
            return Ok(Texts {
                origin: format!("{} documents of {corpus}", documents.len()),
                bodies: documents.into_iter().map(|(_, body)| body).collect(),
            });
        }
        let source = Source::choose(docs, None)?;
        let mut bodies = Vec::new();
        source.read(&mut |_, body| {
            bodies.push(on_one_line(body));
            Ok(())
        })?;
        Ok(Texts {
            origin: source.to_string(),
            bodies,
        })
    }

    /// Returns the mean length in bytes.
    pub fn mean_bytes(&self) -> f64 {
        let bytes: usize = self.bodies.iter().map(String::len).sum();
        bytes as f64 / self.bodies.len() as f64
    }
}

/// Returns the text with line ends replaced by spaces, because the peers read files with one document per line.
pub fn on_one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// Writes documents, one per line, as the peers read them.
pub fn write_lines<'a>(bodies: impl Iterator<Item = &'a str>, file: &Path) -> Result<()> {
    let mut writer = BufWriter::new(File::create(file)?);
    for body in bodies {
        writeln!(writer, "{body}")?;
    }
    Ok(writer.flush()?)
}

/// Fills a new table (id bigint, body text); ids count from 0.
pub fn load<'a>(
    client: &mut Client,
    table: &str,
    bodies: impl Iterator<Item = &'a str>,
) -> Result<()> {
    client.batch_execute(&format!(
        "CREATE UNLOGGED TABLE {table} (id bigint, body text)"
    ))?;
    let copy = client.copy_in(&format!("COPY {table} FROM STDIN BINARY"))?;
    let mut writer = BinaryCopyInWriter::new(copy, &[Type::INT8, Type::TEXT]);
    for (id, body) in (0i64..).zip(bodies) {
        writer.write(&[&id, &body])?;
    }
    writer.finish()?;
    client.batch_execute(&format!("VACUUM ANALYZE {table}"))?;
    Ok(())
}

/// Fills a new table (id bigint, grp bigint, others bigint, edit text, body text) with generated
/// documents; ids count from 0.
pub fn load_generated(client: &mut Client, table: &str, generator: &Generator<'_>) -> Result<()> {
    client.batch_execute(&format!(
        "CREATE UNLOGGED TABLE {table} (id bigint, grp bigint, others bigint, edit text, body text)"
    ))?;
    let copy = client.copy_in(&format!("COPY {table} FROM STDIN BINARY"))?;
    let types = [Type::INT8, Type::INT8, Type::INT8, Type::TEXT, Type::TEXT];
    let mut writer = BinaryCopyInWriter::new(copy, &types);
    let documents = generator.documents();
    let progress = bar(documents.len() as u64, "generating documents")?;
    for (id, document) in (0i64..).zip(documents) {
        let (group, others) = (document.group as i64, document.others as i64);
        let edit = document.edit.map(|edit| format!("{edit:?}"));
        writer.write(&[&id, &group, &others, &edit, &document.body])?;
        progress.inc(1);
    }
    writer.finish()?;
    progress.finish_and_clear();
    client.batch_execute(&format!("VACUUM ANALYZE {table}"))?;
    Ok(())
}

/// Writes generated documents, one per line, and the pairs of each original and its copies: the numbers of the two
/// lines, from 0, and the edit.
pub fn write_generated(words: &Words, documents: u64, dir: &Path) -> Result<[PathBuf; 2]> {
    std::fs::create_dir_all(dir)?;
    let files = ["documents.txt", "truth.tsv"].map(|name| dir.join(name));
    let generator = Generator::new(words, Plan::mixed(documents));
    let mut lines = BufWriter::new(File::create(&files[0])?);
    let (mut originals, mut edited) = (std::collections::HashMap::new(), Vec::new());
    for (line, document) in generator.documents().enumerate() {
        writeln!(lines, "{}", document.body)?;
        match document.edit {
            None => drop(originals.insert(document.group, line)),
            Some(edit) => edited.push((document.group, line, edit)),
        }
    }
    lines.flush()?;
    let mut truth = BufWriter::new(File::create(&files[1])?);
    for (group, line, edit) in edited {
        writeln!(truth, "{}\t{line}\t{edit:?}", originals[&group])?;
    }
    truth.flush()?;
    Ok(files)
}
