//! Programs that tests need, built in the background while earlier tests run. The time counts for no test.

use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Something to build, and how the names of the tests that need it begin.
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

/// Begins to build what the tests of these names need.
pub fn begin(builds: &'static [Build], names: &[&str]) {
    let wanted = builds
        .iter()
        .filter(|build| names.iter().any(|name| build.is_for(name)));
    let begun = wanted.map(|build| (build, thread::spawn(build.run)));
    begun_builds().extend(begun);
}

/// Waits for what the test of this name needs.
pub fn wait_for(test: &str) {
    let needed: Vec<_> = begun_builds()
        .extract_if(.., |(build, _)| build.is_for(test))
        .collect();
    for (_, thread) in needed {
        // The test builds again what a panic has ended.
        let _ = thread.join();
    }
}

fn begun_builds() -> std::sync::MutexGuard<'static, Vec<(&'static Build, JoinHandle<()>)>> {
    BEGUN.lock().unwrap_or_else(PoisonError::into_inner)
}
