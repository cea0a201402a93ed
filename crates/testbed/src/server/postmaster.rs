//! The server's main process, found through its data directory.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::cluster::until;

/// If a server takes longer to stop, this is an error.
const PATIENCE: Duration = Duration::from_mins(10);

/// Returns the process that serves this data directory. The number in `postmaster.pid` may be left over from a crash
/// and belong to another process now, so the process must also work in the directory.
pub fn running(data_dir: &Path) -> Option<Pid> {
    let text = fs::read_to_string(data_dir.join("postmaster.pid")).ok()?;
    let pid: i32 = text.lines().next()?.parse().ok()?;
    let works_in = fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
    (works_in == data_dir.canonicalize().ok()?).then(|| Pid::from_raw(pid))
}

/// Stops the server in an orderly way, which disconnects its clients, and waits for its end.
pub fn stop(data_dir: &Path) -> Result<()> {
    let Some(pid) = running(data_dir) else {
        return Ok(());
    };
    kill(pid, Signal::SIGINT)?;
    wait(data_dir, pid)
}

/// Kills all processes of the server, whatever they are doing, and waits until they are gone.
pub fn crash(data_dir: &Path) -> Result<()> {
    let Some(pid) = running(data_dir) else {
        return Ok(());
    };
    // Kills the main process first, so that it does not replace killed processes.
    kill(pid, Signal::SIGKILL)?;
    for child in working_in(data_dir) {
        // It may have ended on its own.
        let _ = kill(child, Signal::SIGKILL);
    }
    wait(data_dir, pid)
}

/// Clock ticks per second in `/proc`, the same on every Linux.
const TICKS: f64 = 100.0;

/// Returns the processor time of all processes of the server, including those that have ended.
pub fn processor_seconds(data_dir: &Path) -> Result<f64> {
    let main = running(data_dir).context("the server does not run")?;
    let mut ticks = 0.0;
    for process in working_in(data_dir) {
        // It may have ended in the meantime; then the main process counts its time.
        let Ok(stat) = fs::read_to_string(format!("/proc/{process}/stat")) else {
            continue;
        };
        // After the name, which may contain anything and ends with the last parenthesis.
        let (_, fields) = stat.rsplit_once(')').context("no name")?;
        // Its own time in user and system mode, and that of children that it has waited for.
        let counted = if process == main { 11..15 } else { 11..13 };
        let fields: Vec<&str> = fields.split_whitespace().collect();
        for field in fields.get(counted).context("no times")? {
            ticks += field.parse::<f64>()?;
        }
    }
    Ok(ticks / TICKS)
}

fn wait(data_dir: &Path, pid: Pid) -> Result<()> {
    // A killed process keeps its number until its parent has noticed, and its children live on for a moment. The
    // server does not start again before both are over.
    let is_over = || Ok(kill(pid, None).is_err() && working_in(data_dir).is_empty());
    let is_over = until(PATIENCE, Duration::from_millis(20), is_over)?;
    if !is_over {
        bail!("the server in {} does not stop", data_dir.display());
    }
    Ok(())
}

/// Returns the processes that work in this directory.
fn working_in(data_dir: &Path) -> Vec<Pid> {
    let data_dir = data_dir.canonicalize().unwrap_or_else(|_| data_dir.into());
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter(|entry| fs::read_link(entry.path().join("cwd")).is_ok_and(|dir| dir == data_dir))
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .map(Pid::from_raw)
        .collect()
}
