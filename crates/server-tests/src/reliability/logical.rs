//! Logical replication of signatures.

use std::fs;
use std::time::Duration;

use anyhow::{Result, ensure};
use postgres::Client;
use testbed::server::Server;
use testbed::server::cluster::{Cluster, SUPERUSER, until, wait_until};

use crate::harness::{Outcome, Scale, figure};
use crate::live::{Kept, OF_SIGNATURES};

/// The maximum time for the subscriber to catch up.
const PATIENCE: Duration = Duration::from_mins(10);

/// Signatures of many forms. The rows of `by_value` are identified by all their columns.
const TABLES: &str = "CREATE TABLE by_key (id int PRIMARY KEY, sig minhash_signature);
     CREATE TABLE by_value (id int, sig minhash_signature);
     ALTER TABLE by_value REPLICA IDENTITY FULL;
     CREATE INDEX ON by_key USING neardup (sig)";

fn fill(rows: i32) -> String {
    ["by_key", "by_value"].map(|table| {
        format!(
            "INSERT INTO {table}
             SELECT i, CASE WHEN i % 9 > 0 THEN minhash(repeat('Some words of document ' || i, i % 4),
                 1 + i % 5, 'char', 'none', 1 + i * 5 % 1024, i) END FROM generate_series(1, {rows}) i;"
        )
    })
    .concat()
}

const CHANGES: &[&str] = &[
    "UPDATE TABLE SET sig = minhash_pack(sig, 8) WHERE id % 10 = 1",
    "UPDATE TABLE SET sig = minhash('written anew ' || id) WHERE id % 10 = 2",
    "UPDATE TABLE SET sig = NULL WHERE id % 10 = 3",
    "UPDATE TABLE SET id = -id WHERE id % 10 = 4",
    "DELETE FROM TABLE WHERE id % 10 = 5",
    "INSERT INTO TABLE SELECT 1000000 + i, minhash('added ' || i) FROM generate_series(1, 50) i",
];

const KEPT: &[Kept] = &[
    Kept::docs("place, id"),
    Kept {
        clusters: "by_id",
        ..Kept::docs("id")
    },
];

const TRACKED: &str = "CREATE TABLE docs (id int PRIMARY KEY, place int, body text,
        sig minhash_signature GENERATED ALWAYS AS (minhash(body, 1)) STORED);
    CREATE INDEX ON docs USING neardup (sig)";

const TRACK: &str = "SELECT near_dup_track('docs', 'sig', 0.8, 'place'),
    near_dup_track('docs', 'sig', 0.8, clusters => 'by_id')";

/// Rows that a new subscription copies.
const COPIED: &str =
    "INSERT INTO docs SELECT i, i % 5, make_text(i % 30, i % 10) FROM generate_series(1, 300) i";

const TRACKED_CHANGES: &[&str] = &[
    "INSERT INTO docs SELECT i, i % 7, make_text(i % 20, 1) FROM generate_series(301, 400) i",
    "UPDATE docs SET body = make_text(id % 20, 1) WHERE id % 3 = 0",
    "UPDATE docs SET place = 9 - place",
    "DELETE FROM docs WHERE id % 7 = 0",
    "TRUNCATE docs; INSERT INTO docs SELECT i, i, make_text(i % 3, i) FROM generate_series(1, 9) i",
];

/// Checks that a subscriber notes the rows that it receives, beginning with the initial copy.
pub fn kept_clusters(server: &Server, _scale: Scale) -> Result<Outcome> {
    let publisher = server.scratch_cluster("live_publisher")?;
    publisher.create(&[("wal_level", "logical")])?;
    publisher.start()?;
    let subscriber = server.scratch_cluster("live_subscriber")?;
    subscriber.create(&[])?;
    subscriber.start()?;
    let [mut from, mut to] = open(
        &publisher,
        &subscriber,
        "live",
        &format!("{}; {TRACKED}", OF_SIGNATURES.texts()),
    )?;
    to.batch_execute(TRACK)?;
    from.batch_execute(&format!("{COPIED}; CREATE PUBLICATION docs FOR TABLE docs"))?;
    subscribe(&publisher, &mut to, "live", "docs", false)?;
    wait_until_equal(&mut from, &mut to, DOCS, "the first copy")?;
    for change in TRACKED_CHANGES {
        from.batch_execute(change)?;
        wait_until_equal(&mut from, &mut to, DOCS, change)?;
        let behind = "SELECT behind FROM near_dup_tracked";
        let behind: Vec<Option<i64>> = to
            .query(behind, &[])?
            .iter()
            .map(|row| row.get(0))
            .collect();
        ensure!(
            behind.iter().any(|behind| *behind != Some(0)),
            "after {change}: {behind:?} behind"
        );
        for kept in KEPT {
            kept.ensure_law(&mut to, false)?;
        }
    }
    triggers_not_fired(&mut from, &mut to)?;
    to.batch_execute("DROP SUBSCRIPTION live")?;
    Ok(Outcome::Passed)
}

