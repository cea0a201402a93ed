//! The PostgreSQL binding of the `neardup` crate: one file per SQL object family.
//! It knows no algorithm; the algorithms know no PostgreSQL.

mod arrays;
mod ball;
mod bands;
mod bits;
mod catalog;
mod datum;
mod error;
mod gin;
mod gin_hamming;
mod gin_minhash;
mod hamming;
mod measures;
mod minhash;
mod minhash_sets;
mod near_dup;
mod options;
mod planner_support;
mod shingles;
mod signature;
mod tsvector;

pgrx::pg_module_magic!(name, version);

pgrx::extension_sql_file!("../sql/type.sql", name = "type", bootstrap);
