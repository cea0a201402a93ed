//! The version of the library that is loaded.

use pgrx::prelude::*;

/// Returns the version of the loaded library. `extversion` in `pg_extension` is the version of the SQL objects.
#[pg_extern(stable, parallel_safe, strict)]
fn pg_neardup_version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
