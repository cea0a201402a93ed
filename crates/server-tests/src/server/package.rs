//! The packages are installed into a copy of the server that lacks the extension, and removed again.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use testbed::server::Server;
use testbed::server::cluster::Cluster;
use testbed::server::home::Home;
use testbed::server::installation::Installation;
use testbed::{shell, workspace};
use walkdir::WalkDir;

use crate::harness::{Outcome, figure};

/// Checks that the packages are the same when made twice, that the extension can be created and used after they are
/// installed, and that no file is left after they are removed.
pub fn installed_and_removed(server: &Server) -> Result<Outcome> {
    let packages = Packages::make(server)?;
    let bytes = packages.bytes()?;
    ensure!(
        Packages::make(server)?.bytes()? == bytes,
        "packages made again are others"
    );
    let bare = Bare::create(server)?;
    let root = bare.installation.private_root.clone();
    let root = root.context("this PostgreSQL cannot be copied")?;
    remove_extension(&root)?;
    let before = files(&root)?;
    bare.ensure_extension(false)?;

    shell::run_quietly(tar("--extract", &packages.tarball).arg("-C").arg(&root))?;
    bare.ensure_extension(true)?;
    let unpacked = shell::run_quietly(&mut tar("--list", &packages.tarball))?;
    for file in unpacked.lines().filter(|line| !line.ends_with('/')) {
        fs::remove_file(root.join(file))?;
    }
    ensure!(files(&root)? == before, "the tarball lists not all it has");

    for file in ["lib/pg_neardup.so", "share/extension/pg_neardup.control"] {
        ensure!(
            packages.image.join(file).is_file(),
            "the image lacks {file}"
        );
    }
    if let Some(sources) = &packages.sources {
        let bytes = fs::read(sources)?;
        for file in ["META.json", "Makefile", "sql/live/track.sql"] {
            let name = format!("pg_neardup-{}/{file}", env!("CARGO_PKG_VERSION"));
            let is_there = bytes
                .windows(name.len())
                .any(|part| part == name.as_bytes());
            ensure!(is_there, "the sources lack {file}");
        }
    }
    match &packages.deb {
        Some(deb) => {
            ensure_policy(deb)?;
            deb_comes_and_goes(&bare, &root, deb)?;
        }
        None => figure!("without a Debian package"),
    }
    ensure!(files(&root)? == before, "removing the package leaves files");
    bare.ensure_extension(false)?;
    Ok(Outcome::Passed)
}

/// Builds the program that makes packages.
pub fn prepare() {
    let mut command = workspace::cargo();
    command.args(["build", "--package", "xtask"]);
    command.args(workspace::ignoring_rust_version());
    // The test reports an error.
    let _ = shell::run_behind("Building xtask", &command);
}

/// The files made by `cargo xtask package`.
struct Packages {
    tarball: PathBuf,
    deb: Option<PathBuf>,
    sources: Option<PathBuf>,
    image: PathBuf,
}

impl Packages {
    fn make(server: &Server) -> Result<Packages> {
        let mut command = workspace::cargo();
        command
            .args(["run", "--quiet"])
            .args(workspace::ignoring_rust_version());
        command.args(["--package", "xtask", "--", "package"]);
        command.arg("--pg-config").arg(&server.pg.path);
        let said = shell::run_quietly(&mut command)?;
        let written = |suffix: &str| {
            let mut files = said.lines().filter_map(|line| line.strip_prefix("Wrote "));
            files.find(|file| file.ends_with(suffix)).map(PathBuf::from)
        };
        Ok(Packages {
            tarball: written(".tar.gz").context("there is no tarball")?,
            deb: written(".deb"),
            sources: written(".zip"),
            image: written("image").context("there is no image")?,
        })
    }

    fn bytes(&self) -> Result<Vec<Vec<u8>>> {
        let packed = [
            Some(&self.tarball),
            self.deb.as_ref(),
            self.sources.as_ref(),
        ];
        let laid_out = files(&self.image)?;
        let read = |file: &PathBuf| fs::read(file).with_context(|| file.display().to_string());
        let all = packed.into_iter().flatten().chain(&laid_out);
        all.map(read).collect()
    }
}

