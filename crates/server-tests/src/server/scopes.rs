//! Scope columns, order and constraint keys: on random tables, every index gives the same answers as a sequential scan.

use anyhow::{Result, ensure};
use postgres::Client;
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::{Outcome, figure};

/// Types of a scope column, each with an expression for a random value from a small set.
const SCOPES: &[(&str, &str)] = &[
    ("int", "(random() * 3)::int"),
    ("bigint", "(random() * 3)::int - 5000000000"),
    ("numeric", "round((random() * 2)::numeric) / 2"),
    (
        "text",
        "(ARRAY['a', 'A', 'b', ''])[1 + (random() * 3)::int]",
    ),
    ("bpchar", "(ARRAY['a', 'a ', 'b'])[1 + (random() * 2)::int]"),
    (
        "timestamptz",
        "'2026-01-01Z'::timestamptz + (random() * 2)::int * interval '1 day'",
    ),
    ("uuid", "md5((random() * 2)::int::text)::uuid"),
    (
        "float4",
        "(ARRAY[0, '-0', 'nan', 1.5])[1 + (random() * 3)::int]::float4",
    ),
];

/// Documents of eight clusters, changed slightly or considerably; empty ones and NULLs.
const ROWS: &str = "INSERT INTO docs (scope, lang, sig)
    SELECT CASE WHEN random() < 0.9 THEN {scope} END, (ARRAY['de', 'DE', 'en'])[1 + (random() * 2)::int],
           CASE WHEN random() < 0.9 THEN (
               SELECT minhash(string_agg(CASE WHEN random() < edits THEN 'e' || i || w ELSE 'w' || w * cluster END, ' '))
               FROM generate_series(1, 50) w)
               WHEN random() < 0.5 THEN minhash('') END
    FROM (SELECT i, random() * 0.1 * (i % 4) AS edits, 1 + (random() * 7)::int AS cluster
          FROM generate_series(1, 150) i OFFSET 0) i";

const INDEXES: &[&str] = &[
    "(scope scope_ops, sig)",
    "(lang scope_ops, scope scope_ops, sig minhash_ops (threshold = 0.6))",
    "(sig)",
    "(scope scope_ops, near_dup_key(sig, 0.8))",
];

/// Conditions on a row and the query `q`, each with the number of its index in [`INDEXES`].
const CONDITIONS: &[(usize, &str)] = &[
    (0, "near_dup(d.sig, q.sig, 0.9) AND d.scope = q.scope"),
    (0, "near_dup(d.sig, q.sig)"),
    (0, "d.scope = q.scope"),
    (
        1,
        "near_dup(d.sig, q.sig, 0.7) AND d.scope = q.scope AND d.lang = q.lang",
    ),
    (1, "near_dup(d.sig, q.sig, 0.7) AND d.lang = q.lang"),
    (2, "near_dup(d.sig, q.sig) AND d.scope = q.scope"),
    (
        3,
        "near_dup_key(d.sig, 0.8) % near_dup_key(q.sig, 0.9) AND d.scope = q.scope",
    ),
    (3, "near_dup_key(d.sig, 0.8) % near_dup_key(q.sig, 0.3)"),
];

/// Conditions of ordered scans, by index.
const ORDERED: &[(usize, &str)] = &[
    (0, "d.scope = q.scope"),
    (0, "true"),
    (1, "d.lang = q.lang AND d.scope = q.scope"),
    (
        1,
        "d.lang = q.lang AND d.scope = q.scope AND near_dup(d.sig, q.sig, 0.7)",
    ),
    (2, "true"),
    (2, "near_dup(d.sig, q.sig, 0.9)"),
    (2, "d.scope = q.scope"),
];

/// Checks random tables, half of the types of scopes at a time, in the log and in segments, after deletes, updates and
/// VACUUM.
pub fn equal_scan(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "scopes")?;
    let mut client = database.connect()?;
    let has_icu = client
        .batch_execute(
            "CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
        )
        .is_ok();
    let collation = if has_icu { "nocase" } else { "\"C\"" };
    let seed = fastrand::u32(..);
    client.batch_execute(&format!(
        "SELECT setseed({})",
        f64::from(seed) / f64::from(u32::MAX)
    ))?;
    for (type_, value) in SCOPES.iter().skip(seed as usize % 2).step_by(2) {
        client.batch_execute(&format!(
            "DROP TABLE IF EXISTS docs;
             CREATE TABLE docs (id serial, scope {type_}, lang text COLLATE {collation}, sig minhash_signature);
             {rows}; CREATE INDEX q0 ON docs USING neardup {}; CREATE INDEX q1 ON docs USING neardup {};
             {rows}; CREATE INDEX q2 ON docs USING neardup {}; CREATE INDEX q3 ON docs USING neardup {};
             DELETE FROM docs WHERE random() < 0.2",
            INDEXES[0], INDEXES[1], INDEXES[2], INDEXES[3],
            rows = ROWS.replace("{scope}", value),
        ))?;
        client.batch_execute("VACUUM docs")?;
        client.batch_execute(&format!(
            "UPDATE docs SET sig = (SELECT sig FROM docs WHERE id = 3), scope = {value} WHERE random() < 0.1;
             ANALYZE docs"
        ))?;
        for (index, condition) in CONDITIONS {
            let matches = format!("SELECT d.id FROM docs d WHERE {condition} ORDER BY d.id");
            compare(&mut client, &matches, *index)?;
        }
        for (index, condition) in ORDERED {
            for limit in ["1", "5", "ALL"] {
                let nearest = format!(
                    "SELECT d.sig <=> q.sig FROM docs d WHERE {condition}
                     ORDER BY d.sig <=> q.sig LIMIT {limit}"
                );
                compare(&mut client, &nearest, *index)?;
            }
        }
        for index in 0..INDEXES.len() {
            client.batch_execute(&format!("SELECT near_dup_index_check('q{index}')"))?;
        }
    }
    figure!("seed {seed}, collation {collation}");
    Ok(Outcome::Passed)
}

/// Compares the answers for some rows as queries, with one index and without an index.
fn compare(client: &mut Client, query: &str, index: usize) -> Result<()> {
    let statement = format!(
        "SELECT coalesce(string_agg(array_to_string(ARRAY({query}), ',', '*'), ';' ORDER BY q.id), '')
         FROM docs q WHERE q.id % 29 = 4"
    );
    let mut transaction = client.transaction()?;
    transaction.batch_execute(&format!(
        "SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off;
         UPDATE pg_index SET indisvalid = indexrelid = 'q{index}'::regclass WHERE indrelid = 'docs'::regclass"
    ))?;
    let by_index: String = transaction.query_one(&statement, &[])?.get(0);
    let plan = transaction.query(&format!("EXPLAIN {statement}"), &[])?;
    let plan: Vec<String> = plan.iter().map(|line| line.get(0)).collect();
    transaction.rollback()?;
    let mut transaction = client.transaction()?;
    transaction.batch_execute(
        "SET LOCAL enable_indexscan = off; SET LOCAL enable_bitmapscan = off;
         SET LOCAL enable_indexonlyscan = off",
    )?;
    let by_scan: String = transaction.query_one(&statement, &[])?.get(0);
    transaction.rollback()?;
    let name = format!("q{index}");
    ensure!(
        plan.iter().any(|line| line.contains(&name)),
        "{query}: {name} is not used:\n{}",
        plan.join("\n")
    );
    ensure!(
        by_index == by_scan,
        "{query}, by {name}:\n{by_index}\ninstead of\n{by_scan}"
    );
    ensure!(by_scan.contains(';'), "{query}: no answers");
    Ok(())
}
