//! `cargo xtask docs`: brings the documentation up to date with the code.

use std::process::ExitCode;

use anyhow::Result;
use testbed::pg_config::PostgresChoice;
use testbed::shell;

use crate::{bench, test};

/// Draws the curves, and accepts the current output of the examples and the reference generated from the catalog.
pub fn run(choice: &PostgresChoice) -> Result<ExitCode> {
    shell::run(bench::program().arg("figures"))?;
    test::run(choice, &test::Options::bless("docs"))
}
