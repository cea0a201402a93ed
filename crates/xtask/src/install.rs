//! `cargo xtask install`: installs the extension into the user's own PostgreSQL.

use anyhow::Result;

use crate::pg_config::PostgresChoice;
use crate::server::extension;
use crate::setup;

/// Builds and installs; then `CREATE EXTENSION pg_neardup` works in any of its databases.
pub fn run(choice: &PostgresChoice) -> Result<()> {
    let pg = setup::ensure(choice)?;
    println!(
        "Installing into {} ({})",
        pg.version,
        pg.pkglibdir.display()
    );
    extension::install_into_system(&pg)?;
    println!("Now, in a database of yours: CREATE EXTENSION pg_neardup;");
    Ok(())
}
