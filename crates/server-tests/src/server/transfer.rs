//! Signatures are exported and imported byte for byte: dump and restore, COPY BINARY.

use std::io::{Read, Write};

use anyhow::{Result, ensure};
use postgres::Client;
use postgres::error::SqlState;
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::Outcome;

const TABLE: &str = "CREATE TABLE docs (id int PRIMARY KEY, body text,
    sig minhash_signature GENERATED ALWAYS AS (minhash(body)) STORED, other minhash_signature)";
const ROWS: &str = "INSERT INTO docs (id, body, other)
    SELECT i, repeat('Some words of document ' || i || '. ', i % 7),
           minhash(i::text || ' words', 1 + i % 5, 'char', 'none', 1 + i * 5 % 1024, i)
    FROM generate_series(1, 300) i";
const DIGEST: &str =
    "SELECT md5(string_agg(concat(id, body, sig::bytea, other::bytea), ',' ORDER BY id)),
    count(*) FROM docs";

/// An index and constraints of the access method, and a row that the constraint rejects.
const INDEXES: &str = "
    ALTER TABLE docs ADD tenant int DEFAULT 1;
    CREATE INDEX docs_sig ON docs USING neardup (tenant, sig minhash_ops (threshold = 0.7));
    ALTER TABLE docs ADD CONSTRAINT docs_no_near_dup
        EXCLUDE USING neardup (tenant WITH =, near_dup_key(other, 0.85, label => id::text) WITH %) WHERE (id > 3);
    ALTER TABLE docs ADD CONSTRAINT docs_no_near_bits
        EXCLUDE USING neardup (near_dup_key((minhash_describe(minhash_pack(other, 1))).bits::bit(1), 0) WITH %)
        WHERE (id < 2) DEFERRABLE INITIALLY DEFERRED";
/// A table with a guard that notes near-duplicates.
const NOTED: &str = "CREATE TABLE stories (id int PRIMARY KEY, body text);
    CREATE INDEX ON stories USING neardup (body);
    SELECT near_dup_protect('stories', 'body', 0.8, action => 'note');
    INSERT INTO stories VALUES (1, 'the same story'), (2, 'the same story')";
const NOTED_ON: &str =
    "INSERT INTO stories VALUES (3, 'the same story'); DELETE FROM stories WHERE id = 2";
const NOTES: &str =
    "SELECT string_agg(concat(key, ' ', near_key), ', ' ORDER BY key) FROM stories_near_dups";
/// A view on a query in a string, whose names do not depend on the search path.
const VIEW: &str = "CREATE MATERIALIZED VIEW doc_clusters AS SELECT key, cluster
    FROM near_dup_clusters(NULL::int, 'SELECT id, sig FROM public.docs ORDER BY id', 0.8)";
const COPY_OF_ROW: &str = "INSERT INTO docs (id, other) SELECT 1000, other FROM docs WHERE id = 7";

/// Checks that `pg_dump | psql` preserves signatures byte for byte, and indexes, constraints, views, guards and notes.
pub fn dump(server: &Server) -> Result<Outcome> {
    let source = Database::with_extension(&server.main, "dump_source")?;
    source.connect()?.batch_execute(&format!(
        "{TABLE}; CREATE INDEX ON docs (sig); {ROWS}; {INDEXES}; {VIEW}; {NOTED}"
    ))?;
    let target = Database::create(&server.main, "dump_target", "")?;
    let dump = server.main.installation.program("pg_dump");
    let script = source
        .cluster
        .client_program(&dump)
        .arg(&source.name)
        .output()?;
    ensure!(
        script.status.success(),
        "{}",
        String::from_utf8_lossy(&script.stderr)
    );
    let output = target.psql(&String::from_utf8(script.stdout)?)?;
    ensure!(!output.contains("ERROR"), "{output}");
    let (mut source, mut target) = (source.connect()?, target.connect()?);
    for definitions in [
        "SELECT string_agg(indexdef, '; ' ORDER BY indexdef) FROM pg_indexes WHERE tablename = 'docs'",
        "SELECT string_agg(pg_get_constraintdef(oid), '; ' ORDER BY conname) FROM pg_constraint
         WHERE conrelid = 'docs'::regclass",
        "SELECT string_agg(concat(key, ' ', cluster), ', ' ORDER BY key) FROM doc_clusters",
        NOTES,
    ] {
        let of = |client: &mut Client| -> Result<String> {
            Ok(client.query_one(definitions, &[])?.get(0))
        };
        let (before, after) = (of(&mut source)?, of(&mut target)?);
        ensure!(before == after, "{before} became {after}");
    }
    let rejected = target.batch_execute(COPY_OF_ROW).err();
    let code = rejected.as_ref().and_then(|error| error.code());
    ensure!(
        code == Some(&SqlState::EXCLUSION_VIOLATION),
        "the restored constraint rejects nothing: {rejected:?}"
    );
    target.batch_execute(NOTED_ON)?;
    let notes: String = target.query_one(NOTES, &[])?.get(0);
    ensure!(
        notes == "3 1",
        "the restored guard leaves the notes {notes}"
    );
    equal_digests(&mut source, &mut target)
}

/// Checks that COPY BINARY preserves signatures byte for byte.
pub fn copy_binary(server: &Server) -> Result<Outcome> {
    let source = Database::with_extension(&server.main, "copy_source")?;
    let target = Database::with_extension(&server.main, "copy_target")?;
    let (mut from, mut to) = (source.connect()?, target.connect()?);
    from.batch_execute(&format!("{TABLE}; {ROWS}"))?;
    to.batch_execute(TABLE)?;
    let mut bytes = Vec::new();
    from.copy_out("COPY (SELECT id, body, other FROM docs) TO STDOUT (FORMAT binary)")?
        .read_to_end(&mut bytes)?;
    let mut writer = to.copy_in("COPY docs (id, body, other) FROM STDIN (FORMAT binary)")?;
    writer.write_all(&bytes)?;
    writer.finish()?;
    equal_digests(&mut from, &mut to)
}

fn equal_digests(source: &mut Client, target: &mut Client) -> Result<Outcome> {
    let digest = |client: &mut Client| -> Result<(String, i64)> {
        let row = client.query_one(DIGEST, &[])?;
        Ok((row.get(0), row.get(1)))
    };
    let (before, after) = (digest(source)?, digest(target)?);
    ensure!(before == after, "{before:?} became {after:?}");
    Ok(Outcome::Passed)
}
