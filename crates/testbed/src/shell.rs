//! Runs other programs. Errors name the command and show its output.

use std::ffi::OsStr;
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail};

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
