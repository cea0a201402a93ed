//! statement_timeout during the longest work.

use anyhow::{Result, ensure};
use postgres::error::SqlState;
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::{Outcome, Scale, figure};

/// Seconds of processor time within which a statement whose timeout is 100 ms should end. Processor time rather than
/// elapsed time, because other users may use the machine.
const GOAL: f64 = 0.3;

/// Seconds within which it must end.
const BOUND: f64 = 0.8;

/// Statements that would run for a long time, on documents of many megabytes and on many rows. The documents are stored
/// uncompressed: to compress, decompress or reverse one takes PostgreSQL itself longer than the goal, and cannot be
/// canceled.
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
        "pairs of documents",
        "SELECT count(*) FROM near_dup_pairs(NULL::int, 'SELECT i, body FROM big, generate_series(1, 100) i', 0.5)",
    ),
    (
        "clusters",
        "SELECT count(*) FROM near_dup_clusters(NULL::int, 'SELECT id, sig FROM many', 0.5)",
    ),
    (
        "pairs to label",
        "SELECT count(*) FROM near_dup_sample_pairs(NULL::int, 'SELECT id, body FROM keyed', sample_rows => 1000000)",
    ),
    (
        "distinct rows",
        "SELECT count(*) FROM near_dup_distinct(NULL::int, 'SELECT id, sig FROM many', 1, 10000)",
    ),
    ("index build", "CREATE INDEX ON many USING neardup (sig)"),
    (
        "index build on text",
        "CREATE INDEX ON keyed USING neardup (body)",
    ),
    (
        "index build on large documents",
        "CREATE INDEX ON wide USING neardup ((a || ' ' || b || ' ' || a || ' ' || b))",
    ),
    (
        "check of an index on text",
        "SELECT near_dup_index_check('kept_texts_body_idx')",
    ),
    (
        "lookups of a hot band",
        "SELECT (SELECT count(*) FROM hot WHERE near_dup(hot.sig, q.sig, 0.8)) FROM hot q",
    ),
    (
        "edit distance",
        "SELECT edit_distance(left(body, 1000000), left(back, 1000000)) FROM big",
    ),
    (
        "common substring",
        "SELECT longest_common_substring(body, other || body) FROM big, generate_series(1, 100)",
    ),
    (
        "chunks",
        "SELECT count(*) FROM big, common_chunks(body, back), generate_series(1, 100)",
    ),
    (
        "explanation",
        "SELECT near_dup_explain(body, other) FROM big, generate_series(1, 100)",
    ),
    (
        "chunks of different words",
        "SELECT count(*) FROM wide, common_chunks(a, b)",
    ),
    (
        "explanation of different words",
        "SELECT near_dup_explain(a, b) FROM wide",
    ),
    (
        "longest substring",
        "SELECT longest_common_substring(left(a, 8000000), left(b, 8000000)) FROM wide",
    ),
    (
        "set of different words",
        "SELECT jaccard(shingle_hashes(a), shingle_hashes(b)) FROM wide",
    ),
    (
        "passages",
        "SELECT count(*) FROM copied_passages(NULL::int, 'SELECT 1, body FROM big UNION ALL SELECT 2, other FROM big', 20)",
    ),
    (
        "few partners",
        "SELECT count(*) FROM near_dup_pairs(NULL::int, 'SELECT i, i || left(body, 1000) FROM big, generate_series(1, 100000) i', 0.8, most => 10)",
    ),
    (
        "passages of few words",
        "SELECT count(*) FROM copied_passages(NULL::int, 'SELECT i, body FROM big, generate_series(1, 4) i', 1)",
    ),
    (
        "passages of a row",
        "SELECT count(*) FROM copied_passages(NULL::int, 'SELECT 1, repeat(''a '', 20000000)', 50)",
    ),
    (
        "frequent passages",
        "SELECT count(*) FROM frequent_passages('SELECT body FROM big, generate_series(1, 4)', 3)",
    ),
    (
        "sentences",
        "SELECT count(*) FROM big, generate_series(1, 100), split_text(body, 'sentence')",
    ),
    (
        "cutting",
        "SELECT length(cut_passages(other, '{[1,9), [5000,5100)}')) FROM big, generate_series(1, 100)",
    ),
    (
        "combining marks",
        "SELECT minhash(repeat(U&'\\0301\\0327', MARKS / 2))",
    ),
    (
        "combining marks as characters",
        "SELECT cardinality(shingles(repeat(U&'\\0301\\0327', MARKS / 2), 3, 'char', 'marks'))",
    ),
    (
        "guard",
        "INSERT INTO guarded SELECT 0, NULL, sig FROM hot LIMIT 1",
    ),
    (
        "clusters that are kept",
        "SELECT near_dup_track('kept', 'sig', 0.8, clusters => 'more')",
    ),
    (
        "kept clusters, many changed rows",
        "SELECT near_dup_refresh('kept_clusters')",
    ),
    (
        "kept clusters, rebuilt",
        "SELECT near_dup_refresh('kept_clusters', true)",
    ),
    (
        "kept clusters of documents, many changed rows",
        "SELECT near_dup_refresh('kept_texts_clusters')",
    ),
    (
        "kept clusters of documents, rebuilt",
        "SELECT near_dup_refresh('kept_texts_clusters', true)",
    ),
    (
        "guard of large documents",
        "INSERT INTO guarded_texts SELECT 1, body || ' more ' || i FROM big, generate_series(1, 100) i",
    ),
];

