//! The recipe for Citus in docs/scaling.md: a coordinator and two workers, which are separate servers.

use anyhow::{Context, Result, ensure};
use postgres::Client;
use postgres::error::SqlState;
use testbed::server::Server;
use testbed::server::citus::{self, Citus};

use crate::harness::{Missing, Outcome};

const WORKERS: usize = 2;

/// A scan would read so few rows faster than an index.
const SETTINGS: &[(&str, &str)] = &[("enable_seqscan", "off")];

const TABLES: &str = "SET citus.shard_count = 4;
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
    CREATE TABLE whole AS SELECT * FROM docs";

const LOOKUP: &str = "SELECT id FROM docs WHERE near_dup(sig, minhash(QUERY)) ORDER BY id";
const NEAREST: &str = "SELECT id FROM docs ORDER BY sig <=> minhash(QUERY) LIMIT 2";
/// A pair belongs to the first band that it shares.
const PAIRS: &str = "SELECT a.id, b.id FROM bands a JOIN bands b USING (band)
    WHERE a.id < b.id AND near_dup(a.sig, b.sig, 0.8)
      AND band = minhash_shared_band(a.sig, b.sig, 0.8)";
const UNION: &str = "SELECT minhash_union(sig)::text FROM docs";

/// Checks that lookups, nearest rows, pairs and unions return the same results as in a plain table and are computed on
/// the shards, and that a constraint holds within the column by which its table is distributed.
pub fn recipe(server: &Server) -> Result<Outcome> {
    if !server.main.offers(citus::EXTENSION)? {
        return Ok(Outcome::Skipped(Missing::Citus));
    }
    let nodes = Citus::start(server, WORKERS, SETTINGS)?;
    let mut client = nodes.coordinator.connect("postgres")?;
    for statement in TABLES.split(';') {
        client.batch_execute(statement).context(statement)?;
    }
    check_lookups(&mut client)?;
    check_union(&mut client)?;
    check_pairs(&mut client)?;
    check_constraint(&mut client)?;
    Ok(Outcome::Passed)
}

/// Checks that every shard answers from its index, with the nearest rows first.
fn check_lookups(client: &mut Client) -> Result<()> {
    let topics = (1..=30).map(|word| format!(" topic{}", 31 + word * 7));
    let body = format!("'Document about{}'", topics.collect::<String>());
    for query in [LOOKUP, NEAREST] {
        let query = query.replace("QUERY", &body);
        let plan = plan(client, &query)?;
        ensure!(plan.contains(" docs_sig_"), "{plan}");
        let ids = |rows: Vec<postgres::Row>| {
            let mut ids: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
            ids.sort_unstable();
            ids
        };
        let found = ids(client.query(&query, &[])?);
        let wanted = ids(client.query(&query.replace("FROM docs", "FROM whole"), &[])?);
        ensure!(
            found == wanted && found.len() == 2,
            "{found:?}, not {wanted:?}"
        );
    }
    Ok(())
}

/// Checks that shards unite their own rows, and that the coordinator unites the shards' unions.
fn check_union(client: &mut Client) -> Result<()> {
    let union = plan(client, UNION)?;
    ensure!(union.contains("partial_agg("), "{union}");
    let same_union = format!("SELECT ({UNION}) = (SELECT minhash_union(sig)::text FROM whole)");
    ensure!(
        client.query_one(&same_union, &[])?.get::<_, bool>(0),
        "the union differs"
    );
    Ok(())
}

/// Checks that each pair is found once, and that the coordinator makes the same clusters from the pairs as from the
/// table.
fn check_pairs(client: &mut Client) -> Result<()> {
    let found = pairs(client, PAIRS)?;
    let scan = "SELECT a.id, b.id FROM whole a JOIN whole b ON a.id < b.id AND minhash_sim(a.sig, b.sig) >= 0.8";
    let wanted = pairs(client, scan)?;
    ensure!(
        found == wanted && found.len() >= 250,
        "{} pairs, not {}",
        found.len(),
        wanted.len()
    );
    let components = format!(
        "SELECT key, component FROM connected_components(NULL::bigint, {})",
        quoted(PAIRS)
    );
    let wanted = "SELECT key, cluster FROM near_dup_clusters(NULL::bigint, 'SELECT id, sig FROM whole ORDER BY id', 0.8, 'connected')";
    ensure!(
        pairs(client, &components)? == pairs(client, wanted)?,
        "the components differ"
    );
    Ok(())
}

/// Checks that a copy is rejected within a tenant, by whose number the table is distributed, and accepted elsewhere.
fn check_constraint(client: &mut Client) -> Result<()> {
    client.batch_execute(
        "CREATE TABLE mails (tenant_id int, id bigint, sig minhash_signature,
             EXCLUDE USING neardup (tenant_id WITH =, near_dup_key(sig, 0.85) WITH %))",
    )?;
    client.batch_execute("SELECT create_distributed_table('mails', 'tenant_id')")?;
    let insert = |tenant: i32| {
        format!("INSERT INTO mails VALUES ({tenant}, 1, minhash('some words of a mail'))")
    };
    client.batch_execute(&insert(1))?;
    client.batch_execute(&insert(2))?;
    let rejected = client.batch_execute(&insert(1));
    ensure!(
        rejected.is_err_and(|error| error.code() == Some(&SqlState::EXCLUSION_VIOLATION)),
        "a copy was let in"
    );
    Ok(())
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
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
