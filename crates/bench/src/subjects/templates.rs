//! Lookups among documents of one template, compared with those among strangers of the same length, by an index of
//! sets, by one of texts, and by pg_trgm.

use anyhow::{Context, Result};
use testbed::server::database::Database;

use crate::context::Bench;
use crate::measure::latency::{Lookup, latencies};
use crate::measure::session::Session;
use crate::report::table::{Table, row};

/// A name, the number of a document's own words, and that of its words of a template.
const TABLES: [(&str, u32, u32); 4] = [
    ("strangers of 180 words", 180, 0),
    ("60 own words, 120 of a template", 60, 120),
    ("30 own words, 150 of a template", 30, 150),
    ("20 words, 14 of a template", 6, 14),
];

/// The index, and the condition at a threshold. pg_trgm's threshold is a setting.
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

const LOOKUPS: u32 = 30;

/// The rows of a table at its four sizes: fractions of the scale's documents.
const PARTS: [u64; 4] = [80, 40, 20, 10];

/// Returns all tables of this subject.
pub fn measure(bench: &Bench<'_>) -> Result<Vec<Table>> {
    let about = "Lookups of documents of the table, and of the template alone (\"no own words\").";
    let columns = [
        "documents",
        "rows",
        "index of",
        "bytes a row",
        "looked up",
        "threshold",
        "rows found",
        "median, ms",
        "99 %, ms",
    ];
    let mut table = Table::new("templates", about, &columns);
    let cluster = bench.started_cluster()?;
    let database = Database::with_extension(&cluster, "templates")?;
    let session = Session::open(&database)?;
    session.execute(
        "CREATE EXTENSION pg_trgm; SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan;
         CREATE FUNCTION words(count int, of text) RETURNS text IMMUTABLE LANGUAGE sql AS
             $$ SELECT string_agg(substr(md5(of || ' ' || w), 1, 7), ' ') FROM generate_series(1, count) w $$",
    )?;
    for (documents, own, common) in TABLES {
        for rows in PARTS.map(|part| (bench.scale.documents / part).max(100)) {
            session.execute(&format!(
                "DROP TABLE IF EXISTS docs, queries;
                 CREATE TABLE docs AS SELECT id, concat_ws(' ', words({own}, 'own' || id), words({common}, 'template')) AS body
                 FROM generate_series(1, {rows}) id;
                 CREATE TABLE queries AS
                 SELECT 'row' AS what, body, shingle_hashes(body) AS prints FROM docs WHERE id % ({rows} / {LOOKUPS}) = 0
                 UNION ALL SELECT 'no own words', body, shingle_hashes(body) FROM words({common}, 'template') body
                 WHERE body IS NOT NULL"
            ))?;
            for [name, indexed, condition] in INDEXES {
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
                        let lookup = Lookup {
                            queries: &format!(
                                "SELECT 0::bigint AS others, q FROM queries q WHERE what = '{what}'"
                            ),
                            answer: &format!("SELECT count(*) FROM docs d WHERE {condition}"),
                        };
                        latencies(&session, &lookup)?;
                        let measured = latencies(&session, &lookup)?;
                        let measured = measured.first().context("no lookups")?;
                        table.push(row![
                            documents,
                            rows as f64,
                            name,
                            bytes,
                            what,
                            threshold,
                            measured.found,
                            measured.median,
                            measured.p99
                        ]);
                    }
                }
                session.execute("DROP INDEX measured")?;
            }
        }
    }
    Ok(vec![table])
}
