//! Logical replication of signatures.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use postgres::Client;
use testbed::server::Server;
use testbed::server::cluster::{Cluster, SUPERUSER};

use crate::harness::{Outcome, Scale, figure};

/// The time within which the subscriber has to catch up.
const PATIENCE: Duration = Duration::from_secs(60);

/// Signatures of many forms. The rows of `by_value` are found by comparing all their columns.
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

/// Checks that a subscriber has the publisher's bytes, in text and in binary transfer, after the first
/// copy and after every kind of change.
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
    let open = |cluster: &Cluster| -> Result<Client> {
        cluster
            .connect("postgres")?
            .batch_execute(&format!("CREATE DATABASE {database}"))?;
        let mut client = cluster.connect(&database)?;
        client.batch_execute(&format!("CREATE EXTENSION pg_neardup; {TABLES}"))?;
        Ok(client)
    };
    let (mut from, mut to) = (open(publisher)?, open(subscriber)?);
    from.batch_execute(&fill(rows))?;
    from.batch_execute("CREATE PUBLICATION everything FOR ALL TABLES")?;
    to.batch_execute(&format!(
        "CREATE SUBSCRIPTION everything_{binary}
         CONNECTION 'host={} user={SUPERUSER} dbname={database}'
         PUBLICATION everything WITH (binary = {binary})",
        publisher.socket_dir().display()
    ))?;
    wait_until_equal(&mut from, &mut to, "the first copy")?;
    for change in CHANGES {
        for table in ["by_key", "by_value"] {
            from.batch_execute(&change.replace("TABLE", table))?;
        }
    }
    wait_until_equal(&mut from, &mut to, "changes")?;
    to.batch_execute(&format!("DROP SUBSCRIPTION everything_{binary}"))?;
    Ok(())
}

/// The tables are equal soon; a digest that stays another is a failure.
fn wait_until_equal(from: &mut Client, to: &mut Client, what: &str) -> Result<()> {
    let wanted = digest(from)?;
    ensure!(wanted.1 > 0, "there is nothing to compare");
    let start = Instant::now();
    loop {
        let found = digest(to)?;
        if found == wanted {
            return Ok(());
        }
        if start.elapsed() > PATIENCE {
            bail!("after {what} the publisher has {wanted:?}, the subscriber {found:?}");
        }
        sleep(Duration::from_millis(50));
    }
}

fn digest(client: &mut Client) -> Result<(Option<String>, i64)> {
    let row = client.query_one(
        "SELECT md5(string_agg(concat(source, id, ' ', sig::bytea), ',' ORDER BY source, id)),
                count(sig)
         FROM (SELECT 1 AS source, * FROM by_key UNION ALL SELECT 2, * FROM by_value) rows",
        &[],
    )?;
    Ok((row.get(0), row.get(1)))
}
