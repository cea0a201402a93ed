//! The memory of a server process.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

/// Returns the most private memory, in kB, that a process has while `work` is done. Shared buffers are not counted.
pub fn peak(pid: i32, work: impl FnOnce() -> Result<()>) -> Result<u64> {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut peak = 0;
            // Reads it once more after the work is done, because the work may have taken less than a pause.
            loop {
                let last = done.load(Ordering::Relaxed);
                peak = peak.max(private(pid)?);
                if last {
                    return Ok(peak);
                }
                thread::sleep(Duration::from_millis(2));
            }
        });
        let result = work();
        done.store(true, Ordering::Relaxed);
        result?;
        watcher.join().expect("the watcher does not panic")
    })
}

/// Returns the present private memory of a process, in kB.
pub fn private(pid: i32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find(|line| line.starts_with("RssAnon:"));
    let digits = line.and_then(|line| line.split_whitespace().nth(1));
    Ok(digits.context("no RssAnon")?.parse()?)
}
