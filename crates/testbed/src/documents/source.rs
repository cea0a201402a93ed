//! Documents in files: the user's own, or documents that every machine has.

use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use walkdir::WalkDir;

/// Larger files are left out: they are data rather than documents.
const LARGEST: u64 = 64 << 20;

/// The documents to load.
pub enum Source {
    /// Text files, each with a name to show.
    Files {
        origin: String,
        files: Vec<(String, PathBuf)>,
    },
    /// A CSV file with the columns `id` and `text`.
    Csv(PathBuf),
}

/// Documents that could not be loaded, by reason.
#[derive(Default)]
pub struct LeftOut {
    pub not_text: usize,
    pub too_large: usize,
    pub unreadable: usize,
}

impl fmt::Display for LeftOut {
    /// Writes the reasons, or nothing if there are none.
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let reasons = [
            (self.not_text, "not UTF-8 text"),
            (self.too_large, "too large"),
            (self.unreadable, "unreadable"),
        ];
        let reasons = reasons.iter().filter(|(number, _)| *number > 0);
        for (place, (number, reason)) in reasons.enumerate() {
            let separator = if place == 0 { "; left out: " } else { ", " };
            write!(formatter, "{separator}{number} {reason}")?;
        }
        Ok(())
    }
}

impl Source {
    /// Returns the user's own documents, or documents that every machine has.
    pub fn choose(docs: Option<&Path>, csv: Option<&Path>) -> Result<Source> {
        if let Some(path) = csv {
            return Ok(Source::Csv(path.to_path_buf()));
        }
        let (origin, files) = match docs {
            Some(dir) => (dir.display().to_string(), files_below(dir)?),
            None => (
                "the copyright files of this system's packages and the licenses and READMEs of Cargo's crates".into(),
                licenses()?,
            ),
        };
        if files.is_empty() {
            bail!("there are no files in {origin}");
        }
        Ok(Source::Files { origin, files })
    }

    /// Returns the number of bytes to read.
    pub fn size(&self) -> u64 {
        let size = |path: &Path| path.metadata().map_or(0, |data| data.len());
        match self {
            Source::Files { files, .. } => files.iter().map(|(_, path)| size(path)).sum(),
            Source::Csv(path) => size(path),
        }
    }

    /// Calls `sink` with the name and the text of each document.
    pub fn read(&self, sink: &mut dyn FnMut(&str, &str) -> Result<()>) -> Result<LeftOut> {
        match self {
            Source::Files { files, .. } => read_files(files, sink),
            Source::Csv(path) => read_csv(path, sink),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Source::Files { origin, files } => write!(formatter, "{} files: {origin}", files.len()),
            Source::Csv(path) => write!(formatter, "{}", path.display()),
        }
    }
}

fn files_below(dir: &Path) -> Result<Vec<(String, PathBuf)>> {
    if !dir.is_dir() {
        bail!("{} is no directory", dir.display());
    }
    let entries = WalkDir::new(dir).follow_links(true).sort_by_file_name();
    let files = entries
        .into_iter()
        .flatten()
        .filter(|entry| entry.file_type().is_file());
    Ok(files.map(|entry| named(entry.into_path(), dir)).collect())
}

/// Returns a file, named by its path below `dir`.
fn named(path: PathBuf, dir: &Path) -> (String, PathBuf) {
    let name = path.strip_prefix(dir).unwrap_or(&path);
    (name.to_string_lossy().into_owned(), path)
}

/// Returns `/usr/share/doc/*/copyright`, and the licenses and READMEs of the crates that Cargo unpacked.
fn licenses() -> Result<Vec<(String, PathBuf)>> {
    let mut files = Vec::new();
    for package in sorted(Path::new("/usr/share/doc")) {
        let path = package.join("copyright");
        if path.is_file() {
            files.push(named(path, Path::new("/usr/share/doc")));
        }
    }
    for registry in sorted(&home::cargo_home()?.join("registry/src")) {
        for path in sorted(&registry).iter().flat_map(|krate| sorted(krate)) {
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .to_uppercase();
            let starts = ["LICENSE", "LICENCE", "COPYING", "README"];
            if path.is_file() && starts.iter().any(|start| name.starts_with(start)) {
                files.push(named(path, &registry));
            }
        }
    }
    Ok(files)
}

fn sorted(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn read_files(
    files: &[(String, PathBuf)],
    sink: &mut dyn FnMut(&str, &str) -> Result<()>,
) -> Result<LeftOut> {
    let mut left_out = LeftOut::default();
    for (name, path) in files {
        if path.metadata().is_ok_and(|data| data.len() > LARGEST) {
            left_out.too_large += 1;
            continue;
        }
        let Ok(bytes) = fs::read(path) else {
            left_out.unreadable += 1;
            continue;
        };
        match String::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => sink(name, &text)?,
            _ => left_out.not_text += 1,
        }
    }
    Ok(left_out)
}

fn read_csv(path: &Path, sink: &mut dyn FnMut(&str, &str) -> Result<()>) -> Result<LeftOut> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let mut reader = csv::Reader::from_reader(file);
    let headers = reader.byte_headers()?.clone();
    let column = |name: &str| {
        let position = headers.iter().position(|header| header == name.as_bytes());
        position.with_context(|| format!("{} has no column {name}", path.display()))
    };
    let (id, text) = (column("id")?, column("text")?);
    let mut left_out = LeftOut::default();
    for record in reader.byte_records() {
        let record = record?;
        let field = |at: usize| std::str::from_utf8(record.get(at).unwrap_or_default());
        match (field(id), field(text)) {
            (Ok(_), Ok(text)) if text.len() as u64 > LARGEST => left_out.too_large += 1,
            (Ok(id), Ok(text)) if !id.contains('\0') && !text.contains('\0') => sink(id, text)?,
            _ => left_out.not_text += 1,
        }
    }
    Ok(left_out)
}
