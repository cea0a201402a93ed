//! Tests that need more than psql: dumps, replicas, other encodings, crashes, concurrency.
//!
//! A test is a function in a file of its own, listed in [`ALL`]. It gets the running server and
//! makes its databases (`server::database`) and further clusters (`Server::scratch_cluster`).

mod bench;
mod citus;
mod collections;
mod extension;
mod gin;
mod guard;
mod interop;
mod lookup;
mod package;
mod page;
mod pair;
mod partitions;
mod shards;
mod similarity;
mod storage;
mod text;
mod transfer;

use anyhow::Result;

use super::Selection;
use super::tally::{Outcome, Tally};
use crate::server::Server;

/// A test against the real server.
pub struct ServerTest {
    pub name: &'static str,
    run: fn(&Server) -> Result<Outcome>,
}

/// Every test, in the order in which they run.
pub const ALL: &[ServerTest] = &[
    ServerTest {
        name: "extension_lifecycle",
        run: extension::lifecycle,
    },
    ServerTest {
        name: "extension_encodings",
        run: extension::encodings,
    },
    ServerTest {
        name: "extension_replica",
        run: extension::replica,
    },
    ServerTest {
        name: "extension_crash",
        run: extension::crash,
    },
    ServerTest {
        name: "transfer_dump",
        run: transfer::dump,
    },
    ServerTest {
        name: "transfer_copy_binary",
        run: transfer::copy_binary,
    },
    ServerTest {
        name: "similarity_truth_on_top",
        run: similarity::truth_on_top,
    },
    ServerTest {
        name: "similarity_exact_lists",
        run: similarity::exact_lists,
    },
    ServerTest {
        name: "gin_minhash_equals_scan",
        run: gin::minhash_equals_scan,
    },
    ServerTest {
        name: "gin_multicolumn_equals_scan",
        run: gin::multicolumn_equals_scan,
    },
    ServerTest {
        name: "gin_hamming_equals_scan",
        run: gin::hamming_equals_scan,
    },
    ServerTest {
        name: "lookup_btree_equals_scan",
        run: lookup::btree_equals_scan,
    },
    ServerTest {
        name: "package_installed_and_removed",
        run: package::installed_and_removed,
    },
    ServerTest {
        name: "page_hostile_documents",
        run: page::hostile_documents,
    },
    ServerTest {
        name: "pair_encodings",
        run: pair::encodings,
    },
    ServerTest {
        name: "partitions_parallel_plans",
        run: partitions::parallel_plans,
    },
    ServerTest {
        name: "shards_pushed_down",
        run: shards::pushed_down,
    },
    ServerTest {
        name: "citus_recipe",
        run: citus::recipe,
    },
    ServerTest {
        name: "interop_pgvector",
        run: interop::pgvector,
    },
    ServerTest {
        name: "interop_python",
        run: interop::python,
    },
    ServerTest {
        name: "storage_every_form",
        run: storage::every_form,
    },
    ServerTest {
        name: "storage_long_signatures",
        run: storage::long_signatures,
    },
    ServerTest {
        name: "text_exact_lists",
        run: text::exact_lists,
    },
    ServerTest {
        name: "text_vocalised_pairs",
        run: text::vocalised_pairs,
    },
    ServerTest {
        name: "text_encodings",
        run: text::encodings,
    },
    ServerTest {
        name: "text_cancel",
        run: text::cancel,
    },
    ServerTest {
        name: "collections_pairs_equal_brute_force",
        run: collections::pairs_equal_brute_force,
    },
    ServerTest {
        name: "collections_verified_pairs",
        run: collections::verified_pairs,
    },
    ServerTest {
        name: "collections_clusters",
        run: collections::clusters_follow_their_definition,
    },
    ServerTest {
        name: "guard_one_of_many_wins",
        run: guard::one_of_many_wins,
    },
    ServerTest {
        name: "guard_bulk_load",
        run: guard::bulk_load,
    },
    ServerTest {
        name: "bench_smoke",
        run: bench::smoke,
    },
    ServerTest {
        name: "guard_prepared_transaction",
        run: guard::prepared_transaction,
    },
];

/// Runs the selected tests.
pub fn run(server: &Server, selection: &Selection, tally: &mut Tally) {
    println!("Running the server tests");
    for test in ALL.iter().filter(|test| selection.takes(test.name)) {
        tally.record(test.name, || (test.run)(server));
    }
}
