//! `cargo xtask package`: a Debian package and a tarball for the installed PostgreSQL, and the sources for PGXN.

mod deb;
mod notices;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use testbed::pg_config::{PgConfig, PostgresChoice};
use testbed::server::extension;
use testbed::server::installation::{below, copy_file};
use testbed::{setup, shell, workspace};
use walkdir::WalkDir;

pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The contents of the documentation directory, in addition to `docs/`.
const DOCUMENTS: [&str; 7] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "LICENSE",
    "benches/RESULTS.md",
];

/// The file times in the packages, in seconds since 1970, so that the same sources give the same bytes.
const EPOCH: &str = "SOURCE_DATE_EPOCH";

/// The files that were made.
pub struct Packages {
    pub tarball: PathBuf,
    /// The Debian package, or the reason why there is none.
    pub deb: Result<PathBuf, String>,
    /// The sources in the form that PGXN accepts; None outside a checkout.
    pub sources: Option<PathBuf>,
    /// The extension alone, in the layout of an image for `extension_control_path`.
    pub image: PathBuf,
}

/// Makes all packages and prints their paths.
pub fn run(choice: &PostgresChoice) -> Result<()> {
    let pg = setup::ensure(choice)?;
    let packages = make(&pg)?;
    println!("Wrote {}", packages.tarball.display());
    println!("Wrote {}", packages.image.display());
    if let Some(sources) = packages.sources {
        println!("Wrote {}", sources.display());
    }
    match packages.deb {
        Ok(deb) => println!("Wrote {}", deb.display()),
        Err(reason) => println!("No Debian package: {reason}"),
    }
    Ok(())
}

/// Prints the licenses of the libraries that are linked into the Python package.
pub fn print_notices() -> Result<()> {
    print!("{}", notices::text("neardup-python", None)?);
    Ok(())
}

fn extension_notices(pg: &PgConfig) -> Result<String> {
    notices::text("pg_neardup", Some(&pg.feature()))
}

/// Builds the extension and packs it into `dist` in Cargo's target directory.
pub fn make(pg: &PgConfig) -> Result<Packages> {
    let built = extension::package(pg)?;
    let dist = workspace::target_dir().join("dist");
    fs::create_dir_all(&dist)?;
    let stage = workspace::scratch_dir().join(format!("stage-{}", pg.feature()));
    if stage.exists() {
        fs::remove_dir_all(&stage)?;
    }
    strip(&built)?;
    copy_tree(&built, &stage)?;
    let name = format!("pg_neardup-{VERSION}-{}-{}", pg.feature(), platform());
    add_documents(pg, &stage, &doc_dir(pg, "pg_neardup"))?;
    let tarball = dist.join(format!("{name}.tar.gz"));
    set_modes(&stage)?;
    pack(&stage, &tarball)?;
    let deb = deb::make(pg, &built, &dist)?;
    let image = make_image(pg, &built)?;
    Ok(Packages {
        tarball,
        deb,
        sources: pack_sources(&dist)?,
        image,
    })
}

/// Packs the files of the last commit. PGXN's client runs `make` and `make install` on them.
fn pack_sources(dist: &Path) -> Result<Option<PathBuf>> {
    if !workspace::root().join(".git").exists() {
        return Ok(None);
    }
    let archive = dist.join(format!("pg_neardup-{VERSION}.zip"));
    let mut command = Command::new("git");
    command.current_dir(workspace::root());
    command.args(["archive", "--format=zip", "HEAD", "--output"]);
    command
        .arg(&archive)
        .arg(format!("--prefix=pg_neardup-{VERSION}/"));
    shell::run_quietly(&mut command)?;
    Ok(Some(archive))
}

/// Copies the extension into the directories `lib` and `share`, the layout in which CloudNativePG mounts an image for
/// PostgreSQL 18.
fn make_image(pg: &PgConfig, built: &Path) -> Result<PathBuf> {
    let image = workspace::target_dir().join("image");
    if image.exists() {
        fs::remove_dir_all(&image)?;
    }
    copy_tree(&below(built, &pg.pkglibdir), &image.join("lib"))?;
    copy_tree(&below(built, &pg.sharedir), &image.join("share"))?;
    fs::create_dir(image.join("licenses"))?;
    copy_file(
        &workspace::root().join("LICENSE"),
        &image.join("licenses/LICENSE"),
    )?;
    fs::write(image.join("licenses/THIRD-PARTY"), extension_notices(pg)?)?;
    set_modes(&image)?;
    Ok(image)
}

/// Removes the symbols from libraries that are not needed for loading them.
fn strip(built: &Path) -> Result<()> {
    for library in libraries(built)? {
        let mut command = Command::new("strip");
        command.args([
            "--strip-unneeded",
            "--remove-section=.comment",
            "--remove-section=.note",
        ]);
        shell::run_quietly(command.arg(library))?;
    }
    Ok(())
}

fn libraries(tree: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in WalkDir::new(tree).sort_by_file_name() {
        let path = entry?.into_path();
        if is_library(&path) {
            found.push(path);
        }
    }
    Ok(found)
}

fn is_library(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "so")
}

/// Returns the time for all files: the time that the environment specifies, or the time of the last commit.
fn epoch() -> String {
    let asked = std::env::var(EPOCH).ok();
    let commit = || {
        let mut command = Command::new("git");
        command
            .current_dir(workspace::root())
            .args(["log", "-1", "--format=%ct"]);
        shell::run_quietly(&mut command).ok()
    };
    asked.or_else(commit).unwrap_or_else(|| "0".into())
}

/// Makes files readable by everyone, whatever the umask. Returns the sum of their sizes.
fn set_modes(stage: &Path) -> Result<u64> {
    let mut size = 0;
    for entry in WalkDir::new(stage) {
        let entry = entry?;
        let is_open = entry.file_type().is_dir() || is_library(entry.path());
        let mode = if is_open { 0o755 } else { 0o644 };
        fs::set_permissions(entry.path(), Permissions::from_mode(mode))?;
        size += entry.metadata()?.len();
    }
    Ok(size)
}

/// Packs the tree in the layout that it has below `/`, to be unpacked there.
fn pack(stage: &Path, tarball: &Path) -> Result<()> {
    let mut command = Command::new("tar");
    command
        .args([
            "--create",
            "--use-compress-program=gzip --no-name",
            "--sort=name",
            "--format=gnu",
            "--owner=0",
            "--group=0",
            "--file",
        ])
        .arg(tarball)
        .arg(format!("--mtime=@{}", epoch()))
        .arg("--directory")
        .arg(stage);
    for entry in WalkDir::new(stage)
        .min_depth(1)
        .max_depth(1)
        .sort_by_file_name()
    {
        command.arg(entry?.file_name());
    }
    shell::run_quietly(&mut command)?;
    Ok(())
}

/// Returns the documentation directory: next to PostgreSQL's own share directory, or `/usr/share/doc` on Debian.
fn doc_dir(pg: &PgConfig, package: &str) -> PathBuf {
    let share = pg.sharedir.ancestors().find(|dir| dir.ends_with("share"));
    share.unwrap_or(&pg.sharedir).join("doc").join(package)
}

fn add_documents(pg: &PgConfig, stage: &Path, doc_dir: &Path) -> Result<()> {
    let target = below(stage, doc_dir);
    fs::create_dir_all(&target)?;
    fs::write(target.join("THIRD-PARTY"), extension_notices(pg)?)?;
    for name in DOCUMENTS {
        copy_file(&workspace::root().join(name), &target.join(name))?;
    }
    copy_tree(&workspace::root().join("docs"), &target.join("docs"))
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
