//! Programs that tests need, built in the background while earlier tests run. The build time does not count as the time
//! of any test.

use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Something to build, and the beginnings of the names of the tests that need it.
pub struct Build {
    pub for_tests: &'static [&'static str],
    pub run: fn(),
}

impl Build {
    fn is_for(&self, test: &str) -> bool {
        self.for_tests.iter().any(|part| test.starts_with(part))
    }
}

static BEGUN: Mutex<Vec<(&Build, JoinHandle<()>)>> = Mutex::new(Vec::new());

/// Starts to build the programs that the tests with these names need.
pub fn begin(builds: &'static [Build], names: &[&str]) {
    let wanted = builds
        .iter()
        .filter(|build| names.iter().any(|name| build.is_for(name)));
    let begun = wanted.map(|build| (build, thread::spawn(build.run)));
    begun_builds().extend(begun);
}

/// Waits for the program that the test with this name needs.
pub fn wait_for(test: &str) {
    let needed: Vec<_> = begun_builds()
        .extract_if(.., |(build, _)| build.is_for(test))
        .collect();
    for (_, thread) in needed {
        // If a panic ended the build, the test builds the program again.
        let _ = thread.join();
    }
}

fn begun_builds() -> std::sync::MutexGuard<'static, Vec<(&'static Build, JoinHandle<()>)>> {
    BEGUN.lock().unwrap_or_else(PoisonError::into_inner)
}
