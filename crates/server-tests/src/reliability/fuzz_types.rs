//! Tables of every type, for every function that takes a relation, a column, an expression, a query or a value of any
//! type.

use anyhow::{Context, Result, ensure};
use fastrand::Rng;
use postgres::Client;
use testbed::server::Server;
use testbed::server::database::Database;

use super::fuzz_values::argument;
use crate::harness::{Outcome, Scale, figure};

const SETUP: &str = r#"
    CREATE EXTENSION pg_neardup;
    SET statement_timeout = '5s';
    SET client_min_messages = error;
    CREATE TYPE public.mood AS ENUM ('1', '2');
    CREATE TYPE public.pair AS (a json, b int);
    CREATE DOMAIN public.document AS json;
    CREATE DOMAIN public.number AS int;
    CREATE FUNCTION public.literal_of(type text) RETURNS text LANGUAGE plpgsql AS $$
    DECLARE candidate text;
    BEGIN
        FOREACH candidate IN ARRAY ARRAY['1', '10101', 'a', '{}', '(1,2)', '((1,2),(3,4))', '<a/>',
                '2026-01-01', '[1,2)', '{1}', '{"x": 1}', '1.2.3.4', '08:00:2b:01:02:03', '(0,1)',
                'pg_class'] LOOP
            BEGIN
                EXECUTE format('SELECT (%L::%s)::text', candidate, type);
                RETURN format('%L::%s', candidate, type);
            EXCEPTION WHEN OTHERS THEN
            END;
        END LOOP;
        RETURN format('NULL::%s', type);
    END $$"#;

/// A table with a column `x` of type TYPE, where VALUE is a value of the type, and a table with that column as its key
/// if possible.
const TABLES: &[&str] = &[
    "DROP SCHEMA IF EXISTS fuzz CASCADE",
    "CREATE SCHEMA fuzz",
    "SET search_path = fuzz, public",
    "CREATE TABLE t (id int PRIMARY KEY, x TYPE, body text, sig minhash_signature, bits bit(64))",
    "INSERT INTO t SELECT i, CASE WHEN i < 3 THEN VALUE END, 'some words of text ' || i,
         minhash('some words of text ' || i), i::bit(64) FROM generate_series(1, 4) i",
    "CREATE INDEX ON t USING neardup (sig minhash_ops (threshold = 0.5))",
    "CREATE INDEX ON t USING neardup (bits)",
    "CREATE INDEX ON t USING neardup (x scope_ops, sig minhash_ops (threshold = 0.5))",
    "CREATE INDEX ON t USING neardup (x)",
    "CREATE TABLE k (LIKE t INCLUDING INDEXES)",
    "ALTER TABLE k DROP CONSTRAINT k_pkey, ADD PRIMARY KEY (x)",
    "INSERT INTO k SELECT * FROM t WHERE id = 1",
];

/// Changes of the tables while they have triggers.
const CHANGES: &[&str] = &[
    "INSERT INTO t SELECT id + 10, x, body, sig, bits FROM t",
    "UPDATE t SET x = VALUE, sig = minhash('other words')",
    "UPDATE k SET sig = minhash('other words')",
    "DELETE FROM t WHERE id > 2",
    "TRUNCATE k",
    "SELECT count(*) FROM near_dup_tracked",
    "SELECT near_dup_refresh(clusters) FROM near_dup_tracked",
];

const RELATIONS: &[&str] = &["'t'", "'t'", "'k'", "'named'", "'t_x_sig_idx'", "99999999"];
const COLUMNS: &[&str] = &["'x'", "'sig'", "'sig'", "'bits'", "'body'"];
const SCOPES: &[&str] = &["'{x}'", "'{x}'", "'{x,id}'", "'{}'"];
const EXPRESSIONS: &[&str] = &[
    "'x'",
    "'x DESC'",
    "'(x)::text'",
    "'(x::text::json->>''x'')'",
    "'(x->>''x'')'",
    "'(x IS NULL)'",
    "'minhash(body)'",
];
const QUERIES: &[&str] = &[
    "'SELECT id, x FROM t'",
    "'SELECT x, sig FROM t'",
    "'SELECT x, body FROM t'",
    "'SELECT x, bits FROM t'",
    "'SELECT x, x FROM t'",
    "'SELECT x, x, x FROM t'",
    "'SELECT id, sig, x FROM t'",
    "'SELECT x, sig, body, x, x FROM t'",
    "'SELECT x FROM t'",
    "'SELECT id, $1 FROM t'",
    "'SELECT x, sig FROM t WHERE x::text = $1::text'",
];

/// A function that can receive values of any type.
struct Function {
    name: String,
    is_procedure: bool,
    /// The types of the arguments, and their names.
    arguments: Vec<(String, String)>,
    /// The number of arguments without a default.
    required: usize,
}

