//! Texts in every encoding, exact lists of other tokenisers, and documents of hundreds of megabytes.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use testbed::corpora::Corpus;
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::{Missing, Outcome};

/// A corpus, the list of exact values, and how `resemblance` gives them.
const LISTS: &[(&str, &str, &str)] = &[
    ("song_zh", "exact_c3", "3"),
    ("hadith_ar", "exact_fold_w3", "3, fold => 'marks'"),
    ("reuters21578", "exact_w5", "5"),
    ("newsgroups20", "exact_w5", "5"),
];

/// `resemblance` gives the values of the lists to 6 decimals. Lists of tokens by category, in
/// which marks count as letters, are compared on ASCII documents, where the rules agree.
pub fn exact_lists(server: &Server) -> Result<Outcome> {
    let mut found = 0;
    for (name, list, options) in LISTS {
        let Some(corpus) = Corpus::find(name) else {
            continue;
        };
        found += 1;
        let database = Database::with_extension(&server.main, "text_exact")?;
        corpus.load(&database, "docs")?;
        corpus.load_exact(&database, list, "exact")?;
        let ascii = list.contains("_w5");
        let query = format!(
            "SELECT count(*), count(*) FILTER (WHERE abs(resemblance(a.body, b.body, {options}) - jaccard) >= 5.01e-7)
             FROM exact e JOIN docs a ON a.id = e.a JOIN docs b ON b.id = e.b
             WHERE NOT {ascii} OR (a.body || b.body) !~ '[^[:ascii:]]'"
        );
        let row = database.connect()?.query_one(&query, &[])?;
        let (pairs, wrong): (i64, i64) = (row.get(0), row.get(1));
        ensure!(
            pairs > 100 && wrong == 0,
            "{name}, {list}: {wrong} of {pairs} differ"
        );
    }
    Ok(skipped_without(found))
}

/// Arabic with and without vowel signs is one under fold 'marks'.
pub fn vocalised_pairs(server: &Server) -> Result<Outcome> {
    let Some(corpus) = Corpus::find("hadith_ar") else {
        return Ok(skipped_without(0));
    };
    let database = Database::with_extension(&server.main, "text_marks")?;
    corpus.load(&database, "docs")?;
    corpus.load_truth(&database, "truth")?;
    let query = "SELECT count(*), min(resemblance(a.body, b.body, fold => 'marks'))
                 FROM truth t JOIN docs a ON a.id = t.a JOIN docs b ON b.id = t.b";
    let row = database.connect()?.query_one(query, &[])?;
    let (pairs, least): (i64, f64) = (row.get(0), row.get(1));
    ensure!(
        pairs == 3367 && least > 0.9,
        "{pairs} pairs from {least} on"
    );
    Ok(Outcome::Passed)
}

fn skipped_without(found: usize) -> Outcome {
    match found {
        0 => Outcome::Skipped(Missing::Corpora),
        _ => Outcome::Passed,
    }
}

/// What every function of the family makes of one text.
const ANSWERS: &str =
    "SELECT concat_ws(' ', minhash(d), shingles(d, 2), shingle_hashes(d, 2, 'char'),
        minhash_set(string_to_array(d, ' ')), minhash_lexemes(array_to_tsvector(string_to_array(d, ' ')), 1),
        jaccard(string_to_array(d, ' '), shingles(d, 1, fold => 'none')), winnow(d, 2, 2))
     FROM (VALUES ($1::text)) v (d)";

/// A text gives the same answers in a database of another encoding as in one of UTF8.
pub fn encodings(server: &Server) -> Result<Outcome> {
    const TEXTS: &[(&str, &str)] = &[
        ("LATIN1", "Crème brûlée à la Straße, Öl und Äpfel für 3 £"),
        ("EUC_JP", "東京タワーへ行きました。カードで払う ABC"),
        ("SQL_ASCII", "Съешь ещё этих 中文 brûlée"),
    ];
    let unicode = Database::with_extension(&server.main, "text_utf8")?;
    let mut unicode = unicode.connect()?;
    for (encoding, text) in TEXTS {
        let options = format!("ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0");
        let database = Database::create(&server.main, "text_encoding", &options)?;
        let mut client = database.connect()?;
        client.batch_execute("SET client_encoding = 'UTF8'; CREATE EXTENSION pg_neardup")?;
        let answers = [&mut client, &mut unicode].map(|client| client.query_one(ANSWERS, &[text]));
        let [here, there] = answers.map(|row| row.map(|row| row.get::<_, String>(0)));
        ensure!(here? == there?, "{encoding} differs from UTF8");
        if *encoding == "SQL_ASCII" {
            let query = r"SELECT shingles(E'one\xff\xfetwo', 1), shingles(E'a\xc3b', 1, 'char')";
            let row = client.query_one(query, &[])?;
            let (words, characters): (Vec<String>, Vec<String>) = (row.get(0), row.get(1));
            ensure!(words == ["one", "two"] && characters == ["a", "\u{fffd}", "b"]);
        }
    }
    Ok(Outcome::Passed)
}

/// Long documents of every kind can be cancelled. The limit is generous: the machine may be busy.
pub fn cancel(server: &Server) -> Result<Outcome> {
    const CALLS: &[&str] = &[
        "minhash(repeat('a', 300000000))",
        "minhash('a' || repeat(U&'\\0301\\0323', 50000000))",
        "shingle_hashes(repeat('床前明月光疑是地上霜', 10000000))",
        "shingles(repeat('one two three ', 20000000), 5, 'char')",
        "winnow(repeat('. ', 150000000), 3, 4)",
    ];
    let database = Database::with_extension(&server.main, "text_cancel")?;
    let mut client = database.connect()?;
    client.batch_execute("SET statement_timeout = '600ms'")?;
    for call in CALLS {
        let start = Instant::now();
        if let Err(error) = client.batch_execute(&format!("SELECT {call}")) {
            let code = error.code().map_or("none", |code| code.code());
            ensure!(code == "57014", "{call}: {error}");
        }
        let taken = start.elapsed();
        ensure!(taken < Duration::from_secs(5), "{call}: {taken:?}");
    }
    Ok(Outcome::Passed)
}
