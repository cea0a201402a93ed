//! Building the extension and adding it to an installation.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use walkdir::WalkDir;

use super::installation::{Installation, copy_file};
use crate::pg_config::PgConfig;
use crate::progress::waiting;
use crate::setup::pgrx;
use crate::{shell, workspace};

/// Builds the extension and adds it to the installation; quick if nothing has changed.
pub fn install(installation: &Installation, pg: &PgConfig) -> Result<()> {
    let Some(root) = &installation.private_root else {
        return install_into_system(pg);
    };
    overlay(&package(pg)?, root)
}

/// Builds the extension; returns a directory that holds its files as they lie below `/`.
pub fn package(pg: &PgConfig) -> Result<PathBuf> {
    let package = workspace::scratch_dir().join(format!("package-{}", pg.feature()));
    if package.exists() {
        fs::remove_dir_all(&package)?;
    }
    let mut command = pgrx::cargo_pgrx(pg, "package")?;
    command.arg("--out-dir").arg(&package);
    build(&mut command)?;
    Ok(package)
}

/// Installs the extension into the server's own directories, through sudo where need be.
pub fn install_into_system(pg: &PgConfig) -> Result<()> {
    let mut command = pgrx::cargo_pgrx(pg, "install")?;
    command.arg("--release");
    if !is_writable(&pg.pkglibdir) {
        command.arg("--sudo");
    }
    shell::run(&mut command)
}

/// Runs cargo-pgrx with one line of progress; all it says is shown only if it fails.
fn build(command: &mut Command) -> Result<()> {
    let (reader, writer) = std::io::pipe()?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .spawn()
        .with_context(|| format!("cannot run {}", shell::describe(command)))?;
    // The command keeps the pipe's writing end open, and reading would never end.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let progress = waiting("building the extension")?;
    let mut log = String::new();
    for line in BufReader::new(reader).split(b'\n') {
        let line = String::from_utf8_lossy(&line?).into_owned();
        progress.set_message(line.trim().to_string());
        log.push_str(&line);
        log.push('\n');
    }
    progress.finish_and_clear();
    if !child.wait()?.success() {
        bail!("the extension could not be built:\n{log}");
    }
    Ok(())
}

/// Copies the produced tree over the installation. Each file gets a new inode, so that servers
/// that have the old library loaded keep it intact.
fn overlay(package: &Path, root: &Path) -> Result<()> {
    for entry in WalkDir::new(package) {
        let entry = entry?;
        if !entry.file_type().is_file() {
            continue;
        }
        let target = root.join(entry.path().strip_prefix(package)?);
        let fresh = target.with_added_extension("new");
        copy_file(entry.path(), &fresh)?;
        fs::rename(&fresh, &target)?;
    }
    Ok(())
}

fn is_writable(dir: &Path) -> bool {
    nix::unistd::access(dir, nix::unistd::AccessFlags::W_OK).is_ok()
}
