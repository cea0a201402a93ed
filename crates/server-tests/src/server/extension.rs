//! The extension as a whole: created and dropped, in every kind of database.

use anyhow::{Result, ensure};
use postgres::error::SqlState;
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::Outcome;

const CREATE: &str = "CREATE EXTENSION pg_neardup";
const COUNT: &str = "SELECT count(*) FROM pg_depend d JOIN pg_extension e ON d.refobjid = e.oid
     WHERE e.extname = 'pg_neardup' AND d.deptype = 'e'";

/// Checks that dropping the extension leaves nothing behind, and that it can be created again, in any schema, by a user
/// who may create objects in the database but is not a superuser.
pub fn lifecycle(server: &Server) -> Result<Outcome> {
    let database = Database::create(&server.main, "lifecycle", "")?;
    let mut client = database.connect()?;
    client.batch_execute(CREATE)?;
    let before: i64 = client.query_one(COUNT, &[])?.get(0);
    client.batch_execute("DROP EXTENSION pg_neardup")?;
    let left = "SELECT count(*) FROM pg_proc WHERE probin LIKE '%pg_neardup%'";
    ensure!(
        client.query_one(left, &[])?.get::<_, i64>(0) == 0,
        "functions are left behind"
    );

    let role = format!("{}_owner", database.name);
    client.batch_execute(&format!(
        "DROP ROLE IF EXISTS {role}; CREATE ROLE {role};
         GRANT CREATE ON DATABASE {} TO {role};
         SET ROLE {role}; CREATE SCHEMA elsewhere; {CREATE} SCHEMA elsewhere",
        database.name
    ))?;
    let after: i64 = client.query_one(COUNT, &[])?.get(0);
    client.batch_execute(&format!(
        "DROP EXTENSION pg_neardup; DROP SCHEMA elsewhere; RESET ROLE;
         DROP OWNED BY {role}; DROP ROLE {role}"
    ))?;
    ensure!(
        before == after,
        "{before} objects as superuser, {after} as an ordinary user"
    );
    Ok(Outcome::Passed)
}

/// Checks that the extension can be created in any encoding.
pub fn encodings(server: &Server) -> Result<Outcome> {
    for encoding in ["SQL_ASCII", "LATIN1", "EUC_JP"] {
        let options = format!("ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0");
        let name = format!("encoding_{}", encoding.to_lowercase());
        let database = Database::create(&server.main, &name, &options)?;
        database.connect()?.batch_execute(CREATE)?;
    }
    Ok(Outcome::Passed)
}

/// Checks that only the extension's own settings can be created under its prefix: after the library is loaded, others
/// are rejected, and one that was set before is removed.
pub fn settings_prefix(server: &Server) -> Result<Outcome> {
    const MISTAKE: &str = "SET neardup.progres = on";
    const LOAD: &str = "SELECT minhash('loads the library')";
    let database = Database::with_extension(&server.main, "settings")?;
    let mut client = database.connect()?;
    client.batch_execute(LOAD)?;
    let error = client.batch_execute(MISTAKE).err();
    let code = error.as_ref().and_then(|error| error.code());
    ensure!(code == Some(&SqlState::INVALID_NAME), "{code:?}");

    let mut client = database.connect()?;
    client.batch_execute(&format!("SET neardup.progress = on; {MISTAKE}; {LOAD}"))?;
    let query = "SELECT current_setting('neardup.progress'),
                     coalesce(current_setting('neardup.progres', true), 'taken back')";
    let row = client.query_one(query, &[])?;
    let settings: (&str, &str) = (row.get(0), row.get(1));
    ensure!(settings == ("on", "taken back"), "{settings:?}");
    Ok(Outcome::Passed)
}
