//! statement_timeout on the largest work.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use postgres::error::SqlState;

use super::{Outcome, Scale};
use crate::server::Server;
use crate::server::database::Database;

/// When a statement must have ended after its timeout of 100 ms. The figure asked for is 300 ms in
/// all; half a second more is for a machine that does other things too.
const BOUND: Duration = Duration::from_millis(800);

/// Statements that would run for long, on documents of many megabytes and on many rows.
const STATEMENTS: &[(&str, &str)] = &[
    (
        "signature",
        "SELECT minhash(body) FROM big, generate_series(1, 100)",
    ),
    ("one word", "SELECT minhash(repeat('a', 500000000))"),
    (
        "characters",
        "SELECT minhash(body, 20, 'char') FROM big, generate_series(1, 100)",
    ),
    (
        "any script",
        "SELECT minhash(other) FROM big, generate_series(1, 100)",
    ),
    (
        "marks",
        "SELECT minhash(other, fold => 'marks') FROM big, generate_series(1, 100)",
    ),
    (
        "shingles",
        "SELECT cardinality(shingles(body)) FROM big, generate_series(1, 100)",
    ),
    (
        "hashes",
        "SELECT cardinality(shingle_hashes(body)) FROM big, generate_series(1, 100)",
    ),
    (
        "winnow",
        "SELECT cardinality(winnow(body, 5, 10)) FROM big, generate_series(1, 100)",
    ),
    (
        "resemblance",
        "SELECT resemblance(body, other) FROM big, generate_series(1, 100)",
    ),
    (
        "simhash",
        "SELECT simhash(body) FROM big, generate_series(1, 100)",
    ),
    (
        "aggregate",
        "SELECT minhash_agg(i) FROM generate_series(1::bigint, 100000000) i",
    ),
    (
        "wide aggregate",
        "SELECT simhash_agg(i::text, 1.0, 4096) FROM generate_series(1, 100000000) i",
    ),
    (
        "pairs",
        "SELECT count(*) FROM near_dup_pairs(NULL::int, 'SELECT id, sig FROM many', 0.5)",
    ),
    (
        "clusters",
        "SELECT count(*) FROM near_dup_clusters(NULL::int, 'SELECT id, sig FROM many', 0.5)",
    ),
    ("index build", "CREATE INDEX ON many USING gin (sig)"),
    (
        "edit distance",
        "SELECT edit_distance(left(body, 1000000), reverse(left(body, 1000000))) FROM big",
    ),
    (
        "common substring",
        "SELECT longest_common_substring(body, other || body) FROM big, generate_series(1, 100)",
    ),
    (
        "chunks",
        "SELECT count(*) FROM big, common_chunks(body, reverse(body) || body), generate_series(1, 100)",
    ),
    (
        "explanation",
        "SELECT near_dup_explain(body, other) FROM big, generate_series(1, 100)",
    ),
    (
        "page",
        "SELECT length(diff_html(body, reverse(body))) FROM big, generate_series(1, 100)",
    ),
];

/// Every long statement ends soon after its timeout.
pub fn within_bounds(server: &Server, scale: Scale) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "cancel")?;
    let mut client = database.connect()?;
    let (words, rows) = scale.of((300_000, 100_000), (3_000_000, 500_000));
    client.batch_execute(&format!(
        "CREATE TABLE big AS SELECT string_agg('word' || i * 7919 % 100003, ' ') AS body,
             string_agg('wört' || i * 7919 % 100003 || 'я', ' ') AS other
         FROM generate_series(1::bigint, {words}) i;
         CREATE TABLE many AS SELECT i AS id,
             minhash_set(array(SELECT hashint8extended(i % 5000 * 100 + e, 0)
                               FROM generate_series(1, 40) e) || i::bigint) AS sig
         FROM generate_series(1, {rows}) i;
         SET maintenance_work_mem = '1GB'; SET statement_timeout = '100ms'"
    ))?;
    let mut slowest = (Duration::ZERO, "");
    for (name, statement) in STATEMENTS {
        let start = Instant::now();
        let ended = client.batch_execute(statement);
        let time = start.elapsed();
        if let Err(error) = &ended {
            ensure!(
                error.code() == Some(&SqlState::QUERY_CANCELED),
                "{name}: {error:?}"
            );
        }
        ensure!(time < BOUND, "{name}: ended after {time:?}");
        slowest = slowest.max((time, name));
    }
    println!("        latest end after {:?} ({})", slowest.0, slowest.1);
    Ok(Outcome::Passed)
}