/// Checks that no type of a column ends the server, and that none causes an internal error.
pub fn every_type(server: &Server, scale: Scale) -> Result<Outcome> {
    let mut rng = Rng::with_seed(20_260_102);
    let database = Database::create(&server.main, "fuzz_types", "")?;
    let mut client = database.connect()?;
    client.batch_execute(SETUP)?;
    let functions = functions(&mut client)?;
    let types = types(&mut client, scale.of(50, 4))?;
    let mut calls = 0;
    for kind in &types {
        let value = client.query_one("SELECT public.literal_of($1)", &[kind])?;
        let value: String = value.get(0);
        let of_type = |sql: &str| sql.replace("TYPE", kind).replace("VALUE", &value);
        for sql in TABLES {
            attempt(&mut client, &of_type(sql))?;
        }
        for _ in 0..scale.of(1, 4) {
            for function in &functions {
                attempt(&mut client, &call(function, &value, &mut rng))?;
                calls += 1;
            }
            for sql in CHANGES {
                attempt(&mut client, &of_type(sql))?;
            }
        }
    }
    figure!(
        "{calls} calls of {} functions with {} types: 0 crashes, 0 XX000",
        functions.len(),
        types.len()
    );
    Ok(Outcome::Passed)
}

/// Runs a statement, which may be rejected.
fn attempt(client: &mut Client, sql: &str) -> Result<()> {
    if let Err(error) = client.simple_query(sql) {
        let code = error.code().map_or("connection lost", |code| code.code());
        ensure!(
            code != "XX000" && code != "connection lost",
            "{code} of\n{sql}\n{error:?}"
        );
    }
    Ok(())
}

/// Returns the types that a column can have; of arrays and of row types of the catalog, one in `step`.
fn types(client: &mut Client, step: i64) -> Result<Vec<String>> {
    let rows = client.query(
        "SELECT format_type(oid, NULL) FROM (
             SELECT oid, typtype = 'c' OR typcategory = 'A' AS is_derived,
                    row_number() OVER (PARTITION BY typtype = 'c', typcategory = 'A' ORDER BY oid) AS number
             FROM pg_type WHERE typtype <> 'p' AND typisdefined) t
         WHERE NOT is_derived OR number % $1 = 0
             OR oid IN ('pair'::regtype, 'pair[]'::regtype, 'json[]'::regtype)
         ORDER BY oid",
        &[&step],
    )?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Returns the functions that take a relation, a column, an expression, a query or any type.
fn functions(client: &mut Client) -> Result<Vec<Function>> {
    let rows = client.query(
        r#"SELECT p.proname::text, p.prokind = 'p', (p.pronargs - p.pronargdefaults)::int,
                ARRAY(SELECT format_type(t, NULL) FROM unnest(p.proargtypes) WITH ORDINALITY a (t, n)
                      ORDER BY n),
                coalesce(p.proargnames, array_fill(''::text, ARRAY[p.pronargs::int]))
         FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid AND d.classid = 'pg_proc'::regclass
         JOIN pg_extension e ON e.oid = d.refobjid AND d.deptype = 'e'
         WHERE e.extname = 'pg_neardup' AND p.prokind IN ('f', 'p')
           AND p.prorettype <> 'trigger'::regtype AND NOT 'internal'::regtype = ANY (p.proargtypes)
           AND (p.proargtypes::oid[] && '{regclass,name,anyelement,anyarray,"\"any\""}'::regtype[]::oid[]
                OR p.proargnames && '{query,query_a,rows,expression}')
         ORDER BY p.oid"#,
        &[],
    )?;
    let function = |row: &postgres::Row| {
        let (types, names): (Vec<String>, Vec<String>) = (row.get(3), row.get(4));
        Ok(Function {
            name: row.get(0),
            is_procedure: row.get(1),
            required: usize::try_from(row.get::<_, i32>(2)).context("a number of arguments")?,
            arguments: types.into_iter().zip(names).collect(),
        })
    };
    rows.iter().map(function).collect()
}

/// Returns a call with the required arguments, and some of the others.
fn call(function: &Function, value: &str, rng: &mut Rng) -> String {
    let mut arguments = Vec::new();
    for (place, (kind, name)) in function.arguments.iter().enumerate() {
        if place >= function.required && rng.bool() {
            continue;
        }
        let given = match (kind.as_str(), name.as_str()) {
            ("regclass", _) => pick(RELATIONS, rng),
            ("name", "clusters" | "trigger_name" | "notes") => "'named'".to_owned(),
            ("name", _) => pick(COLUMNS, rng),
            ("name[]", _) => pick(SCOPES, rng),
            ("text", "query" | "query_a" | "query_b" | "rows" | "pairs") => pick(QUERIES, rng),
            ("text", "expression" | "keep") => pick(EXPRESSIONS, rng),
            ("anyelement" | "\"any\"", _) => value.to_owned(),
            ("anyarray", _) => format!("ARRAY[{value}]"),
            ("double precision", "threshold") => "0.8".to_owned(),
            ("double precision", _) => "0".to_owned(),
            ("bigint" | "integer", _) => "3".to_owned(),
            ("record", _) => format!("ROW({value})"),
            ("text", "action") => "'note'".to_owned(),
            ("text", "unit") => "'word'".to_owned(),
            ("text", "fold") => "'case'".to_owned(),
            _ => argument(kind, "", rng),
        };
        arguments.push(match name.is_empty() {
            true => given,
            false => format!("\"{name}\" => {given}"),
        });
    }
    let (name, arguments) = (&function.name, arguments.join(", "));
    match function.is_procedure {
        true => format!("CALL {name}({arguments})"),
        false => format!("SELECT * FROM {name}({arguments}) LIMIT 100"),
    }
}

fn pick(values: &[&str], rng: &mut Rng) -> String {
    (*rng.choice(values).unwrap_or(&"NULL")).to_owned()
}
