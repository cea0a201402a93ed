//! Counting and printing results.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;

/// How a test ended, if it did not fail.
pub enum Outcome {
    Passed,
    /// It could not be run here; the reason.
    Skipped(String),
}

/// How many tests passed, failed and were skipped.
#[derive(Default)]
pub struct Tally {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl Tally {
    /// Runs a test, prints its result and counts it.
    pub fn record(&mut self, name: &str, test: impl FnOnce() -> Result<Outcome>) {
        let start = Instant::now();
        let result = test();
        let time = start.elapsed().as_millis();
        match result {
            Ok(Outcome::Passed) => {
                self.passed += 1;
                println!("ok      {name} ({time} ms)");
            }
            Ok(Outcome::Skipped(reason)) => {
                self.skipped += 1;
                println!("skipped {name}: {reason}");
            }
            Err(error) => {
                self.failed += 1;
                println!("FAILED  {name} ({time} ms)\n{error:#}");
            }
        }
    }

    /// Adds results that another program counted.
    pub fn add(&mut self, passed: usize, failed: usize, skipped: usize) {
        self.passed += passed;
        self.failed += failed;
        self.skipped += skipped;
    }

    /// Prints the sum.
    pub fn finish(&self) -> ExitCode {
        print!("{} passed, {} failed", self.passed, self.failed);
        match self.skipped {
            0 => println!(),
            skipped => println!(", {skipped} skipped"),
        }
        if self.failed == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}
