//! Lookups among documents of one template, compared with those among strangers of the same length, with an index on
//! sets, with one on texts, and with pg_trgm; and the cost of an index on texts by their length.

use std::time::Instant;

use anyhow::{Context, Result};
use testbed::progress::bar;
use testbed::server::database::Database;

use crate::context::Bench;
use crate::measure::latency::{Lookup, latencies};
use crate::measure::session::{Session, at_once};
use crate::report::table::{Table, row};

/// A name, the number of a document's own words, and that of its words of a template.
const TABLES: [(&str, u64, u64); 4] = [
    ("strangers of 180 words", 180, 0),
    ("60 own words, 120 of a template", 60, 120),
    ("30 own words, 150 of a template", 30, 150),
    ("20 words, 14 of a template", 6, 14),
];

/// The index, and the condition at a threshold. pg_trgm's threshold is a setting; it takes so long that only the
/// smallest table has it.
const INDEXES: [[&str; 3]; 3] = [
    [
        "sets",
        "neardup (shingle_hashes(body))",
        "near_dup(shingle_hashes(d.body), (query.q).prints, {})",
    ],
    [
        "text",
        "neardup (body)",
        "near_dup(d.body, (query.q).body, {})",
    ],
    [
        "pg_trgm",
        "gin (body gin_trgm_ops)",
        "d.body % (query.q).body",
    ],
];

const THRESHOLDS: [f64; 7] = [0.95, 0.9, 0.8, 0.7, 0.65, 0.6, 0.5];

/// Number of lookups: as many as [`BUDGET`] milliseconds for each round of the scale allow.
const LOOKUPS: u32 = 30;
const BUDGET: f64 = 40.0;

/// The rows of a table at its four sizes: fractions of the scale's documents, and the least number of them.
const PARTS: [u64; 4] = [80, 40, 20, 10];
const LEAST: u64 = 100;

/// The number of words of the documents that are inserted, the number of words of all of them for each of the scale's
/// documents, and the number of concurrent sessions.
const LENGTHS: [u64; 5] = [60, 180, 1000, 3000, 20_000];
const WORDS: u64 = 6;
const SESSIONS: u64 = 8;

const SETUP: &str = "CREATE EXTENSION pg_trgm; SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan;
    CREATE FUNCTION words(count bigint, of text) RETURNS text IMMUTABLE LANGUAGE sql AS
        $$ SELECT string_agg(substr(md5(of || ' ' || w), 1, 7), ' ') FROM generate_series(1, count) w $$";

/// Returns all tables of this subject.
pub fn measure(bench: &Bench<'_>) -> Result<Vec<Table>> {
    let cluster = bench.started_cluster()?;
    let database = Database::with_extension(&cluster, "templates")?;
    let session = Session::open(&database)?;
    session.execute(SETUP)?;
    let lengths = by_length(bench, &database, &session)?;
    Ok(vec![templates(bench, &session)?, lengths])
}

fn templates(bench: &Bench<'_>, session: &Session) -> Result<Table> {
    let about = "Lookups of documents of the table, and of the template alone (\"no own words\").";
    let columns = "documents | rows | index of | bytes a row | looked up | threshold | lookups | rows found | \
         median, ms | 99 %, ms";
    let mut table = Table::new("templates", about, columns);
    let budget = BUDGET * bench.scale.rounds as f64;
    let mut sizes = PARTS
        .map(|part| (bench.scale.documents / part).max(LEAST))
        .to_vec();
    sizes.dedup();
    let largest = sizes.iter().max().context("no sizes")?;
    let progress = bar((TABLES.len() * sizes.len()) as u64, "templates")?;
    for (documents, own, common) in TABLES {
        session.execute(&format!(
            "DROP TABLE IF EXISTS made;
             CREATE TABLE made AS SELECT id, concat_ws(' ', words({own}, 'own' || id), words({common}, 'template')) AS body
             FROM generate_series(1, {largest}) id"
        ))?;
        for &rows in &sizes {
            session.execute(&format!(
                "DROP TABLE IF EXISTS docs, queries;
                 CREATE TABLE docs AS SELECT * FROM made WHERE id <= {rows};
                 CREATE TABLE queries AS
                 SELECT 'row' AS what, body, shingle_hashes(body) AS prints FROM docs WHERE id % ({rows} / {LOOKUPS}) = 0
                 UNION ALL SELECT 'no own words', body, shingle_hashes(body) FROM words({common}, 'template') body
                 WHERE body IS NOT NULL"
            ))?;
            let indexes = if rows == sizes[0] { 3 } else { 2 };
            for [name, indexed, condition] in &INDEXES[..indexes] {
                progress.suspend(|| println!("{documents}, {rows} rows, index of {name}"));
                session.execute(&format!("CREATE INDEX measured ON docs USING {indexed}"))?;
                session.vacuum("docs")?;
                let bytes = session.number("SELECT pg_relation_size('measured')")? / rows as f64;
                for threshold in THRESHOLDS {
                    session.execute(&format!("SET pg_trgm.similarity_threshold = {threshold}"))?;
                    for what in ["row", "no own words"] {
                        if what != "row" && common == 0 {
                            continue;
                        }
                        let condition = condition.replace("{}", &threshold.to_string());
                        let look_up = |most: u32| {
                            let lookup = Lookup {
                                queries: &format!(
                                    "SELECT 0::bigint AS others, q FROM queries q WHERE what = '{what}' LIMIT {most}"
                                ),
                                answer: &format!("SELECT count(*) FROM docs d WHERE {condition}"),
                            };
                            latencies(session, &lookup)?.pop().context("no lookups")
                        };
                        let mut measured = look_up(1)?;
                        if measured.median < budget {
                            let most = (budget / measured.median) as u32;
                            measured = look_up(most.min(LOOKUPS))?;
                        }
                        table.push(row![
                            documents,
                            rows as f64,
                            *name,
                            bytes,
                            what,
                            threshold,
                            measured.lookups,
                            measured.found,
                            measured.median,
                            measured.p99
                        ]);
                    }
                }
                session.execute("DROP INDEX measured")?;
            }
            progress.inc(1);
        }
    }
    progress.finish_and_clear();
    Ok(table)
}

