//! The PostgreSQL binding of the `neardup` crate: one file per SQL object family.
//! It knows no algorithm; the algorithms know no PostgreSQL.

mod arrays;
mod bands;
mod bits;
mod datum;
mod error;
mod hamming;
mod measures;
mod minhash;
mod minhash_sets;
mod options;
mod shingles;
mod signature;
mod tsvector;

pgrx::pg_module_magic!(name, version);

pgrx::extension_sql_file!("../sql/type.sql", name = "type", bootstrap);
