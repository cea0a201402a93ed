//! Jobs with exceptions, and with a limited number of partners of each row, compared with the pairs of the whole
//! collection.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};
use fastrand::Rng;
use postgres::Client;
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::Outcome;

/// The forms in which documents are given, with their thresholds.
const FORMS: &[(&str, &str)] = &[
    ("body", "0.5"),
    ("minhash(body)", "0.6"),
    ("minhash(body), body", "0.5"),
    ("shingle_hashes(body)", "0.5"),
    ("simhash(body)", "12"),
];

const DOCUMENTS: i32 = 160;

/// Loads documents in families: copies, near copies, and others.
fn load(client: &mut Client, rng: &mut Rng) -> Result<()> {
    client.batch_execute(
        "CREATE TABLE docs (id int PRIMARY KEY, body text); CREATE TABLE known (a int, b int)",
    )?;
    for id in 1..=DOCUMENTS {
        let family = rng.usize(0..12);
        let mut words: Vec<String> = (0..30).map(|word| format!("w{family}x{word}")).collect();
        for _ in 0..[0, 0, 1, 3][rng.usize(0..4)] {
            words[rng.usize(0..30)] = format!("other{}", rng.usize(0..1000));
        }
        client.execute("INSERT INTO docs VALUES ($1, $2)", &[&id, &words.join(" ")])?;
    }
    for _ in 0..400 {
        // Some keys belong to no row.
        let pair = [1, 2].map(|_| rng.i32(1..DOCUMENTS + 9));
        client.execute("INSERT INTO known VALUES ($1, $2)", &[&pair[0], &pair[1]])?;
    }
    // Some of the similar pairs, including identical ones.
    client.batch_execute(
        "INSERT INTO known SELECT b, a FROM near_dup_pairs(NULL::int, 'SELECT id, body FROM docs ORDER BY id', 0.5)
             WHERE hashint4(a * 1000 + b) % 3 = 0;
         INSERT INTO known VALUES (NULL, 1), (2, NULL), (3, 3)",
    )?;
    Ok(())
}

type Pair = (i32, i32);

fn pairs(client: &mut Client, query: &str) -> Result<BTreeMap<Pair, f64>> {
    let rows = client.query(query, &[])?;
    let pairs: BTreeMap<Pair, f64> = rows
        .iter()
        .map(|row| ((row.get(0), row.get(1)), row.get(2)))
        .collect();
    ensure!(pairs.len() == rows.len(), "{query} yields a pair twice");
    Ok(pairs)
}

/// Checks that excepted pairs count as not similar.
pub fn count_as_not_similar(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "exceptions")?;
    let mut client = database.connect()?;
    load(&mut client, &mut Rng::with_seed(58))?;
    let known: BTreeSet<Pair> = client
        .query(
            "SELECT least(a, b), greatest(a, b) FROM known WHERE a + b > 0",
            &[],
        )?
        .iter()
        .map(|row| (row.get(0), row.get(1)))
        .collect();
    let excepted = "exceptions => 'SELECT a, b FROM known'";
    for work_mem in ["64kB", "4MB"] {
        client.batch_execute(&format!("SET work_mem = '{work_mem}'"))?;
        for (form, threshold) in FORMS {
            let rows = format!("NULL::int, 'SELECT id, {form} FROM docs ORDER BY id', {threshold}");
            let all = pairs(
                &mut client,
                &format!("SELECT * FROM near_dup_pairs({rows})"),
            )?;
            let mut left = all.clone();
            left.retain(|(a, b), _| !known.contains(&(*a.min(b), *a.max(b))));
            ensure!(left.len() < all.len() && !left.is_empty(), "{form}");
            let query = format!("SELECT * FROM near_dup_pairs({rows}, {excepted})");
            ensure!(pairs(&mut client, &query)? == left, "{query}");
            check_clusters(&mut client, (&rows, excepted))?;
            if !form.contains(", ") {
                check_distinct(&mut client, (&rows, excepted), &left)?;
            }
        }
        let rows = "NULL::int, 'SELECT id, body FROM docs ORDER BY id', 0.6";
        let query = format!("SELECT * FROM near_dup_pairs({rows}, measure => 'containment')");
        let mut left = pairs(&mut client, &query)?;
        left.retain(|(a, b), _| !known.contains(&(*a.min(b), *a.max(b))));
        let query = query.replace(", measure", &format!(", {excepted}, measure"));
        ensure!(pairs(&mut client, &query)? == left, "{query}");
    }
    Ok(Outcome::Passed)
}

