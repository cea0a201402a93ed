//! Tests the basis of all tests: a test that hangs is named and counted as failed, and the next one runs.

use std::fs;
use std::process::Command;
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use libtest_mimic::{Arguments, Trial};
use testbed::server::Server;
use testbed::server::cluster::Cluster;
use testbed::{shell, workspace};

use super::Test;
use crate::deadline;
use crate::harness::{Outcome, limited};
use crate::shared;

/// Tests that hang, and one that does not.
const TESTS: [Test; 5] = [
    ("in_a_session", in_a_session),
    ("in_a_server_of_its_own", in_a_server_of_its_own),
    ("in_a_program", in_a_program),
    ("in_itself", in_itself),
    ("ends", |server| in_main(server, "SELECT 1")),
];

fn in_main(server: &Server, statement: &str) -> Result<Outcome> {
    server.main.connect("postgres")?.batch_execute(statement)?;
    Ok(Outcome::Passed)
}

fn in_a_session(server: &Server) -> Result<Outcome> {
    in_main(server, "SELECT pg_sleep(1000000)")
}

/// Created before the time limit of the test that hangs in it starts.
static CLUSTER: OnceLock<Cluster> = OnceLock::new();

fn in_a_server_of_its_own(_: &Server) -> Result<Outcome> {
    let cluster = CLUSTER.get().context("the server is made before")?;
    cluster.start()?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute("SELECT pg_sleep(1000000)")?;
    Ok(Outcome::Passed)
}

fn in_a_program(_: &Server) -> Result<Outcome> {
    shell::run_quietly(Command::new("sh").args(["-c", "sleep 1000000; true"]))?;
    Ok(Outcome::Passed)
}

fn in_itself(_: &Server) -> Result<Outcome> {
    loop {
        thread::park();
    }
}

/// Runs tests that hang before one that does not. The builds that run in the background are not stopped.
pub fn tests_are_ended(server: &Server) -> Result<Outcome> {
    let end = workspace::scratch_dir().join("hanging-end");
    let _ = fs::remove_file(&end);
    let mut program = Command::new("sh");
    program
        .arg("-c")
        .arg("until [ -e \"$0\" ]; do sleep 0.1; done")
        .arg(&end);
    let behind = thread::spawn(move || shell::run_behind("Waiting behind the tests", &program));
    let outcome = hang(server);
    fs::write(&end, "")?;
    behind.join().map_err(|_| anyhow!("a panic"))??;
    outcome
}

fn hang(server: &Server) -> Result<Outcome> {
    let report = workspace::scratch_dir().join("hanging");
    let trial = |(name, test): Test| -> Trial {
        let ends = name == "ends";
        let limit = move || match ends {
            true => deadline::limit(),
            false => Duration::from_secs(4),
        };
        limited(name.to_string(), limit, move || test(shared::server()))
    };
    let cluster = server.scratch_cluster("hanging")?;
    cluster.create(&[])?;
    CLUSTER.get_or_init(|| cluster.clone());
    let arguments = Arguments {
        test_threads: Some(1),
        logfile: Some(report.display().to_string()),
        ..Arguments::default()
    };
    let conclusion = libtest_mimic::run(&arguments, TESTS.map(trial).into());
    let said = fs::read_to_string(&report)?;
    for (name, _) in &TESTS[..4] {
        let failed = format!("---- {name} ----\nnot ended after 4s");
        ensure!(said.contains(&failed), "{name} is not named:\n{said}");
    }
    let going_on = said.matches("its thread goes on").count();
    ensure!(going_on == 1, "{going_on} threads go on:\n{said}");
    ensure!(
        (conclusion.num_failed, conclusion.num_passed) == (4, 1),
        "{conclusion:?}:\n{said}"
    );
    in_main(server, "SELECT 1")
}
