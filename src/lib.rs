//! The PostgreSQL binding of the `neardup` crate: one file per SQL object family.
//! It knows no algorithm; the algorithms know no PostgreSQL.

mod advise;
mod aggregate;
mod align;
mod arrays;
mod ball;
mod bands;
mod bits;
mod boilerplate;
mod catalog;
mod clusters;
mod collection;
mod components;
mod datum;
mod error;
mod gin;
mod gin_hamming;
mod gin_minhash;
mod guard;
mod guard_call;
mod guard_error;
mod guard_kind;
mod guard_lock;
mod guard_lookup;
mod guard_options;
mod guard_row;
mod guard_table;
mod guard_verify;
mod hamming;
mod hamming_pairs;
mod items;
mod lsh;
mod measures;
mod minhash;
mod minhash_aggregates;
mod minhash_forms;
mod minhash_measures;
mod minhash_sets;
mod near_dup;
mod options;
mod pairs;
mod per_row;
mod planner_hook;
mod planner_support;
mod progress;
mod query;
mod record;
mod search;
mod shingles;
mod signature;
mod simhash;
mod simhash_aggregate;
mod sort;
mod spool;
mod srf;
mod tsvector;
mod value_sort;
mod verify;
mod version;

pgrx::pg_module_magic!(name, version);

pgrx::extension_sql_file!("../sql/type.sql", name = "type", bootstrap);

/// Called once when a session loads the library.
#[pgrx::pg_guard]
pub extern "C-unwind" fn _PG_init() {
    progress::define_setting();
    planner_hook::install();
    guard_lock::register_callbacks();
}