/// Checks that every long statement ends soon after its timeout.
pub fn within_bounds(server: &Server, scale: Scale) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "cancel")?;
    let mut client = database.connect()?;
    let (words, rows) = scale.of((300_000, 100_000), (3_000_000, 500_000));
    let marks = scale.of("1000000", "100000000");
    client.batch_execute(&format!(
        "CREATE TABLE big (body text, other text, back text);
         CREATE TABLE wide (a text, b text);
         ALTER TABLE big ALTER body SET STORAGE EXTERNAL, ALTER other SET STORAGE EXTERNAL,
             ALTER back SET STORAGE EXTERNAL;
         ALTER TABLE wide ALTER a SET STORAGE EXTERNAL, ALTER b SET STORAGE EXTERNAL;
         INSERT INTO big SELECT string_agg('word' || i * 7919 % 100003, ' '),
             string_agg('wört' || i * 7919 % 100003 || 'я', ' ')
         FROM generate_series(1::bigint, {words}) i;
         UPDATE big SET back = reverse(body);
         CREATE TABLE many AS SELECT i AS id,
             minhash(array(SELECT hashint8extended(i % 5000 * 100 + e, 0)
                               FROM generate_series(1, 40) e) || i::bigint) AS sig
         FROM generate_series(1, {rows}) i;
         INSERT INTO wide SELECT string_agg(to_hex(i * 7919), ' '),
             string_agg(to_hex(i * 7919 + 1), ' ')
         FROM generate_series(1::bigint, 2 * {words}) i;
         CREATE TABLE keyed (id int PRIMARY KEY, body text);
         INSERT INTO keyed SELECT i, 'some words of text number ' || i % 1000 || ' and ' || i
         FROM generate_series(1, {rows}) i;
         CREATE TABLE hot AS SELECT minhash(boilerplate || array[-i::bigint]) AS sig
         FROM generate_series(1, {rows}) i,
             (SELECT array_agg(hashint8extended(e, 0)) AS boilerplate FROM generate_series(1, 40) e) b;
         CREATE INDEX ON hot USING neardup (sig);
         ANALYZE hot;
         CREATE TABLE guarded AS SELECT row_number() OVER () AS id, NULL::text AS body, sig FROM hot;
         CREATE INDEX ON guarded USING neardup (sig);
         SELECT near_dup_protect('guarded', 'sig', 0.8, scope => '{{id}}');
         CREATE TABLE guarded_texts (id int, body text);
         ALTER TABLE guarded_texts ALTER body SET STORAGE EXTERNAL;
         CREATE INDEX ON guarded_texts USING neardup (body);
         SELECT near_dup_protect('guarded_texts', 'body', 0.8);
         INSERT INTO guarded_texts SELECT 0, body FROM big;
         CREATE TABLE kept AS SELECT id, sig FROM many WHERE id % 4 = 0;
         ALTER TABLE kept ADD PRIMARY KEY (id);
         CREATE INDEX ON kept USING neardup (sig);
         SELECT near_dup_track('kept', 'sig', 0.8);
         DELETE FROM kept WHERE id % 32 = 0;
         CREATE TABLE kept_texts AS SELECT id, body FROM keyed WHERE id % 8 = 0;
         INSERT INTO kept_texts SELECT 0, body FROM big;
         ALTER TABLE kept_texts ADD PRIMARY KEY (id);
         CREATE INDEX ON kept_texts USING neardup (body);
         SELECT near_dup_track('kept_texts', 'body', 0.8);
         UPDATE kept_texts SET body = body || ' changed' WHERE id % 32 = 0;
         SET maintenance_work_mem = '1GB'; SET enable_seqscan = off; SET statement_timeout = '100ms'"
    ))?;
    let mut times = Vec::new();
    for (name, statement) in STATEMENTS {
        let before = server.main.processor_seconds()?;
        let ended = client.batch_execute(&statement.replace("MARKS", marks));
        let time = server.main.processor_seconds()? - before;
        if let Err(error) = &ended {
            ensure!(
                error.code() == Some(&SqlState::QUERY_CANCELED),
                "{name}: {error:?}"
            );
        }
        ensure!(time < BOUND, "{name}: ended after {time:.2} s");
        times.push((time, name));
    }
    times.sort_by(|a, b| a.0.total_cmp(&b.0));
    let late = times.iter().filter(|(time, _)| *time > GOAL).count();
    let (last, name) = times[times.len() - 1];
    figure!(
        "{} statements, latest end after {last:.2} s ({name}), {late} after more than {GOAL} s",
        times.len()
    );
    Ok(Outcome::Passed)
}