/// Compares clusters with those of the remaining pairs.
fn check_clusters(client: &mut Client, (rows, excepted): (&str, &str)) -> Result<()> {
    let left = format!("SELECT * FROM near_dup_pairs({rows}, {excepted})").replace('\'', "''");
    for (method, expected) in [
        (
            "star",
            format!(
                "SELECT key, cluster FROM star_clusters(NULL::int, 'SELECT id FROM docs ORDER BY id', '{left}') ORDER BY 1"
            ),
        ),
        (
            "connected",
            format!(
                "SELECT key, component FROM connected_components(NULL::int,
                     'SELECT a, b FROM ({left}) p UNION ALL SELECT id, id FROM docs') ORDER BY 1"
            ),
        ),
    ] {
        let query = format!(
            "SELECT key, cluster FROM near_dup_clusters({rows}, '{method}', {excepted}) ORDER BY 1"
        );
        let [found, expected] = [&query, &expected].map(|query| {
            let rows = client.query(query.as_str(), &[])?;
            anyhow::Ok(
                rows.iter()
                    .map(|row| (row.get(0), row.get(1)))
                    .collect::<Vec<Pair>>(),
            )
        });
        let (found, expected) = (found?, expected?);
        ensure!(found == expected, "{query}: {found:?}, not {expected:?}");
    }
    Ok(())
}

/// Checks the first rows that repeat no earlier row.
fn check_distinct(
    client: &mut Client,
    (rows, excepted): (&str, &str),
    left: &BTreeMap<Pair, f64>,
) -> Result<()> {
    let mut expected: Vec<i32> = Vec::new();
    for id in 1..=DOCUMENTS {
        if !expected
            .iter()
            .any(|earlier| left.contains_key(&(*earlier, id)))
        {
            expected.push(id);
        }
    }
    let query =
        format!("SELECT key FROM near_dup_distinct({rows}, 1000, {excepted}) ORDER BY rank");
    let found: Vec<i32> = client
        .query(&query, &[])?
        .iter()
        .map(|row| row.get(0))
        .collect();
    ensure!(found == expected, "{query}: {found:?}, not {expected:?}");
    Ok(())
}

/// Checks that `most` limits the partners of every row, with identical ones first, and that copies take linear time.
pub fn few_partners(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "partners")?;
    let mut client = database.connect()?;
    load(&mut client, &mut Rng::with_seed(57))?;
    let text =
        "SELECT * FROM near_dup_pairs(NULL::int, 'SELECT id, body FROM docs ORDER BY id', 0.5";
    let identical = client.query(
        "SELECT a.id, b.id FROM docs a JOIN docs b USING (body) WHERE a.id < b.id",
        &[],
    )?;
    let identical: BTreeSet<Pair> = identical
        .iter()
        .map(|row| (row.get(0), row.get(1)))
        .collect();
    for (form, threshold) in FORMS {
        let rows = format!("NULL::int, 'SELECT id, {form} FROM docs ORDER BY id', {threshold}");
        for exceptions in ["", ", exceptions => 'SELECT a, b FROM known'"] {
            let query = format!("SELECT * FROM near_dup_pairs({rows}{exceptions}");
            let all = pairs(&mut client, &format!("{query})"))?;
            for most in [1, 2, 5, 1000] {
                let found = pairs(&mut client, &format!("{query}, most => {most})"))?;
                ensure!(
                    found
                        .iter()
                        .all(|(pair, similarity)| all.get(pair) == Some(similarity)),
                    "{query}"
                );
                ensure!(
                    found.len() <= most * DOCUMENTS as usize,
                    "{query}: {} pairs",
                    found.len()
                );
                let partners =
                    |pairs: &BTreeMap<Pair, f64>, id: i32, only: Option<&BTreeSet<Pair>>| {
                        let of_id = |pair: &&Pair| pair.0 == id || pair.1 == id;
                        let of_only = |pair: &&Pair| only.is_none_or(|only| only.contains(*pair));
                        pairs.keys().filter(of_id).filter(of_only).count()
                    };
                for id in 1..=DOCUMENTS {
                    let expected = partners(&all, id, None).min(most);
                    let has = partners(&found, id, None);
                    ensure!(
                        has >= expected,
                        "{query}: {id} has {has} of {expected} partners"
                    );
                    if exceptions.is_empty() {
                        let expected = partners(&all, id, Some(&identical)).min(most);
                        let has = partners(&found, id, Some(&identical));
                        ensure!(
                            has >= expected,
                            "{query}: {id} has {has} of {expected} copies"
                        );
                    }
                }
            }
            ensure!(
                pairs(&mut client, &format!("{query}, most => 1000)"))? == all,
                "{query}"
            );
        }
    }
    for (copies, rows) in [
        (
            "copies",
            "SELECT i, 'one text of which there are very many copies' FROM generate_series(1, 20000) i",
        ),
        (
            "near copies",
            "SELECT i, 'number ' || i || (SELECT string_agg(' word' || w, '') FROM generate_series(1, 60) w) FROM generate_series(1, 20000) i",
        ),
    ] {
        let query =
            format!("SELECT count(*) FROM near_dup_pairs(NULL::int, $${rows}$$, 0.8, most => 10)");
        let count: i64 = client.query_one(&query, &[])?.get(0);
        ensure!(
            (100_000..=200_000).contains(&count),
            "{copies}: {count} pairs"
        );
    }
    let error = client.batch_execute(&format!("{text}, measure => 'containment', most => 3)"));
    ensure!(error.is_err(), "most with containment");
    Ok(Outcome::Passed)
}
