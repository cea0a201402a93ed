//! The recall that `near_dup_advise` gives, against that of all pairs of the table.

use anyhow::{Result, ensure};
use postgres::Client;
use testbed::corpora::Corpus;
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::Outcome;

/// 10 000 documents of 40 words: a group of 400, forty of 50, two thousand pairs, and strangers. A member
/// has a share of its own words that depends on group and member.
const GROUPS: &str = "CREATE TABLE docs AS
    SELECT i AS id, g, body, minhash(body) AS sig FROM (
        SELECT i, g, string_agg(CASE WHEN hashint8(w * 100003 + i) & 1023 < 40 + (g * 37 + i * 11) % 90
                                     THEN 'o' || i || 'w' || w ELSE 'g' || g || 'w' || w END, ' ' ORDER BY w) AS body
        FROM (SELECT i, CASE WHEN i < 400 THEN 0 WHEN i < 2400 THEN i / 50
                             WHEN i < 6400 THEN 1000 + i / 2 ELSE 10000 + i END AS g
              FROM generate_series(0, 9999) i) members, generate_series(1, 40) w
        GROUP BY i, g) d";

const TRUTH_OF_GROUPS: &str =
    "SELECT count(*), avg((minhash_sim(a.sig, b.sig) >= 0.7)::int)::float8
    FROM docs a JOIN docs b ON a.g = b.g AND a.id < b.id WHERE resemblance(a.body, b.body) >= 0.7";

const TRUTH_OF_CORPUS: &str =
    "SELECT count(*), avg((minhash_sim(a.sig, b.sig) >= 0.5)::int)::float8
    FROM exact e JOIN docs a ON a.id = e.a JOIN docs b ON b.id = e.b";

/// A call, and the number of seeds whose intervals have to cover the truth.
struct Trial {
    threshold: f64,
    sample_rows: i32,
    seeds: u32,
    covered: u32,
    /// How wide an interval may be; None where the sample has few pairs.
    width: Option<f64>,
}

/// The interval covers the recall of the table in 90 of 100 samples, and is narrow where 10 000 rows are
/// sampled; where all pairs are compared, it is the recall. The number of true pairs is that of the sample.
pub fn recall_covers_the_truth(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "advise")?;
    let mut client = database.connect()?;
    client.batch_execute(GROUPS)?;
    let truth = truth(&mut client, TRUTH_OF_GROUPS)?;
    // Where the sample is the table, every seed draws the same rows.
    for (sample_rows, seeds, covered, width) in [(10_000, 3, 3, Some(0.0)), (2_500, 100, 90, None)]
    {
        let trial = Trial {
            threshold: 0.7,
            sample_rows,
            seeds,
            covered,
            width,
        };
        check(&mut client, truth, &trial)?;
    }
    for (name, sample_rows, seeds, covered, width) in [
        ("newsgroups20", 50_000, 2, 2, Some(0.0)),
        ("reuters21578", 10_000, 20, 17, None),
        ("licenses", 10_000, 20, 17, Some(0.1)),
    ] {
        let Some(corpus) = Corpus::find(name) else {
            continue;
        };
        let database = Database::with_extension(&server.main, "advise")?;
        let mut client = database.connect()?;
        corpus.load(&mut client, "all_docs")?;
        corpus.load_exact(&mut client, "exact_w3", "exact")?;
        client.batch_execute(
            "CREATE TABLE docs AS SELECT id, body, minhash(body) AS sig FROM all_docs
             WHERE octet_length(body) = char_length(body)",
        )?;
        let truth = self::truth(&mut client, TRUTH_OF_CORPUS)?;
        let trial = Trial {
            threshold: 0.5,
            sample_rows,
            seeds,
            covered,
            width,
        };
        check(&mut client, truth, &trial)?;
    }
    Ok(Outcome::Passed)
}

/// Returns the number of true pairs of the table, and the share that the estimates find.
fn truth(client: &mut Client, query: &str) -> Result<(i64, f64)> {
    let row = client.query_one(query, &[])?;
    Ok((row.get(0), row.get(1)))
}

fn check(client: &mut Client, (pairs, truth): (i64, f64), trial: &Trial) -> Result<()> {
    let query = format!(
        "SELECT true_pairs, recall_low, recall, recall_high, sampled / rows::float8 AS share
         FROM near_dup_advise('docs', 'sig', {}, {}, 'body')",
        trial.threshold, trial.sample_rows
    );
    let (mut covered, mut sum_of_pairs, mut widest) = (0, 0.0, 0f64);
    for seed in 0..trial.seeds {
        client.batch_execute(&format!("SELECT setseed({seed} / 1000.0)"))?;
        let row = client.query_one(&query, &[])?;
        let [low, recall, high, share] = [1, 2, 3, 4].map(|column| row.get::<_, f64>(column));
        ensure!(low <= recall && recall <= high, "{low} {recall} {high}");
        covered += u32::from(low - 1e-9 <= truth && truth <= high + 1e-9);
        widest = widest.max(high - low);
        sum_of_pairs += row.get::<_, i64>(0) as f64 / (share * share);
    }
    let sample = format!(
        "{} rows of {pairs} pairs, recall {truth}",
        trial.sample_rows
    );
    ensure!(
        covered >= trial.covered,
        "{sample}: the intervals of {covered} samples cover it"
    );
    ensure!(
        trial.width.is_none_or(|width| widest <= width + 1e-9),
        "{sample}: an interval is {widest} wide"
    );
    let counted = sum_of_pairs / f64::from(trial.seeds) / pairs as f64;
    ensure!(
        (0.8..1.25).contains(&counted),
        "{sample}: {counted} times the pairs are counted"
    );
    Ok(())
}