/// Runs Debian's own check for errors, if it is installed.
fn ensure_policy(deb: &Path) -> Result<()> {
    match which::which("lintian") {
        Ok(lintian) => {
            let mut command = Command::new(lintian);
            shell::run_quietly(command.args(["--fail-on", "error"]).arg(deb))?;
        }
        Err(_) => figure!("lintian is not installed"),
    }
    Ok(())
}

/// Installs and purges the package with a private copy of dpkg's data, to test its dependencies, too.
fn deb_comes_and_goes(bare: &Bare, root: &Path, deb: &Path) -> Result<()> {
    let admin = bare.home.path.join("dpkg");
    for dir in ["info", "updates", "triggers", "parts"] {
        fs::create_dir_all(admin.join(dir))?;
    }
    fs::copy("/var/lib/dpkg/status", admin.join("status"))?;
    let dpkg = || {
        let mut command = Command::new("dpkg");
        command.arg(format!("--admindir={}", admin.display()));
        command.arg(format!("--instdir={}", root.display()));
        command.args(["--force-not-root", "--force-bad-path", "--log=/dev/null"]);
        command
    };
    shell::run_quietly(dpkg().arg("--install").arg(deb))?;
    bare.ensure_extension(true)?;
    let name = deb.file_name().context("no name")?.to_string_lossy();
    let name = name.split('_').next().unwrap_or_default();
    let copyright = root.join(format!("usr/share/doc/{name}/copyright"));
    ensure!(copyright.is_file(), "there is no license");
    shell::run_quietly(dpkg().args(["--purge", name]))?;
    Ok(())
}

/// A copy of the server's installation without the extension, removed when dropped.
struct Bare {
    home: Home,
    installation: Installation,
    cluster: Cluster,
}

impl Bare {
    fn create(server: &Server) -> Result<Bare> {
        let path = server
            .home
            .path
            .join(format!("bare-{}", std::process::id()));
        fs::create_dir(&path)?;
        let home = Home { path };
        let account = &server.main.account;
        account.admit(&home.path)?;
        let installation = Installation::create(&home, &server.pg)?;
        let dir = server
            .home
            .clusters()
            .join(format!("bare-{}", std::process::id()));
        let cluster = Cluster::at(dir, &installation, account);
        let bare = Bare {
            home,
            installation,
            cluster,
        };
        bare.cluster.create(&[])?;
        bare.cluster.start()?;
        Ok(bare)
    }

    /// Returns whether a fresh session can create the extension and look a document up by an index.
    fn ensure_extension(&self, is_wanted: bool) -> Result<()> {
        let script = "CREATE EXTENSION pg_neardup; CREATE TABLE docs (body text);
            INSERT INTO docs VALUES ('the same words'), ('something else');
            CREATE INDEX ON docs USING neardup (body); SET enable_seqscan = off";
        let lookup = || -> Result<i64> {
            let mut client = self.cluster.connect("postgres")?;
            client.batch_execute(script)?;
            let query = "SELECT count(*) FROM docs WHERE near_dup(body, 'The same words!')";
            let found = client.query_one(query, &[])?.get(0);
            client.batch_execute("DROP TABLE docs; DROP EXTENSION pg_neardup")?;
            Ok(found)
        };
        match lookup() {
            Err(error) if is_wanted => Err(error).context("not usable after installing"),
            Ok(1) if is_wanted => Ok(()),
            Ok(found) if is_wanted => anyhow::bail!("the lookup finds {found} rows"),
            Ok(_) => anyhow::bail!("the extension is there without a package"),
            Err(_) => Ok(()),
        }
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let removed = self.cluster.remove();
        if let Err(error) = removed.and(Ok(fs::remove_dir_all(&self.home.path))) {
            eprintln!("{error:#}");
        }
    }
}

/// Removes the extension, which the copied installation may have.
fn remove_extension(root: &Path) -> Result<()> {
    for file in files(root)? {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("pg_neardup") {
            fs::remove_file(&file)?;
        }
    }
    Ok(())
}

fn tar(action: &str, tarball: &Path) -> Command {
    let mut command = Command::new("tar");
    command.arg(action).arg("--file").arg(tarball);
    command
}

fn files(root: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut files = BTreeSet::new();
    for entry in WalkDir::new(root) {
        let entry = entry?;
        if !entry.file_type().is_dir() {
            files.insert(entry.into_path());
        }
    }
    Ok(files)
}
