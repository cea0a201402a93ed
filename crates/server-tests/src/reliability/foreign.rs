//! A superuser attaches our functions to objects that are not ours.

use anyhow::{Result, ensure};
use postgres::Client;
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::{Outcome, Scale, figure};

const TABLE: &str =
    "CREATE TABLE t (n int, doc text, f float8, sig minhash_signature, bits bit(64));
     INSERT INTO t SELECT i, 'some words ' || i, i, minhash('some words ' || i % 7), i::bit(64)
     FROM generate_series(1, 300) i;
     CREATE INDEX ON t USING neardup (sig); CREATE INDEX ON t USING neardup (bits hamming_ops);
     CREATE INDEX ON t (n); CREATE INDEX ON t (doc); ANALYZE t;
     SET enable_seqscan = off";

/// Argument types of functions that are not ours, and arguments in a condition on the table.
const SIGNATURES: &[(&str, &str)] = &[
    ("int, int, float8", "n, 5, 0.8"),
    ("int, int", "n, 5"),
    ("text", "doc"),
    ("text, text, text", "doc, 'some', 'words'"),
    ("minhash_signature, int, float8", "sig, 7, 0.8"),
    ("minhash_signature, int, float8", "sig, n, f"),
    ("int, minhash_signature, float8", "7, sig, 0.8"),
    ("minhash_signature, text, float8", "sig, 'some words', 0.8"),
    (
        "minhash_signature, minhash_signature, text",
        "sig, minhash('some words 3'), 'many'",
    ),
    (
        "minhash_signature, minhash_signature, float8",
        "sig, minhash('some words 3'), 0.8",
    ),
    ("bit, bit, int", "bits, 5::bit(64), 2"),
    ("bit, int, int", "bits, 5, 2"),
    ("bit, bit, text", "bits, 5::bit(64), 'few'"),
    ("bit, minhash_signature, int", "bits, sig, 2"),
];

/// Checks that planner support attached to other functions changes nothing, and that no function with an internal
/// argument can be called from SQL.
pub fn declined(server: &Server, _: Scale) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "foreign")?;
    let mut client = database.connect()?;
    client.batch_execute(TABLE)?;
    let mut plans = 0;
    for (types, arguments) in SIGNATURES {
        let plain = answer(&mut client, types, arguments, "")?;
        let supported = answer(&mut client, types, arguments, "SUPPORT _near_dup_support")?;
        ensure!(
            plain == supported,
            "support of a function of ({types}): {supported} rows instead of {plain}"
        );
        plans += 1;
    }
    let rejected = rejected_calls(&mut client)?;
    figure!("{plans} foreign functions declined, {rejected} direct calls rejected");
    Ok(Outcome::Passed)
}

/// Returns how many rows of the table, and of its join with itself, are returned by a function that is true for all of
/// them.
fn answer(client: &mut Client, types: &str, arguments: &str, support: &str) -> Result<i64> {
    client.batch_execute(&format!(
        "CREATE FUNCTION f({types}) RETURNS bool LANGUAGE plpgsql IMMUTABLE {support} AS
             'BEGIN RETURN $1 IS NOT NULL; END'"
    ))?;
    let columns = arguments.replace("minhash('some words 3')", "u.other");
    let row = client.query_one(
        &format!(
            "SELECT (SELECT count(*) FROM t WHERE f({arguments}))
                    + (SELECT count(*) FROM (SELECT sig AS other FROM t LIMIT 3) u, t WHERE f({columns}))",
        ),
        &[],
    );
    let types = types.to_string();
    let answer = row?.get(0);
    client.batch_execute(&format!("DROP FUNCTION f({types})"))?;
    Ok(answer)
}

fn rejected_calls(client: &mut Client) -> Result<usize> {
    let rows = client.query(
        "SELECT p.oid::regproc::text, p.pronargs::int FROM pg_proc p
         JOIN pg_depend d ON d.objid = p.oid AND d.classid = 'pg_proc'::regclass
         JOIN pg_extension e ON e.oid = d.refobjid AND d.deptype = 'e'
         WHERE e.extname = 'pg_neardup' AND 'internal'::regtype = ANY (p.proargtypes)",
        &[],
    )?;
    for row in &rows {
        let (name, count): (String, i32) = (row.get(0), row.get(1));
        let arguments = vec!["NULL"; count as usize].join(", ");
        let called = client.batch_execute(&format!("SELECT {name}({arguments})"));
        ensure!(
            called.is_err() && !client.is_closed(),
            "{name} can be called from SQL"
        );
    }
    Ok(rows.len())
}
