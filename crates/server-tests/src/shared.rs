//! The server that the tests of a run share, and the handling of unexpected output.

use std::sync::OnceLock;

use anyhow::Result;
use testbed::pg_config::PostgresChoice;
use testbed::server::Server;
use testbed::setup;

static SERVER: OnceLock<Server> = OnceLock::new();

/// Starts the server of this name, with the PostgreSQL that the environment chooses.
pub fn start(name: &str) -> Result<()> {
    let choice = PostgresChoice::from_environment()?;
    let server = Server::start_cluster(setup::ensure(&choice)?, name)?;
    SERVER.get_or_init(|| server);
    Ok(())
}

/// Returns the server of all tests, which runs before the first of them.
pub fn server() -> &'static Server {
    SERVER.get().expect("the server was started")
}

/// Returns whether the current output is to be accepted as the expected one.
pub fn is_blessing() -> bool {
    std::env::var_os("NEARDUP_BLESS").is_some()
}
