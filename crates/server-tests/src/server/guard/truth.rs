//! Compares the guard with brute force: it rejects a row exactly if there is a row near it, for every type of values,
//! with rows that do not count and excepted pairs.

use anyhow::{Result, ensure};
use fastrand::Rng;
use postgres::Client;
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::{Outcome, figure};

const DOCUMENTS: usize = 250;

/// Values that a guard compares.
struct Values {
    /// The type of column `value`.
    type_: &'static str,
    /// The expression that makes a value from a document.
    of_body: &'static str,
    /// The condition that values a and b are near each other, in a form that no index supports.
    near: String,
    /// The arguments of `near_dup_protect` after the column.
    arguments: String,
    /// The options of the index.
    options: String,
}

/// Inserts a stream of documents, and sometimes changes a row. Returns the expected and the actual outcomes.
const OUTCOMES: &str = "
    CREATE FUNCTION outcomes() RETURNS TABLE (expected bool, rejected bool) LANGUAGE plpgsql AS $$
    DECLARE
        document record;
        old docs;
        key int;
    BEGIN
        FOR document IN SELECT id, {OF_BODY} AS value, id % 7 = 0 AS hidden FROM stream ORDER BY id LOOP
            SELECT * INTO old FROM docs ORDER BY md5((id + document.id)::text) LIMIT 1;
            IF document.id % 4 > 0 THEN
                old := NULL;
            END IF;
            key := coalesce(old.id, document.id);
            IF document.id % 3 = 0 THEN
                INSERT INTO apart SELECT id, key FROM docs WHERE near(value, document.value) ORDER BY id LIMIT 2;
                INSERT INTO apart SELECT key, id FROM docs WHERE near(value, document.value) ORDER BY id DESC LIMIT 1;
            END IF;
            expected := NOT document.hidden AND EXISTS (SELECT FROM docs d WHERE id <> key AND NOT hidden
                AND near(value, document.value) AND (old.id IS NULL OR old.hidden OR NOT near(value, old.value))
                AND NOT EXISTS (SELECT FROM apart WHERE (a, b) IN ((d.id, key), (key, d.id))));
            rejected := false;
            BEGIN
                IF old.id IS NULL THEN
                    INSERT INTO docs VALUES (document.id, document.value, document.hidden);
                ELSE
                    UPDATE docs SET value = document.value, hidden = document.hidden WHERE id = old.id;
                END IF;
            EXCEPTION WHEN exclusion_violation THEN
                rejected := true;
            END;
            RETURN NEXT;
        END LOOP;
    END $$;";

/// Checks that the guard rejects the rows that brute force finds, and no others.
pub fn truth(server: &Server) -> Result<Outcome> {
    let mut rng = Rng::with_seed(37);
    for values in all_values() {
        let database = Database::with_extension(&server.main, "guard_truth")?;
        let mut client = database.connect()?;
        let (documents, rejected) = outcomes(&mut client, &values, &mut rng)?;
        ensure!(
            0 < rejected && rejected < documents,
            "{rejected} rejected: nothing was tested"
        );
        figure!(
            "{} ({}): {rejected} of {documents} rejected, as brute force says",
            values.type_,
            values.arguments
        );
    }
    Ok(Outcome::Passed)
}

fn outcomes(client: &mut Client, values: &Values, rng: &mut Rng) -> Result<(i64, i64)> {
    let Values {
        type_,
        of_body,
        near,
        arguments,
        options,
    } = values;
    client.batch_execute(&format!(
        "CREATE TABLE stream (id serial, body text);
         CREATE TABLE docs (id int PRIMARY KEY, value {type_}, hidden bool);
         CREATE INDEX ON docs USING neardup (value {options});
         CREATE TABLE apart (a int, b int);
         SELECT near_dup_protect('docs', 'value', {arguments}, condition => 'NOT hidden', exceptions => 'apart');
         CREATE FUNCTION near(a {type_}, b {type_}) RETURNS bool LANGUAGE plpgsql AS
             $$ BEGIN RETURN coalesce({near}, false); END $$;
         {}",
        OUTCOMES.replace("{OF_BODY}", of_body)
    ))?;
    let documents = documents(rng);
    let insert = "INSERT INTO stream (body) SELECT unnest($1::text[])";
    client.execute(insert, &[&documents])?;
    let row = client.query_one(
        "SELECT count(*), count(*) FILTER (WHERE rejected), count(*) FILTER (WHERE rejected <> expected)
         FROM outcomes()",
        &[],
    )?;
    let [documents, rejected, wrong] = [0, 1, 2].map(|column| row.get::<_, i64>(column));
    ensure!(wrong == 0, "{type_} ({arguments}): {wrong} decided wrongly");
    Ok((documents, rejected))
}

