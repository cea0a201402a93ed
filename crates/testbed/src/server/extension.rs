//! Builds the extension and adds it to an installation.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use walkdir::WalkDir;

use super::installation::{Installation, below, copy_file};
use super::script;
use crate::pg_config::PgConfig;
use crate::{shell, workspace};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Keeps the section in which the library describes its SQL objects: no code refers to it. This flag applies only to
/// this library, so that the crates built for it can also be used for the Python package.
const KEEP_SCHEMA: [&str; 2] = ["-C", "link-arg=-Wl,--no-gc-sections"];

/// Builds the extension with the points at which tests hold sessions, and adds it to the installation; fast if nothing
/// has changed.
pub fn install(installation: &Installation, pg: &PgConfig) -> Result<()> {
    let package = package_with(pg, &tested_features(pg))?;
    match &installation.private_root {
        Some(root) => overlay(&package, root),
        None => copy_into_system(&package, pg),
    }
}

/// Builds the library as [`install`] does, and returns it.
pub fn build_for_tests(pg: &PgConfig) -> Result<PathBuf> {
    build(pg, &tested_features(pg))
}

/// Returns the features of the extension that is tested, separated by a space.
pub fn tested_features(pg: &PgConfig) -> String {
    format!("{} holds", pg.feature())
}

/// Builds the extension. Returns a directory with its files, at the same paths as below `/`.
pub fn package(pg: &PgConfig) -> Result<PathBuf> {
    package_with(pg, &pg.feature())
}

fn package_with(pg: &PgConfig, features: &str) -> Result<PathBuf> {
    let library = build(pg, features)?;
    let package = workspace::scratch_dir().join(format!("package-{}", pg.feature()));
    if package.exists() {
        fs::remove_dir_all(&package)?;
    }
    copy_file(
        &library,
        &below(&package, &pg.pkglibdir).join("pg_neardup.so"),
    )?;
    let scripts = below(&package, &pg.sharedir).join("extension");
    fs::create_dir_all(&scripts)?;
    let control = fs::read_to_string(workspace::root().join("pg_neardup.control"))?;
    let control = control.replace("@CARGO_VERSION@", VERSION);
    fs::write(scripts.join("pg_neardup.control"), &control)?;
    let install = script::generate(&library, &control)?;
    let install = script::sorted(&install, workspace::root())?;
    fs::write(scripts.join(format!("pg_neardup--{VERSION}.sql")), install)?;
    for entry in fs::read_dir(workspace::root().join("sql"))? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_string_lossy().starts_with("pg_neardup--") {
            copy_file(&entry.path(), &scripts.join(name))?;
        }
    }
    Ok(package)
}

/// Builds the library and returns it.
fn build(pg: &PgConfig, features: &str) -> Result<PathBuf> {
    let mut command = pg.cargo();
    command.args(["rustc", "--release", "--lib"]);
    command.args(workspace::ignoring_rust_version());
    command.args(["--package", "pg_neardup", "--no-default-features"]);
    command
        .args(["--features", features, "--"])
        .args(KEEP_SCHEMA);
    let what = format!("Building the extension for {}", pg.version);
    shell::run_with_progress(&what, &mut command)?;
    Ok(workspace::target_dir().join("release/libpg_neardup.so"))
}

/// Installs the extension into the server's own directories, through sudo if necessary.
pub fn install_into_system(pg: &PgConfig) -> Result<()> {
    copy_into_system(&package(pg)?, pg)
}

fn copy_into_system(package: &Path, pg: &PgConfig) -> Result<()> {
    if is_writable(&pg.pkglibdir) {
        return overlay(package, Path::new("/"));
    }
    for entry in WalkDir::new(package) {
        let entry = entry?;
        if entry.file_type().is_file() {
            let mut command = Command::new("sudo");
            command
                .args(["install", "-D", "--mode=644"])
                .arg(entry.path());
            shell::run(command.arg(Path::new("/").join(entry.path().strip_prefix(package)?)))?;
        }
    }
    Ok(())
}

/// Copies the built tree over the installation. Each file gets a new inode, so that servers that have loaded the old
/// library keep it intact.
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
