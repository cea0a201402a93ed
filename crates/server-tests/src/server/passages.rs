//! Compares copied and frequent passages with their definition.

#[path = "../../../neardup/tests/collection/definition.rs"]
mod definition;

use anyhow::{Result, ensure};
use definition::{Oracle, Start};
use fastrand::Rng;
use neardup::text::Fold;
use postgres::Client;
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::Outcome;

const COLLECTIONS: usize = 60;

const FOLDS: [(&str, Fold); 3] = [
    ("none", Fold::None),
    ("case", Fold::Case),
    ("marks", Fold::Marks),
];

/// Passages that make up documents: periodic text, words of several scripts, a code point that becomes two words.
const PASSAGES: &[&str] = &[
    "a b a b a b a b a b ",
    "0 0 0 0 0 0 0 0 ",
    "The quick brown fox, the lazy dog. ",
    "Größe in Äpfeln: ½ ½ 今天下雨 ",
    "THE QUICK brown fox; ",
    "größe IN apfeln ",
    "one two three four five six seven ",
];

/// Checks both functions on random small collections, with every fold, little memory, and 0 to 4 threads; and on a
/// collection with documents of a megabyte.
pub fn by_definition(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "passages")?;
    let mut client = database.connect()?;
    let mut rng = Rng::with_seed(59);
    for number in 0..COLLECTIONS {
        let documents: Vec<String> = (0..rng.usize(0..7)).map(|_| document(&mut rng)).collect();
        check(&mut client, &documents, (rng.usize(1..9), number), &FOLDS)?;
    }
    let mut large: Vec<String> = (0..4).map(|_| document(&mut rng)).collect();
    large.insert(1, "0 ".repeat(60_000));
    large.push(
        (0..100_000)
            .map(|n| format!("number{} ", n % 70_000))
            .collect(),
    );
    check(&mut client, &large, (20, 0), &FOLDS[1..2])?;
    // A long document before or after short ones that have a passage of it.
    let passage = words("passage", 60);
    let long = words("long", 2500);
    for documents in [
        [
            format!("{long} {passage}"),
            format!("before {passage} after"),
        ],
        [passage.clone(), format!("{passage} x {long} y {long}")],
    ] {
        for number in 0..4 {
            check(&mut client, &documents, (20, number), &FOLDS[1..2])?;
        }
    }
    Ok(Outcome::Passed)
}

/// Returns `count` different words.
fn words(name: &str, count: usize) -> String {
    let words: Vec<String> = (0..count).map(|n| format!("{name}{n}")).collect();
    words.join(" ")
}

fn document(rng: &mut Rng) -> String {
    let mut document = String::new();
    for _ in 0..rng.usize(0..6) {
        let passage = PASSAGES[rng.usize(0..PASSAGES.len())];
        let words: Vec<&str> = passage.split_inclusive(' ').collect();
        let start = rng.usize(0..words.len());
        document.extend(
            words[start..rng.usize(start..words.len() + 1)]
                .iter()
                .copied(),
        );
    }
    document
}

fn check(
    client: &mut Client,
    documents: &[String],
    (min_words, number): (usize, usize),
    folds: &[(&str, Fold)],
) -> Result<()> {
    client.batch_execute("DROP TABLE IF EXISTS docs; CREATE TABLE docs (id int, body text)")?;
    for (id, body) in (0..).zip(documents) {
        client.execute("INSERT INTO docs VALUES ($1::int, $2)", &[&id, body])?;
    }
    let work_mem = ["64kB", "64MB"][number % 2];
    client.batch_execute(&format!(
        "SET work_mem = '{work_mem}'; SET max_parallel_maintenance_workers = {}",
        number % 5
    ))?;
    for &(name, fold) in folds {
        let oracle = Oracle::new(documents, min_words, fold);
        // The characters of a place: the first, counted from 1, and their number.
        let characters = |place: Start, words| {
            let bytes = oracle.bytes(place, words, &vec![0; documents.len()]);
            let [start, end] = [bytes.start, bytes.end].map(|byte| {
                let before = &documents[place.0][..byte as usize];
                before.chars().count() as i32
            });
            (start + 1, end - start)
        };
        let expected: Vec<Vec<i32>> = oracle
            .rows()
            .into_iter()
            .map(|(place, source, words)| {
                let [(start, length), (source_start, source_length)] =
                    [place, source].map(|place| characters(place, words));
                let [key, source] = [place.0, source.0].map(|document| document as i32);
                vec![
                    key,
                    start,
                    length,
                    words as i32,
                    source,
                    source_start,
                    source_length,
                ]
            })
            .collect();
        let query = format!(
            "SELECT * FROM copied_passages(NULL::int, 'SELECT id, body FROM docs ORDER BY id', {min_words}, '{name}')"
        );
        let rows = client.query(&query, &[])?;
        let found: Vec<Vec<i32>> = rows
            .iter()
            .map(|row| (0..7).map(|column| row.get(column)).collect())
            .collect();
        ensure!(
            found == expected,
            "{query} of {documents:?}: {found:?}, not {expected:?}"
        );
        let expected: Vec<(String, i32, i64, i64)> = oracle
            .frequent()
            .into_iter()
            .take(5)
            .map(|(in_documents, places, words, first)| {
                let (start, length) = characters(first, words);
                let text = documents[first.0].chars();
                let text = text
                    .skip(start as usize - 1)
                    .take(length as usize)
                    .collect();
                (text, words as i32, in_documents as i64, places as i64)
            })
            .collect();
        let query = format!(
            "SELECT * FROM frequent_passages('SELECT body FROM docs ORDER BY id', {min_words}, '{name}', 5)"
        );
        let rows = client.query(&query, &[])?;
        let found: Vec<(String, i32, i64, i64)> = rows
            .iter()
            .map(|row| (row.get(0), row.get(1), row.get(2), row.get(3)))
            .collect();
        ensure!(
            found == expected,
            "{query} of {documents:?}: {found:?}, not {expected:?}"
        );
    }
    Ok(())
}
