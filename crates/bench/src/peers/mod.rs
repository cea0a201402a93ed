//! The peers that we are compared with: installed privately from the package registries, or found.

pub mod pipelines;
pub mod spark;
pub mod suffix_array;
mod worker;

use std::cell::{RefCell, RefMut};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use postgres::Client;
use testbed::progress::waiting;
use testbed::{shell, workspace};

use suffix_array::SuffixArrays;
use worker::Worker;

/// Extensions that the server may have.
const EXTENSIONS: [&str; 4] = ["pg_trgm", "fuzzystrmatch", "vector", "pg_similarity"];

/// The available peers.
pub struct Peers {
    python: Option<RefCell<Worker>>,
    gaoya: Option<RefCell<Worker>>,
    pub suffix_arrays: Option<SuffixArrays>,
    pub versions: Vec<String>,
}

impl Peers {
    /// Returns no peers, for measuring ourselves alone.
    pub fn none() -> Peers {
        Peers {
            python: None,
            gaoya: None,
            suffix_arrays: None,
            versions: Vec::new(),
        }
    }

    /// Installs and starts the peers. One that is not available is left out with a message.
    pub fn start() -> Peers {
        let mut peers = Peers::none();
        match python(&mut peers.versions) {
            Ok(worker) => peers.python = Some(RefCell::new(worker)),
            Err(error) => println!("Skipping the peers in Python: {error:#}"),
        }
        match gaoya() {
            Ok(worker) => {
                peers.gaoya = Some(RefCell::new(worker));
                peers.versions.push("gaoya 0.2.2".to_string());
            }
            Err(error) => println!("Skipping gaoya: {error:#}"),
        }
        peers
    }

    /// Builds deduplicate-text-datasets if there is a checkout of it.
    pub fn add_suffix_arrays(&mut self, checkout: Option<&Path>) -> Result<()> {
        match checkout {
            Some(checkout) => {
                self.suffix_arrays = Some(SuffixArrays::build(checkout)?);
                self.versions
                    .push("deduplicate-text-datasets 1.0.0".to_string());
            }
            None => {
                println!("Skipping deduplicate-text-datasets: --suffix-arrays names no checkout")
            }
        }
        Ok(())
    }

    /// Returns whether the Python peers are available.
    pub fn have_python(&self) -> bool {
        self.python.is_some()
    }

    /// Returns the worker that runs this peer.
    pub fn worker(&self, peer: &str) -> Result<RefMut<'_, Worker>> {
        let worker = match peer.starts_with("gaoya") {
            true => &self.gaoya,
            false => &self.python,
        };
        Ok(worker.as_ref().context("it is not there")?.borrow_mut())
    }
}

/// Returns the directory of the peers and of their files.
pub fn dir() -> PathBuf {
    workspace::scratch_dir().join("bench")
}

fn sources() -> PathBuf {
    workspace::root().join("benches/peers")
}

/// Returns the Python of an environment with the packages of the file `requirements`, and with the packages `alone`
/// without their dependencies. Creates the environment unless it exists.
fn environment(name: &str, requirements: &str, alone: &[&str]) -> Result<PathBuf> {
    let environment = dir().join(name);
    let (program, stamp) = (
        environment.join("bin/python"),
        environment.join("requirements.txt"),
    );
    let requirements = sources().join(requirements);
    let wanted = fs::read_to_string(&requirements)? + &alone.join("\n");
    if fs::read_to_string(&stamp).unwrap_or_default() == wanted {
        return Ok(program);
    }
    let progress = waiting(&format!("installing peers in Python ({name}), only once"))?;
    let create = ["-m", "venv", "--clear"];
    shell::run_quietly(Command::new("python3").args(create).arg(&environment))?;
    let pip = || {
        let mut pip = Command::new(&program);
        pip.args(["-m", "pip", "install", "--quiet"]);
        pip
    };
    shell::run_quietly(pip().arg("--requirement").arg(&requirements))?;
    if !alone.is_empty() {
        shell::run_quietly(pip().arg("--no-deps").args(alone))?;
    }
    fs::write(&stamp, wanted)?;
    progress.finish_and_clear();
    Ok(program)
}

/// Builds and installs our Python package.
fn install_package(python: &Path, package: &str) -> Result<()> {
    let progress = waiting("building the Python package")?;
    let install = ["-m", "pip", "install", "--quiet", package];
    let mut pip = Command::new(python);
    workspace::forget_own_build(pip.args(install).current_dir(workspace::root()));
    shell::run_quietly(&mut pip)?;
    progress.finish_and_clear();
    Ok(())
}

fn python(versions: &mut Vec<String>) -> Result<Worker> {
    let program = environment("python", "requirements.txt", &[])?;
    install_package(&program, "./crates/python")?;
    let mut worker = Worker::start(Command::new(&program).arg(sources().join("worker.py")))?;
    let answer = worker.ask(&serde_json::json!({ "task": "versions" }))?;
    let found = answer.as_object().into_iter().flatten();
    versions.extend(
        found.map(|(name, version)| format!("{name} {}", version.as_str().unwrap_or_default())),
    );
    Ok(worker)
}

fn gaoya() -> Result<Worker> {
    let target = dir().join("gaoya");
    let progress = waiting("compiling gaoya, only once")?;
    let mut build = workspace::cargo();
    build
        .current_dir(sources().join("gaoya"))
        .args(["build", "--release", "--locked", "--target-dir"])
        .arg(&target);
    shell::run_quietly(&mut build)?;
    progress.finish_and_clear();
    Worker::start(&mut Command::new(target.join("release/gaoya-worker")))
}

/// Returns names and versions of the extensions that the server has.
fn present(client: &mut Client) -> Result<Vec<(&'static str, String)>> {
    let mut found = Vec::new();
    for name in EXTENSIONS {
        let version = "SELECT default_version FROM pg_available_extensions WHERE name = $1";
        if let Some(row) = client.query_opt(version, &[&name])? {
            found.push((name, row.get(0)));
        }
    }
    Ok(found)
}

/// Says which extensions the server lacks, and returns names and versions of the others.
pub fn describe_extensions(client: &mut Client) -> Result<Vec<String>> {
    let found = present(client)?;
    for name in EXTENSIONS {
        if found.iter().all(|(present, _)| *present != name) {
            println!("Skipping {name}: the server does not have it");
        }
    }
    let named = found
        .iter()
        .map(|(name, version)| format!("{name} {version}"));
    Ok(named.collect())
}

/// Creates the extensions that the server has.
pub fn create_extensions(client: &mut Client) -> Result<()> {
    for (name, _) in present(client)? {
        client.batch_execute(&format!("CREATE EXTENSION {name}"))?;
    }
    Ok(())
}
