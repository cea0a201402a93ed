//! Texts in every encoding, exact lists of other tokenizers, and documents of hundreds of megabytes.

use anyhow::{Context, Result, ensure};
use postgres::Client;
use postgres::error::SqlState;
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::Outcome;
use crate::known::{Collection, Generated};

/// The part that a generated collection and a corpus have in common: the list of exact values, and how `resemblance`
/// computes them.
struct List {
    generated: fn() -> Generated,
    corpora: &'static [&'static str],
    list: &'static str,
    options: &'static str,
}

const LISTS: [List; 3] = [
    List {
        generated: Generated::han,
        corpora: &["song_zh"],
        list: "exact_c3",
        options: "3",
    },
    List {
        generated: Generated::arabic,
        corpora: &["hadith_ar"],
        list: "exact_fold_w3",
        options: "3, fold => 'marks'",
    },
    List {
        generated: Generated::english,
        corpora: &["reuters21578", "newsgroups20"],
        list: "exact_w5",
        options: "5",
    },
];

/// Checks that `resemblance` returns the values of the lists to 6 decimals. Lists of tokens by category, in which marks
/// count as letters, are compared for ASCII documents, where the rules agree.
pub fn exact_lists(server: &Server) -> Result<Outcome> {
    for list in LISTS {
        let (name, options) = (list.list, list.options);
        for collection in Collection::all((list.generated)(), list.corpora) {
            let database = Database::with_extension(&server.main, "text_exact")?;
            let mut client = database.connect()?;
            collection.load(&mut client, "docs")?;
            collection.load_exact(&mut client, name, "exact")?;
            let ascii = name.contains("_w5");
            let query = format!(
                "SELECT count(*), count(*) FILTER (WHERE abs(resemblance(a.body, b.body, {options}) - jaccard) >= 5.01e-7)
                 FROM exact e JOIN docs a ON a.id = e.a JOIN docs b ON b.id = e.b
                 WHERE NOT {ascii} OR (a.body || b.body) !~ '[^[:ascii:]]'"
            );
            let row = client.query_one(&query, &[])?;
            let (pairs, wrong): (i64, i64) = (row.get(0), row.get(1));
            ensure!(
                pairs > 100 && wrong == 0,
                "{}, {name}: {wrong} of {pairs} differ",
                collection.name()
            );
        }
    }
    Ok(Outcome::Passed)
}

/// Checks that Arabic with and without vowel signs is equal under fold 'marks'.
pub fn vocalized_pairs(server: &Server) -> Result<Outcome> {
    for collection in Collection::all(Generated::arabic(), &["hadith_ar"]) {
        let database = Database::with_extension(&server.main, "text_marks")?;
        let mut client = database.connect()?;
        collection.load(&mut client, "docs")?;
        collection.load_truth(&mut client, "truth")?;
        let query = "SELECT count(*), min(resemblance(a.body, b.body, fold => 'marks')),
                         count(*) FILTER (WHERE a.body <> b.body)
                     FROM truth t JOIN docs a ON a.id = t.a JOIN docs b ON b.id = t.b";
        let row = client.query_one(query, &[])?;
        let (pairs, least, differing): (i64, f64, i64) = (row.get(0), row.get(1), row.get(2));
        ensure!(
            differing > 50 && least > 0.9,
            "{}: {pairs} pairs, {differing} of which differ, from {least} on",
            collection.name()
        );
    }
    Ok(Outcome::Passed)
}

/// The results of every function of the family for one text.
const ANSWERS: &str =
    "SELECT concat_ws(' ', minhash(d), shingles(d, 2), shingle_hashes(d, 2, 'char'),
        minhash(string_to_array(d, ' ')), minhash(array_to_tsvector(string_to_array(d, ' ')), 1),
        jaccard(string_to_array(d, ' '), shingles(d, 1, fold => 'none')), winnow(d, 2, 2))
     FROM (VALUES ($1::text)) v (d)";

