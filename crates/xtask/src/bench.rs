//! `cargo xtask bench`: builds and runs the benchmarks.

use std::ffi::OsString;
use std::process::Command;

use anyhow::Result;
use testbed::pg_config::PostgresChoice;
use testbed::{shell, workspace};

#[derive(clap::Args)]
pub struct Options {
    /// Subjects and options; `cargo xtask bench --help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Runs the benchmarks with the user's arguments.
pub fn run(choice: &PostgresChoice, options: &Options) -> Result<()> {
    let mut command = program();
    if let Some(major) = choice.pg {
        command.args(["--pg", &major.to_string()]);
    }
    if let Some(path) = &choice.pg_config {
        command.arg("--pg-config").arg(path);
    }
    shell::run(command.args(&options.arguments))
}

/// Returns the command that builds and runs the benchmarks.
pub fn program() -> Command {
    let mut command = workspace::cargo();
    command.args(["run", "--package", "bench"]);
    command.args(workspace::ignoring_rust_version()).arg("--");
    command
}
