//! Random arguments for every function of the extension.

use anyhow::{Context, Result, ensure};
use fastrand::Rng;
use postgres::Client;

use super::{Outcome, Scale};
use crate::server::Server;
use crate::server::database::Database;

/// A function and the types of its arguments.
struct Function {
    name: String,
    aggregate: bool,
    arguments: Vec<String>,
}

/// No argument ends the server, and none is answered with an internal error.
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
        println!(
            "        {} calls of {} functions in {encoding}: 0 crashes, 0 XX000",
            calls / 2,
            functions.len()
        );
    }
    Ok(Outcome::Passed)
}

/// The functions that SQL can call.
fn functions(client: &mut Client) -> Result<Vec<Function>> {
    let rows = client.query(
        "SELECT p.proname::text, p.prokind = 'a',
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
            aggregate: row.get(1),
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
    if function.aggregate {
        format!("SELECT {name}({arguments})")
    } else {
        format!("SELECT * FROM {name}({arguments}) LIMIT 100")
    }
}

const TEXTS: &[&str] = &[
    "''",
    "'word'",
    "'char'",
    "'stop'",
    "'case'",
    "'marks'",
    "'none'",
    "'log'",
    "'star'",
    "'information'",
    "'SELECT id, sig FROM t'",
    "'SELECT id, bits FROM t'",
    "'SELECT id, sig, id::text FROM t'",
    "'SELECT 1/0'",
    "'the quick brown fox jumps over the lazy dog'",
    "'to be or not to be, that is the question'",
    "repeat('a', 100000)",
    "repeat('a b ', 20000)",
    "repeat('the cat sat on ', 3000) || 'a mat'",
    "'123 456 <script>alert(1)</script> &amp; \"quoted\"'",
];

const UNICODE: &[&str] = &[
    "'Ünïcödé Straße ﬁne Ａ１ 我爱北京 ภาษาไทย مُحَمَّد'",
    "repeat(U&'e\\0301', 10000)",
    "repeat(U&'\\0301', 10000)",
    "repeat(U&'\\FDFA', 5000)",
    "U&'\\200D\\202E\\FEFF\\+01F468'",
    "repeat('ตัว', 10000)",
];

const BYTES: &[&str] = &[
    "E'\\xff\\xfe abc \\xc3'",
    "E'\\xed\\xa0\\x80'",
    "E'caf\\xe9 \\xf0\\x9f'",
];

const SIGNATURES: &[&str] = &[
    "minhash('')",
    "minhash('some words of a text')",
    "minhash('some words of another text')",
    "minhash('some words', 2, 'char', 'none', 1, -1)",
    "minhash('some words of a text', slots => 1024)",
    "minhash_pack(minhash('some words of a text'), 1)",
    "minhash_pack(minhash('some words of a text'), 8)",
    "minhash_pack(minhash(''), 4)",
    "minhash_set('{1,2,3}'::bigint[])",
];

fn argument(kind: &str, encoding: &str, rng: &mut Rng) -> String {
    let base = kind.strip_suffix("[]");
    if let Some(base) = base {
        let count = *rng.choice(&[0, 1, 2, 5, 300]).unwrap_or(&1);
        let elements: Vec<String> = (0..count).map(|_| argument(base, encoding, rng)).collect();
        return format!("ARRAY[{}]::{kind}", elements.join(", "));
    }
    let pick =
        |values: &[&str], rng: &mut Rng| (*rng.choice(values).unwrap_or(&"NULL")).to_string();
    match kind {
        "text" if encoding == "UTF8" && rng.bool() => pick(UNICODE, rng),
        "text" if encoding == "SQL_ASCII" && rng.bool() => pick(BYTES, rng),
        "text" => pick(TEXTS, rng),
        "integer" => pick(
            &[
                "0",
                "1",
                "2",
                "3",
                "5",
                "16",
                "64",
                "128",
                "1000",
                "-1",
                "2147483647",
                "(-2147483648)",
            ],
            rng,
        ),
        "bigint" => pick(
            &[
                "0",
                "1",
                "-1",
                "9223372036854775807",
                "(-9223372036854775808)",
            ],
            rng,
        ),
        "double precision" => pick(
            &[
                "0",
                "0.5",
                "0.8",
                "0.95",
                "1",
                "-1",
                "2",
                "1e308",
                "5e-324",
                "'NaN'::float8",
                "'Infinity'::float8",
                "'-Infinity'::float8",
            ],
            rng,
        ),
        "bit" => pick(
            &[
                "B''",
                "B'1'",
                "B'10110011'",
                "5::bit(64)",
                "repeat('10', 32000)::bit(64000)",
            ],
            rng,
        ),
        "minhash_signature" => pick(SIGNATURES, rng),
        "minhash_ball" => format!("minhash_ball({}, 0.7)", pick(SIGNATURES, rng)),
        "bit_ball" => "bit_ball(5::bit(64), 3)".to_string(),
        "bytea" => mutated(rng),
        "cstring" => format!("{}::text::cstring", pick(TEXTS, rng)),
        "tsvector" => pick(
            &[
                "''::tsvector",
                "to_tsvector('simple', 'some words of some text')",
                "strip(to_tsvector('simple', 'some words'))",
                "'a:1,16383A b:2B'::tsvector",
            ],
            rng,
        ),
        "boolean" => pick(&["true", "false"], rng),
        "anyelement" => "NULL::int".to_string(),
        "regclass" => "'t'::regclass".to_string(),
        "name" => pick(&["'sig'::name", "'id'::name", "'none'::name"], rng),
        _ => format!("NULL::{kind}"),
    }
}

/// A signature's bytes with a few of them changed, cut off or added.
fn mutated(rng: &mut Rng) -> String {
    let source = *rng.choice(SIGNATURES).unwrap_or(&"minhash('')");
    let mut bytes = format!("{source}::bytea");
    for _ in 0..rng.u8(1..4) {
        bytes = match rng.u8(0..3) {
            0 => format!("substr({bytes}, 1, {})", rng.u16(0..600)),
            1 => format!("{bytes} || '\\x{:02x}'::bytea", rng.u8(..)),
            _ => format!(
                "overlay({bytes} placing '\\x{:02x}'::bytea from {})",
                rng.u8(..),
                rng.u16(1..40)
            ),
        };
    }
    bytes
}
