//! Expressions of every type: ordinary values, extremes, and arbitrary stored bytes.

use fastrand::Rng;

/// Makes stored values of our types from arbitrary bytes, without any checks, as a damaged page could contain them.
pub const FORGE: &str = "
    CREATE FUNCTION forge_signature(bytea, int) RETURNS minhash_signature
        LANGUAGE internal IMMUTABLE STRICT AS 'bytea_substr_no_len';
    CREATE FUNCTION forge_ball(bytea, int) RETURNS _ball
        LANGUAGE internal IMMUTABLE STRICT AS 'bytea_substr_no_len';
    CREATE FUNCTION forge_bits(bytea, int) RETURNS bit
        LANGUAGE internal IMMUTABLE STRICT AS 'bytea_substr_no_len';
    CREATE TABLE forged AS SELECT i AS id, forge_signature(overlay(minhash('words')::bytea
        placing set_byte('\\x00', 0, i) FROM i), 1) AS sig, B'1' AS bits FROM generate_series(1, 30) i";

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
    "'containment'",
    "'SELECT id, id::text FROM t'",
    "'information'",
    "'SELECT id, sig FROM t'",
    "'SELECT id, bits FROM t'",
    "'SELECT id, sig, id::text FROM t'",
    "'SELECT id, sig FROM forged'",
    "'SELECT id, forge_bits(''\\x0102'', 1) FROM forged'",
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
    "minhash('{1,2,3}'::bigint[])",
];

/// Returns an expression of a type.
pub fn argument(kind: &str, encoding: &str, rng: &mut Rng) -> String {
    let base = kind.strip_suffix("[]");
    if let Some(base) = base {
        let count = *rng.choice(&[0, 1, 2, 5, 300]).unwrap_or(&1);
        let elements: Vec<String> = (0..count).map(|_| argument(base, encoding, rng)).collect();
        return format!("ARRAY[{}]::{kind}", elements.join(", "));
    }
    let pick =
        |values: &[&str], rng: &mut Rng| (*rng.choice(values).unwrap_or(&"NULL")).to_string();
    if let Some(forged) = forged(kind, rng) {
        return forged;
    }
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
        "_ball" => match rng.u8(0..3) {
            0 => format!("_ball({}, 0.7)", pick(SIGNATURES, rng)),
            1 => "_ball(5::bit(64), 3)".to_string(),
            _ => format!("_ball({}, 0.5)", argument("bigint[]", encoding, rng)),
        },
        "bytea" => mutated(&signature_bytes(rng), rng),
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
        "record" => pick(&["ROW(1, 'x')", "ROW()", "ROW(NULL, NULL::date)"], rng),
        "anyelement" => "NULL::int".to_string(),
        "regclass" => "'t'::regclass".to_string(),
        "name" => pick(&["'sig'::name", "'id'::name", "'none'::name"], rng),
        _ => format!("NULL::{kind}"),
    }
}

fn signature_bytes(rng: &mut Rng) -> String {
    format!(
        "{}::bytea",
        rng.choice(SIGNATURES).unwrap_or(&"minhash('')")
    )
}

/// Returns every third value of a type whose stored bytes we read: the bytes of a sound value, mutated.
fn forged(kind: &str, rng: &mut Rng) -> Option<String> {
    let (forge, sound) = match kind {
        "minhash_signature" => ("forge_signature", signature_bytes(rng)),
        // Little-endian: the threshold 0.5, or distance 3 and 64 bits, or 0.5 and two elements; or 64 bits.
        "_ball" => {
            let sound = match rng.u8(0..3) {
                0 => format!(
                    "('\\x000000000000e03f'::bytea || {} || '\\x00')",
                    signature_bytes(rng)
                ),
                1 => "'\\x03000000400000000123456789abcdef01'::bytea".into(),
                _ => "'\\x000000000000e03f0100000000000000020000000000000002'::bytea".into(),
            };
            ("forge_ball", sound)
        }
        "bit" => ("forge_bits", "'\\x400000000123456789abcdef'::bytea".into()),
        _ => return None,
    };
    (rng.u8(0..3) == 0).then(|| format!("{forge}({}, 1)", mutated(&sound, rng)))
}

/// Returns bytes with a few of them changed, cut off or added.
fn mutated(bytes: &str, rng: &mut Rng) -> String {
    let mut bytes = bytes.to_string();
    for _ in 0..rng.u8(1..4) {
        bytes = match rng.u8(0..4) {
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
