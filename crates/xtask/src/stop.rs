//! `cargo xtask stop`: stops this checkout's private servers.

use anyhow::Result;
use testbed::server::home::Home;

/// Stops every server of this checkout, whatever its version.
pub fn run() -> Result<()> {
    let homes = Home::existing()?;
    if homes.is_empty() {
        println!("There is no private server.");
    }
    for home in homes {
        home.stop_servers()?;
        println!("Stopped the private server in {}", home.path.display());
    }
    Ok(())
}
