//! Runs other programs. Errors name the command and show its output.

use std::ffi::OsStr;
use std::fs::{self, DirEntry};
use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::progress;

/// Returns the command as a user would type it.
pub fn describe(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Runs a command whose output the user sees; an error if it fails.
pub fn run(command: &mut Command) -> Result<()> {
    if run_status(command)? {
        return Ok(());
    }
    bail!("failed: {}", describe(command))
}

/// Runs a command whose output the user sees, and returns whether it succeeded.
pub fn run_status(command: &mut Command) -> Result<bool> {
    let status = command
        .status()
        .with_context(|| format!("cannot run {}", describe(command)))?;
    Ok(status.success())
}

/// Runs a command that takes time: the user sees a description and its last line of output, and the whole output only
/// if it fails.
pub fn run_with_progress(what: &str, command: &mut Command) -> Result<()> {
    watch(what, command, false)
}

/// The programs of [`run_behind`].
static BEHIND: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// Runs a command as [`run_with_progress`] does, at a lower priority than others. [`kill_descendants`] leaves it alone.
pub fn run_behind(what: &str, command: &Command) -> Result<()> {
    watch(what, &mut behind(command), true)
}

/// Returns the command at a lower priority.
pub fn behind(command: &Command) -> Command {
    let mut nice = Command::new("nice");
    nice.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => nice.env(name, value),
            None => nice.env_remove(name),
        };
    }
    if let Some(directory) = command.get_current_dir() {
        nice.current_dir(directory);
    }
    nice
}

fn watch(what: &str, command: &mut Command, is_behind: bool) -> Result<()> {
    eprintln!("{what}");
    let (reader, writer) = std::io::pipe()?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .spawn()
        .with_context(|| format!("cannot run {}", describe(command)))?;
    let id = child.id();
    if is_behind {
        running_behind().push(id);
    }
    // The command keeps the pipe's writing end open, and reading would never end.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let progress = progress::waiting(what)?;
    let mut log = String::new();
    for line in BufReader::new(reader).split(b'\n') {
        let line = String::from_utf8_lossy(&line?).into_owned();
        progress.set_message(line.trim().to_string());
        log.push_str(&line);
        log.push('\n');
    }
    progress.finish_and_clear();
    let ended = child.wait()?;
    running_behind().retain(|&other| other != id);
    if !ended.success() {
        bail!("failed: {}\n{log}", describe(command));
    }
    Ok(())
}

fn running_behind() -> MutexGuard<'static, Vec<u32>> {
    BEHIND.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a command silently and returns its output. If it fails, the error contains everything it printed.
pub fn run_quietly(command: &mut Command) -> Result<String> {
    let output = capture(command)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_string());
    }
    bail!(
        "failed: {}\n{}{}",
        describe(command),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Returns whether the command can be run and succeeds; its output is dropped.
pub fn succeeds(command: &mut Command) -> bool {
    capture(command).is_ok_and(|output| output.status.success())
}

fn capture(command: &mut Command) -> Result<Output> {
    command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {}", describe(command)))
}

/// Kills every program that this process has started, and those that they have started in turn, except those of
/// [`run_behind`]. A server is not among them: `pg_ctl` leaves it to the system.
pub fn kill_descendants() {
    let mut parents = parents();
    let behind = running_behind().clone();
    parents.retain(|(child, _)| !behind.contains(child));
    let mut descendants = vec![std::process::id()];
    let mut at = 0;
    while let Some(&parent) = descendants.get(at) {
        let children = parents.iter().filter(|(_, other)| *other == parent);
        descendants.extend(children.map(|(child, _)| child));
        at += 1;
    }
    for &descendant in &descendants[1..] {
        // It may have ended on its own.
        let _ = kill(Pid::from_raw(descendant as i32), Signal::SIGKILL);
    }
}

/// Returns every process and its parent.
fn parents() -> Vec<(u32, u32)> {
    let parent = |process: DirEntry| {
        let number = process.file_name().to_str()?.parse().ok()?;
        let status = fs::read_to_string(process.path().join("status")).ok()?;
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
        Some((number, parent.trim().parse().ok()?))
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(parent).collect()
}
