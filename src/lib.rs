//! The PostgreSQL binding of the `neardup` crate: one file per SQL object family.

pgrx::pg_module_magic!(name, version);
