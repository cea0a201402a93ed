//! `near_dup_distinct`, compared with its definition over random rankings; and how many rows it reads.

use std::collections::HashMap;

use anyhow::{Context, Result, ensure};
use fastrand::Rng;
use postgres::Client;
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::Outcome;

/// Number of random rankings.
const RANKINGS: i32 = 1000;

/// Versions of twelve texts, in every form that is compared, and rows that are similar to nothing.
const DOCS: &str = "
    CREATE TABLE docs AS
    SELECT id, body, minhash(body) AS sig, simhash(body) AS bits, shingle_hashes(body) AS hashes, shingles(body) AS shingles
    FROM (SELECT 10 * d + c AS id,
                 (SELECT string_agg(CASE WHEN hashint4(w * 100 + c) % 20 < c THEN 'x' ELSE 'w' END || d % 6 || '-' || w, ' ')
                  FROM generate_series(1, 30 + d) w) AS body
          FROM generate_series(1, 12) d, generate_series(0, 5) c
          UNION ALL SELECT 0, NULL UNION ALL SELECT 1, '' UNION ALL SELECT 2, '') texts;
    CREATE SEQUENCE reads";

/// A column, the similarity of x and y in this column, and the thresholds to try, each with the corresponding
/// similarity.
type Form = (&'static str, &'static str, [(f64, f64); 3]);

const FORMS: [Form; 5] = [
    ("body", "resemblance(x.body, y.body)", SIMILARITIES),
    ("sig", "minhash_sim(x.sig, y.sig)", SIMILARITIES),
    ("hashes", "jaccard(x.hashes, y.hashes)", SIMILARITIES),
    ("shingles", "jaccard(x.shingles, y.shingles)", SIMILARITIES),
    (
        "bits",
        "-bit_hamming(x.bits, y.bits)::float8",
        [(0.0, 0.0), (8.0, -8.0), (20.0, -20.0)],
    ),
];

const SIMILARITIES: [(f64, f64); 3] = [(0.2, 0.2), (0.5, 0.5), (0.8, 0.8)];

/// A row of the result: key, rank, and keys of repeats.
type Found = (i32, i64, Vec<i32>);

/// Checks over random rankings that the result follows the definition, and that no more rows are read than necessary.
pub fn equals_definition(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "distinct")?;
    let mut client = database.connect()?;
    client.batch_execute(DOCS)?;
    let mut similarities = Vec::new();
    for (_, similarity, _) in FORMS {
        similarities.push(measure(&mut client, similarity)?);
    }
    let (mut rng, mut ended_early) = (Rng::with_seed(7), 0);
    for ranking in 0..RANKINGS {
        let form = rng.usize(..FORMS.len());
        let (column, _, thresholds) = FORMS[form];
        let (threshold, least) = *rng.choice(&thresholds).context("there are thresholds")?;
        let wanted = *rng.choice(&[1, 3, 10, 100]).context("there are numbers")?;
        let order: Vec<i32> = client
            .query(
                "SELECT id FROM docs ORDER BY md5(concat(id, ' ', $1::int))",
                &[&ranking],
            )?
            .iter()
            .map(|row| row.get(0))
            .collect();
        let (expected, read) = greedy(&order, &similarities[form], least, wanted as usize);
        let query = format!(
            "SELECT id, {column} FROM (SELECT * FROM docs ORDER BY md5(concat(id, '' '', $1)) OFFSET 0) ranked
             WHERE nextval(''reads'') > 0"
        );
        let rows = client.query(
            &format!(
                "SELECT key, rank, repeat_keys, repeats = cardinality(repeat_keys), exhausted
                 FROM near_dup_distinct(NULL::int, '{query}', $1, $2, params => ROW($3::int))"
            ),
            &[&threshold, &wanted, &ranking],
        )?;
        let found: Vec<Found> = rows
            .iter()
            .map(|row| (row.get(0), row.get(1), row.get(2)))
            .collect();
        let what = format!("ranking {ranking} by {column}, {threshold}, {wanted} rows");
        ensure!(
            found == expected,
            "{what}: {found:?} instead of {expected:?}"
        );
        let counts_agree = rows.iter().all(|row| row.get(3));
        ensure!(counts_agree, "{what}: repeats are counted otherwise");
        let is_exhausted = expected.len() < wanted as usize;
        let tells = rows.iter().all(|row| row.get::<_, bool>(4) == is_exhausted);
        ensure!(tells, "{what}: exhausted is not {is_exhausted}");
        let reads: i64 = client
            .query_one(
                "SELECT nextval('reads') - 1 + 0 * setval('reads', 1, false)",
                &[],
            )?
            .get(0);
        ensure!(reads == read, "{what}: {reads} rows read instead of {read}");
        ended_early += i32::from(read < order.len() as i64);
    }
    ensure!(
        (RANKINGS / 5..RANKINGS * 4 / 5).contains(&ended_early),
        "{ended_early} of {RANKINGS} queries ended early"
    );
    Ok(Outcome::Passed)
}

/// Returns the similarities of all pairs that have one.
fn measure(client: &mut Client, similarity: &str) -> Result<HashMap<(i32, i32), f64>> {
    let rows = client.query(
        &format!("SELECT x.id, y.id, {similarity} FROM docs x, docs y"),
        &[],
    )?;
    let of_pair = |row: &postgres::Row| {
        let similarity: Option<f64> = row.get(2);
        similarity.map(|similarity| ((row.get(0), row.get(1)), similarity))
    };
    Ok(rows.iter().filter_map(of_pair).collect())
}

/// Returns the result according to the definition, and the number of rows that it requires.
fn greedy(
    order: &[i32],
    similarities: &HashMap<(i32, i32), f64>,
    least: f64,
    wanted: usize,
) -> (Vec<Found>, i64) {
    let mut found: Vec<Found> = Vec::new();
    let mut read = 0;
    for &id in order {
        if found.len() == wanted {
            break;
        }
        read += 1;
        let mut best: Option<(f64, usize)> = None;
        for (place, (earlier, ..)) in found.iter().enumerate() {
            let similarity = similarities.get(&(*earlier, id)).copied();
            let similarity = similarity.filter(|similarity| *similarity >= least);
            if let Some(similarity) = similarity
                && best.is_none_or(|(most, _)| similarity > most)
            {
                best = Some((similarity, place));
            }
        }
        match best {
            Some((_, place)) => found[place].2.push(id),
            None => found.push((id, read, Vec::new())),
        }
    }
    (found, read)
}
