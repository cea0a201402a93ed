//! The same text has the same signature, wherever it is stored.

use anyhow::{Result, ensure};

use super::{Outcome, Scale};
use crate::server::Server;
use crate::server::database::Database;

/// Latin-1 text, in which locales differ: dotless i, sharp s, sorting of case and accents.
const TEXTS: &str =
    "VALUES ('The quick brown fox jumps over the lazy dog'), ('ISPARTA Istanbul IĞ'),
    ('Straße STRASSE Fuß'), ('Ærøskøbing Århus ñandú'), ('ÀÉÎÕÜ àéîõü ÿ'), ('Z z a A ä Ä'),
    ('1/2 ½ x² ª'), ('')";

const DIGEST: &str =
    "SELECT md5(convert_to(string_agg(concat(minhash(t), minhash(t, 2, 'char', 'none'),
        minhash(t, 1, 'word', 'marks'), shingles(t, 1), shingle_hashes(t, 2, 'stop'),
        minhash_bands(minhash(t), 0.8), winnow(t, 2, 2), simhash(t)), '|' ORDER BY i), 'UTF8'))
    FROM (SELECT t, row_number() OVER () AS i FROM (TEXTS) v (t)) w";

/// Golden signatures under C, ICU and Turkish locales, in UTF8 and LATIN1: identical.
pub fn locales_and_encodings(server: &Server, _: Scale) -> Result<Outcome> {
    let installed: Vec<String> = server
        .main
        .connect("postgres")?
        .query(
            "SELECT collcollate FROM pg_collation WHERE collprovider = 'c'",
            &[],
        )?
        .iter()
        .filter_map(|row| row.get(0))
        .collect();
    let mut databases = vec![
        ("c", "ENCODING 'UTF8' LOCALE 'C'".to_string()),
        ("latin1", "ENCODING 'LATIN1' LOCALE 'C'".to_string()),
        (
            "icu",
            "ENCODING 'UTF8' LOCALE 'C' LOCALE_PROVIDER icu ICU_LOCALE 'tr-TR'".to_string(),
        ),
    ];
    for (name, locale) in [("en", "en_US.utf8"), ("tr", "tr_TR.utf8")] {
        match installed
            .iter()
            .any(|l| l.replace("UTF-8", "utf8") == locale)
        {
            true => databases.push((name, format!("ENCODING 'UTF8' LOCALE '{locale}'"))),
            false => println!("        without locale {locale}, which is not installed"),
        }
    }
    let latin = TEXTS.replace('Ğ', "");
    let mut wanted: Option<String> = None;
    for (name, options) in &databases {
        let options = format!("TEMPLATE template0 {options}");
        let database = Database::create(&server.main, &format!("golden_{name}"), &options)?;
        let mut client = database.connect()?;
        client.batch_execute("SET client_encoding = 'UTF8'; CREATE EXTENSION pg_neardup")?;
        let digest: String = client
            .query_one(&DIGEST.replace("TEXTS", &latin), &[])?
            .get(0);
        let first = wanted.get_or_insert_with(|| digest.clone());
        ensure!(digest == *first, "other signatures in {options}");
    }
    println!("        identical in {} databases", databases.len());
    Ok(Outcome::Passed)
}
