//! The operating system account that runs the server: PostgreSQL refuses to run as root.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use nix::unistd::{User, geteuid};

/// The account that owns and runs the private server.
#[derive(Clone, Debug)]
pub enum Account {
    /// The user who runs this program.
    Own,
    /// Another account, because the user is root.
    Other { uid: u32, gid: u32 },
}

impl Account {
    /// Returns the user's own account; for root the account `postgres`, or `nobody` if there is none.
    pub fn for_server() -> Result<Account> {
        if !geteuid().is_root() {
            return Ok(Account::Own);
        }
        let user = match User::from_name("postgres")? {
            Some(user) => user,
            None => User::from_name("nobody")?.context(
                "PostgreSQL does not run as root, and there is neither an account postgres nor nobody",
            )?,
        };
        Ok(Account::Other {
            uid: user.uid.as_raw(),
            gid: user.gid.as_raw(),
        })
    }

    /// Returns a command that runs under this account in `dir`. The account must be able to enter this directory.
    pub fn command(&self, program: &Path, dir: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(dir);
        // With backtraces, the server would add them to the DETAIL of its errors.
        command
            .env_remove("LD_LIBRARY_PATH")
            .env("RUST_BACKTRACE", "0");
        if let Account::Other { uid, gid } = self {
            command.uid(*uid).gid(*gid).env("HOME", dir);
        }
        command
    }

    /// Hands a file or directory over to this account.
    pub fn take(&self, path: &Path) -> Result<()> {
        if let Account::Other { uid, gid } = self {
            chown(path, Some(*uid), Some(*gid))
                .with_context(|| format!("cannot give {} to the server", path.display()))?;
        }
        Ok(())
    }

    /// Lets this account's group enter a directory that still belongs to the user.
    pub fn admit(&self, path: &Path) -> Result<()> {
        if let Account::Other { gid, .. } = self {
            chown(path, None, Some(*gid))?;
        }
        Ok(())
    }
}
