//! The maximum duration of a test. A test that hangs is ended, with its sessions, servers and programs, and the next
//! test runs.

use std::fs;
use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use testbed::server::cluster::Cluster;
use testbed::server::home::Home;
use testbed::shell;

use crate::shared;

/// The maximum time for the servers to report the activity of their sessions, and for a test to end after its sessions;
/// for the latter, also a multiple of the test's limit.
const PATIENCE: Duration = Duration::from_mins(1);
const LIMITS: u32 = 5;

/// Lists the sessions of a server, beginning with those whose activity has not changed for longest.
const SESSIONS: &str =
    "SELECT concat_ws(' | ', pid, datname, backend_type, state, wait_event_type, wait_event,
        'blocked by ' || nullif(pg_blocking_pids(pid), '{}')::text,
        clock_timestamp() - state_change, query)
    FROM pg_stat_activity WHERE pid <> pg_backend_pid() ORDER BY state_change";

static LIMIT: OnceLock<Duration> = OnceLock::new();

/// Sets the limit of all tests.
pub fn set(limit: Duration) {
    LIMIT.get_or_init(|| limit);
}

/// Returns the limit of all tests.
pub fn limit() -> Duration {
    *LIMIT.get().expect("the limit is set before the tests")
}

/// Runs a test in a separate thread.
///
/// # Errors
/// Returns the test's error. If the test does not end within the limit, ends everything that it may wait for, and
/// returns an error that reports this.
pub fn run<T: Send + 'static>(
    test: impl FnOnce() -> Result<T> + Send + 'static,
    limit: Duration,
) -> Result<T> {
    let (sender, end) = mpsc::channel();
    let thread = thread::spawn(move || {
        // Dropped when the test ends, even by a panic.
        let _sender: mpsc::Sender<()> = sender;
        test()
    });
    if has_ended(&end, limit) {
        return thread.join().unwrap_or_else(|panic| resume_unwind(panic));
    }
    let sessions = end_everything()?;
    let outcome = match has_ended(&end, PATIENCE.min(LIMITS * limit)) {
        false => "its thread goes on, though its sessions and programs were ended".to_string(),
        true => match thread.join() {
            Ok(Ok(_)) => "passed when its sessions and programs were ended".to_string(),
            Ok(Err(error)) => format!("{error:#}"),
            Err(panic) => resume_unwind(panic),
        },
    };
    bail!("not ended after {limit:?}: {outcome}\n{sessions}")
}

fn has_ended(end: &Receiver<()>, limit: Duration) -> bool {
    end.recv_timeout(limit) != Err(RecvTimeoutError::Timeout)
}

/// Ends all sessions of this run's servers and all programs that this process has started. Returns the activity of the
/// sessions.
fn end_everything() -> Result<String> {
    let server = shared::server();
    let mut clusters = vec![server.main.clone()];
    // Clusters of a single test have the number of this process in their names.
    let suffix = format!("-{}", std::process::id());
    for home in Home::existing()? {
        for entry in fs::read_dir(home.clusters()).into_iter().flatten() {
            let path = entry?.path();
            if path.to_string_lossy().ends_with(&suffix) {
                let (installation, account) = (&server.main.installation, &server.main.account);
                clusters.push(Cluster::at(path, installation, account));
            }
        }
    }
    clusters.retain(Cluster::is_running);
    let mut said = String::new();
    for cluster in clusters {
        let (sender, answer) = mpsc::channel();
        let asked = cluster.clone();
        thread::spawn(move || sender.send(sessions(&asked)));
        let answer = answer.recv_timeout(PATIENCE);
        let answer = answer.unwrap_or_else(|_| Err(anyhow!("they cannot be asked")));
        said += &format!("sessions of {}:\n", cluster.data_dir().display());
        said += &answer.unwrap_or_else(|error| format!("{error:#}"));
        said += &format!("\nits log:\n{}\n", cluster.log_tail());
        cluster.crash()?;
    }
    shell::kill_descendants();
    server.main.start()?;
    Ok(said)
}

/// Returns the activity of the sessions of a server, one per line.
fn sessions(cluster: &Cluster) -> Result<String> {
    let rows = cluster.connect("postgres")?.query(SESSIONS, &[])?;
    let lines: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    Ok(lines.join("\n"))
}
