//! pg_upgrade from one major version of PostgreSQL to another.

use std::sync::OnceLock;

use anyhow::{Result, anyhow, ensure};
use testbed::pg_config;
use testbed::server::Server;
use testbed::server::cluster::SUPERUSER;
use testbed::shell;

use super::collection;
use crate::harness::{Missing, Outcome, Scale, figure};
use crate::shared;

/// Checks that signatures, indexes, guard, constraint and tracker are the same after pg_upgrade, between every two
/// major versions.
pub fn identical_digest(server: &Server, scale: Scale) -> Result<Outcome> {
    let others = others(server, scale)?;
    if others.is_empty() {
        return Ok(Outcome::Skipped(Missing::ServerVersion));
    }
    for other in others {
        match other.pg.major < server.pg.major {
            true => upgrade(other, server)?,
            false => upgrade(server, other)?,
        }
    }
    Ok(Outcome::Passed)
}

/// Builds the extension for the other major versions on this machine.
pub fn prepare(scale: Scale) {
    // The test reports an error.
    let _ = others(shared::server(), scale);
}

/// Returns the servers of other major versions, stopped; in a quick run only one. They are built once per run.
fn others(server: &Server, scale: Scale) -> Result<&'static [Server]> {
    static OTHERS: OnceLock<Result<Vec<Server>, String>> = OnceLock::new();
    let build = || {
        let mut others = pg_config::installed();
        others.retain(|pg| pg.major != server.pg.major && pg.has_headers());
        others.dedup_by_key(|pg| pg.major);
        others.truncate(scale.of(1, usize::MAX));
        let start = |pg| {
            let other = Server::start(pg)?;
            other.main.stop()?;
            Ok(other)
        };
        let servers: Result<Vec<Server>> = others.into_iter().map(start).collect();
        servers.map_err(|error| format!("{error:#}"))
    };
    let servers = OTHERS.get_or_init(build).as_ref();
    servers
        .map(Vec::as_slice)
        .map_err(|error| anyhow!("{error}"))
}

fn upgrade(from: &Server, to: &Server) -> Result<()> {
    let (old, new) = (from.scratch_cluster("old")?, to.scratch_cluster("new")?);
    old.create(&[])?;
    old.start()?;
    let mut client = old.connect("postgres")?;
    client.batch_execute("CREATE EXTENSION pg_neardup")?;
    collection::create(&mut client)?;
    collection::insert(&mut client, 1, 2000)?;
    client.batch_execute(collection::OTHERS)?;
    let before = collection::digest(&mut client)?;
    drop(client);
    old.stop()?;

    new.create(&[])?;
    let mut command = new.server_program("pg_upgrade");
    command.arg(format!("--username={SUPERUSER}"));
    for (option, path) in [
        ("--old-bindir", &old.installation.bindir),
        ("--new-bindir", &new.installation.bindir),
        ("--old-datadir", &old.data_dir()),
        ("--new-datadir", &new.data_dir()),
        ("--socketdir", &new.socket_dir().to_path_buf()),
    ] {
        command.arg(option).arg(path);
    }
    shell::run_quietly(&mut command)?;
    new.start()?;
    let mut client = new.connect("postgres")?;
    let after = collection::digest(&mut client)?;
    ensure!(before == after, "{before} before, {after} after");
    let pairs = collection::ensure_index_equals_scan(&mut client)?;
    collection::ensure_others_work(&mut client)?;
    figure!(
        "{} to {}: identical digest, index = scan over {pairs} pairs, guard, constraint and tracker work",
        from.pg.major,
        to.pg.major
    );
    Ok(())
}
