//! `cargo xtask install`: installs the extension into the user's own PostgreSQL.

use anyhow::Result;
use testbed::pg_config::PostgresChoice;
use testbed::server::extension;
use testbed::setup;

/// Builds and installs the extension. Then `CREATE EXTENSION pg_neardup` works in all databases of that PostgreSQL.
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
