//! The outcome of a test, its conversion to a libtest-mimic trial, and the comparison of queries.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use libtest_mimic::{Completion, Failed, Trial};
use postgres::Client;

use crate::{deadline, preparation};

/// The outcome of a test that did not fail.
pub enum Outcome {
    Passed,
    Skipped(Missing),
}

/// Something that a machine may lack. Nothing else may cause a test to be skipped: everything else that is missing is a
/// failure.
pub enum Missing {
    /// A second major version of PostgreSQL.
    ServerVersion,
    /// A PostgreSQL built with assertions, which can discard its caches at every opportunity.
    Assertions,
    Citus,
    Pgvector,
    Chromium,
    Spin,
    /// A program or driver that a client needs.
    Client(&'static str),
    /// Python, a newer version of it, or some of its packages.
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
            Missing::Spin => formatter.write_str("spin or a C compiler is not installed"),
            Missing::Client(lack) => write!(formatter, "{lack} is not installed"),
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
    /// Returns the first value for a quick run, and the second for a full run.
    pub fn of<T>(self, quick: T, whole: T) -> T {
        match self {
            Scale::Quick => quick,
            Scale::Whole => whole,
        }
    }
}

/// Figures of the running test, then of all finished tests, each with the name of its test.
static FIGURES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Records a figure of the running test, formatted like `format!`. It is printed after all tests.
macro_rules! figure {
    ($($text:tt)*) => { $crate::harness::note(format!($($text)*)) };
}
pub(crate) use figure;

/// Records a figure; see [`figure!`].
pub fn note(text: String) {
    figures().push(text);
}

/// The time that each test took, and its name.
static DURATIONS: Mutex<Vec<(Duration, String)>> = Mutex::new(Vec::new());

/// Prints the figures, and the ten tests that took longest.
pub fn print_figures() {
    print_list("figures", figures().drain(..));
    let mut durations = std::mem::take(&mut *lock(&DURATIONS));
    durations.sort_unstable();
    let longest = durations.iter().rev().take(10);
    print_list(
        "longest",
        longest.map(|(time, test)| format!("{time:.1?} {test}")),
    );
}

fn print_list(title: &str, lines: impl Iterator<Item = String>) {
    let mut lines = lines.peekable();
    if lines.peek().is_some() {
        println!("{title}:");
    }
    for line in lines {
        println!("    {line}");
    }
}

fn figures() -> MutexGuard<'static, Vec<String>> {
    lock(&FIGURES)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Checks that two queries return the same rows, and at least one row.
pub fn ensure_same_rows(client: &mut Client, found: &str, wanted: &str) -> Result<()> {
    let row = client.query_one(
        &format!(
            "WITH found AS MATERIALIZED ({found}), wanted AS MATERIALIZED ({wanted})
             SELECT (SELECT count(*) FROM (TABLE wanted EXCEPT ALL TABLE found) x),
                    (SELECT count(*) FROM (TABLE found EXCEPT ALL TABLE wanted) x),
                    (SELECT count(*) FROM wanted)"
        ),
        &[],
    )?;
    let [missed, other, all]: [i64; 3] = [row.get(0), row.get(1), row.get(2)];
    ensure!(
        missed == 0 && other == 0 && all > 0,
        "of {all} rows {missed} are missed, {other} others found: {found}"
    );
    Ok(())
}

/// Makes a trial from a test; errors are shown with their causes.
pub fn trial(name: String, test: impl FnOnce() -> Result<Outcome> + Send + 'static) -> Trial {
    limited(name, deadline::limit, test)
}

/// Makes a trial from a test that fails unless it ends within a time limit.
pub fn limited(
    name: String,
    limit: impl FnOnce() -> Duration + Send + 'static,
    test: impl FnOnce() -> Result<Outcome> + Send + 'static,
) -> Trial {
    let label = name.clone();
    Trial::ignorable_test(name, move || {
        preparation::wait_for(&label);
        let before = figures().len();
        let begun = Instant::now();
        let outcome = deadline::run(test, limit());
        lock(&DURATIONS).push((begun.elapsed(), label.clone()));
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