/// Parts of a text, cut out and repeated.
const PARTS: &str = "SELECT concat_ws(' ', cut_passages(d, '{[2,4), [6,7)}', '_'),
        (SELECT string_agg(concat_ws(':', number, start, text), ',') FROM split_text(d || '. ' || d, 'sentence')),
        (SELECT string_agg(p::text, ',' ORDER BY key, start)
         FROM copied_passages(NULL::int, format('SELECT i, %L FROM generate_series(1, 2) i', d || ' -- ' || d), 2) p),
        (SELECT string_agg(p::text, ',') FROM frequent_passages(format('SELECT %L', d || ' -- ' || d), 2) p))
     FROM (VALUES ($1::text)) v (d)";

/// Checks that a text gives the same answers in a database with another encoding as in one with UTF8.
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
        for query in [ANSWERS, PARTS] {
            let clients = [&mut client, &mut unicode];
            let answers = clients.map(|client| client.query_one(query, &[text]));
            let [here, there] = answers.map(|row| row.map(|row| row.get::<_, String>(0)));
            ensure!(here? == there?, "{encoding} differs from UTF8: {query}");
        }
        if *encoding == "LATIN1" {
            lacks_folded_character(&mut client)?;
        }
        if *encoding == "SQL_ASCII" {
            let query = r"SELECT shingles(E'one\xff\xfetwo', 1), shingles(E'a\xc3b', 1, 'char')";
            let row = client.query_one(query, &[])?;
            let (words, characters): (Vec<String>, Vec<String>) = (row.get(0), row.get(1));
            ensure!(words == ["one", "two"] && characters == ["a", "\u{fffd}", "b"]);
            parts_of_no_text(&mut client)?;
        }
    }
    Ok(Outcome::Passed)
}

/// Checks that bytes that are not text have no characters to count, but that their words still repeat.
fn parts_of_no_text(client: &mut Client) -> Result<()> {
    for call in [
        r"split_text(E'one\xff\xfetwo', 'line')",
        r"cut_passages(E'one\xff\xfetwo', '{[1,2)}')",
    ] {
        let error = client.batch_execute(&format!("SELECT {call}"));
        let code = error.as_ref().err().and_then(|error| error.code());
        ensure!(
            code == Some(&SqlState::CHARACTER_NOT_IN_REPERTOIRE),
            "{call}: {error:?}"
        );
    }
    let query = r"SELECT count(*) FROM copied_passages(NULL::int,
        $$SELECT i, E'one\xff\xfetwo three' FROM generate_series(1, 2) i$$, 3)";
    let rows: i64 = client.query_one(query, &[])?.get(0);
    ensure!(rows == 1, "{rows} rows");
    Ok(())
}

/// Checks that a character of LATIN1 whose folded form LATIN1 lacks is named in the error, and is kept if nothing is
/// folded.
fn lacks_folded_character(client: &mut Client) -> Result<()> {
    let error = client.query_one("SELECT shingles('ein Haar hat 70 µm')", &[]);
    let error = error.err().and_then(|error| error.as_db_error().cloned());
    let error = error.context("the folded micro sign is not in LATIN1")?;
    ensure!(
        error.code() == &SqlState::UNTRANSLATABLE_CHARACTER
            && error.message().contains("LATIN1 has no character U+03BC")
            && error.hint().is_some_and(|hint| hint.contains("'none'")),
        "{error:?}"
    );
    let row = client.query_one("SELECT shingles('70 µm', 2, fold => 'none')", &[])?;
    let kept: Vec<String> = row.get(0);
    ensure!(kept == ["70 µm"], "{kept:?}");
    Ok(())
}

/// Checks that long documents of every kind can be canceled. The limit is generous, because the machine may be busy.
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
        let before = server.main.processor_seconds()?;
        if let Err(error) = client.batch_execute(&format!("SELECT {call}")) {
            let code = error.code().map_or("none", |code| code.code());
            ensure!(code == "57014", "{call}: {error}");
        }
        // Processor time rather than elapsed time: other users may use the machine.
        let taken = server.main.processor_seconds()? - before;
        ensure!(taken < 5.0, "{call}: {taken} s");
    }
    Ok(Outcome::Passed)
}
