//! The Debian package, made by `dpkg-deb` from a staged tree.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use testbed::pg_config::PgConfig;
use testbed::server::installation::below;
use testbed::{shell, workspace};

use super::{EPOCH, VERSION, add_documents, copy_tree, doc_dir, epoch, libraries, set_modes};

const DESCRIPTION: &str = "near-duplicate documents inside PostgreSQL
 Finds near-duplicate documents where they already live: MinHash and SimHash
 signatures, an index on the text itself, exclusion constraints that keep
 near-duplicates out, pairs and clusters of whole collections.";

const MAINTAINER: &str = "the pg_neardup authors <pg_neardup@localhost>";

/// Makes the package in `dist`. Returns the reason if there is none for this PostgreSQL or this machine.
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
    add_documents(pg, &stage, &documents)?;
    follow_policy(&stage, &below(&stage, &documents), &package)?;
    let size = set_modes(&stage)?;
    let libc = least_libc(&stage)?;
    let fields = control(pg, &package, &architecture, size, &libc);
    fs::create_dir(stage.join("DEBIAN"))?;
    fs::write(stage.join("DEBIAN/control"), fields)?;

    let deb = dist.join(format!("{package}_{VERSION}-1_{architecture}.deb"));
    let mut command = Command::new("dpkg-deb");
    command
        .env(EPOCH, epoch())
        .args(["--root-owner-group", "--build"])
        .arg(&stage)
        .arg(&deb);
    shell::run_quietly(&mut command)?;
    Ok(Ok(deb))
}

/// Names the license file as Debian does, and adds the changelog and the list of findings that Debian's check may
/// report.
fn follow_policy(stage: &Path, documents: &Path, package: &str) -> Result<()> {
    fs::rename(documents.join("LICENSE"), documents.join("copyright"))?;
    let date = ask(
        "date",
        &["--utc", "--rfc-email", &format!("--date=@{}", epoch())],
    )?;
    let changelog = documents.join("changelog.Debian");
    fs::write(
        &changelog,
        format!(
            "{package} ({VERSION}-1) unstable; urgency=medium\n\n  * CHANGELOG.md has the changes.\n\n \
             -- {MAINTAINER}  {date}\n"
        ),
    )?;
    let mut command = Command::new("gzip");
    shell::run_quietly(command.args(["-9", "--no-name"]).arg(&changelog))?;
    let overrides = stage.join("usr/share/lintian/overrides");
    fs::create_dir_all(&overrides)?;
    fs::write(
        overrides.join(package),
        format!(
            "# Whoever builds the package is its maintainer.\n\
             {package}: bogus-mail-host\n\
             {package}: bogus-mail-host-in-debian-changelog\n"
        ),
    )?;
    Ok(())
}

/// Returns the oldest version of the C library that has everything that the libraries in a tree need.
fn least_libc(tree: &Path) -> Result<String> {
    let mut versions = Vec::new();
    for library in libraries(tree)? {
        let symbols =
            shell::run_quietly(Command::new("objdump").arg("--dynamic-syms").arg(library))?;
        for rest in symbols.split("GLIBC_").skip(1) {
            let is_end = |letter: char| !letter.is_ascii_digit() && letter != '.';
            let version = rest.split(is_end).next().unwrap_or_default();
            let numbers: Vec<u32> = version
                .split('.')
                .filter_map(|part| part.parse().ok())
                .collect();
            versions.push((numbers, version.to_owned()));
        }
    }
    let (_, version) = versions
        .into_iter()
        .max()
        .context("no library needs the C library")?;
    Ok(version)
}

/// Returns the control fields of the package. The package needs at least the minor release that it was built with: an
/// earlier release may not be able to load a library built with later headers.
fn control(pg: &PgConfig, package: &str, architecture: &str, size: u64, libc: &str) -> String {
    format!(
        "Package: {package}\n\
         Version: {VERSION}-1\n\
         Architecture: {architecture}\n\
         Section: database\n\
         Priority: optional\n\
         Maintainer: {MAINTAINER}\n\
         Installed-Size: {}\n\
         Depends: postgresql-{} (>= {}), libc6 (>= {libc}), libgcc-s1\n\
         Description: {DESCRIPTION}\n",
        size.div_ceil(1024),
        pg.major,
        pg.release()
    )
}

fn ask(program: &str, arguments: &[&str]) -> Result<String> {
    shell::run_quietly(Command::new(program).args(arguments))
}
