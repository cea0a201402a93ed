//! The tests that need a PostgreSQL server: SQL output, behavior, reliability, documentation.
//!
//! They run one after the other on one private server (`cargo test -p server-tests -- NAME`). `NEARDUP_PG` or
//! `NEARDUP_PG_CONFIG` choose the PostgreSQL; with `NEARDUP_BLESS=1`, the current output is accepted as the expected
//! one. Reliability tests run at full length if a name is given, otherwise briefly. The tests of Spark exist only with
//! `NEARDUP_SPARK=1`. `NEARDUP_HALF` selects the half `first` or `second`, each on its own server.

mod deadline;
mod docs;
mod harness;
mod known;
mod live;
mod preparation;
mod regress;
mod reliability;
mod server;
mod sessions;
mod shared;
mod spark;

use std::env;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use libtest_mimic::{Arguments, Trial};

use harness::Scale;

/// Runs the tests that the command line selects.
pub fn main() -> ExitCode {
    run().unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn run() -> Result<ExitCode> {
    let mut arguments = Arguments::from_args();
    // They share a server, and some of them measure times and memory.
    arguments.test_threads = Some(1);
    let scale = match arguments.filter {
        Some(_) => Scale::Whole,
        None => Scale::Quick,
    };
    let mut trials = trials(scale)?;
    let cluster = match env::var("NEARDUP_HALF").as_deref() {
        Err(_) => "main",
        Ok("first") => {
            trials.retain(|trial| !is_in_second_half(trial));
            "main"
        }
        Ok("second") => {
            trials.retain(is_in_second_half);
            "second"
        }
        Ok(other) => bail!("NEARDUP_HALF is {other}, not first or second"),
    };
    let is_wanted = |trial: &&Trial| !arguments.is_filtered_out(trial);
    let names: Vec<&str> = trials.iter().filter(is_wanted).map(Trial::name).collect();
    if !arguments.list && !names.is_empty() {
        shared::start(cluster)?;
        // Comes before the other builds: if this test is ended, it stops the others' programs.
        if names
            .iter()
            .any(|name| name.starts_with("reliability::major_upgrade_"))
        {
            reliability::major_upgrade::prepare(scale);
        }
        preparation::begin(server::BUILDS, &names);
        // The longest test takes a few minutes, or an hour at full length; on a machine with twenty other users, ten
        // times as long.
        deadline::set(Duration::from_hours(scale.of(1, 12)));
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    harness::print_figures();
    Ok(conclusion.exit_code())
}

/// The beginnings of the names of the tests that take half of the time, and share no files with the others.
const SECOND_HALF: &[&str] = &[
    "reliability::",
    "server::bench_",
    "server::documents_",
    "server::equals_scan_",
    "server::guard_",
    "server::live_",
    "server::reuse_",
];

fn is_in_second_half(trial: &Trial) -> bool {
    SECOND_HALF
        .iter()
        .any(|part| trial.name().starts_with(part))
}

/// Returns every test; those that fail fastest come first.
fn trials(scale: Scale) -> Result<Vec<Trial>> {
    let mut trials = regress::trials()?;
    trials.extend(server::trials());
    trials.extend(reliability::trials(scale));
    trials.extend(docs::trials()?);
    trials.extend(spark::trials());
    Ok(trials)
}