/// Checks that a guard on a subscriber checks replicated rows if its triggers are ENABLE ALWAYS: a copy stops the
/// subscription until the existing row is deleted.
pub fn guarded(server: &Server, _scale: Scale) -> Result<Outcome> {
    let publisher = server.scratch_cluster("guard_publisher")?;
    publisher.create(&[("wal_level", "logical")])?;
    publisher.start()?;
    let subscriber = server.scratch_cluster("guard_subscriber")?;
    subscriber.create(&[("wal_retrieve_retry_interval", "100ms")])?;
    subscriber.start()?;
    let tables = "CREATE TABLE docs (id int PRIMARY KEY, body text)";
    let [mut from, mut to] = open(&publisher, &subscriber, "guarded", tables)?;
    from.batch_execute(
        "CREATE PUBLICATION docs FOR TABLE docs; INSERT INTO docs VALUES (1, 'the first copy')",
    )?;
    to.batch_execute(
        "CREATE INDEX ON docs USING neardup (body); SELECT near_dup_protect('docs', 'body', 0.8)",
    )?;
    subscribe(&publisher, &mut to, "guarded", "docs", false)?;
    wait_until_equal(&mut from, &mut to, DOCS, "the first copy")?;
    from.batch_execute("INSERT INTO docs VALUES (2, 'the first copy')")?;
    wait_until_equal(&mut from, &mut to, DOCS, "a copy, which no trigger sees")?;

    to.batch_execute(
        "ALTER TABLE docs ENABLE ALWAYS TRIGGER docs_guard, ENABLE ALWAYS TRIGGER docs_guard_before",
    )?;
    from.batch_execute("INSERT INTO docs VALUES (3, 'a stranger'), (4, 'another one')")?;
    wait_until_equal(&mut from, &mut to, DOCS, "strangers")?;
    // The row in the open transaction has passed, so the replicated row waits for it.
    to.batch_execute("BEGIN; INSERT INTO docs VALUES (5, 'wanted by two')")?;
    from.batch_execute("INSERT INTO docs VALUES (6, 'wanted by two')")?;
    let mut observer = subscriber.connect("guarded")?;
    let waits = "SELECT EXISTS (SELECT FROM pg_stat_activity
        WHERE backend_type ~ '^logical replication' AND wait_event_type = 'Lock')";
    wait_until(&mut observer, waits)?;
    to.batch_execute("COMMIT")?;
    let rejected = r#"near-duplicate row rejected by "docs_guard" on table "docs""#;
    let is_rejected = || Ok(fs::read_to_string(subscriber.log_file())?.contains(rejected));
    let is_rejected = until(PATIENCE, Duration::from_millis(20), is_rejected)?;
    ensure!(is_rejected, "the copy is not rejected");
    to.batch_execute("DELETE FROM docs WHERE id = 5")?;
    wait_until_equal(&mut from, &mut to, DOCS, "a copy whose row has gone")?;
    to.batch_execute(
        "DROP TRIGGER docs_guard ON docs; SELECT near_dup_protect('docs', 'body', 0.8, action => 'note');
         DO $$ DECLARE name text; BEGIN
             FOR name IN SELECT tgname FROM pg_trigger WHERE tgrelid = 'docs'::regclass LOOP
                 EXECUTE format('ALTER TABLE docs ENABLE ALWAYS TRIGGER %I', name);
             END LOOP;
         END $$",
    )?;
    from.batch_execute(
        "INSERT INTO docs VALUES (7, 'a stranger'), (8, 'a stranger'); DELETE FROM docs WHERE id = 3",
    )?;
    wait_until_equal(&mut from, &mut to, DOCS, "copies that are noted")?;
    let notes = "SELECT array_agg(ARRAY[key, near_key])::text FROM docs_near_dups";
    let notes: Option<String> = to.query_one(notes, &[])?.get(0);
    ensure!(
        notes.as_deref() == Some("{{8,7}}"),
        "the notes are {notes:?}"
    );
    to.batch_execute("DROP SUBSCRIPTION guarded")?;
    Ok(Outcome::Passed)
}

