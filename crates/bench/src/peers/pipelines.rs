//! Pipelines in Python that read files of documents and write the documents that they keep.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;
use testbed::shell;

use super::{dir, environment, sources};

/// The names by which the pipelines are run.
pub const PIPELINES: [&str; 3] = ["datatrove", "text-dedup", "rensa"];

/// The number of processes that each may use; rensa has one.
pub const PROCESSES: usize = 2;

/// A run of a pipeline: its cost, and the clusters of the documents by id.
pub struct Run {
    pub seconds: f64,
    /// MB of memory, and MB on disk.
    pub memory: f64,
    pub disk: f64,
    /// The number of lines of code that a user writes.
    pub lines: usize,
    pub clusters: Vec<(i64, i64)>,
}

/// The environment in which the pipelines are installed.
pub struct Pipelines {
    python: PathBuf,
}

impl Pipelines {
    /// Installs the pipelines, unless they are installed.
    pub fn install() -> Result<Pipelines> {
        // Its dependency pyspark, of a gigabyte, is for clusters of machines.
        let text_dedup = "text-dedup==0.4.0";
        let python = environment("pipelines", "pipelines.txt", &[text_dedup])?;
        Ok(Pipelines { python })
    }

    /// Runs a pipeline over a directory of JSON lines.
    pub fn run(&self, peer: &str, documents: &Path) -> Result<Run> {
        let into = dir().join("pipelines_output");
        let mut command = Command::new(&self.python);
        command
            .arg(sources().join("pipelines.py"))
            .arg(peer)
            .arg(documents)
            .arg(&into);
        command.arg(PROCESSES.to_string());
        let answer: Value = serde_json::from_str(&shell::run_quietly(&mut command)?)?;
        let number = |name: &str| answer[name].as_f64().with_context(|| format!("no {name}"));
        Ok(Run {
            seconds: number("seconds")?,
            memory: number("memory")?,
            disk: number("disk")?,
            lines: number("lines")? as usize,
            clusters: read_found(&into)?,
        })
    }
}

/// Reads the clusters (or pairs) that a program wrote into a directory.
pub fn read_found(directory: &Path) -> Result<Vec<(i64, i64)>> {
    let found = fs::read_to_string(directory.join("clusters.csv"))?;
    let found = found.lines().map(|line| {
        let (a, b) = line.split_once(',').context("no comma")?;
        Ok((a.parse()?, b.parse()?))
    });
    found.collect()
}
