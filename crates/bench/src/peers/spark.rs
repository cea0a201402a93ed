//! Programs on Spark that read files of documents and write clusters or pairs.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;
use testbed::shell;

use super::pipelines::read_found;
use super::{dir, environment, install_package, sources};

/// A run: the elapsed seconds, the seconds of processor time, the bytes shuffled, and the clusters of the documents by
/// id, or the pairs.
pub struct Run {
    pub seconds: f64,
    pub processor: f64,
    pub shuffled: f64,
    pub found: Vec<(i64, i64)>,
}

/// The environment in which Spark is installed, our package, and text-dedup.
pub struct Spark {
    python: PathBuf,
}

impl Spark {
    /// Installs Spark and text-dedup, unless they are installed, and the package as it is.
    ///
    /// # Errors
    /// There is no Java, or a package cannot be installed.
    pub fn install() -> Result<Spark> {
        shell::run_quietly(Command::new("java").arg("-version")).context("there is no Java")?;
        let alone = ["text-dedup==0.4.0", "graphframes-py==0.12.3"];
        let python = environment("spark", "spark.txt", &alone)?;
        install_package(&python, "./crates/python[spark]")?;
        Ok(Spark { python })
    }

    /// Runs a program over a directory of JSON lines.
    pub fn run(&self, who: &str, documents: &Path) -> Result<Run> {
        let into = dir().join("spark_output");
        let mut command = Command::new(&self.python);
        command
            .arg(sources().join("spark.py"))
            .arg(who)
            .arg(documents)
            .arg(&into);
        let said = shell::run_quietly(&mut command)?;
        let answer: Value = serde_json::from_str(said.lines().last().unwrap_or_default())?;
        let number = |name: &str| answer[name].as_f64().with_context(|| format!("no {name}"));
        Ok(Run {
            seconds: number("seconds")?,
            processor: number("processor")?,
            shuffled: number("shuffled")?,
            found: read_found(&into)?,
        })
    }
}
