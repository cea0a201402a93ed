//! Paths of the checkout and its target directory, and calls of Cargo.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use crate::shell;

/// Returns the checkout's root directory, without `..` or symbolic links, so that it is always the same path.
pub fn root() -> &'static Path {
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        Path::new(root)
            .canonicalize()
            .unwrap_or_else(|_| root.into())
    });
    &ROOT
}

/// Returns Cargo's target directory.
pub fn target_dir() -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
}

/// Returns the directory for everything kept between runs, except the server's own files.
pub fn scratch_dir() -> PathBuf {
    target_dir().join("neardup")
}

/// Returns the Cargo that runs this program.
pub fn cargo_program() -> PathBuf {
    env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from)
}

/// Returns a `cargo` command in the checkout.
pub fn cargo() -> Command {
    let mut command = Command::new(cargo_program());
    command.current_dir(root());
    forget_own_build(&mut command);
    command
}

/// Returns the flag of commands that compile by which Rust 1.95 compiles pgrx, which declares 1.96.
pub fn ignoring_rust_version() -> Option<&'static str> {
    let version = shell::run_quietly(Command::new("rustc").arg("--version")).ok()?;
    version
        .starts_with("rustc 1.95.")
        .then_some("--ignore-rust-version")
}

/// Removes the variables by which `cargo run` describes *this* package. To a nested Cargo they would look like a
/// changed environment, and it would rebuild crates that watch them.
pub fn forget_own_build(command: &mut Command) {
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        let is_own = [
            "CARGO_PKG_",
            "CARGO_MANIFEST_",
            "CARGO_BIN_",
            "CARGO_CRATE_",
        ]
        .iter()
        .any(|prefix| text.starts_with(prefix));
        if is_own || text == "LD_LIBRARY_PATH" {
            command.env_remove(&name);
        }
    }
}
