//! Is the extension as trustworthy as the server it runs in? Each test prints its figure.
//!
//! `cargo xtask test` runs a quick selection, `cargo xtask test reliability` the whole.

mod aggregates;
mod cancel;
mod churn;
mod collection;
mod crash;
mod foreign;
mod fuzz;
mod fuzz_values;
mod giants;
mod golden;
mod install;
mod logical;
mod major_upgrade;
mod memory;
mod replica;
mod versions;

use anyhow::Result;

use super::Selection;
pub use super::tally::Outcome;
use super::tally::Tally;
use crate::server::Server;

/// How much of a test is run.
#[derive(Clone, Copy, PartialEq)]
pub enum Scale {
    Quick,
    Whole,
}

impl Scale {
    fn of<T>(self, quick: T, whole: T) -> T {
        match self {
            Scale::Quick => quick,
            Scale::Whole => whole,
        }
    }
}

/// A test at either scale.
pub struct ReliabilityTest {
    pub name: &'static str,
    run: fn(&Server, Scale) -> Result<Outcome>,
}

/// Every test, in the order in which they run.
pub const ALL: &[ReliabilityTest] = &[
    ReliabilityTest {
        name: "golden_in_every_locale",
        run: golden::locales_and_encodings,
    },
    ReliabilityTest {
        name: "install_among_hostile_objects",
        run: install::hostile_objects,
    },
    ReliabilityTest {
        name: "install_beside_peers",
        run: install::beside_peers,
    },
    ReliabilityTest {
        name: "foreign_functions_declined",
        run: foreign::declined,
    },
    ReliabilityTest {
        name: "versions_upgrade_equals_fresh",
        run: versions::upgrade_equals_fresh,
    },
    ReliabilityTest {
        name: "aggregates_parallel_as_serial",
        run: aggregates::parallel_as_serial,
    },
    ReliabilityTest {
        name: "cancel_within_bounds",
        run: cancel::within_bounds,
    },
    ReliabilityTest {
        name: "fuzz_every_function",
        run: fuzz::every_function,
    },
    ReliabilityTest {
        name: "giants_answered_or_refused",
        run: giants::answered_or_refused,
    },
    ReliabilityTest {
        name: "churn_loses_no_match",
        run: churn::loses_no_match,
    },
    ReliabilityTest {
        name: "memory_does_not_grow",
        run: memory::does_not_grow,
    },
    ReliabilityTest {
        name: "replica_answers_alike",
        run: replica::answers_alike,
    },
    ReliabilityTest {
        name: "logical_replication_byte_equal",
        run: logical::byte_equal,
    },
    ReliabilityTest {
        name: "major_upgrade_identical_digest",
        run: major_upgrade::identical_digest,
    },
    ReliabilityTest {
        name: "crash_loses_nothing",
        run: crash::loses_nothing,
    },
];

/// Runs the selected tests.
pub fn run(server: &Server, selection: &Selection, scale: Scale, tally: &mut Tally) {
    println!("Running the reliability tests");
    for test in ALL.iter().filter(|test| selection.takes(test.name)) {
        tally.record(test.name, || (test.run)(server, scale));
    }
}
