//! The Debian package, made by `dpkg-deb` from a staged tree.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use testbed::pg_config::PgConfig;
use testbed::{shell, workspace};
use walkdir::WalkDir;

use super::{VERSION, add_documents, below, copy_tree, doc_dir};

const DESCRIPTION: &str = "near-duplicate documents inside PostgreSQL
 Finds near-duplicate documents where they already live: MinHash and SimHash
 signatures, an index whose answers are exactly those of a sequential scan,
 exclusion constraints that keep near-duplicates out, pairs and clusters of
 whole collections.";

/// Makes the package in `dist`; tells why if this PostgreSQL or this machine has none.
pub fn make(pg: &PgConfig, built: &Path, dist: &Path) -> Result<Result<PathBuf, String>> {
    if which::which("dpkg-deb").is_err() {
        return Ok(Err("dpkg-deb is not installed".into()));
    }
    let is_debians = pg.pkglibdir.starts_with("/usr/lib/postgresql")
        && pg.sharedir.starts_with("/usr/share/postgresql");
    if !is_debians {
        let place = pg.bindir.display();
        return Ok(Err(format!(
            "the PostgreSQL in {place} is not from a Debian package"
        )));
    }
    let stage = workspace::scratch_dir().join(format!("deb-{}", pg.feature()));
    if stage.exists() {
        fs::remove_dir_all(&stage)?;
    }
    let package = format!("postgresql-{}-neardup", pg.major);
    let architecture = ask("dpkg", &["--print-architecture"])?;
    copy_tree(built, &stage)?;
    let documents = doc_dir(pg, &package);
    add_documents(&stage, &documents)?;
    // Policy wants the license under this name.
    let documents = below(&stage, &documents);
    fs::rename(documents.join("LICENSE"), documents.join("copyright"))?;
    let size = set_modes(&stage)?;
    let fields = control(pg, &package, &architecture, size)?;
    fs::create_dir(stage.join("DEBIAN"))?;
    fs::write(stage.join("DEBIAN/control"), fields)?;

    let deb = dist.join(format!("{package}_{VERSION}-1_{architecture}.deb"));
    let mut command = Command::new("dpkg-deb");
    command
        .args(["--root-owner-group", "--build"])
        .arg(&stage)
        .arg(&deb);
    shell::run_quietly(&mut command)?;
    Ok(Ok(deb))
}

fn control(pg: &PgConfig, package: &str, architecture: &str, size: u64) -> Result<String> {
    // Built against this machine's C library, so no older one may do.
    let libc = ask(
        "dpkg-query",
        &["--show", "--showformat=${Version}", "libc6"],
    )?;
    let libc = libc.split('-').next().unwrap_or(&libc);
    Ok(format!(
        "Package: {package}\n\
         Version: {VERSION}-1\n\
         Architecture: {architecture}\n\
         Section: database\n\
         Priority: optional\n\
         Maintainer: the pg_neardup authors <pg_neardup@localhost>\n\
         Installed-Size: {}\n\
         Depends: postgresql-{}, libc6 (>= {libc}), libgcc-s1\n\
         Description: {DESCRIPTION}\n",
        size.div_ceil(1024),
        pg.major
    ))
}

/// Readable by everybody, whatever the umask; the sum of the files' sizes.
fn set_modes(stage: &Path) -> Result<u64> {
    let mut size = 0;
    for entry in WalkDir::new(stage) {
        let entry = entry?;
        let is_library = entry.path().extension().is_some_and(|ext| ext == "so");
        let mode = if entry.file_type().is_dir() || is_library {
            0o755
        } else {
            0o644
        };
        fs::set_permissions(entry.path(), Permissions::from_mode(mode))?;
        size += entry.metadata()?.len();
    }
    Ok(size)
}

fn ask(program: &str, arguments: &[&str]) -> Result<String> {
    shell::run_quietly(Command::new(program).args(arguments))
}
