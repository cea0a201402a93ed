//! The PostgreSQL binding of the `neardup` crate. The binding contains no algorithms, and the crate does not know
//! PostgreSQL.
//!
//! The modules follow the pipeline: text, signatures, indexes, collections, guards of tables, and the upkeep of their
//! clusters. Each imports only from modules above it in this list.
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_macros))]
#![cfg_attr(
    feature = "pg19",
    allow(clippy::unnecessary_cast, reason = "identifiers of caches are i32 since PostgreSQL 19")
)]

mod pg;

mod options;

mod text;

mod minhash;

mod simhash;

mod index;

mod collection;

mod guard;

mod live;

// Every other `cfg` names the versions before a change, so that a new version behaves like the newest one here.
#[cfg(not(any(
    feature = "pg15",
    feature = "pg16",
    feature = "pg17",
    feature = "pg18",
    feature = "pg19"
)))]
compile_error!("this version of PostgreSQL is not known: look at every `cfg` of a version");

pgrx::pg_module_magic!(name, version);

pgrx::extension_sql_file!("../sql/type.sql", name = "type", bootstrap);
pgrx::extension_sql_file!("../sql/comments.sql", name = "comments", finalize);

/// Sets up a session. Called once, when it loads the library.
#[pgrx::pg_guard]
pub extern "C-unwind" fn _PG_init() {
    pg::error::disable_backtraces();
    pg::memory::install();
    pg::progress::define_setting();
    index::classes::options::install();
    index::planner::hook::install();
    guard::places::install();
}
