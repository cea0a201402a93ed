//! PostgreSQL can discard its caches at any time: no code may read through a pointer into them after a call that could
//! do so.

use anyhow::{Result, ensure};
use postgres::Client;
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::{Missing, Outcome, Scale};

/// Tables of every kind that the library opens by itself, and a guard on the partitioned table.
const TABLES: &str = "
    CREATE TABLE docs (id int, part int, body text, sig minhash_signature, PRIMARY KEY (id, part))
        PARTITION BY LIST (part);
    CREATE TABLE docs_1 PARTITION OF docs FOR VALUES IN (1);
    CREATE TABLE docs_2 (sig minhash_signature, body text, part int NOT NULL, id int NOT NULL);
    ALTER TABLE docs ATTACH PARTITION docs_2 FOR VALUES IN (2);
    CREATE INDEX ON docs USING neardup (sig);
    SELECT near_dup_protect('docs', 'sig', 0.8, scope => '{part}');
    CREATE TABLE kept (id int PRIMARY KEY, body text);
    CREATE INDEX ON kept USING neardup (body);
    CREATE TABLE images (id int PRIMARY KEY, hash bit(64));
    CREATE INDEX ON images USING neardup (hash hamming_ops (distance = 3))";

/// Statements that read the catalogs; the last is a query of their results.
const STATEMENTS: &[&str] = &[
    "INSERT INTO docs SELECT n, 1 + n % 2, body, minhash(body)
     FROM generate_series(1, 6) n, LATERAL (SELECT 'one document of ' || n / 2 || ' kinds') AS d (body)",
    "DO $$ BEGIN INSERT INTO docs VALUES (7, 1, 'one document of 1 kinds', minhash('one document of 1 kinds'));
     EXCEPTION WHEN exclusion_violation THEN END $$",
    "UPDATE docs SET body = body || ' or more', sig = minhash(body || ' or more') WHERE id = 1",
    "INSERT INTO images SELECT n, simhash('picture ' || n) FROM generate_series(1, 4) n",
    "SELECT id, part FROM docs WHERE near_dup(sig, minhash('one document of 1 kinds')) ORDER BY 1",
    "SELECT id FROM images WHERE hamming_within(hash, simhash('picture 2'), 3) ORDER BY 1",
    "SELECT id FROM docs ORDER BY sig <=> minhash('one document of 1 kinds'), id LIMIT 2",
    "SELECT * FROM near_dup_pairs(NULL::int, 'SELECT id, sig, body FROM docs', 0.3) ORDER BY 1, 2",
    "SELECT * FROM near_dup_clusters(NULL::int, 'SELECT id, sig FROM docs', 0.3) ORDER BY 1",
    "SELECT * FROM near_dup_pairs(NULL::int, 'SELECT id, hash FROM images', 20) ORDER BY 1, 2",
    "SELECT * FROM connected_components(NULL::text, $$VALUES ('a', 'b'), ('b', 'c')$$) ORDER BY 1",
    "DO $$ BEGIN PERFORM near_dup_track('kept', 'body', keep => 'length(body)');
         INSERT INTO kept SELECT n, 'one document of ' || n / 2 || ' kinds' FROM generate_series(1, 6) n;
         PERFORM near_dup_refresh('kept_clusters', rebuild) FROM unnest(ARRAY[false, true]) rebuild; END $$",
    "SELECT key, canonical FROM kept_clusters ORDER BY 1",
    "SELECT minhash_union(sig) = minhash_union(sig || sig) FROM docs",
];

/// Checks that every statement has the same result if caches are discarded at every opportunity.
pub fn changes_nothing(server: &Server, _: Scale) -> Result<Outcome> {
    let mut client = server.main.connect("postgres")?;
    let query = "SELECT max_val::int FROM pg_settings WHERE name = 'debug_discard_caches'";
    if client.query_one(query, &[])?.get::<_, i32>(0) == 0 {
        return Ok(Outcome::Skipped(Missing::Assertions));
    }
    let [kept, discarded] = ["0", "1"].map(|discard| -> Result<Vec<String>> {
        let database = Database::with_extension(&server.main, "discard")?;
        let mut client = database.connect()?;
        client.batch_execute(TABLES)?;
        client.batch_execute(&format!(
            "SET enable_seqscan = off; SET debug_discard_caches = {discard}"
        ))?;
        let results = STATEMENTS
            .iter()
            .map(|statement| rows(&mut client, statement));
        results.collect()
    });
    let (kept, discarded) = (kept?, discarded?);
    for (statement, (kept, discarded)) in STATEMENTS.iter().zip(kept.iter().zip(&discarded)) {
        ensure!(kept == discarded, "{statement}: {discarded}, not {kept}");
    }
    Ok(Outcome::Passed)
}

/// Returns the rows of a query as text; of other statements, nothing.
fn rows(client: &mut Client, statement: &str) -> Result<String> {
    if !statement.starts_with("SELECT") {
        client.batch_execute(statement)?;
        return Ok(String::new());
    }
    let query = format!("SELECT coalesce(string_agg(r::text, ' '), '') FROM ({statement}) r");
    Ok(client.query_one(&query, &[])?.get(0))
}
