//! pgbench: inserts, deletes, VACUUM and lookups at the same time.

use std::fs;

use anyhow::{Context, Result, ensure};
use testbed::server::Server;
use testbed::server::database::Database;
use testbed::{shell, workspace};

use super::collection;
use crate::harness::{Outcome, Scale, figure};

/// Looks up near-duplicates of one document through the index, and by comparing all rows, in one statement and thus in
/// one snapshot. Raises an error if they differ.
const LOOKUP: &str = "
    CREATE SEQUENCE ids;
    CREATE FUNCTION look_up(number int) RETURNS bigint LANGUAGE plpgsql
        SET enable_seqscan = off SET plan_cache_mode = force_custom_plan AS $$
    DECLARE
        wanted minhash_signature := minhash(make_body(number));
        matches bigint; lost bigint; added bigint;
    BEGIN
        WITH found AS MATERIALIZED (SELECT id FROM docs WHERE near_dup(sig, wanted, 0.8)),
             scanned AS MATERIALIZED (SELECT id FROM docs WHERE minhash_sim(sig, wanted) + 0 >= 0.8)
        SELECT (SELECT count(*) FROM scanned),
               (SELECT count(*) FROM (TABLE scanned EXCEPT ALL TABLE found) x),
               (SELECT count(*) FROM (TABLE found EXCEPT ALL TABLE scanned) x)
        INTO matches, lost, added;
        IF lost + added > 0 THEN
            RAISE EXCEPTION 'of % matches % were lost and % added', matches, lost, added;
        END IF;
        INSERT INTO lookups VALUES (matches);
        RETURN matches;
    END $$;
    CREATE TABLE lookups (matches bigint)";

/// Scripts of pgbench, and how often each is run.
const SCRIPTS: &[(&str, u32, &str)] = &[
    (
        "insert",
        12,
        "INSERT INTO docs SELECT n, make_body(n::int) FROM (SELECT nextval('ids') FROM generate_series(1, 10)) s (n);",
    ),
    (
        "delete",
        2,
        "\\set n random(0, 50)\nDELETE FROM docs WHERE id IN (SELECT id FROM docs WHERE id % 50 = :n ORDER BY random() LIMIT 5);",
    ),
    ("vacuum", 1, "VACUUM docs;"),
    ("lookup", 6, "\\set n random(1, 1000)\nSELECT look_up(:n);"),
];

/// Number of clients, most of which insert at any time.
const CLIENTS: u32 = 24;

/// Checks that no statement fails and no lookup loses a match.
pub fn loses_no_match(server: &Server, scale: Scale) -> Result<Outcome> {
    let program = server.main.installation.program("pgbench");
    // A number of transactions rather than a time, with the same choices each time, so that even a slow machine looks
    // up enough documents with near-duplicates.
    let transactions_of_each: u32 = scale.of(10, 100);
    let database = Database::with_extension(&server.main, "churn")?;
    let mut client = database.connect()?;
    collection::create(&mut client)?;
    client.batch_execute(LOOKUP)?;
    collection::insert(&mut client, 1, 1000)?;
    client.batch_execute("SELECT setval('ids', 1001)")?;
    client.batch_execute("VACUUM ANALYZE docs")?;
    let mut command = server.main.client_program(&program);
    command
        .arg("--no-vacuum")
        .args([
            "--client",
            &CLIENTS.to_string(),
            "--transactions",
            &transactions_of_each.to_string(),
            "--random-seed=1",
        ])
        .arg(&database.name);
    for (name, weight, script) in SCRIPTS {
        let path = workspace::scratch_dir().join(format!("churn_{name}.sql"));
        fs::write(&path, script)?;
        command.arg(format!("--file={}@{weight}", path.display()));
    }
    let output = shell::run_quietly(&mut command)?;
    let done = figure(&output, "number of transactions actually processed: ")?;
    let failed = figure(&output, "number of failed transactions: ")?;
    ensure!(failed == 0, "{failed} of {done} transactions failed");
    let row = client.query_one("SELECT count(*), sum(matches)::bigint FROM lookups", &[])?;
    let (lookups, matches): (i64, i64) = (row.get(0), row.get(1));
    ensure!(
        matches > lookups,
        "{lookups} lookups found {matches} matches only"
    );
    collection::ensure_index_equals_scan(&mut client)?;
    figure!("{done} transactions, 0 errors; {lookups} lookups of {matches} matches, 0 lost");
    Ok(Outcome::Passed)
}

/// Returns the number after a phrase in pgbench's output.
fn figure(output: &str, phrase: &str) -> Result<u64> {
    let (_, rest) = output
        .split_once(phrase)
        .with_context(|| format!("pgbench does not tell the {phrase}:\n{output}"))?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next();
    Ok(digits.unwrap_or_default().parse()?)
}
