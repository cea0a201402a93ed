//! The recipe for Citus in docs/scaling.md, on one node that stands for many.

use anyhow::{Context, Result, ensure};
use postgres::Client;
use testbed::server::Server;

use crate::harness::{Missing, Outcome};

const TABLES: &str = "CREATE EXTENSION citus; CREATE EXTENSION pg_neardup;
    SET citus.shard_count = 4;
    CREATE TABLE docs (id bigint PRIMARY KEY, body text NOT NULL,
        sig minhash_signature GENERATED ALWAYS AS (minhash(body)) STORED);
    CREATE INDEX docs_sig ON docs USING neardup (sig);
    SELECT create_distributed_table('docs', 'id');
    INSERT INTO docs (id, body)
    SELECT i, 'Document about ' || string_agg('topic' || (i % 250 * 31 + w * 7) % 9973, ' ' ORDER BY w)
    FROM generate_series(1, 500) i, generate_series(1, 30) w GROUP BY i;
    CREATE TABLE bands (band bigint NOT NULL, id bigint NOT NULL, sig minhash_signature NOT NULL);
    SELECT create_distributed_table('bands', 'band');
    INSERT INTO bands SELECT unnest(minhash_bands(sig, 0.8)), id, sig FROM docs;
    CREATE INDEX ON bands (band);
    CREATE TABLE whole AS SELECT * FROM docs;
    ALTER DATABASE postgres SET enable_seqscan = off";

const LOOKUP: &str =
    "SELECT count(*) FROM docs WHERE near_dup(sig, minhash('Document about nothing'))";
const PAIRS: &str = "SELECT DISTINCT a.id, b.id FROM bands a JOIN bands b USING (band)
    WHERE a.id < b.id AND near_dup(a.sig, b.sig, 0.8)";
const UNION: &str = "SELECT minhash_union(sig)::text FROM docs";

/// Checks that the pairs, the lookups and the unions are those of a plain table, and are found on the
/// shards.
pub fn recipe(server: &Server) -> Result<Outcome> {
    if !server.main.offers("citus")? {
        return Ok(Outcome::Skipped(Missing::Citus));
    }
    let cluster = server.scratch_cluster("citus")?;
    cluster.create(&[("shared_preload_libraries", "citus")])?;
    let socket = cluster.socket_dir().to_string_lossy().into_owned();
    cluster.configure(&[("citus.local_hostname", &socket)])?;
    cluster.start()?;
    let mut client = cluster.connect("postgres")?;
    for statement in TABLES.split(';') {
        client.batch_execute(statement).context(statement)?;
    }
    // This number of rows a shard is quicker read than looked up; a new session learns otherwise.
    let mut client = cluster.connect("postgres")?;

    let lookup = plan(&mut client, LOOKUP)?;
    ensure!(
        lookup.contains("Bitmap Index Scan on docs_sig_"),
        "{lookup}"
    );
    let union = plan(&mut client, UNION)?;
    ensure!(union.contains("partial_agg("), "{union}");
    let same_union = format!("SELECT ({UNION}) = (SELECT minhash_union(sig)::text FROM whole)");
    ensure!(
        client.query_one(&same_union, &[])?.get::<_, bool>(0),
        "the union differs"
    );

    let found = pairs(&mut client, PAIRS)?;
    let scan = "SELECT a.id, b.id FROM whole a JOIN whole b ON a.id < b.id AND minhash_sim(a.sig, b.sig) >= 0.8";
    let wanted = pairs(&mut client, scan)?;
    ensure!(
        found == wanted && found.len() >= 250,
        "{} pairs, not {}",
        found.len(),
        wanted.len()
    );
    Ok(Outcome::Passed)
}

fn plan(client: &mut Client, query: &str) -> Result<String> {
    let rows = client.query(&format!("EXPLAIN (VERBOSE, COSTS OFF) {query}"), &[])?;
    let lines: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    Ok(lines.join("\n"))
}

fn pairs(client: &mut Client, query: &str) -> Result<Vec<(i64, i64)>> {
    let rows = client.query(query, &[])?;
    let mut pairs: Vec<_> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    pairs.sort();
    Ok(pairs)
}