/// Builds indexes on strangers of each length, and inserts them row by row, with and without the index.
fn by_length(bench: &Bench<'_>, database: &Database<'_>, session: &Session) -> Result<Table> {
    let about = format!(
        "Indexes on texts of random words. Inserts are row by row, in one session and in {SESSIONS}; time and WAL are those in \
         addition to a table without an index."
    );
    let columns = "words | rows | built, µs a row | bytes a row | inserted, µs a row | WAL, bytes a row | in eight \
         sessions, µs a row | lookup at 0.8, ms";
    let mut table = Table::new("templates.lengths", about, columns);
    let progress = bar(LENGTHS.len() as u64, "texts of each length")?;
    for words in LENGTHS {
        let rows = (bench.scale.documents * WORDS / words).clamp(SESSIONS, 100_000);
        progress.suspend(|| println!("{rows} rows of {words} words"));
        session.execute(&format!(
            "DROP TABLE IF EXISTS made;
             CREATE TABLE made AS SELECT id, words({words}, 'own' || id) AS body FROM generate_series(1, {rows}) id;
             CREATE INDEX ON made (id)"
        ))?;
        session.vacuum("made")?;
        let insert = |indexed: &str, sessions: u64| -> Result<(f64, f64)> {
            session.execute(&format!(
                "DROP TABLE IF EXISTS docs; CREATE TABLE docs (LIKE made); {indexed}; CHECKPOINT"
            ))?;
            let written = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')";
            let (before, start) = (session.number(written)?, Instant::now());
            at_once(database, sessions, &|session, mut client| {
                Ok(client.batch_execute(&format!(
                    "DO $$ DECLARE d made; BEGIN
                         FOR d IN SELECT * FROM made WHERE id % {sessions} = {session} LOOP
                             INSERT INTO docs VALUES (d.*);
                         END LOOP;
                     END $$"
                ))?)
            })?;
            let seconds = start.elapsed().as_secs_f64();
            Ok((
                1e6 * seconds / rows as f64,
                (session.number(written)? - before) / rows as f64,
            ))
        };
        const INDEX: &str = "CREATE INDEX measured ON docs USING neardup (body)";
        let bare = insert("", 1)?;
        let built = 1e6 * session.seconds(INDEX)? / rows as f64;
        let bytes = session.number("SELECT pg_relation_size('measured')")? / rows as f64;
        let (bare_at_once, _) = insert("", SESSIONS)?;
        let (at_once, _) = insert(INDEX, SESSIONS)?;
        let indexed = insert(INDEX, 1)?;
        session.vacuum("docs")?;
        let lookup = Lookup {
            queries: &format!(
                "SELECT 0::bigint AS others, q FROM made q ORDER BY id LIMIT {LOOKUPS}"
            ),
            answer: "SELECT count(*) FROM docs d WHERE near_dup(d.body, (query.q).body, 0.8)",
        };
        latencies(session, &lookup)?;
        let found = latencies(session, &lookup)?.pop().context("no lookups")?;
        table.push(row![
            words as f64,
            rows as f64,
            built,
            bytes,
            indexed.0 - bare.0,
            indexed.1 - bare.1,
            at_once - bare_at_once,
            found.median
        ]);
        progress.inc(1);
    }
    progress.finish_and_clear();
    Ok(table)
}
