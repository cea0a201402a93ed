//! The tests that need no server: formatting, lints, unit and property tests.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use super::tally::{Outcome, Tally};
use crate::pg_config::PgConfig;
use crate::setup::pgrx;
use crate::{shell, workspace};

/// `cargo fmt --check`.
pub fn fmt(tally: &mut Tally) -> Result<()> {
    tally.record("fmt", || {
        shell::run(workspace::cargo().args(["fmt", "--all", "--check"]))?;
        Ok(Outcome::Passed)
    });
    Ok(())
}

/// Clippy over everything, no warning allowed.
pub fn clippy(pg: &PgConfig, tally: &mut Tally) -> Result<()> {
    println!("Running clippy");
    tally.record("clippy", || {
        let mut command = pgrx::cargo(pg);
        command.args(["clippy", "--workspace", "--all-targets"]);
        let feature = format!("pg_neardup/{}", pg.feature());
        command.args(["--no-default-features", "--features", &feature]);
        shell::run(command.args(["--", "--deny", "warnings"]))?;
        Ok(Outcome::Passed)
    });
    Ok(())
}

/// The unit and property tests of the crates that need no PostgreSQL, counted from what the test
/// programs print. The extension's own tests are those in SQL: building it once more, without
/// optimisation, would find none.
pub fn unit(tally: &mut Tally) -> Result<()> {
    println!("Running the unit and property tests");
    let mut command = workspace::cargo();
    command.args(["test", "--workspace", "--no-fail-fast"]);
    command.args(["--exclude", "pg_neardup"]);
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take().context("no output")?;
    let mut any_failed = false;
    for line in BufReader::new(output).lines() {
        let line = line?;
        println!("{line}");
        if let Some([passed, failed, skipped]) = counts(&line) {
            tally.add(passed, failed, skipped);
            any_failed |= failed > 0;
        }
    }
    let succeeded = child.wait()?.success();
    if !succeeded && !any_failed {
        tally.record("unit", || {
            bail!("a test program could not be built or crashed")
        });
    }
    Ok(())
}

/// Passed, failed and ignored of `test result: ok. 3 passed; 0 failed; 0 ignored; ...`.
fn counts(line: &str) -> Option<[usize; 3]> {
    let (_, rest) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let mut numbers = rest
        .split("; ")
        .map(|part| part.split(' ').next()?.parse().ok());
    Some([numbers.next()??, numbers.next()??, numbers.next()??])
}

#[cfg(test)]
mod tests {
    use super::counts;

    #[test]
    fn counts_of_a_result_line() {
        let line =
            "test result: FAILED. 12 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out";
        assert_eq!(counts(line), Some([12, 1, 2]));
        assert_eq!(counts("running 3 tests"), None);
    }
}
