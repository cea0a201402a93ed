//! `cargo xtask psql`: psql on the private server, in the demo's database if there is one.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;

use anyhow::Result;
use postgres::Client;
use postgres::error::SqlState;
use testbed::pg_config::PostgresChoice;
use testbed::server::Server;
use testbed::setup;

/// The database that the demo fills.
pub const DEMO_DATABASE: &str = "demo";

#[derive(clap::Args)]
pub struct Options {
    /// Arguments for psql, for instance -c 'SELECT 1'
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Replaces this process with psql.
pub fn run(choice: &PostgresChoice, options: &Options) -> Result<()> {
    let server = Server::start(setup::ensure(choice)?)?;
    let mut client = server.main.connect("postgres")?;
    let database = "SELECT FROM pg_database WHERE datname = $1";
    if client.query_opt(database, &[&DEMO_DATABASE])?.is_none() {
        client.batch_execute(&format!("CREATE DATABASE {DEMO_DATABASE}"))?;
    }
    refresh_extension(&mut server.main.connect(DEMO_DATABASE)?)?;
    drop(client);
    Err(server
        .main
        .psql(DEMO_DATABASE)
        .args(&options.arguments)
        .exec()
        .into())
}

/// Creates the extension as it has just been built, unless something depends on the existing one.
fn refresh_extension(client: &mut Client) -> Result<()> {
    match client.batch_execute("DROP EXTENSION IF EXISTS pg_neardup") {
        Err(error) if error.code() == Some(&SqlState::DEPENDENT_OBJECTS_STILL_EXIST) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(()) => Ok(client.batch_execute("CREATE EXTENSION pg_neardup")?),
    }
}
