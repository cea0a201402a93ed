//! The benchmark measures, whatever it measures.

use anyhow::Result;

use super::Outcome;
use crate::bench;
use crate::server::Server;

/// Index, pairs, guard and growth on a thousand documents; every table has rows.
pub fn smoke(server: &Server) -> Result<Outcome> {
    bench::smoke::run(server)?;
    Ok(Outcome::Passed)
}
