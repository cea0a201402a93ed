//! Searches whose candidates exceed work_mem find the same rows as with a large work_mem.

use anyhow::{Context, Result, ensure};
use postgres::Client;
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::Outcome;

/// A group of 6000 rows, and 500 groups of twelve rows: a refresh finds the rows near many changed ones together if so
/// few rows have a key.
const ROWS: &str = "
    CREATE TABLE template AS SELECT i AS id,
        (SELECT string_agg('word' || w, ' ') FROM generate_series(1, 60) w) || ' ' || i AS body,
        hashint8extended(0, 0)::bit(64) # (1::bit(64) << i % 64) AS b
    FROM generate_series(1, 6000) i;
    CREATE INDEX ON template USING neardup (body);
    CREATE INDEX ON template USING neardup (b);
    CREATE TABLE groups AS SELECT i AS id,
        (SELECT string_agg('w' || i / 12 || 'x' || w, ' ') FROM generate_series(1, 40) w) || ' ' || i AS body,
        hashint8extended(i / 12, 0)::bit(64) # (1::bit(64) << i % 12) AS b
    FROM generate_series(0, 5999) i;
    SET enable_seqscan = off; SET max_parallel_workers_per_gather = 0";

/// A table whose guard notes the rows most similar to a new one.
const NOTED: &str = "
    CREATE TABLE passed AS TABLE template;
    ALTER TABLE passed ADD PRIMARY KEY (id);
    CREATE INDEX ON passed USING neardup (b);
    SELECT near_dup_protect('passed', 'b', 2, action => 'note', most => 100);
    INSERT INTO passed SELECT 0, body, b FROM template WHERE id = 1";

/// Queries with more candidates than 64 kB can hold, and the numbers of rows that they return.
const QUERIES: [(&str, usize); 4] = [
    (
        "SELECT id FROM template WHERE near_dup(body, (SELECT body FROM template WHERE id = 1))",
        6000,
    ),
    (
        "SELECT id FROM template WHERE hamming_within(b, (SELECT b FROM template WHERE id = 1), 2)",
        6000,
    ),
    (
        "SELECT id FROM template ORDER BY b <-> (SELECT b FROM template WHERE id = 1), id LIMIT 5000",
        5000,
    ),
    ("SELECT near_key AS id FROM passed_near_dups", 100),
];

/// Compares lookups, orders, guards and trackers with a work_mem of 64 kB and of 64 MB.
pub fn loses_nothing(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "little_memory")?;
    let mut client = database.connect()?;
    client.batch_execute(ROWS)?;
    let mut found: [Vec<Vec<i32>>; 2] = Default::default();
    for (work_mem, found) in ["64kB", "64MB"].into_iter().zip(&mut found) {
        client.batch_execute(&format!("SET work_mem = '{work_mem}'; {NOTED}"))?;
        for (query, rows) in QUERIES {
            let query = format!("SELECT array_agg(id ORDER BY id) FROM ({query}) x");
            let ids: Vec<i32> = client.query_one(&query, &[])?.get(0);
            ensure!(ids.len() == rows, "{} rows of {query}", ids.len());
            found.push(ids);
        }
        client.batch_execute("DROP TABLE passed, passed_near_dups")?;
        for (column, threshold) in [("body", "0.8"), ("b", "2")] {
            ensure_tracked(&mut client, column, threshold)
                .with_context(|| format!("{column} in {work_mem}"))?;
        }
    }
    ensure!(found[0] == found[1], "other rows are found in 64 kB");
    Ok(Outcome::Passed)
}

/// Replaces the rows of 60 groups of a tracked table, and compares its clusters with those computed from scratch.
fn ensure_tracked(client: &mut Client, column: &str, threshold: &str) -> Result<()> {
    for statement in [
        "CREATE TABLE tracked AS TABLE groups",
        "ALTER TABLE tracked ADD PRIMARY KEY (id)",
        &format!("CREATE INDEX ON tracked USING neardup ({column})"),
        &format!("SELECT near_dup_track('tracked', '{column}', {threshold})"),
        &format!(
            "UPDATE tracked t SET {column} = g.{column} FROM groups g
             WHERE t.id < 720 AND g.id = (t.id * 7 + 5) % 720"
        ),
        "SELECT near_dup_refresh('tracked_clusters')",
        "CREATE TABLE kept AS SELECT key, canonical, similarity FROM tracked_clusters",
        "SELECT near_dup_refresh('tracked_clusters', true)",
    ] {
        client.batch_execute(statement)?;
    }
    let other = "SELECT count(*) FROM (TABLE kept EXCEPT SELECT key, canonical, similarity FROM tracked_clusters) x";
    let other: i64 = client.query_one(other, &[])?.get(0);
    let clusters = "SELECT count(DISTINCT canonical) FROM kept";
    let clusters: i64 = client.query_one(clusters, &[])?.get(0);
    ensure!(
        other == 0 && clusters == 500,
        "{other} rows otherwise than anew, {clusters} clusters"
    );
    client.batch_execute("DROP TABLE tracked, tracked_clusters, kept")?;
    Ok(())
}
