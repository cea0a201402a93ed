//! `docs/replica.md`: its examples are run on two servers; the managed server does not have the extension.

use std::fs;

use anyhow::{Context, Result, ensure};
use postgres::Client;
use testbed::server::cluster::{Cluster, SUPERUSER, wait_until};
use testbed::server::database::Database;
use testbed::workspace;

use super::examples::{normal, parse, rewrite};
use crate::harness::Outcome;
use crate::reliability::logical::wait_until_equal;
use crate::shared;

const PAGE: &str = "docs/replica.md";

/// A digest of the rows of the page's tables, and their number.
const STORIES: &str =
    "SELECT md5(string_agg(concat(id, published, body), ',' ORDER BY id)), count(*) FROM stories";
const CLUSTERS: &str =
    "SELECT md5(string_agg(c::text, ',' ORDER BY key)), count(*) FROM stories_clusters c";

struct Side<'a> {
    database: Database<'a>,
    client: Client,
}

/// Runs the page: each block runs on the server that its first line names, when both servers have the same rows.
pub fn check() -> Result<Outcome> {
    let clusters = ["managed", "own_replica"].map(|name| shared::server().scratch_cluster(name));
    let [managed, replica] = clusters;
    let (managed, replica) = (managed?, replica?);
    for cluster in [&managed, &replica] {
        cluster.create(&[("wal_level", "logical")])?;
        cluster.start()?;
    }
    let mut sides = [open(&managed)?, open(&replica)?];
    let ran = run(&mut sides);
    drop_subscriptions(&mut sides)?;
    ran.map(|()| Outcome::Passed)
}

fn run(sides: &mut [Side<'_>; 2]) -> Result<()> {
    let path = workspace::root().join(PAGE);
    let text = fs::read_to_string(&path)?;
    let mut examples = parse(&text);
    let mut outputs = Vec::new();
    for example in &mut examples {
        let (first, _) = example
            .sql
            .split_once('\n')
            .context("a block of one line")?;
        let place = ["-- On the managed server", "-- On the replica"]
            .iter()
            .position(|start| first.starts_with(start));
        let place = place.with_context(|| format!("line {} names no server", example.line))?;
        wait_until_alike(sides)?;
        let [managed, replica] = &*sides;
        let script = example
            .sql
            .replace("host=db.example.com", &address(managed))
            .replace("host=replica.example.com", &address(replica));
        let printed = sides[place].database.psql(&format!("{script}\n"))?;
        outputs.push(normal(printed.lines()));
        example.is_run = true;
    }
    constraint_stops(sides)?;
    if shared::is_blessing() {
        fs::write(&path, rewrite(&text, &examples, &outputs))?;
    }
    for (example, output) in examples.iter().zip(&outputs) {
        let checked = example.check(output);
        checked.with_context(|| format!("{PAGE}:{}", example.line))?;
    }
    Ok(())
}

fn open(cluster: &Cluster) -> Result<Side<'_>> {
    let database = Database::create(cluster, "news", "")?;
    let client = database.connect()?;
    Ok(Side { database, client })
}

/// Returns the parameters for connecting to a server.
fn address(side: &Side<'_>) -> String {
    let (cluster, name) = (side.database.cluster, &side.database.name);
    let directory = cluster.socket_dir().display();
    format!("host={directory} dbname={name} user={SUPERUSER}")
}

/// Waits until each table that exists on both servers has the same rows there.
fn wait_until_alike([managed, replica]: &mut [Side<'_>; 2]) -> Result<()> {
    for (table, digest, is_of_managed) in [
        ("stories", STORIES, true),
        ("stories_clusters", CLUSTERS, false),
    ] {
        let mut is_there = true;
        for side in [&mut *managed, &mut *replica] {
            let there = "SELECT to_regclass($1) IS NOT NULL";
            is_there &= side.client.query_one(there, &[&table])?.get::<_, bool>(0);
        }
        if is_there {
            let (from, to) = match is_of_managed {
                true => (&mut *managed, &mut *replica),
                false => (&mut *replica, &mut *managed),
            };
            wait_until_equal(&mut from.client, &mut to.client, digest, table)?;
        }
    }
    Ok(())
}

/// Checks that a copy that a constraint of the replica rejects stops replication until the constraint is dropped.
fn constraint_stops([managed, replica]: &mut [Side<'_>; 2]) -> Result<()> {
    replica.client.batch_execute(
        "DELETE FROM stories WHERE id NOT IN (SELECT canonical FROM stories_clusters);
         ALTER TABLE stories ADD CONSTRAINT no_copies EXCLUDE USING neardup (near_dup_key(body, 0.7) WITH %)",
    )?;
    managed.client.batch_execute(
        "INSERT INTO stories SELECT 100, published, body FROM stories WHERE id = 1",
    )?;
    let failed = "SELECT coalesce(sum(apply_error_count), 0) > 0 FROM pg_stat_subscription_stats";
    wait_until(&mut replica.client, failed).context("the constraint let the copy in")?;
    let arrived = "SELECT count(*) > 0 FROM stories WHERE id = 100";
    ensure!(!replica.client.query_one(arrived, &[])?.get::<_, bool>(0));
    replica
        .client
        .batch_execute("ALTER TABLE stories DROP CONSTRAINT no_copies")?;
    wait_until(&mut replica.client, arrived).context("replication did not go on")
}

/// Drops the subscriptions; a database that has one cannot be dropped.
fn drop_subscriptions(sides: &mut [Side<'_>; 2]) -> Result<()> {
    for side in sides {
        let of_here = "SELECT subname::text FROM pg_subscription";
        for row in side.client.query(of_here, &[])? {
            let name: String = row.get(0);
            side.client
                .batch_execute(&format!("DROP SUBSCRIPTION {name}"))?;
        }
    }
    Ok(())
}
