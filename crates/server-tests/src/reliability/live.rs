//! Kills in the middle of writes and refreshes of kept clusters.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use testbed::server::Server;
use testbed::server::cluster::Cluster;

use super::crash::repeat;
use crate::harness::{Outcome, Scale, figure};
use crate::live::{Kept, TYPES};

const KEPT: Kept = Kept::docs("place DESC, id");

const TABLE: &str = "CREATE TABLE docs (id int PRIMARY KEY, place int, body text{definition})
        PARTITION BY RANGE (id);
    CREATE TABLE docs_1 PARTITION OF docs FOR VALUES FROM (0) TO (500);
    CREATE TABLE docs_2 PARTITION OF docs FOR VALUES FROM (500) TO (MAXVALUE);
    CREATE INDEX ON docs USING neardup ({column} {class});
    INSERT INTO docs SELECT i, i % 5, make_text(i % 30, i % 10) FROM generate_series(1, 2000) i;
    SELECT near_dup_track('docs', '{column}', {threshold 0.8}, 'place DESC'{arguments})";

/// Statements that sessions repeat until the server is killed.
const WORK: &[&str] = &[
    "UPDATE docs SET body = make_text((random() * 30)::int, (random() * 10)::int)
     WHERE id = (random() * 2000)::int",
    "UPDATE docs SET place = (random() * 9)::int WHERE id = (random() * 2000)::int",
    "DELETE FROM docs WHERE id = (random() * 2000)::int",
    "INSERT INTO docs SELECT i, i % 7, make_text(i % 30, (random() * 10)::int)
     FROM (SELECT (random() * 2000)::int AS i) s ON CONFLICT DO NOTHING",
    "SELECT pg_sleep(0.2); BEGIN; ALTER TABLE docs DETACH PARTITION docs_1; DELETE FROM docs_1 WHERE random() < 0.1;
     ALTER TABLE docs ATTACH PARTITION docs_1 FOR VALUES FROM (0) TO (500); COMMIT",
    "SELECT near_dup_refresh('docs_clusters')",
    "SELECT near_dup_refresh('docs_clusters', random() < 0.1)",
    "VACUUM docs, docs_clusters, docs_clusters_canonical, docs_clusters_queue",
];

/// Checks after every restart that a refresh makes the clusters equal those computed from scratch.
pub fn survives_kills(server: &Server, scale: Scale) -> Result<Outcome> {
    let cluster = server.scratch_cluster("live_kills")?;
    cluster.create(&[("full_page_writes", "on"), ("synchronous_commit", "on")])?;
    cluster.start()?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute("CREATE EXTENSION pg_neardup")?;
    let compared = fastrand::choice(TYPES).context("there are some")?;
    client.batch_execute(&compared.texts())?;
    client.batch_execute(&compared.fill(TABLE))?;
    let kills = scale.of(2, 10);
    let mut waiting = 0;
    for kill in 0..kills {
        work_until_killed(&cluster, kill)?;
        cluster.start()?;
        let mut client = cluster.connect("postgres")?;
        let behind = "SELECT behind FROM near_dup_tracked";
        // NULL after a partition has been attached again.
        let behind: Option<i64> = client.query_one(behind, &[])?.get(0);
        waiting += behind.unwrap_or(0);
        let law = KEPT.ensure_law(&mut client, false);
        law.with_context(|| format!("column {}", compared.column))?;
        client.batch_execute("SELECT near_dup_index_check('docs_clusters_canonical_kept_idx')")?;
    }
    ensure!(
        waiting > 0,
        "no change was waiting when the server was killed"
    );
    figure!(
        "{kills} kills, {waiting} changes of column {} were waiting, 0 differences",
        compared.column
    );
    Ok(Outcome::Passed)
}

fn work_until_killed(cluster: &Cluster, kill: u64) -> Result<()> {
    thread::scope(|scope| {
        repeat(scope, cluster, WORK);
        thread::sleep(Duration::from_millis(500 + 270 * kill % 1000));
        cluster.crash()
    })
}
