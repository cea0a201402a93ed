//! From one version of the extension to the next: `ALTER EXTENSION pg_neardup UPDATE`.
//!
//! `sql/released` holds the install script of every released version and the digests of all released scripts; the
//! upgrade scripts are in `sql`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use postgres::Client;
use testbed::server::Server;
use testbed::server::database::Database;
use testbed::server::installation::copy_file;
use testbed::{shell, workspace};

use super::collection;
use crate::harness::{Outcome, Scale, figure};

const EXTENSION: &str = "pg_neardup";

/// Checks that every released version, after an update, has the same objects as a fresh installation, and that no
/// released script has changed.
pub fn upgrade_equals_fresh(server: &Server, _: Scale) -> Result<Outcome> {
    let dir = server.main.installation.extension_dir(&server.pg);
    let dir = dir.context("the scripts would go to the server's own directories")?;
    ensure_difference_is_seen(server, &dir)?;
    let count = update_released(server, &dir, &workspace::root().join("sql/released"), None)?;
    figure!("{count} released versions, empty differences; a made extension's difference was seen");
    Ok(Outcome::Passed)
}

/// The artificial version that follows the current one.
const NEXT: &str = "next";

/// The upgrade script of the artificial version.
const STEP: &str = "ALTER FUNCTION minhash_sim(minhash_signature, minhash_signature) COST 11;
    COMMENT ON TYPE minhash_signature IS 'Signature of the next version.';";

/// Checks the update to an artificial next version, after the current one has been released as `sql/released`
/// describes, in a database with all kinds of objects: it stays unchanged, in old sessions and in new ones.
pub fn next_keeps_everything(server: &Server, _: Scale) -> Result<Outcome> {
    let dir = server.main.installation.extension_dir(&server.pg);
    let dir = dir.context("the scripts would go to the server's own directories")?;
    let version: String = server
        .main
        .connect("postgres")?
        .query_one(
            "SELECT default_version FROM pg_available_extensions WHERE name = $1",
            &[&EXTENSION],
        )?
        .get(0);
    let install = fs::read_to_string(dir.join(format!("{EXTENSION}--{version}.sql")))?;
    let made = [
        (
            format!("{EXTENSION}--{version}--{NEXT}.sql"),
            STEP.to_string(),
        ),
        (
            format!("{EXTENSION}--{NEXT}.sql"),
            format!("{install}\n{STEP}"),
        ),
    ];
    for (name, text) in &made {
        fs::write(dir.join(name), text)?;
    }
    let outcome =
        release(server, &dir, &version, &install).and_then(|()| upgrade_with_data(server));
    for (name, _) in &made {
        fs::remove_file(dir.join(name))?;
    }
    outcome?;
    Ok(Outcome::Passed)
}

/// Releases the current version with the documented command in a scratch directory, and updates it to the next.
fn release(server: &Server, dir: &Path, version: &str, install: &str) -> Result<()> {
    let scratch = workspace::scratch_dir().join("next_version");
    let released = scratch.join("sql/released");
    fs::create_dir_all(&released)?;
    let script = released.join(format!("{EXTENSION}--{version}.sql"));
    fs::write(&script, install)?;
    fs::write(released.join("sha256sums"), "")?;
    let readme = fs::read_to_string(workspace::root().join("sql/released/README.md"))?;
    let mut quoted = readme.split('`');
    let command = quoted.find(|text| text.starts_with("cd sql && sha256sum"));
    let command = command
        .context("the command is gone")?
        .replace("<version>", version);
    shell::run_quietly(
        Command::new("sh")
            .current_dir(&scratch)
            .args(["-c", &command]),
    )?;
    ensure!(
        update_released(server, dir, &released, Some(NEXT))? == 1,
        "no script was released"
    );
    fs::write(&script, format!("{install} "))?;
    let changed = ensure_unchanged(&mut server.main.connect("postgres")?, &released);
    ensure!(changed.is_err(), "a changed script is not seen");
    Ok(fs::remove_dir_all(&scratch)?)
}

fn upgrade_with_data(server: &Server) -> Result<()> {
    let database = Database::with_extension(&server.main, "next_version")?;
    let mut before = database.connect()?;
    collection::create(&mut before)?;
    collection::insert(&mut before, 1, 500)?;
    before.batch_execute(collection::OTHERS)?;
    let digest = collection::digest(&mut before)?;
    let update = format!("ALTER EXTENSION {EXTENSION} UPDATE TO '{NEXT}'");
    database.connect()?.batch_execute(&update)?;
    for mut client in [before, database.connect()?] {
        ensure!(
            collection::digest(&mut client)? == digest,
            "other values after the update"
        );
        collection::ensure_index_equals_scan(&mut client)?;
    }
    collection::ensure_others_work(&mut database.connect()?)
}

/// Updates every released version, to version `to` or to the current one, and compares it with a fresh installation of
/// that version. Returns the number of released versions.
fn update_released(
    server: &Server,
    dir: &Path,
    released: &Path,
    to: Option<&str>,
) -> Result<usize> {
    ensure_unchanged(&mut server.main.connect("postgres")?, released)?;
    let scripts = install_scripts(released)?;
    let fresh = definitions(server, EXTENSION, None, to)?;
    for (version, script) in &scripts {
        let name = script.file_name().context("a script has a name")?;
        copy_file(script, &dir.join(name))?;
        let updated = definitions(server, EXTENSION, Some(version), to)?;
        ensure_equal(&fresh, &updated).with_context(|| format!("from version {version}"))?;
    }
    Ok(scripts.len())
}

