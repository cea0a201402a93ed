//! The server's main process, found through its data directory.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A server that takes longer to stop is reported.
const PATIENCE: Duration = Duration::from_secs(60);

/// The process that serves this data directory. The number in `postmaster.pid` may be left over
/// from a crash and belong to another process by now, so it must also work in the directory.
pub fn running(data_dir: &Path) -> Option<Pid> {
    let text = fs::read_to_string(data_dir.join("postmaster.pid")).ok()?;
    let pid: i32 = text.lines().next()?.parse().ok()?;
    let works_in = fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
    (works_in == data_dir.canonicalize().ok()?).then(|| Pid::from_raw(pid))
}

/// Ends the server in an orderly way, disconnecting its clients, and waits for it.
pub fn stop(data_dir: &Path) -> Result<()> {
    end(data_dir, Signal::SIGINT)
}

/// Kills the server as a power failure would, and waits until it is gone.
pub fn crash(data_dir: &Path) -> Result<()> {
    end(data_dir, Signal::SIGKILL)
}

fn end(data_dir: &Path, signal: Signal) -> Result<()> {
    let Some(pid) = running(data_dir) else {
        return Ok(());
    };
    kill(pid, signal)?;
    let start = Instant::now();
    // A killed process keeps its number until its parent has noticed, and its children live on
    // for a moment; the server does not start again before both are over.
    while kill(pid, None).is_ok() || is_in_use(data_dir) {
        if start.elapsed() > PATIENCE {
            bail!("the server in {} does not stop", data_dir.display());
        }
        sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Whether any process works in this directory.
fn is_in_use(data_dir: &Path) -> bool {
    let data_dir = data_dir.canonicalize().unwrap_or_else(|_| data_dir.into());
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut directories =
        processes.filter_map(|entry| fs::read_link(entry.path().join("cwd")).ok());
    directories.any(|dir| dir == data_dir)
}
