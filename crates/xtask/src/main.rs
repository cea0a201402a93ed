//! `cargo xtask`: all tasks for a checkout, on a private PostgreSQL server.

mod bench;
mod clean;
mod demo;
mod docs;
mod install;
mod package;
mod psql;
mod stop;
mod test;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use nix::sys::stat::{Mode, umask};
use testbed::pg_config::PostgresChoice;

/// Near-duplicate documents inside PostgreSQL: try it and test it.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
struct Cli {
    #[command(flatten)]
    postgres: PostgresChoice,
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Load real documents and show the near-duplicates among them
    Demo(demo::Options),
    /// Run the tests, or some of them
    Test(test::Options),
    /// Run the benchmarks, compare with the peers, and write benches/RESULTS.md
    #[command(disable_help_flag = true)]
    Bench(bench::Options),
    /// Explore with psql on the private server
    Psql(psql::Options),
    /// Bring the documentation's curves, outputs and reference up to date
    Docs,
    /// Install the extension into your own PostgreSQL
    Install,
    /// Make a Debian package and a tarball of the extension, and an archive of the sources
    Package,
    /// Print the licenses of the libraries that are linked into the Python package
    Notices,
    /// Stop the private server
    Stop,
    /// Remove the private server and everything else that was set up for this checkout
    Clean,
}

fn run(cli: &Cli) -> Result<ExitCode> {
    match &cli.task {
        Task::Demo(options) => demo::run(&cli.postgres, options)?,
        Task::Test(options) => return test::run(&cli.postgres, options),
        Task::Bench(options) => bench::run(&cli.postgres, options)?,
        Task::Psql(options) => psql::run(&cli.postgres, options)?,
        Task::Docs => return docs::run(&cli.postgres),
        Task::Install => install::run(&cli.postgres)?,
        Task::Package => package::run(&cli.postgres)?,
        Task::Notices => package::print_notices()?,
        Task::Stop => stop::run()?,
        Task::Clean => clean::run()?,
    }
    Ok(ExitCode::SUCCESS)
}

fn main() -> ExitCode {
    // A server of another user reads the files, and packages are the same everywhere.
    umask(Mode::S_IWGRP | Mode::S_IWOTH);
    run(&Cli::parse()).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
