//! `cargo xtask bench`, a separate program: building it takes as long as building all other tasks.

use std::process::ExitCode;

use clap::Parser;
use testbed::pg_config::PostgresChoice;

/// Benchmarks of pg_neardup beside its peers.
#[derive(Parser)]
#[command(bin_name = "cargo xtask bench")]
struct Cli {
    #[command(flatten)]
    postgres: PostgresChoice,
    #[command(flatten)]
    options: bench::Options,
}

fn main() -> ExitCode {
    let Cli { postgres, options } = Cli::parse();
    match bench::run(&postgres, &options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
