//! Other extensions, if they are present: pgvector's approximate indexes.

use anyhow::{Result, ensure};
use postgres::Client;
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::{Missing, Outcome};

const DOCS: &str = "CREATE TABLE docs AS
    SELECT i AS id, minhash(body) AS sig, simhash(body) AS hash FROM (
        SELECT i, string_agg('word' || (i / 10 * 7919 + w * w + CASE WHEN w % 30 < i % 10 THEN i ELSE 0 END) % 9973,
                             ' ' ORDER BY w) AS body
        FROM generate_series(1, 2000) i, generate_series(1, 60) w GROUP BY i) bodies";

/// The columns that pgvector indexes: the expression, and the number of bits.
const VECTORS: [(&str, usize); 2] = [
    ("hash", 64),
    ("(minhash_describe(minhash_pack(sig, 1))).bits", 128),
];

/// Checks that HNSW over SimHashes and over packed signatures finds nearly all of the ten nearest, and that clusters
/// are made from pairs of texts and of embeddings, as docs/recipes.md says.
pub fn pgvector(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "pgvector")?;
    let mut client = database.connect()?;
    if client.batch_execute("CREATE EXTENSION vector").is_err() {
        return Ok(Outcome::Skipped(Missing::Pgvector));
    }
    clusters(&mut client)?;
    client.batch_execute(DOCS)?;
    for (column, bits) in VECTORS {
        let value = format!("({column}::bit({bits}))");
        client.batch_execute(&format!(
            "CREATE INDEX nearest ON docs USING hnsw ({value} bit_hamming_ops); ANALYZE docs"
        ))?;
        let share = found_share(&mut client, &value)?;
        ensure!(
            share > 0.95,
            "{column}: {share} of the nearest found through HNSW"
        );
        client.batch_execute("DROP INDEX nearest")?;
    }
    Ok(Outcome::Passed)
}

/// Checks that copies and close embeddings are in one cluster.
fn clusters(client: &mut Client) -> Result<()> {
    client.batch_execute(
        "CREATE TABLE answers (id int PRIMARY KEY, body text NOT NULL, embedding vector(3) NOT NULL);
         INSERT INTO answers VALUES (1, 'the same text of five words', '[0.9, 0.1, 0.3]'),
             (2, 'the same text of five words', '[0.1, 0.9, 0.3]'),
             (3, 'not one of them is in here', '[0.88, 0.15, 0.33]'), (4, 'far from all others', '[0.1, 0.1, 0.9]');
         CREATE INDEX ON answers USING hnsw (embedding vector_cosine_ops)",
    )?;
    let rows = client.query(
        "SELECT cluster FROM star_clusters(NULL::int, 'SELECT id FROM answers ORDER BY id', $$
             SELECT a, b, max(similarity) FROM (
                 SELECT a, b, similarity FROM near_dup_pairs(NULL::int, 'SELECT id, body FROM answers', 0.8)
                 UNION ALL
                 SELECT least(a.id, b.id), greatest(a.id, b.id), 1 - (a.embedding <=> b.embedding) FROM answers a
                 CROSS JOIN LATERAL (SELECT * FROM answers b WHERE b.id <> a.id
                     ORDER BY b.embedding <=> a.embedding LIMIT 10) b
                 WHERE a.embedding <=> b.embedding <= 0.05
             ) near GROUP BY a, b$$) ORDER BY key",
        &[],
    )?;
    let clusters: Vec<i32> = rows.iter().map(|row| row.get(0)).collect();
    ensure!(clusters == [1, 1, 1, 4], "{clusters:?}");
    Ok(())
}

/// Returns the share of the queries' ten smallest distances that the index finds; the plans must use the index.
fn found_share(client: &mut Client, value: &str) -> Result<f64> {
    let nearest = |query: i32| {
        format!(
            "SELECT {value} <~> (SELECT {value} FROM docs WHERE id = {query}) FROM docs
             ORDER BY {value} <~> (SELECT {value} FROM docs WHERE id = {query}) LIMIT 10"
        )
    };
    let mut distances = |query: i32| -> Result<Vec<f64>> {
        let rows = client.query(&nearest(query), &[])?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    };
    let queries = || (1..=2000).step_by(97);
    let found: Vec<_> = queries().map(&mut distances).collect::<Result<_>>()?;
    let plan = client.query(&format!("EXPLAIN {}", nearest(1)), &[])?;
    let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
    ensure!(
        plan.iter()
            .any(|line| line.contains("Index Scan using nearest")),
        "{}",
        plan.join("\n")
    );
    client.batch_execute("SET enable_indexscan = off")?;
    let mut equal = 0;
    for (query, found) in queries().zip(&found) {
        let rows = client.query(&nearest(query), &[])?;
        let exact = rows.iter().map(|row| row.get::<_, f64>(0));
        equal += exact
            .zip(found)
            .filter(|(exact, found)| exact == *found)
            .count();
    }
    client.batch_execute("RESET enable_indexscan")?;
    Ok(equal as f64 / (10 * found.len()) as f64)
}
