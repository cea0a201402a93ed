//! Shards behind postgres_fdw: the coordinator sends conditions, orders, joins and aggregates to them, and they use
//! their indexes.

use anyhow::{Context, Result, ensure};
use postgres::Client;
use postgres::error::SqlState;
use testbed::server::database::Database;
use testbed::server::{ScratchCluster, Server};

use crate::harness::{Outcome, ensure_same_rows};

const SHARDS: usize = 2;

/// The contents of a shard, so few that a scan would be faster than a lookup.
const SHARD: &str = "CREATE EXTENSION pg_neardup;
    CREATE TABLE docs (id bigint PRIMARY KEY, body text NOT NULL,
        sig minhash_signature GENERATED ALWAYS AS (minhash(body)) STORED);
    CREATE INDEX docs_sig ON docs USING neardup (sig);
    ALTER DATABASE postgres SET enable_seqscan = off";

/// Documents that each have a near-duplicate, inserted through the coordinator. The queries return so few that this is
/// cheaper than fetching all rows, even if a disabled scan costs no more (PostgreSQL 18).
const ROWS: &str = "INSERT INTO docs (id, body)
    SELECT i, 'Document about ' || string_agg('topic' || (i % 3000 * 31 + w * 7) % 9973, ' ' ORDER BY w)
    FROM generate_series(1, 6000) i, generate_series(1, 30) w GROUP BY i;
    CREATE TABLE whole AS SELECT id, body, minhash(body) AS sig FROM docs;
    CREATE TABLE asked AS SELECT id, sig FROM whole WHERE id <= 5;
    ANALYZE asked, whole";

/// Checks that the conditions are sent to the shards and answered from their indexes.
const CONDITIONS: &[&str] = &[
    "near_dup(sig, minhash('QUERY'))",
    "near_dup(sig, minhash('QUERY'), 0.9)",
    "minhash_sim(sig, minhash('QUERY')) >= 0.8",
    "sig <=> minhash('QUERY') < 0.1",
    "sig <@ _ball(minhash('QUERY'), 0.8)",
];

/// Sets up one coordinator and two shards, which are separate servers.
pub fn pushed_down(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "coordinator")?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE EXTENSION postgres_fdw;
         CREATE TABLE docs (id bigint, body text NOT NULL,
             sig minhash_signature GENERATED ALWAYS AS (minhash(body)) STORED) PARTITION BY HASH (id)",
    )?;
    let mut shards = Vec::new();
    for number in 0..SHARDS {
        shards.push(add_shard(server, &mut client, number)?);
    }
    client.batch_execute(ROWS)?;
    for shard in &shards {
        let mut client = shard.connect("postgres")?;
        client.batch_execute("VACUUM ANALYZE docs")?;
    }
    let body: String = client
        .query_one("SELECT body FROM whole WHERE id = 42", &[])?
        .get(0);
    for condition in CONDITIONS {
        let condition = condition.replace("QUERY", &body);
        check_condition(&mut client, &shards, &condition)
            .with_context(|| condition.replace(&body, "..."))?;
    }
    check_order(&mut client, &body)?;
    check_joins(&mut client)?;
    check_pairs(&mut client)?;
    check_aggregates(&mut client, &body)?;
    check_guard(&mut client)?;
    Ok(Outcome::Passed)
}

fn add_shard(server: &Server, client: &mut Client, number: usize) -> Result<ScratchCluster> {
    let shard = server.scratch_cluster(&format!("shard{number}"))?;
    shard.create(&[])?;
    shard.start()?;
    shard.connect("postgres")?.batch_execute(SHARD)?;
    client.batch_execute(&format!(
        "CREATE SERVER shard{number} FOREIGN DATA WRAPPER postgres_fdw
             OPTIONS (host '{}', dbname 'postgres', extensions 'pg_neardup', async_capable 'true');
         CREATE USER MAPPING FOR CURRENT_USER SERVER shard{number} OPTIONS (user 'postgres');
         CREATE FOREIGN TABLE docs_{number} PARTITION OF docs
             FOR VALUES WITH (MODULUS {SHARDS}, REMAINDER {number})
             SERVER shard{number} OPTIONS (table_name 'docs', batch_size '1000')",
        shard.socket_dir().display()
    ))?;
    Ok(shard)
}

/// Checks that a guard rejects rows of a foreign table, which it cannot search.
fn check_guard(client: &mut Client) -> Result<()> {
    client.batch_execute(
        "CREATE TRIGGER guard AFTER INSERT ON docs_0 FOR EACH ROW EXECUTE FUNCTION near_dup_guard('body', '0.8')",
    )?;
    let rows =
        "INSERT INTO docs (id, body) SELECT i, 'some words ' || i FROM generate_series(-9, -1) i";
    let error = client.batch_execute(rows).err().context("the rows pass")?;
    ensure!(
        error.code() == Some(&SqlState::WRONG_OBJECT_TYPE),
        "{error:?}"
    );
    Ok(())
}

