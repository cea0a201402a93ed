//! Containment of sets: exactly what counting the elements in SQL says, by index and without, in both
//! directions.

use anyhow::{Result, ensure};
use postgres::Client;
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::Outcome;

/// Sets with what they share counted by SQL. Every tenth is a part of the one before; some hold more
/// elements than a page of the index.
const SETS: &str = "
    CREATE FUNCTION share(part bigint[], whole bigint[]) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$
        SELECT count(*) / nullif((SELECT count(DISTINCT x) FROM unnest(part) x), 0)::float8
        FROM (SELECT unnest(part) INTERSECT SELECT unnest(whole)) s (x) WHERE x IS NOT NULL $$;
    CREATE FUNCTION elements(id bigint) RETURNS bigint[] LANGUAGE sql IMMUTABLE AS $$
        SELECT array_agg(hashint8extended(i, CASE WHEN id % 10 = 0 THEN id - 1 ELSE id END) % 150)
        FROM generate_series(1, 1 + id * id % CASE WHEN id % 10 = 0 THEN 7 ELSE 60 END) i $$;
    CREATE TABLE sets (id bigserial PRIMARY KEY, prints bigint[]);
    CREATE INDEX sets_prints ON sets USING neardup (prints);
    INSERT INTO sets (prints) SELECT elements(i) FROM generate_series(1, 300) i;
    INSERT INTO sets (prints) VALUES (NULL), ('{}'), ('{NULL}'), ('{7,NULL,7,8}'), ('{{1,2},{3,4}}');
    INSERT INTO sets (prints)
    SELECT array_agg(j * i) FROM (VALUES (1), (2), (3)) i (i), generate_series(1, 5000) j GROUP BY i";

/// The conditions between a query q and a row d, and the same as SQL counts it.
const DIRECTIONS: [[&str; 2]; 2] = [
    [
        "near_contained(q.prints, d.prints, {})",
        "share(q.prints, d.prints) >= {}",
    ],
    [
        "near_contained(d.prints, q.prints, {})",
        "share(d.prints, q.prints) >= {}",
    ],
];

/// Compares index, function and SQL for every direction at a threshold.
fn ensure_equal(client: &mut Client, threshold: &str, state: &str) -> Result<()> {
    client.batch_execute("SET enable_seqscan = off; SET max_parallel_workers_per_gather = 0")?;
    for [near, counted] in DIRECTIONS {
        let [near, counted] = [near, counted].map(|of| of.replace("{}", threshold));
        let pairs = "SELECT q.id AS q, d.id FROM queries q, sets d WHERE";
        let row = client.query_one(
            &format!(
                "WITH queries AS MATERIALIZED (SELECT * FROM sets WHERE id % 17 = 0 OR id > 300),
                      counted AS MATERIALIZED ({pairs} {counted}),
                      scan AS MATERIALIZED ({pairs} ({near}) IS TRUE),
                      found AS MATERIALIZED ({pairs} {near})
                 SELECT (SELECT count(*) FROM (TABLE counted EXCEPT ALL TABLE found) x)
                      + (SELECT count(*) FROM (TABLE found EXCEPT ALL TABLE counted) x),
                        (SELECT count(*) FROM (TABLE counted EXCEPT ALL TABLE scan) x)
                      + (SELECT count(*) FROM (TABLE scan EXCEPT ALL TABLE counted) x),
                        (SELECT count(*) FROM found)"
            ),
            &[],
        )?;
        let [by_index, by_scan, all]: [i64; 3] = [row.get(0), row.get(1), row.get(2)];
        ensure!(
            by_index == 0 && by_scan == 0 && all > 0,
            "{state}, {near}: {by_index} rows differ by index, {by_scan} by scan, of {all}"
        );
    }
    Ok(())
}

/// Checks thresholds from near 0 to 1, in the log, in segments, with rows larger than a page, after
/// deletes, VACUUM and REINDEX.
pub fn equals_scan(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "containment")?;
    let mut client = database.connect()?;
    client.batch_execute(SETS)?;
    for change in [
        "",
        "INSERT INTO sets (prints) SELECT elements(i) FROM generate_series(301, 400) i",
        "VACUUM sets",
        "DELETE FROM sets WHERE id % 7 = 0; VACUUM sets",
        "UPDATE sets SET prints = prints || 5000 WHERE id % 5 = 0 AND array_ndims(prints) = 1",
        "REINDEX INDEX sets_prints",
    ] {
        for statement in change.split(';') {
            client.batch_execute(statement)?;
        }
        let state = format!("after {change:?}");
        for threshold in ["1e-300", "0.07", "0.2", "1.0 / 3", "0.8", "1"] {
            ensure_equal(&mut client, threshold, &state)?;
        }
        client.batch_execute("SELECT near_dup_index_check('sets_prints')")?;
    }
    Ok(Outcome::Passed)
}
