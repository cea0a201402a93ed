//! How a test ends, and how it becomes one of libtest-mimic's.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use anyhow::Result;
use libtest_mimic::{Completion, Failed, Trial};

use crate::deadline;

/// How a test ended, if it did not fail.
pub enum Outcome {
    Passed,
    Skipped(Missing),
}

/// A part that a machine may lack. Nothing else may skip a test: what is missing otherwise is a failure.
pub enum Missing {
    /// A second major version of PostgreSQL.
    ServerVersion,
    /// A PostgreSQL built with assertions, which can discard its caches at every chance.
    Assertions,
    Citus,
    Pgvector,
    Chromium,
    /// Python, a newer one, or some of its packages.
    Python(String),
}

impl fmt::Display for Missing {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Missing::ServerVersion => formatter.write_str(
                "no second major version of PostgreSQL; NEARDUP_PG_CONFIGS may name others",
            ),
            Missing::Assertions => {
                formatter.write_str("the server was built without --enable-cassert")
            }
            Missing::Citus => formatter.write_str("Citus is not installed"),
            Missing::Pgvector => formatter.write_str("pgvector is not installed"),
            Missing::Chromium => formatter.write_str("Chromium is not installed"),
            Missing::Python(lack) => {
                write!(formatter, "{lack}; NEARDUP_PYTHON may name another Python")
            }
        }
    }
}

/// The scale of a reliability test.
#[derive(Clone, Copy, PartialEq)]
pub enum Scale {
    Quick,
    Whole,
}

impl Scale {
    /// Returns the first value for a quick run, the second for a whole one.
    pub fn of<T>(self, quick: T, whole: T) -> T {
        match self {
            Scale::Quick => quick,
            Scale::Whole => whole,
        }
    }
}

/// Figures of the test that is running, then of all tests that have run, each with its test's name.
static FIGURES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Notes a figure of the running test, formatted as by `format!`; printed after all tests.
macro_rules! figure {
    ($($text:tt)*) => { $crate::harness::note(format!($($text)*)) };
}
pub(crate) use figure;

/// Notes a figure: see [`figure!`].
pub fn note(text: String) {
    figures().push(text);
}

/// Prints the figures.
pub fn print_figures() {
    let figures = std::mem::take(&mut *figures());
    if !figures.is_empty() {
        println!("figures:");
    }
    for figure in figures {
        println!("    {figure}");
    }
}

fn figures() -> std::sync::MutexGuard<'static, Vec<String>> {
    FIGURES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a trial of a test; its errors are shown with their causes.
pub fn trial(name: String, test: impl FnOnce() -> Result<Outcome> + Send + 'static) -> Trial {
    let label = name.clone();
    Trial::ignorable_test(name, move || {
        let before = figures().len();
        deadline::begin(&label);
        let outcome = test();
        deadline::end();
        for figure in figures().iter_mut().skip(before) {
            *figure = format!("{label}: {figure}");
        }
        match outcome {
            Ok(Outcome::Passed) => Ok(Completion::Completed),
            Ok(Outcome::Skipped(missing)) => Ok(Completion::ignored_with(missing)),
            Err(error) => Err(Failed::from(format!("{error:#}"))),
        }
    })
}
