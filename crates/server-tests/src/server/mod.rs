//! Tests on a real server that psql scripts cannot perform.
//!
//! A test is a function listed in [`ALL`]. It gets the running server, and creates its own databases
//! (`testbed::server::database`) and further clusters (`Server::scratch_cluster`).

mod adopting;
mod bench;
mod check;
mod citus;
pub mod clients;
mod cold;
mod collections;
mod constraint;
mod containment;
mod distinct;
mod documents;
mod equals_scan;
mod estimates;
mod exceptions;
mod extension;
mod format;
mod guard;
mod hanging;
mod helpers;
mod hostile;
mod interop;
mod jobs;
mod little_memory;
mod live;
mod lookup;
mod names;
mod neardup;
pub mod package;
pub mod page;
mod pair;
mod partitions;
mod passages;
mod planning;
pub mod python;
mod reuse;
mod rewrites;
mod scopes;
mod sessions;
mod shards;
mod similarity;
mod storage;
mod text;
mod transfer;

use anyhow::Result;
use libtest_mimic::Trial;
use testbed::server::Server;

use crate::harness::{Outcome, trial};
use crate::preparation::Build;
use crate::shared;

/// Programs that tests need.
pub const BUILDS: &[Build] = &[
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

/// A test's name and its function.
type Test = (&'static str, fn(&Server) -> Result<Outcome>);

/// Every test, in the order in which they run.
const ALL: &[Test] = &[
    ("hanging_tests_are_ended", hanging::tests_are_ended),
    ("extension_lifecycle", extension::lifecycle),
    ("extension_encodings", extension::encodings),
    ("extension_settings_prefix", extension::settings_prefix),
    (
        "sessions_wait_for_each_other",
        sessions::wait_for_each_other,
    ),
    ("hostile_role", hostile::role),
    ("transfer_dump", transfer::dump),
    ("transfer_copy_binary", transfer::copy_binary),
    ("similarity_truth_on_top", similarity::truth_on_top),
    ("similarity_exact_lists", similarity::exact_lists),
    ("equals_scan_documents", equals_scan::documents),
    ("equals_scan_bit_strings", equals_scan::bit_strings),
    ("equals_scan_many_candidates", equals_scan::many_candidates),
    ("neardup_equals_scan", neardup::equals_scan),
    ("estimates_near_the_truth", estimates::near_the_truth),
    ("estimates_of_joins", estimates::of_joins),
    ("estimates_of_later_groups", estimates::of_later_groups),
    ("estimates_of_large_sets", estimates::of_large_sets),
    ("estimates_of_functions", estimates::of_functions),
    ("planning_few_pages", planning::few_pages),
    ("planning_beside_a_btree", planning::beside_a_btree),
    ("planning_sensible_plans", planning::sensible_plans),
    ("planning_near_the_truth", planning::near_the_truth),
    (
        "planning_beside_another_hook",
        planning::beside_another_hook,
    ),
    ("planning_sampled_value_lost", planning::sampled_value_lost),
    (
        "planning_sampled_value_damaged",
        planning::sampled_value_damaged,
    ),
    ("planning_sampled_rows_go", planning::sampled_rows_go),
    ("planning_late_groups", planning::late_groups),
    ("containment_equals_scan", containment::equals_scan),
    (
        "containment_documents_equal_counting",
        containment::documents_equal_counting,
    ),
    (
        "containment_pairs_equal_counting",
        containment::pairs_equal_counting,
    ),
    (
        "containment_of_documents",
        containment::near_contained_documents,
    ),
    ("documents_index_equals_scan", documents::index_equals_scan),
    ("documents_equal_exact_lists", documents::equal_exact_lists),
    ("documents_join_plans_once", documents::join_plans_once),
    (
        "documents_sampled_equal_scan",
        documents::sampled_equal_scan,
    ),
    (
        "documents_containment_equals_scan",
        documents::containment_equals_scan,
    ),
    (
        "documents_templates_equal_scan",
        documents::templates_equal_scan,
    ),
    ("documents_large", documents::large_documents),
    (
        "documents_pairs_equal_comparison",
        documents::pairs_equal_comparison,
    ),
    ("documents_underrated_copies", documents::underrated_copies),
    ("adopting_typed", adopting::typed),
    ("containment_crash", containment::crash),
    ("neardup_crash", neardup::crash),
    (
        "neardup_old_map_of_free_space",
        neardup::old_map_of_free_space,
    ),
    ("neardup_explains_searches", neardup::explains_searches),
    ("neardup_replica", neardup::replica),
    (
        "neardup_checked_by_old_transaction",
        neardup::checked_by_old_transaction,
    ),
    ("neardup_other_version", neardup::other_version),
    ("check_names_damage", check::names_damage),
    ("check_vacuum_writes_little", check::vacuum_writes_little),
    (
        "format_pages_are_as_they_were",
        format::pages_are_as_they_were,
    ),
    ("format_row_numbers_end", format::row_numbers_end),
    ("neardup_build_of_many_sizes", neardup::build_of_many_sizes),
    ("reuse_keeps_the_file", reuse::keeps_the_file),
    (
        "reuse_lookups_after_portions",
        reuse::lookups_after_portions,
    ),
    ("rewrites_keep_everything", rewrites::keep_everything),
    ("reuse_beside_a_scan", reuse::beside_a_scan),
    ("reuse_beside_everything", reuse::beside_everything),
    ("cold_lookups", cold::lookups),
    ("cold_inserts", cold::inserts),
    ("scopes_equal_scan", scopes::equal_scan),
    ("constraint_interleavings", constraint::interleavings),
    ("constraint_partitioned", constraint::partitioned),
    ("constraint_put", constraint::put),
    (
        "constraint_compares_in_little_memory",
        constraint::compares_in_little_memory,
    ),
    ("constraint_many_sessions", constraint::many_sessions),
    ("little_memory_loses_nothing", little_memory::loses_nothing),
    ("live_altered", live::altered),
    ("live_forged", live::forged),
    ("live_unnoted", live::unnoted),
    (
        "live_altered_while_refreshed",
        live::altered_while_refreshed,
    ),
    (
        "live_untracked_while_refreshed",
        live::untracked_while_refreshed,
    ),
    ("live_random_histories", live::random),
    ("live_restored", live::restored),
    ("lookup_btree_equals_scan", lookup::btree_equals_scan),
    ("names_outside_ascii", names::outside_ascii),
    (
        "package_installed_and_removed",
        package::installed_and_removed,
    ),
    ("page_hostile_documents", page::hostile_documents),
    ("pair_encodings", pair::encodings),
    ("partitions_parallel_plans", partitions::parallel_plans),
    ("shards_pushed_down", shards::pushed_down),
    ("citus_recipe", citus::recipe),
    ("interop_pgvector", interop::pgvector),
    ("python_signatures", python::signatures),
    ("python_adapters", python::adapters),
    ("python_lab", python::lab),
    ("python_page", python::page),
    ("python_parquet", python::parquet),
    ("python_types", python::types),
    ("clients_python", clients::python),
    ("clients_node", clients::node),
    ("clients_jdbc", clients::jdbc),
    ("clients_sqlx", clients::sqlx),
    ("storage_every_form", storage::every_form),
    ("storage_long_signatures", storage::long_signatures),
    ("text_exact_lists", text::exact_lists),
    ("text_vocalized_pairs", text::vocalized_pairs),
    ("text_encodings", text::encodings),
    ("text_cancel", text::cancel),
    (
        "collections_pairs_equal_brute_force",
        collections::pairs_equal_brute_force,
    ),
    ("collections_verified_pairs", collections::verified_pairs),
    (
        "collections_clusters",
        collections::clusters_follow_their_definition,
    ),
    ("collections_templates", collections::clusters_of_templates),
    ("collections_copies", collections::join_of_many_copies),
    ("distinct_equals_definition", distinct::equals_definition),
    (
        "exceptions_count_as_not_similar",
        exceptions::count_as_not_similar,
    ),
    ("exceptions_few_partners", exceptions::few_partners),
    ("passages_by_definition", passages::by_definition),
    ("helpers_change_no_answer", helpers::change_no_answer),
    (
        "helpers_build_the_same_index",
        helpers::build_the_same_index,
    ),
    ("helpers_leave_nothing", helpers::leave_nothing),
    (
        "helpers_beside_other_callbacks",
        helpers::beside_other_callbacks,
    ),
    ("jobs_keys_in_files", jobs::keys_in_files),
    (
        "jobs_bands_and_pairs_in_files",
        jobs::bands_and_pairs_in_files,
    ),
    ("jobs_queries_that_interfere", jobs::queries_that_interfere),
    ("jobs_seen_by_others", jobs::seen_by_others),
    ("jobs_builds_seen_by_others", jobs::builds_seen_by_others),
    ("guard_changed_key", guard::changed_key),
    ("guard_first_to_pass", guard::first_to_pass),
    ("guard_passed_meanwhile", guard::passed_meanwhile),
    ("guard_triggers", guard::triggers),
    ("guard_excepted_meanwhile", guard::excepted_meanwhile),
    (
        "guard_passes_in_its_statement",
        guard::passes_in_its_statement,
    ),
    ("guard_updates_keep_pairs", guard::keep_pairs),
    ("guard_odd_transactions", guard::odd_transactions),
    (
        "guard_attached_while_waiting",
        guard::attached_while_waiting,
    ),
    (
        "guard_detached_while_waiting",
        guard::detached_while_waiting,
    ),
    (
        "guard_added_during_a_long_look",
        guard::added_during_a_long_look,
    ),
    (
        "guard_few_searches_behind_the_gate",
        guard::few_searches_behind_the_gate,
    ),
    ("guard_restored", guard::restored),
    ("guard_altered", guard::altered),
    ("guard_strangers", guard::strangers),
    ("guard_truth", guard::truth),
    (
        "guard_changed_while_searched",
        guard::changed_while_searched,
    ),
    ("guard_hot_update", guard::hot_update),
    ("guard_twin_index", guard::twin_index),
    ("guard_every_order", guard::every_order),
    ("guard_notes_most_similar", guard::most_similar),
    ("guard_histories", guard::histories),
    ("guard_row_by_row", guard::row_by_row),
    ("guard_bursts", guard::bursts),
    ("guard_every_way", guard::every_way),
    ("guard_bulk_load", guard::bulk_load),
    ("bench_smoke", bench::smoke),
    ("guard_prepared_transaction", guard::prepared_transaction),
];

/// Returns every test as a trial.
pub fn trials() -> impl Iterator<Item = Trial> {
    let trial =
        |&(name, run): &Test| trial(format!("server::{name}"), move || run(shared::server()));
    ALL.iter().map(trial)
}
