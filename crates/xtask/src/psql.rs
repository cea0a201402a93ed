//! `cargo xtask psql`: psql on the private server, in the demo's database if there is one.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;

use anyhow::Result;

use crate::pg_config::PostgresChoice;
use crate::server::Server;
use crate::setup;

/// The database that the demo fills.
pub const DEMO_DATABASE: &str = "demo";

#[derive(clap::Args)]
pub struct Options {
    /// Arguments for psql, for instance -c 'SELECT 1'
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Becomes psql.
pub fn run(choice: &PostgresChoice, options: &Options) -> Result<()> {
    let server = Server::start(setup::ensure(choice)?)?;
    let mut client = server.main.connect("postgres")?;
    let database = "SELECT FROM pg_database WHERE datname = $1";
    if client.query_opt(database, &[&DEMO_DATABASE])?.is_none() {
        client.batch_execute(&format!("CREATE DATABASE {DEMO_DATABASE}"))?;
        let mut client = server.main.connect(DEMO_DATABASE)?;
        client.batch_execute("CREATE EXTENSION pg_neardup")?;
    }
    drop(client);
    Err(server
        .main
        .psql(DEMO_DATABASE)
        .args(&options.arguments)
        .exec()
        .into())
}
