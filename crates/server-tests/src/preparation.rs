//! Programs that tests need, built in the background while earlier tests run. The time counts for no test.

use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use crate::harness::Scale;
use crate::reliability::major_upgrade;
use crate::server::{clients, package, python};

/// Something to build, and how the names of the tests that need it begin.
struct Build {
    for_tests: &'static [&'static str],
    run: fn(),
}

impl Build {
    fn is_for(&self, test: &str) -> bool {
        self.for_tests.iter().any(|part| test.starts_with(part))
    }
}

const ALL: &[Build] = &[
    Build {
        for_tests: &[
            "server::python_",
            "server::page_",
            "server::clients_python",
            "docs::report",
        ],
        run: python::prepare,
    },
    Build {
        for_tests: &["server::clients_node"],
        run: clients::prepare_node,
    },
    Build {
        for_tests: &["server::clients_sqlx"],
        run: clients::prepare_sqlx,
    },
    Build {
        for_tests: &["server::package_"],
        run: package::prepare,
    },
];

static BEGUN: Mutex<Vec<(&Build, JoinHandle<()>)>> = Mutex::new(Vec::new());

/// Begins to build what the tests of these names need. Servers of other versions are there when it returns: a test that
/// is ended stops the others' programs.
pub fn begin(names: &[&str], scale: Scale) {
    if names
        .iter()
        .any(|name| name.starts_with("reliability::major_upgrade_"))
    {
        major_upgrade::prepare(scale);
    }
    let wanted = ALL
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