fn all_values() -> Vec<Values> {
    let text = |threshold: &str, k: u32, unit: &str, fold: &str| Values {
        type_: "text",
        of_body: "body",
        near: format!("resemblance(a, b, {k}, '{unit}', '{fold}') >= {threshold}"),
        arguments: format!("{threshold}, k => {k}, unit => '{unit}', fold => '{fold}'"),
        options: format!("text_ops (k = {k}, unit = \"{unit}\", fold = \"{fold}\")"),
    };
    let near = |type_, of_body, near: &str, bound: &str, options: &str| Values {
        type_,
        of_body,
        near: near.replace("{BOUND}", bound),
        arguments: bound.to_string(),
        options: options.replace("{BOUND}", bound),
    };
    let set = |bound| {
        let jaccard = "jaccard(a, b) >= {BOUND}";
        near("bigint[]", "shingle_hashes(body)", jaccard, bound, "")
    };
    let bits = |type_, bound| {
        let options = "hamming_ops (distance = {BOUND})";
        let hamming = "bit_hamming(a, b) <= {BOUND} AND length(a) = length(b)";
        near(type_, "simhash(body)", hamming, bound, options)
    };
    vec![
        text("0.5", 3, "word", "case"),
        text("0.6666666666666666", 1, "word", "none"),
        text("0.8", 5, "char", "marks"),
        text("0.8", 3, "word", "case"),
        text("0.9", 2, "stop", "case"),
        set("0.3"),
        set("0.8"),
        bits("bit(64)", "3"),
        bits("bit varying", "12"),
        near(
            "minhash_signature",
            "minhash(body)",
            "minhash_sim(a, b) >= {BOUND}",
            "0.8",
            "minhash_ops (threshold = {BOUND})",
        ),
    ]
}

/// Returns documents half of which follow one template. They include empty ones, single words, periodic and large ones,
/// and variants of earlier ones.
fn documents(rng: &mut Rng) -> Vec<String> {
    let mut words = |count: usize| -> Vec<String> {
        let mut word = || match rng.u32(..4) {
            0 => "the".to_string(),
            1 => "of".to_string(),
            _ => format!("wort{}", rng.u32(..5000)),
        };
        (0..count).map(|_| word()).collect()
    };
    let (template, large) = (words(40), words(20_000));
    let mut documents: Vec<Vec<String>> = vec![large, template.clone()];
    while documents.len() < DOCUMENTS {
        let document = match rng.u32(..20) {
            0 => vec![],
            1 => vec![format!("Ärger{}", rng.u32(..3))],
            2 => vec!["ab ba".to_string(); rng.usize(1..9)],
            3 if documents.len().is_multiple_of(3) => varied(&documents[0], rng),
            3..10 => varied(&template, rng),
            10..14 => varied(&documents[rng.usize(1..documents.len())], rng),
            _ => (0..rng.usize(1..30))
                .map(|_| format!("the{}", rng.u32(..5000)))
                .collect(),
        };
        documents.push(document);
    }
    documents.iter().map(|words| words.join(" ")).collect()
}

/// Returns the words with some of them replaced, and sometimes in capitals.
fn varied(words: &[String], rng: &mut Rng) -> Vec<String> {
    let mut words = words.to_vec();
    for _ in 0..rng.usize(..6).min(words.len()) {
        let place = rng.usize(..words.len());
        words[place] = format!("neu{}", rng.u32(..9));
    }
    if rng.u32(..4) == 0 {
        words = words.iter().map(|word| word.to_uppercase()).collect();
    }
    words
}
