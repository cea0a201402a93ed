//! cargo-pgrx, the build tool for extensions in Rust, in the version that the extension needs.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::pg_config::PgConfig;
use crate::{shell, workspace};

/// Returns the version of `pgrx` in the workspace's manifest. The tool must have the same version.
fn version() -> &'static str {
    include_str!("../../../../Cargo.toml")
        .lines()
        .find_map(|line| line.strip_prefix("pgrx = \"=")?.strip_suffix('"'))
        .expect("the manifest pins pgrx")
}

/// Returns the installed cargo-pgrx of the right version.
pub fn find() -> Option<PathBuf> {
    let mut candidates = vec![own_root().join("bin/cargo-pgrx")];
    candidates.extend(home::cargo_home().map(|home| home.join("bin/cargo-pgrx")));
    candidates.extend(which::which("cargo-pgrx"));
    candidates.into_iter().find(|path| {
        let answer = shell::run_quietly(Command::new(path).args(["pgrx", "--version"]));
        answer.is_ok_and(|text| text.ends_with(version()))
    })
}

/// Installs cargo-pgrx with Cargo, next to an installation of another version, not over it. Without optimization,
/// this takes 3 minutes of processor time instead of 7. The tool leaves the work to compilers, so that it builds the
/// extension as fast.
pub fn install() -> Result<()> {
    eprintln!(
        "Installing cargo-pgrx {} (takes a few minutes, only once)",
        version()
    );
    let mut command = workspace::cargo();
    command.args([
        "install",
        "--quiet",
        "--debug",
        "--locked",
        "cargo-pgrx",
        "--version",
        version(),
    ]);
    if home::cargo_home()?.join("bin/cargo-pgrx").exists() {
        command.arg("--root").arg(own_root());
    }
    shell::run(&mut command)
}

/// Tells pgrx where PostgreSQL is, in a configuration for this checkout. Nothing is downloaded.
pub fn configure(pg: &PgConfig) -> Result<()> {
    let wanted = format!("{} = \"{}\"", pg.feature(), pg.path.display());
    let config = fs::read_to_string(config_dir(pg).join("config.toml")).unwrap_or_default();
    if config.lines().any(|line| line == wanted) {
        return Ok(());
    }
    fs::create_dir_all(config_dir(pg))?;
    let program = format!("--{}={}", pg.feature(), pg.path.display());
    let mut command = command(pg, "init")?;
    shell::run_quietly(command.arg(program).arg("--no-run"))?;
    Ok(())
}

/// Returns a `cargo pgrx` command for this PostgreSQL.
pub fn cargo_pgrx(pg: &PgConfig, subcommand: &str) -> Result<Command> {
    let mut command = command(pg, subcommand)?;
    command.arg("--pg-config").arg(&pg.path);
    Ok(command)
}

/// Returns a plain Cargo command that builds for this PostgreSQL.
pub fn cargo(pg: &PgConfig) -> Command {
    let mut command = workspace::cargo();
    command.env("PGRX_HOME", config_dir(pg));
    command
}

fn command(pg: &PgConfig, subcommand: &str) -> Result<Command> {
    let program = find().with_context(|| format!("cargo-pgrx {} is not installed", version()))?;
    let mut command = Command::new(program);
    command
        .current_dir(workspace::root())
        .env("CARGO", workspace::cargo_program())
        .env("PGRX_HOME", config_dir(pg))
        .args(["pgrx", subcommand]);
    workspace::forget_own_build(&mut command);
    Ok(command)
}

fn config_dir(pg: &PgConfig) -> PathBuf {
    workspace::scratch_dir().join(format!("pgrx-{}", pg.feature()))
}

fn own_root() -> PathBuf {
    workspace::scratch_dir().join("tools")
}