/// Checks that a tracker whose triggers replication does not fire reports this, and that its refreshes read the table.
fn triggers_not_fired(from: &mut Client, to: &mut Client) -> Result<()> {
    to.batch_execute("ALTER TABLE docs ENABLE TRIGGER USER")?;
    let behind = "SELECT bool_and(behind IS NULL) FROM near_dup_tracked";
    ensure!(to.query_one(behind, &[])?.get::<_, bool>(0));
    let change =
        "DELETE FROM docs WHERE id = 1; INSERT INTO docs VALUES (1000, 1, make_text(1, 1))";
    from.batch_execute(change)?;
    wait_until_equal(from, to, DOCS, change)?;
    for kept in KEPT {
        kept.ensure_law(to, false)?;
    }
    Ok(())
}

/// Checks that a subscriber has the publisher's bytes, in text and in binary transfer, after the initial copy and after
/// every kind of change.
pub fn byte_equal(server: &Server, scale: Scale) -> Result<Outcome> {
    let publisher = server.scratch_cluster("publisher")?;
    publisher.create(&[("wal_level", "logical")])?;
    publisher.start()?;
    let subscriber = server.scratch_cluster("subscriber")?;
    subscriber.create(&[])?;
    subscriber.start()?;
    let rows = scale.of(500, 5000);
    for binary in [false, true] {
        replicate(&publisher, &subscriber, rows, binary)?;
    }
    figure!("{rows} rows byte-equal after copy and changes, as text and binary");
    Ok(Outcome::Passed)
}

fn replicate(publisher: &Cluster, subscriber: &Cluster, rows: i32, binary: bool) -> Result<()> {
    let database = format!("binary_{binary}");
    let [mut from, mut to] = open(publisher, subscriber, &database, TABLES)?;
    from.batch_execute(&fill(rows))?;
    from.batch_execute("CREATE PUBLICATION everything FOR ALL TABLES")?;
    subscribe(publisher, &mut to, &database, "everything", binary)?;
    wait_until_equal(&mut from, &mut to, SIGNATURES, "the first copy")?;
    for change in CHANGES {
        for table in ["by_key", "by_value"] {
            from.batch_execute(&change.replace("TABLE", table))?;
        }
    }
    wait_until_equal(&mut from, &mut to, SIGNATURES, "changes")?;
    to.batch_execute(&format!("DROP SUBSCRIPTION {database}"))?;
    Ok(())
}

/// Returns clients of a new database on both servers, in which a script has been run.
fn open(
    publisher: &Cluster,
    subscriber: &Cluster,
    database: &str,
    script: &str,
) -> Result<[Client; 2]> {
    let open = |cluster: &Cluster| -> Result<Client> {
        cluster
            .connect("postgres")?
            .batch_execute(&format!("CREATE DATABASE {database}"))?;
        let mut client = cluster.connect(database)?;
        client.batch_execute(&format!("CREATE EXTENSION pg_neardup; {script}"))?;
        Ok(client)
    };
    Ok([open(publisher)?, open(subscriber)?])
}

/// Creates a subscription with the name of the database.
fn subscribe(
    publisher: &Cluster,
    to: &mut Client,
    database: &str,
    publication: &str,
    binary: bool,
) -> Result<()> {
    to.batch_execute(&format!(
        "CREATE SUBSCRIPTION {database}
         CONNECTION 'host={} user={SUPERUSER} dbname={database}'
         PUBLICATION {publication} WITH (binary = {binary})",
        publisher.socket_dir().display()
    ))?;
    Ok(())
}

/// A digest of the signatures, and the number of rows.
const SIGNATURES: &str =
    "SELECT md5(string_agg(concat(source, id, ' ', sig::bytea), ',' ORDER BY source, id)),
        count(sig)
    FROM (SELECT 1 AS source, * FROM by_key UNION ALL SELECT 2, * FROM by_value) rows";

/// A digest of the tracked table, and the number of rows.
const DOCS: &str = "SELECT md5(string_agg(docs::text, ',' ORDER BY id)), count(*) FROM docs";

/// Fails unless the tables become equal in time.
pub fn wait_until_equal(
    from: &mut Client,
    to: &mut Client,
    digest: &str,
    what: &str,
) -> Result<()> {
    let read = |client: &mut Client| -> Result<(Option<String>, i64)> {
        let row = client.query_one(digest, &[])?;
        Ok((row.get(0), row.get(1)))
    };
    let wanted = read(from)?;
    ensure!(wanted.1 > 0, "there is nothing to compare");
    let mut found = (None, 0);
    let is_equal = until(PATIENCE, Duration::from_millis(50), || {
        found = read(to)?;
        Ok(found == wanted)
    })?;
    ensure!(
        is_equal,
        "after {what} the publisher has {wanted:?}, the subscriber {found:?}"
    );
    Ok(())
}
