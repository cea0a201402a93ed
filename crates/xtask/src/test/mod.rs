//! `cargo xtask test`: the checks of the code, and all tests.

mod tally;

use std::process::{Command, ExitCode};
use std::sync::mpsc;
use std::thread::{self, ScopedJoinHandle};

use anyhow::Result;
use testbed::pg_config::{PgConfig, PostgresChoice};
use testbed::server::extension;
use testbed::{setup, shell, workspace};

use tally::{Tally, print};

#[derive(clap::Args)]
pub struct Options {
    /// A part (fmt, clippy, unit, regress, server, reliability, docs), or all or part of the name of tests that need a
    /// server; reliability tests run at full length when they are named
    name: Option<String>,
    /// Accept the current output as the expected output (regress and docs)
    #[arg(long)]
    bless: bool,
    /// Run only the tests of Spark, which need Java and install PySpark (400 MB)
    #[arg(long, conflicts_with = "name")]
    spark: bool,
}

impl Options {
    /// Returns options that accept the current output of the tests with this name.
    pub fn bless(name: &str) -> Options {
        Options {
            name: Some(name.to_string()),
            bless: true,
            spark: false,
        }
    }
}

/// Runs the selected tests. The last line of the output tells how many passed and failed.
pub fn run(choice: &PostgresChoice, options: &Options) -> Result<ExitCode> {
    let pg = setup::ensure(choice)?;
    let mut tally = Tally::default();
    match options.name.as_deref() {
        None if options.spark => {
            let mut tests = server_tests(&pg, "spark::", options.bless);
            tally.count(tests.env("NEARDUP_SPARK", "1"), &mut print)?;
        }
        None => run_all(&pg, options.bless, &mut tally)?,
        Some("fmt") => tally.check("fmt", &mut fmt())?,
        Some("clippy") => {
            for mut command in clippy(&pg) {
                tally.check("clippy", &mut command)?;
            }
        }
        Some("unit") => tally.count_all(&mut unit_tests())?,
        Some(part @ ("regress" | "server" | "reliability" | "docs")) => {
            let filter = format!("{part}::");
            tally.count(&mut server_tests(&pg, &filter, options.bless), &mut print)?;
        }
        Some(name) => tally.count(&mut server_tests(&pg, name, options.bless), &mut print)?,
    }
    Ok(tally.finish())
}

/// Runs everything: both halves of the tests that need a server, which leave processors idle, and at the same time all
/// other tests at a lower priority. The output of the halves is printed last.
fn run_all(pg: &PgConfig, bless: bool, tally: &mut Tally) -> Result<()> {
    thread::scope(|scope| {
        // First, since no test can start without it.
        let extension = scope.spawn(|| extension::build_for_tests(pg));
        // The harness's own tests run with the first half.
        let halves: [(&str, &[&str]); 2] = [
            ("first", &["--lib", "--test=suite"]),
            ("second", &["--test=suite"]),
        ];
        let halves = halves.map(|(half, targets)| {
            let (sender, lines) = mpsc::channel();
            let run = move || {
                let mut tally = Tally::default();
                let mut tests = server_tests(pg, "", bless);
                let mut print = |line| drop(sender.send(line));
                tally.count(tests.args(targets).env("NEARDUP_HALF", half), &mut print)?;
                anyhow::Ok(tally)
            };
            (scope.spawn(run), lines)
        });
        tally.check("fmt", &mut fmt())?;
        joined(extension)?;
        let [mut of_extension, of_others] = clippy(pg);
        tally.check("clippy", &mut shell::behind(&of_others))?;
        // At full priority: a test in the first half waits for its lock on the build directory.
        tally.check("clippy", &mut of_extension)?;
        tally.count_all(&mut shell::behind(&unit_tests()))?;
        for (half, lines) in halves {
            lines.into_iter().for_each(print);
            tally.add(&joined(half)?);
        }
        Ok(())
    })
}

/// Returns the result of a thread, and passes its panic on.
fn joined<T>(thread: ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    let result = thread.join();
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn fmt() -> Command {
    let mut command = workspace::cargo();
    command.args(["fmt", "--all", "--check"]);
    command
}

/// Returns the commands that run clippy on the extension and on all other crates, and allow no warnings. The first
/// shares its build with the extension's, the second with the unit tests'.
fn clippy(pg: &PgConfig) -> [Command; 2] {
    let features = format!("--features={}", extension::tested_features(pg));
    let extension = [
        "--release",
        "--package=pg_neardup",
        "--no-default-features",
        &features,
    ];
    [&extension[..], &["--workspace", "--exclude=pg_neardup"]].map(|selected| {
        let mut command = pg.cargo();
        command.args(["clippy", "--all-targets"]).args(selected);
        command.args(workspace::ignoring_rust_version());
        command.args(["--", "--deny", "warnings"]);
        command
    })
}

/// Returns the command that runs the unit and property tests, which need no server. It excludes the extension, whose
/// tests are in SQL: building it again without optimization would find no tests.
fn unit_tests() -> Command {
    let mut command = workspace::cargo();
    command.args(["test", "--workspace", "--no-fail-fast"]);
    command.args(workspace::ignoring_rust_version());
    command.args(["--exclude", "pg_neardup", "--exclude", "server-tests"]);
    command
}

/// Returns the command that runs the tests that need a server and have `filter` in their names. An empty filter selects
/// all.
fn server_tests(pg: &PgConfig, filter: &str, bless: bool) -> Command {
    let mut command = workspace::cargo();
    command.args(["test", "--package", "server-tests", "--no-fail-fast"]);
    command.args(workspace::ignoring_rust_version());
    if !filter.is_empty() {
        command.args(["--test", "suite", "--", filter]);
    }
    pg.put_into_environment(&mut command);
    if bless {
        command.env("NEARDUP_BLESS", "1");
    }
    command
}
