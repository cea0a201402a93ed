//! The benchmark measures, whatever it measures.

use anyhow::Result;
use testbed::server::Server;

use crate::harness::Outcome;

/// Index, pairs, guard and growth on a thousand documents; every table has rows.
pub fn smoke(server: &Server) -> Result<Outcome> {
    bench::smoke::run(server)?;
    Ok(Outcome::Passed)
}
