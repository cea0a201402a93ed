//! Packages of the operating system: finding missing ones, and installing them with `apt-get`.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};
use nix::unistd::geteuid;

use crate::shell;

/// Something that is missing on this machine.
pub struct Need {
    /// Description for people.
    what: String,
    /// The packages of Debian and Ubuntu that contain it.
    packages: Vec<String>,
}

impl Need {
    fn new(what: impl Into<String>, packages: &[&str]) -> Need {
        Need {
            what: what.into(),
            packages: packages.iter().map(ToString::to_string).collect(),
        }
    }
}

/// A hint for users whose installation was not found.
const ELSEWHERE: &str = "one that lies elsewhere is named by --pg-config PATH-OF-ITS-pg_config";

/// Returns the need for a PostgreSQL server, of a certain version if one is wanted.
pub fn server(major: Option<u16>) -> Need {
    let Some(major) = major else {
        return Need::new(format!("a PostgreSQL server; {ELSEWHERE}"), &["postgresql"]);
    };
    let server = format!("postgresql-{major}");
    let headers = format!("postgresql-server-dev-{major}");
    let what = format!("a PostgreSQL {major} server; {ELSEWHERE}");
    Need::new(what, &[&server, &headers])
}

/// Returns the need for the headers with which extensions for this version are compiled.
pub fn headers(major: u16) -> Need {
    let package = format!("postgresql-server-dev-{major}");
    Need::new(format!("the headers of PostgreSQL {major}"), &[&package])
}

/// Returns the missing build tools of the extension.
pub fn missing_build_tools() -> Vec<Need> {
    let mut needs = Vec::new();
    if which::which("clang").is_err() || !has_libclang() {
        let what = "clang and libclang (they read PostgreSQL's headers)";
        needs.push(Need::new(what, &["clang", "libclang-dev"]));
    }
    needs
}

/// Searches the same places as the libclang loader of the binding generator.
fn has_libclang() -> bool {
    let is_libclang = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libclang.so") || name.starts_with("libclang-")
    };
    let llvm = list("/usr/lib").into_iter().map(|dir| dir.join("lib"));
    let mut dirs: Vec<_> = std::env::var_os("LIBCLANG_PATH")
        .map(Into::into)
        .into_iter()
        .collect();
    dirs.extend(llvm);
    dirs.extend(["/usr/lib64", "/usr/lib", "/usr/local/lib"].map(Into::into));
    dirs.extend(list("/usr/lib"));
    dirs.iter()
        .any(|dir| list(dir).iter().any(|path| is_libclang(path)))
}

fn list(dir: impl AsRef<Path>) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Installs missing packages, through sudo if the user is not root.
pub fn install(needs: &[Need]) -> Result<()> {
    if needs.is_empty() {
        return Ok(());
    }
    eprintln!("Missing on this machine:");
    for need in needs {
        eprintln!("  {}", need.what);
    }
    let packages: Vec<&str> = needs
        .iter()
        .flat_map(|need| &need.packages)
        .map(String::as_str)
        .collect();
    let list = packages.join(" ");
    if which::which("apt-get").is_err() {
        bail!(
            "please install the above with this system's package manager, then try again (Debian and Ubuntu call them: {list})"
        );
    }
    if !geteuid().is_root() && which::which("sudo").is_err() {
        bail!("please have an administrator run: apt-get install {list}");
    }
    if !has_package_lists() {
        eprintln!("Running: apt-get update");
        shell::run(apt_get().arg("update"))?;
    }
    let unknown: Vec<&str> = packages
        .iter()
        .copied()
        .filter(|name| !is_offered(name))
        .collect();
    if !unknown.is_empty() {
        bail!(
            "this system's package manager offers no {}; please get the above in another way, then try again",
            unknown.join(", ")
        );
    }
    eprintln!("Running: apt-get install {list}");
    shell::run(
        apt_get()
            .args(["install", "--yes", "--no-install-recommends"])
            .args(&packages),
    )
}

/// Returns an `apt-get` command that asks no questions.
fn apt_get() -> Command {
    let mut command = if geteuid().is_root() {
        Command::new("env")
    } else {
        let mut sudo = Command::new("sudo");
        sudo.arg("env");
        sudo
    };
    command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "--quiet"]);
    command
}

/// Returns whether the package lists contain the package.
fn is_offered(package: &str) -> bool {
    shell::succeeds(Command::new("apt-cache").args(["show", "--no-all-versions", package]))
}

fn has_package_lists() -> bool {
    let is_list = |path: &Path| path.to_string_lossy().contains("_Packages");
    list("/var/lib/apt/lists").iter().any(|path| is_list(path))
}
