//! `cargo xtask docs`: brings the documentation up to date with the code.

use std::process::ExitCode;

use anyhow::Result;
use testbed::pg_config::PostgresChoice;

use crate::test;

/// Draws the curves, and accepts the examples' present output and the catalog's reference.
pub fn run(choice: &PostgresChoice) -> Result<ExitCode> {
    bench::figures::draw_all()?;
    test::run(choice, &test::Options::bless("docs"))
}
