//! Tests that the benchmark's measurements work.

use anyhow::Result;
use testbed::server::Server;

use crate::harness::Outcome;

/// Measures index, pairs, guard and growth on a thousand documents. Checks that every table has rows.
pub fn smoke(server: &Server) -> Result<Outcome> {
    bench::smoke::run(server)?;
    Ok(Outcome::Passed)
}
