//! The longest time that a test may take. One that stands still ends the run, with the doings of all
//! sessions.

use std::process;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use testbed::server::cluster::Cluster;

use crate::shared;

/// Time for the servers to answer before the run ends without their answers.
const PATIENCE: Duration = Duration::from_secs(20);

/// The sessions of a server, those that have done the same for longest first.
const SESSIONS: &str =
    "SELECT concat_ws(' | ', pid, datname, backend_type, state, wait_event_type, wait_event,
        'blocked by ' || nullif(pg_blocking_pids(pid), '{}')::text,
        clock_timestamp() - state_change, query)
    FROM pg_stat_activity WHERE pid <> pg_backend_pid() ORDER BY state_change";

static RUNNING: Mutex<Option<(String, Instant)>> = Mutex::new(None);

fn running() -> MutexGuard<'static, Option<(String, Instant)>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes the test that is running now.
pub fn begin(test: &str) {
    *running() = Some((test.to_string(), Instant::now()));
}

/// Notes that no test is running.
pub fn end() {
    *running() = None;
}

/// Ends the process when a test takes longer.
pub fn watch(limit: Duration) {
    thread::spawn(move || {
        loop {
            thread::sleep(Duration::from_secs(1));
            let late = running()
                .clone()
                .filter(|(_, begun)| begun.elapsed() > limit);
            if let Some((test, _)) = late {
                let minutes = limit.as_secs() / 60;
                eprintln!("error: {test} has not ended after {minutes} minutes");
                thread::spawn(|| print_sessions().map_err(|error| eprintln!("{error:#}")));
                thread::sleep(PATIENCE);
                process::exit(1);
            }
        }
    });
}

/// Prints the doings of all sessions of all servers of the run.
fn print_sessions() -> Result<()> {
    let server = shared::server();
    for entry in server.home.clusters().read_dir()? {
        let path = entry?.path();
        let cluster = Cluster::at(path, &server.main.installation, &server.main.account);
        if !cluster.is_running() {
            continue;
        }
        eprintln!("sessions of {}:", cluster.data_dir().display());
        for row in cluster.connect("postgres")?.query(SESSIONS, &[])? {
            eprintln!("    {}", row.get::<_, String>(0));
        }
        eprintln!("its log:\n{}", cluster.log_tail());
    }
    Ok(())
}
