//! `cargo xtask package`: a Debian package and a tarball for the PostgreSQL at hand.

mod deb;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use testbed::pg_config::{PgConfig, PostgresChoice};
use testbed::server::extension;
use testbed::server::installation::copy_file;
use testbed::{setup, shell, workspace};
use walkdir::WalkDir;

pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Contents of the documentation directory beside `docs/`.
const DOCUMENTS: [&str; 6] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "LICENSE",
];

/// The files that were made.
pub struct Packages {
    pub tarball: PathBuf,
    /// The Debian package, or why there is none.
    pub deb: Result<PathBuf, String>,
}

/// Makes both and tells where they are.
pub fn run(choice: &PostgresChoice) -> Result<()> {
    let pg = setup::ensure(choice)?;
    let packages = make(&pg)?;
    println!("Wrote {}", packages.tarball.display());
    match packages.deb {
        Ok(deb) => println!("Wrote {}", deb.display()),
        Err(reason) => println!("No Debian package: {reason}"),
    }
    Ok(())
}

/// Builds the extension and packs it, into `dist` in Cargo's target directory.
pub fn make(pg: &PgConfig) -> Result<Packages> {
    let built = extension::package(pg)?;
    let dist = workspace::target_dir().join("dist");
    fs::create_dir_all(&dist)?;
    let stage = workspace::scratch_dir().join(format!("stage-{}", pg.feature()));
    if stage.exists() {
        fs::remove_dir_all(&stage)?;
    }
    copy_tree(&built, &stage)?;
    let name = format!("pg_neardup-{VERSION}-{}-{}", pg.feature(), platform());
    add_documents(&stage, &doc_dir(pg, "pg_neardup"))?;
    let tarball = dist.join(format!("{name}.tar.gz"));
    pack(&stage, &tarball)?;
    let deb = deb::make(pg, &built, &dist)?;
    Ok(Packages { tarball, deb })
}

/// The tree as it lies below `/`: to be unpacked there.
fn pack(stage: &Path, tarball: &Path) -> Result<()> {
    let mut command = Command::new("tar");
    command
        .args([
            "--create",
            "--gzip",
            "--sort=name",
            "--owner=0",
            "--group=0",
            "--file",
        ])
        .arg(tarball)
        .arg("--directory")
        .arg(stage);
    for entry in fs::read_dir(stage)? {
        command.arg(entry?.file_name());
    }
    shell::run_quietly(&mut command)?;
    Ok(())
}

/// Returns the documentation directory: beside PostgreSQL's own share directory, `/usr/share/doc` on
/// Debian.
fn doc_dir(pg: &PgConfig, package: &str) -> PathBuf {
    let share = pg.sharedir.ancestors().find(|dir| dir.ends_with("share"));
    share.unwrap_or(&pg.sharedir).join("doc").join(package)
}

fn add_documents(stage: &Path, doc_dir: &Path) -> Result<()> {
    let target = below(stage, doc_dir);
    for name in DOCUMENTS {
        copy_file(&workspace::root().join(name), &target.join(name))?;
    }
    copy_tree(&workspace::root().join("docs"), &target.join("docs"))
}

/// Returns where an absolute path lies in a tree that stands for `/`.
fn below(stage: &Path, path: &Path) -> PathBuf {
    stage.join(path.strip_prefix("/").unwrap_or(path))
}

fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    for entry in WalkDir::new(from) {
        let entry = entry?;
        if entry.file_type().is_file() {
            copy_file(entry.path(), &to.join(entry.path().strip_prefix(from)?))?;
        }
    }
    Ok(())
}

fn platform() -> String {
    format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH)
}

#[cfg(test)]
mod tests {
    use super::VERSION;
    use testbed::workspace;

    #[test]
    fn metadata_names_this_version() {
        let path = workspace::root().join("META.json");
        let text = std::fs::read_to_string(path).unwrap();
        let version = format!("\"version\": \"{VERSION}\"");
        assert_eq!(text.matches(&version).count(), 2);
    }
}
