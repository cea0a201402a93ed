//! `cargo xtask clean`: removes everything that was set up for this checkout.

use std::fs;

use anyhow::{Context, Result};
use testbed::server::home::Home;
use testbed::workspace;

/// Stops and removes the private servers, and removes this program's part of the target directory. Packages and Cargo's
/// own build results stay.
pub fn run() -> Result<()> {
    for home in Home::existing()? {
        home.stop_servers()?;
        fs::remove_dir_all(&home.path)
            .with_context(|| format!("cannot remove {}", home.path.display()))?;
        println!("Removed {}", home.path.display());
    }
    let scratch = workspace::scratch_dir();
    if scratch.exists() {
        fs::remove_dir_all(&scratch)?;
        println!("Removed {}", scratch.display());
    }
    Ok(())
}
