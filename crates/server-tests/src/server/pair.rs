//! Compares a pair in databases with other encodings.

use anyhow::{Result, ensure};
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::Outcome;

/// The results of every function of the family for two texts.
const ANSWERS: &str = "SELECT concat_ws(' ',
        (SELECT string_agg(c::text, ';') FROM common_chunks(a, b, 2) c), chunk_similarity(a, b, 2),
        longest_common_substring(a, b), edit_distance(a, b),
        near_dup_explain(a, b))
     FROM (VALUES ($1::text, 'x ' || $1 || ' y')) v (a, b)";

/// Checks that words and characters are the same as in a database with UTF8.
pub fn encodings(server: &Server) -> Result<Outcome> {
    const TEXTS: &[(&str, &str)] = &[
        ("LATIN1", "Crème brûlée à la Straße, Öl und Äpfel für 3 £"),
        ("SQL_ASCII", "Съешь ещё этих 中文 brûlée"),
    ];
    let unicode = Database::with_extension(&server.main, "pair_utf8")?;
    let mut unicode = unicode.connect()?;
    for (encoding, text) in TEXTS {
        let options = format!("ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0");
        let database = Database::create(&server.main, "pair_encoding", &options)?;
        let mut client = database.connect()?;
        client.batch_execute("SET client_encoding = 'UTF8'; CREATE EXTENSION pg_neardup")?;
        let answers = [&mut client, &mut unicode].map(|client| client.query_one(ANSWERS, &[text]));
        let [here, there] = answers.map(|row| row.map(|row| row.get::<_, String>(0)));
        ensure!(here? == there?, "{encoding} differs from UTF8");
    }
    Ok(Outcome::Passed)
}