/// Checks that nothing is left for the coordinator to filter, that the shards use the index, and that no row is lost.
fn check_condition(client: &mut Client, shards: &[ScratchCluster], condition: &str) -> Result<()> {
    let query = format!("SELECT id FROM docs WHERE {condition}");
    let plan = explain(client, &query)?;
    let sent: Vec<&String> = plan
        .iter()
        .filter(|line| line.contains("Remote SQL: "))
        .collect();
    ensure!(
        sent.len() == shards.len(),
        "{} of {} shards asked",
        sent.len(),
        shards.len()
    );
    ensure!(
        !plan.iter().any(|line| line.contains("Filter:")),
        "filtered here"
    );
    for (shard, line) in shards.iter().zip(&sent) {
        let (_, sql) = line.split_once("Remote SQL: ").context("no SQL")?;
        let mut client = shard.connect("postgres")?;
        // postgres_fdw uses this setting.
        client.batch_execute("SET search_path = pg_catalog")?;
        let plan = explain(&mut client, sql)?.join("\n");
        ensure!(plan.contains(" docs_sig"), "{plan}");
    }
    let whole = query.replace("FROM docs", "FROM whole");
    let (found, wanted) = (ids(client, &query)?, ids(client, &whole)?);
    ensure!(
        found == wanted && found.len() >= 2,
        "{found:?}, not {wanted:?}"
    );
    Ok(())
}

/// Checks that each shard sends its own most similar rows first, and that the coordinator merges them.
fn check_order(client: &mut Client, body: &str) -> Result<()> {
    let nearest = |table: &str| {
        format!("SELECT sig <=> minhash('{body}') FROM {table} ORDER BY 1, id LIMIT 10")
    };
    let first = format!("SELECT id FROM docs ORDER BY sig <=> minhash('{body}') LIMIT 10");
    let plan = explain(client, &first)?;
    let is_sent =
        |line: &&String| line.contains("Remote SQL: ") && line.contains(" ORDER BY (sig ");
    ensure!(
        plan.iter().filter(is_sent).count() == SHARDS
            && plan.iter().any(|line| line.contains("Merge Append")),
        "{}",
        plan.join("\n")
    );
    let mut distances = |query: &str| -> Result<Vec<f64>> {
        let rows = client.query(query, &[])?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    };
    let (found, wanted) = (distances(&nearest("docs"))?, distances(&nearest("whole"))?);
    ensure!(found == wanted, "{found:?}, not {wanted:?}");
    Ok(())
}

/// Checks that a join on one shard is sent as a whole, and that a join with rows from elsewhere queries each shard for
/// each row, if the servers are asked for estimates.
fn check_joins(client: &mut Client) -> Result<()> {
    let join = |a: &str, b: &str| {
        format!("SELECT a.id AS a, b.id AS b FROM {a} a JOIN {b} b ON near_dup(a.sig, b.sig)")
    };
    let plan = explain(client, &join("docs_0", "docs_0"))?.join("\n");
    ensure!(
        plan.contains("INNER JOIN") && plan.contains("near_dup(r1.sig, r2.sig"),
        "{plan}"
    );
    for number in 0..SHARDS {
        client.batch_execute(&format!(
            "ALTER SERVER shard{number} OPTIONS (ADD use_remote_estimate 'true')"
        ))?;
    }
    let plan = explain(client, &join("asked", "docs"))?;
    let is_sent = |line: &&String| line.contains("Remote SQL: ") && line.contains("near_dup($1::");
    ensure!(
        plan.iter().filter(is_sent).count() == SHARDS,
        "{}",
        plan.join("\n")
    );
    ensure_same_rows(client, &join("asked", "docs"), &join("asked", "whole"))
}

/// Checks that the script of docs/scaling.md finds the pairs of a single table.
fn check_pairs(client: &mut Client) -> Result<()> {
    let page = include_str!("../../../../docs/scaling.md");
    let mut blocks = page.split("```").filter(|block| block.starts_with("sql"));
    let script = blocks.find(|block| block.contains("near_dup_join("));
    let script = script.and_then(|block| block.split_once('\n'));
    let (_, script) = script.context("no script in docs/scaling.md")?;
    let found = script.trim().trim_end_matches(';').to_string();
    let wanted = "SELECT least(a, b), greatest(a, b), similarity
                  FROM near_dup_pairs(NULL::bigint, 'SELECT id, sig FROM whole', 0.8)";
    ensure_same_rows(client, &found, wanted)
}

/// Checks that each shard counts and unites its own rows, and that the parts add up to the whole.
fn check_aggregates(client: &mut Client, body: &str) -> Result<()> {
    // The condition is expected to keep a third of the rows, so that it pays to let the shards count.
    let different = format!("WHERE minhash_sim(sig, minhash('{body}')) < 0.8");
    for (part, condition, whole) in [
        ("count(*)", different.as_str(), "sum"),
        ("minhash_union(sig)", "", "minhash_union"),
    ] {
        let parts: Vec<String> = (0..SHARDS)
            .map(|number| format!("SELECT {part} AS part FROM docs_{number} {condition}"))
            .collect();
        let query = format!(
            "SELECT {whole}(part)::text FROM ({}) parts",
            parts.join(" UNION ALL ")
        );
        let plan = explain(client, &query)?;
        let is_sent = |line: &&String| line.contains("Remote SQL: ") && line.contains(part);
        ensure!(
            plan.iter().filter(is_sent).count() == SHARDS,
            "{}",
            plan.join("\n")
        );
        let found: String = client.query_one(&query, &[])?.get(0);
        let alone = format!("SELECT ({part})::text FROM whole {condition}");
        let wanted: String = client.query_one(&alone, &[])?.get(0);
        ensure!(found == wanted, "{part}: {found}, not {wanted}");
    }
    Ok(())
}

fn explain(client: &mut Client, query: &str) -> Result<Vec<String>> {
    let rows = client.query(&format!("EXPLAIN (VERBOSE, COSTS OFF) {query}"), &[])?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

fn ids(client: &mut Client, query: &str) -> Result<Vec<i64>> {
    let rows = client.query(&format!("{query} ORDER BY id"), &[])?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}
