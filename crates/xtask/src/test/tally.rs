//! Runs checks and test programs, and counts their results.

use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result};
use testbed::shell;

/// The numbers of tests that passed, failed and were skipped.
#[derive(Default)]
pub struct Tally {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl Tally {
    /// Runs a check, which is one test.
    pub fn check(&mut self, name: &str, command: &mut Command) -> Result<()> {
        println!("Running {name}");
        match shell::run_status(command)? {
            true => self.passed += 1,
            false => self.failed += 1,
        }
        Ok(())
    }

    /// Runs tests that must not depend on the machine: ignored tests count as failed.
    pub fn count_all(&mut self, command: &mut Command) -> Result<()> {
        let skipped_before = self.skipped;
        self.count(command, &mut print)?;
        self.failed += self.skipped - skipped_before;
        self.skipped = skipped_before;
        Ok(())
    }

    /// Runs test programs, passes on each line that they print, and counts the results that they report. A program that
    /// fails without reporting a failed test, for example because it cannot be built, counts as a failure.
    pub fn count(&mut self, command: &mut Command, print: &mut dyn FnMut(String)) -> Result<()> {
        let failed_before = self.failed;
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().context("no output")?;
        for line in BufReader::new(output).lines() {
            let line = line?;
            if let Some([passed, failed, skipped]) = counts(&line) {
                self.passed += passed;
                self.failed += failed;
                self.skipped += skipped;
            }
            print(line);
        }
        if !child.wait()?.success() && self.failed == failed_before {
            print(format!("FAILED: {}", shell::describe(command)));
            self.failed += 1;
        }
        Ok(())
    }

    /// Adds the numbers of another tally.
    pub fn add(&mut self, other: &Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    /// Prints the totals.
    pub fn finish(&self) -> ExitCode {
        print!("{} passed, {} failed", self.passed, self.failed);
        match self.skipped {
            0 => println!(),
            skipped => println!(", {skipped} skipped"),
        }
        if self.failed == 0 && self.passed > 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}

/// Prints a line.
pub fn print(line: String) {
    println!("{line}");
}

/// Returns the numbers of passed, failed and ignored tests in `test result: ok. 3 passed; 0 failed; 0 ignored; ...`.
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