/// Returns the versions and install scripts of the releases.
fn install_scripts(released: &Path) -> Result<Vec<(String, PathBuf)>> {
    let mut scripts = Vec::new();
    for entry in fs::read_dir(released)? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        if let Some(version) = name.strip_prefix("pg_neardup--") {
            scripts.push((version.to_string(), path.clone()));
        }
    }
    scripts.sort();
    Ok(scripts)
}

/// Compares every released script with the digest that was recorded when it was released.
fn ensure_unchanged(client: &mut Client, released: &Path) -> Result<()> {
    let digests = fs::read_to_string(released.join("sha256sums"))?;
    for line in digests.lines() {
        let (digest, script) = line.split_once("  ").context("odd line in sha256sums")?;
        let text = fs::read(released.with_file_name(script))
            .with_context(|| format!("the released script {script} is gone"))?;
        let found: String = client
            .query_one("SELECT encode(sha256($1), 'hex')", &[&text])?
            .get(0);
        ensure!(found == digest, "the released script {script} has changed");
    }
    for (version, _) in install_scripts(released)? {
        let script = format!("released/pg_neardup--{version}.sql");
        ensure!(
            digests.lines().any(|line| line.ends_with(&script)),
            "sha256sums lacks {script}"
        );
    }
    Ok(())
}

/// Returns the statements that create the extension's objects, sorted: those of version `from` updated to version `to`,
/// or of a fresh installation.
fn definitions(
    server: &Server,
    extension: &str,
    from: Option<&str>,
    to: Option<&str>,
) -> Result<Vec<String>> {
    let database = Database::create(&server.main, "versions", "")?;
    let mut client = database.connect()?;
    let version = |word: &str, version: Option<&str>| {
        version.map_or(String::new(), |version| format!("{word} '{version}'"))
    };
    let first = version("VERSION", from.or(to));
    client.batch_execute(&format!("CREATE EXTENSION {extension} {first}"))?;
    if from.is_some() {
        let target = version("TO", to);
        client.batch_execute(&format!("ALTER EXTENSION {extension} UPDATE {target}"))?;
    }
    // Members of an extension are not dumped. Array types and row types, which are members in PostgreSQL 18, come and
    // go with their element types and their views.
    for row in client.query(
        "SELECT o.type, o.identity
         FROM pg_depend d, pg_identify_object(d.classid, d.objid, d.objsubid) o
         WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
           AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = $1)
           AND d.objid NOT IN (SELECT oid FROM pg_type WHERE typcategory = 'A'
                               UNION ALL SELECT reltype FROM pg_class WHERE relkind <> 'c')",
        &[&extension],
    )? {
        let (kind, identity): (String, String) = (row.get(0), row.get(1));
        client.batch_execute(&format!(
            "ALTER EXTENSION {extension} DROP {kind} {identity}"
        ))?;
    }
    let dump = server.main.installation.program("pg_dump");
    let mut command = server.main.client_program(&dump);
    let script = shell::run_quietly(command.args(["--schema-only", &database.name]))?;
    let lines = script.lines();
    let kept: Vec<&str> = lines
        .filter(|line| !line.starts_with("--") && !line.starts_with('\\'))
        .collect();
    let mut statements: Vec<String> = kept.join("\n").split("\n\n").map(str::to_string).collect();
    statements.sort();
    Ok(statements)
}

fn ensure_equal(fresh: &[String], updated: &[String]) -> Result<()> {
    let without = |some: &[String], others: &[String]| -> Vec<String> {
        let left = some.iter().filter(|one| !others.contains(one));
        left.cloned().collect()
    };
    let (lost, added) = (without(fresh, updated), without(updated, fresh));
    if lost.is_empty() && added.is_empty() {
        return Ok(());
    }
    bail!(
        "only in a fresh installation:\n{}\nonly after the update:\n{}",
        lost.join("\n"),
        added.join("\n")
    )
}

/// Checks that the comparison can fail: with an artificial extension, one of whose upgrade scripts lacks a comment.
fn ensure_difference_is_seen(server: &Server, dir: &Path) -> Result<()> {
    const FUNCTION: &str =
        "CREATE FUNCTION probe(int) RETURNS int LANGUAGE sql AS 'SELECT $1' COST ";
    const COMMENT: &str = "COMMENT ON FUNCTION probe(int) IS 'a comment';";
    let second = format!("{FUNCTION} 2; {COMMENT}");
    let files = [
        (".control", "default_version = '2'".to_string()),
        ("--1.sql", format!("{FUNCTION} 1;")),
        ("--2.sql", second.clone()),
        ("--3.sql", second.clone()),
        (
            "--1--2.sql",
            format!("ALTER FUNCTION probe(int) COST 2; {COMMENT}"),
        ),
        (
            "--1--3.sql",
            "ALTER FUNCTION probe(int) COST 2;".to_string(),
        ),
    ];
    let path = |suffix: &str| dir.join(format!("neardup_probe{suffix}"));
    for (suffix, text) in &files {
        fs::write(path(suffix), text)?;
    }
    let compare = |version: &str| {
        let fresh = definitions(server, "neardup_probe", None, Some(version))?;
        ensure_equal(
            &fresh,
            &definitions(server, "neardup_probe", Some("1"), Some(version))?,
        )
    };
    let (same, other) = (compare("2"), compare("3"));
    for (suffix, _) in &files {
        fs::remove_file(path(suffix))?;
    }
    same.context("an update that makes the same objects")?;
    ensure!(
        other.is_err_and(|error| error.to_string().contains("COMMENT")),
        "a lost comment is not seen"
    );
    Ok(())
}
