//! `cargo xtask demo`: loads real documents and shows the near-duplicates among them.

mod keep;
mod load;
mod reject;
mod report;
mod search;

use std::path::PathBuf;

use anyhow::Result;
use testbed::documents::source::Source;
use testbed::pg_config::PostgresChoice;
use testbed::server::Server;
use testbed::setup;

use crate::psql::DEMO_DATABASE;

#[derive(clap::Args)]
pub struct Options {
    /// Load the text files of this directory and those below it
    #[arg(long, value_name = "DIR", conflicts_with = "csv")]
    docs: Option<PathBuf>,
    /// Load this CSV file with the columns id and text
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

/// Sets up everything that is missing, loads the documents, and prints the findings.
pub fn run(choice: &PostgresChoice, options: &Options) -> Result<()> {
    let source = Source::choose(options.docs.as_deref(), options.csv.as_deref())?;
    let server = Server::start(setup::ensure(choice)?)?;
    let mut client = server.main.connect("postgres")?;
    client.batch_execute(&format!(
        "DROP DATABASE IF EXISTS {DEMO_DATABASE} WITH (FORCE)"
    ))?;
    client.batch_execute(&format!("CREATE DATABASE {DEMO_DATABASE}"))?;
    let mut client = server.main.connect(DEMO_DATABASE)?;

    println!("Loading {source}");
    let loaded = load::load(&mut client, &source)?;
    println!("Looking for near-duplicates");
    let found = search::find(&mut client)?;
    report::groups(&found.groups);
    report::summary(&loaded, &found, server.main.socket_dir());
    Ok(())
}
