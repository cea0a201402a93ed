//! pg_upgrade from one major version of PostgreSQL to another.

use anyhow::{Result, ensure};
use postgres::Client;
use postgres::error::SqlState;
use testbed::pg_config;
use testbed::server::Server;
use testbed::server::cluster::SUPERUSER;
use testbed::setup::pgrx;
use testbed::shell;

use super::collection;
use crate::harness::{Missing, Outcome, Scale, figure};

const OTHERS: &str = "CREATE TABLE forms (id int PRIMARY KEY, sig minhash_signature, bits bit(64));
     INSERT INTO forms SELECT i, minhash(repeat('Some words ' || i, i % 4), 1 + i % 5, 'char', 'none',
         1 + i * 5 % 1024, i), simhash('Some words ' || i / 3) FROM generate_series(1, 2000) i;
     CREATE INDEX ON forms USING hash (sig);
     CREATE INDEX forms_bits ON forms USING neardup (bits hamming_ops (distance = 4));
     CREATE TABLE guarded (id int, body text,
         sig minhash_signature GENERATED ALWAYS AS (minhash(body)) STORED);
     CREATE INDEX ON guarded USING neardup (sig);
     SELECT near_dup_protect('guarded', 'sig', 0.8);
     INSERT INTO guarded (id, body) SELECT id, body FROM docs d WHERE NOT EXISTS (
         SELECT FROM docs e WHERE e.id < d.id AND near_dup(e.sig, d.sig, 0.8))";

const DIGEST: &str = "SELECT md5(concat(
        (SELECT string_agg(concat(id, sig::bytea, minhash(body)::bytea), ',' ORDER BY id) FROM docs),
        (SELECT string_agg(concat(id, sig::bytea, bits), ',' ORDER BY sig) FROM forms),
        (SELECT string_agg(concat(a.id, ' ', b.id), ',' ORDER BY a.id, b.id)
         FROM forms a JOIN forms b ON hamming_within(a.bits, b.bits, 4) WHERE a.id < 50),
        (SELECT string_agg(concat(id, sig::bytea), ',' ORDER BY id) FROM guarded)))";

/// Signatures, indexes and the guard are the same after pg_upgrade, between every two majors.
pub fn identical_digest(server: &Server, scale: Scale) -> Result<Outcome> {
    let mut others = pg_config::installed();
    others.retain(|pg| pg.major != server.pg.major && pg.has_headers());
    others.dedup_by_key(|pg| pg.major);
    if others.is_empty() {
        return Ok(Outcome::Skipped(Missing::ServerVersion));
    }
    if scale == Scale::Quick {
        others.truncate(1);
    }
    for pg in others {
        pgrx::configure(&pg)?;
        let other = Server::start(pg)?;
        match other.pg.major < server.pg.major {
            true => upgrade(&other, server)?,
            false => upgrade(server, &other)?,
        }
        other.main.stop()?;
    }
    Ok(Outcome::Passed)
}

fn upgrade(from: &Server, to: &Server) -> Result<()> {
    let (old, new) = (from.scratch_cluster("old")?, to.scratch_cluster("new")?);
    old.create(&[])?;
    old.start()?;
    let mut client = old.connect("postgres")?;
    client.batch_execute("CREATE EXTENSION pg_neardup")?;
    collection::create(&mut client)?;
    collection::insert(&mut client, 1, 2000)?;
    client.batch_execute(OTHERS)?;
    let before: String = client.query_one(DIGEST, &[])?.get(0);
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
    let after: String = client.query_one(DIGEST, &[])?.get(0);
    ensure!(before == after, "{before} before, {after} after");
    let pairs = collection::ensure_index_equals_scan(&mut client)?;
    ensure_guarded(&mut client)?;
    figure!(
        "{} to {}: identical digest, index = scan over {pairs} pairs, the guard guards",
        from.pg.major,
        to.pg.major
    );
    Ok(())
}

fn ensure_guarded(client: &mut Client) -> Result<()> {
    let again = "INSERT INTO guarded (id, body) SELECT -1, body FROM guarded LIMIT 1";
    let code = client
        .batch_execute(again)
        .err()
        .and_then(|error| error.code().cloned());
    ensure!(
        code == Some(SqlState::EXCLUSION_VIOLATION),
        "the guard let a copy in: {code:?}"
    );
    Ok(())
}
