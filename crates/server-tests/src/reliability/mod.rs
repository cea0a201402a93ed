//! Attacks on the extension: kills, damage, cancels, lack of memory and disk space. Each test reports its figure.

mod aggregates;
mod cancel;
mod churn;
mod collection;
mod crash;
mod damage;
mod discard;
mod foreign;
mod fuzz;
mod fuzz_types;
mod fuzz_values;
mod giants;
mod golden;
mod holds;
mod index;
mod install;
mod live;
mod live_sessions;
pub mod logical;
pub mod major_upgrade;
mod meddling;
mod memory;
mod models;
mod out_of_memory;
mod replica;
mod soak;
mod versions;

use anyhow::Result;
use libtest_mimic::Trial;
use testbed::server::Server;

use crate::harness::{Outcome, Scale, trial};
use crate::shared;

/// A test's name and its function.
type Test = (&'static str, fn(&Server, Scale) -> Result<Outcome>);

/// Every test, in the order in which they run.
const ALL: &[Test] = &[
    ("golden_in_every_locale", golden::locales_and_encodings),
    ("install_among_hostile_objects", install::hostile_objects),
    ("install_beside_peers", install::beside_peers),
    ("foreign_functions_declined", foreign::declined),
    (
        "versions_upgrade_equals_fresh",
        versions::upgrade_equals_fresh,
    ),
    (
        "versions_next_keeps_everything",
        versions::next_keeps_everything,
    ),
    (
        "aggregates_parallel_as_serial",
        aggregates::parallel_as_serial,
    ),
    ("discarded_caches_change_nothing", discard::changes_nothing),
    ("cancel_within_bounds", cancel::within_bounds),
    ("fuzz_every_function", fuzz::every_function),
    ("fuzz_every_type", fuzz_types::every_type),
    ("giants_answered_or_rejected", giants::answered_or_rejected),
    ("churn_loses_no_match", churn::loses_no_match),
    ("index_canceled_anywhere", index::canceled_anywhere),
    ("damage_of_signatures_is_noticed", damage::of_signatures),
    ("damage_of_sets_is_noticed", damage::of_sets),
    ("holds_every_pair", holds::every_pair),
    ("holds_check_beside_replay", holds::check_beside_replay),
    ("holds_check_beside_writers", holds::check_beside_writers),
    ("holds_writers_beside_merges", holds::writers_beside_merges),
    ("holds_sample_beside_merges", holds::sample_beside_merges),
    ("holds_sample_canceled", holds::sample_canceled),
    ("index_on_every_kind_of_table", index::every_kind_of_table),
    ("index_on_a_full_disk", index::disk_full),
    ("index_built_within_memory", index::build_within_memory),
    ("memory_does_not_grow", memory::does_not_grow),
    ("models_every_order", models::every_order),
    (
        "out_of_memory_ends_the_statement",
        out_of_memory::ends_the_statement,
    ),
    ("replica_answers_alike", replica::answers_alike),
    ("logical_replication_byte_equal", logical::byte_equal),
    ("live_replicated", logical::kept_clusters),
    ("guard_replicated", logical::guarded),
    (
        "major_upgrade_identical_digest",
        major_upgrade::identical_digest,
    ),
    ("crash_loses_nothing", crash::loses_nothing),
    ("live_survives_kills", live::survives_kills),
    ("soak_holds", soak::holds),
    ("live_many_writers", live_sessions::many_writers),
    ("meddling_ends_in_errors", meddling::ends_in_errors),
];

/// Returns every test at the given scale as a trial.
pub fn trials(scale: Scale) -> impl Iterator<Item = Trial> {
    let trial = move |&(name, run): &Test| {
        trial(format!("reliability::{name}"), move || {
            run(shared::server(), scale)
        })
    };
    ALL.iter().map(trial)
}
