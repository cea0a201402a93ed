//! Sets up everything that is necessary for building and running the extension, and announces each action in advance.

mod packages;

use anyhow::{Result, bail};

use crate::pg_config::{PgConfig, PostgresChoice, supported};
use packages::Need;

/// Makes sure that everything necessary is present, and returns the PostgreSQL to use.
pub fn ensure(choice: &PostgresChoice) -> Result<PgConfig> {
    let mut needs = packages::missing_build_tools();
    let mut pg = choice.find()?;
    if pg.is_none() {
        needs.push(packages::server(choice.pg));
    }
    needs.extend(pg.iter().filter_map(missing_headers));
    packages::install(&needs)?;
    if pg.is_none() {
        // Only now is the version of a distribution's default package known.
        pg = choice.find()?;
        let headers: Vec<Need> = pg.iter().filter_map(missing_headers).collect();
        packages::install(&headers)?;
        pg = choice.find()?;
    }
    let Some(pg) = pg.filter(PgConfig::has_headers) else {
        bail!(
            "found no {} with its server and headers; name its pg_config by --pg-config",
            supported()
        );
    };
    Ok(pg)
}

fn missing_headers(pg: &PgConfig) -> Option<Need> {
    (!pg.has_headers()).then(|| packages::headers(pg.major))
}
