//! Random arguments for every function of the extension.

use anyhow::{Context, Result, ensure};
use fastrand::Rng;
use postgres::Client;
use testbed::server::Server;
use testbed::server::database::Database;

use super::fuzz_values::{FORGE, argument};
use crate::harness::{Outcome, Scale, figure};

/// A function and the types of its arguments.
struct Function {
    name: String,
    /// As in `pg_proc.prokind`.
    kind: char,
    arguments: Vec<String>,
}

/// Checks that no argument ends the server, and that none causes an internal error.
pub fn every_function(server: &Server, scale: Scale) -> Result<Outcome> {
    let mut rng = Rng::with_seed(20_260_101);
    let calls = scale.of(4_000, 100_000);
    for encoding in ["UTF8", "SQL_ASCII"] {
        let options = format!("ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0");
        let name = format!("fuzz_{}", encoding.to_lowercase());
        let database = Database::create(&server.main, &name, &options)?;
        let mut client = database.connect()?;
        client.batch_execute(
            "CREATE EXTENSION pg_neardup; SET statement_timeout = '1s'; SET client_min_messages = error;
             SET work_mem = '1MB'; CREATE TABLE t AS SELECT i AS id, minhash('some words ' || i % 3) AS sig,
                 i::bit(64) AS bits FROM generate_series(1, 20) i",
        )?;
        client.batch_execute(FORGE)?;
        let functions = functions(&mut client)?;
        for _ in 0..calls / 2 {
            let function = rng
                .choice(&functions)
                .context("the extension has functions")?;
            let call = call(function, encoding, &mut rng);
            if let Err(error) = client.simple_query(&call) {
                let code = error.code().map_or("connection lost", |code| code.code());
                ensure!(
                    code != "XX000" && code != "connection lost",
                    "{code} of\n{call}\n{error:?}"
                );
            }
        }
        figure!(
            "{} calls of {} functions in {encoding}: 0 crashes, 0 XX000",
            calls / 2,
            functions.len()
        );
    }
    Ok(Outcome::Passed)
}

/// Returns the functions that SQL can call.
fn functions(client: &mut Client) -> Result<Vec<Function>> {
    let rows = client.query(
        "SELECT p.proname::text, p.prokind::text,
                ARRAY(SELECT format_type(t, NULL) FROM unnest(p.proargtypes) WITH ORDINALITY a (t, n)
                      ORDER BY n)
         FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid AND d.classid = 'pg_proc'::regclass
         JOIN pg_extension e ON e.oid = d.refobjid AND d.deptype = 'e'
         WHERE e.extname = 'pg_neardup' AND p.prorettype <> 'trigger'::regtype
           AND NOT 'internal'::regtype = ANY (p.proargtypes)
         ORDER BY p.oid",
        &[],
    )?;
    Ok(rows
        .iter()
        .map(|row| Function {
            name: row.get(0),
            kind: row.get::<_, String>(1).chars().next().unwrap_or('f'),
            arguments: row.get(2),
        })
        .collect())
}

fn call(function: &Function, encoding: &str, rng: &mut Rng) -> String {
    let arguments: Vec<String> = function
        .arguments
        .iter()
        .map(|kind| match rng.u8(0..20) {
            0 => format!("NULL::{kind}"),
            _ => argument(kind, encoding, rng),
        })
        .collect();
    let (name, arguments) = (&function.name, arguments.join(", "));
    match function.kind {
        'a' => format!("SELECT {name}({arguments})"),
        'p' => format!("CALL {name}({arguments})"),
        _ => format!("SELECT * FROM {name}({arguments}) LIMIT 100"),
    }
}
