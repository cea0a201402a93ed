//! A batch on Spark, compared with text-dedup's.

use std::cell::RefCell;
use std::collections::HashMap;

use anyhow::{Context, Result};
use testbed::server::database::Database;

use super::known_pairs::{GENERATED, load_with_pairs};
use super::pipelines::{export, load_found, make_truth, score};
use crate::context::Bench;
use crate::measure::race::{Contender, race};
use crate::measure::session::Session;
use crate::peers::dir;
use crate::peers::spark::{Run, Spark};
use crate::report::table::{Table, row};

const OURS: &str = "neardup.spark, clusters";
const PAIRS: &str = "neardup.spark, pairs";
const PEER: &str = "text-dedup";

/// Returns the table of this subject: a third of the documents, and all.
pub fn measure(bench: &Bench<'_>) -> Result<Vec<Table>> {
    let about = "From Parquet files of generated documents to the cluster of each (or to all pairs) at 0.8, shingles of three \
                 words, by local[2] of PySpark 3.5 with 2 GB and 8 partitions, without Spark's start. text-dedup: the \
                 functions of its minhash_spark with 128 slots and the bands that it computes for 0.8, without its \
                 8192 partitions; what they propose is connected outside Spark, since GraphFrames needs a jar. \
                 Precision and recall: of the pairs of documents in one cluster, against the connected components of \
                 all pairs whose Jaccard similarity is at least 0.8; of pairs, against these.";
    let columns = "documents | who | s | processor s | shuffled, bytes a document | kept | precision | recall | \
         times ours";
    let mut table = Table::new("spark", about, columns);
    let spark = match Spark::install() {
        Ok(spark) => spark,
        Err(error) => {
            println!("Skipping Spark: {error:#}");
            return Ok(Vec::new());
        }
    };
    let cluster = bench.started_cluster()?;
    for documents in [bench.scale.documents / 3, bench.scale.documents] {
        let database = Database::with_extension(&cluster, "spark")?;
        let session = Session::open(&database)?;
        load_with_pairs(bench, &session, GENERATED, documents)?;
        make_truth(&session)?;
        contest(bench, &session, &spark, &mut table)?;
    }
    Ok(vec![table])
}

fn contest(bench: &Bench<'_>, session: &Session, spark: &Spark, table: &mut Table) -> Result<()> {
    let input = dir().join("spark_input");
    let documents = export(session, &input)?;
    let runs: RefCell<HashMap<&str, Run>> = RefCell::default();
    let contenders = [OURS, PAIRS, PEER].map(|who| {
        let (input, runs) = (&input, &runs);
        Contender::new(who, documents, move || {
            let run = spark.run(who, input)?;
            let seconds = run.seconds;
            runs.borrow_mut().insert(who, run);
            Ok(seconds)
        })
    });
    let results = race(
        &format!("{documents} documents on Spark"),
        bench.scale.long_rounds,
        contenders.into(),
    )?;
    let base = results.get(OURS).context("ours did not run")?;
    for times in results.iter() {
        let run = &runs.borrow()[times.name.as_str()];
        let (kept, precision, recall) = match times.name.as_str() {
            PAIRS => pairs_score(session, &run.found)?,
            _ => {
                let score = score(session, &run.found)?;
                (score.kept.to_string(), score.precision, score.recall)
            }
        };
        table.push(row![
            documents as i64,
            times.name.clone(),
            times.median(),
            run.processor,
            run.shuffled / documents as f64,
            kept,
            precision,
            recall,
            times.over(base)
        ]);
    }
    Ok(())
}

/// Compares pairs with the true ones. Nothing is kept by pairs.
fn pairs_score(session: &Session, pairs: &[(i64, i64)]) -> Result<(String, f64, f64)> {
    load_found(session, "a", "b", pairs)?;
    let row = session.client().query_one(
        "SELECT count(t.a)::float8 / greatest((SELECT count(*) FROM found), 1),
                count(t.a)::float8 / greatest((SELECT count(*) FROM true_pairs), 1)
         FROM found f LEFT JOIN true_pairs t USING (a, b)",
        &[],
    )?;
    Ok((String::new(), row.get(0), row.get(1)))
}
