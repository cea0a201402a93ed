//! The private directory of a checkout: one per user, checkout and PostgreSQL version.
//!
//! It is in the temporary directory, not in the checkout: the server may run under another account, which cannot
//! enter a checkout under `/root`, and the path of a Unix socket must be shorter than 108 bytes.

use std::fs::{self, DirBuilder, File, Permissions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use nix::unistd::geteuid;

use super::account::Account;
use super::postmaster;
use crate::workspace;

/// Longest path of the private directory that leaves room for a cluster's socket.
const LONGEST_PATH: usize = 60;

/// The private directory.
#[derive(Clone, Debug)]
pub struct Home {
    pub path: PathBuf,
}

impl Home {
    /// Creates the directory if necessary; rejects one that belongs to another user.
    pub fn create(major: u16, account: &Account) -> Result<Home> {
        let path = base_dir().join(format!("{}{major}", prefix()));
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(error).with_context(|| format!("cannot create {}", path.display()));
            }
            _ => {}
        }
        let data = fs::symlink_metadata(&path)?;
        if !data.is_dir() || data.uid() != geteuid().as_raw() {
            bail!(
                "{} belongs to somebody else; set TMPDIR to another directory",
                path.display()
            );
        }
        account.admit(&path)?;
        fs::set_permissions(&path, Permissions::from_mode(0o750))?;
        Ok(Home { path })
    }

    /// Returns the private directories that exist for this user and checkout, for any version.
    pub fn existing() -> Result<Vec<Home>> {
        let prefix = prefix();
        let mut homes = Vec::new();
        for entry in fs::read_dir(base_dir())? {
            let entry = entry?;
            let is_ours = entry.file_name().to_string_lossy().starts_with(&prefix);
            if is_ours && entry.metadata()?.uid() == geteuid().as_raw() {
                homes.push(Home { path: entry.path() });
            }
        }
        Ok(homes)
    }

    /// Returns the directory of the clusters, which has one directory for each.
    pub fn clusters(&self) -> PathBuf {
        self.path.join("clusters")
    }

    /// Stops every server in this directory.
    pub fn stop_servers(&self) -> Result<()> {
        for entry in fs::read_dir(self.clusters()).into_iter().flatten() {
            postmaster::stop(&entry?.path().join("data"))?;
        }
        Ok(())
    }

    /// Waits until no other run prepares this directory. The lock is held until dropped.
    pub fn lock(&self) -> Result<File> {
        let file = File::create(self.path.join("lock"))?;
        file.lock()?;
        Ok(file)
    }
}

/// Returns the temporary directory, or `/tmp` if its path is too long for a socket.
fn base_dir() -> PathBuf {
    let dir = std::env::temp_dir();
    match dir.as_os_str().len() + "/pg_neardup-4294967295-0123456789abcdef-pg18".len() {
        0..=LONGEST_PATH => dir,
        _ => Path::new("/tmp").to_path_buf(),
    }
}

fn prefix() -> String {
    let mut hasher = DefaultHasher::new();
    workspace::root().hash(&mut hasher);
    format!(
        "pg_neardup-{}-{:08x}-pg",
        geteuid().as_raw(),
        hasher.finish() as u32
    )
}
