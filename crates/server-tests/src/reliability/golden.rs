//! The same text has the same signature, wherever it is stored.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use testbed::server::Server;
use testbed::server::cluster::Cluster;
use testbed::server::database::Database;
use testbed::shell;

use crate::harness::{Outcome, Scale, figure};

/// Latin-1 text on which locales differ: dotless i, sharp s, sorting of case and accents.
const TEXTS: &str =
    "VALUES ('The quick brown fox jumps over the lazy dog'), ('ISPARTA Istanbul I'),
    ('Straße STRASSE Fuß'), ('Ærøskøbing Århus ñandú'), ('ÀÉÎÕÜ àéîõü ÿ'), ('Z z a A ä Ä'),
    ('1/2 ½ x² ª'), ('')";

const DIGEST: &str =
    "SELECT md5(convert_to(string_agg(concat(minhash(t), minhash(t, 2, 'char', 'none'),
        minhash(t, 1, 'word', 'marks'), shingles(t, 1), shingle_hashes(t, 2, 'stop'),
        minhash_bands(minhash(t), 0.8), winnow(t, 2, 2), simhash(t), edit_distance(t, 'Istanbul'),
        longest_common_substring(t, 'aÉ'), minhash(string_to_array(t, ' '))), '|' ORDER BY i),
        'UTF8'))
    FROM (SELECT t, row_number() OVER () AS i FROM (TEXTS) v (t)) w";

/// Locales of the C library, which the test compiles itself: name, source, character map.
const LOCALES: &[(&str, &str, &str)] = &[
    ("en_US.utf8", "en_US", "UTF-8"),
    ("tr_TR.utf8", "tr_TR", "UTF-8"),
    ("en_US.iso88591", "en_US", "ISO-8859-1"),
];

/// Databases: encoding, and the other options.
const DATABASES: &[(&str, &str)] = &[
    ("UTF8", "LOCALE 'C'"),
    ("LATIN1", "LOCALE 'C'"),
    ("SQL_ASCII", "LOCALE 'C'"),
    ("UTF8", "LOCALE 'en_US.utf8'"),
    ("UTF8", "LOCALE 'tr_TR.utf8'"),
    ("LATIN1", "LOCALE 'en_US.iso88591'"),
    ("UTF8", "LOCALE 'C' LOCALE_PROVIDER icu ICU_LOCALE 'tr-TR'"),
    (
        "LATIN1",
        "LOCALE 'C' LOCALE_PROVIDER icu ICU_LOCALE 'en-US'",
    ),
];

/// Checks that golden signatures are identical under C, English, Turkish and ICU locales, in UTF8, LATIN1 and
/// SQL_ASCII.
pub fn locales_and_encodings(server: &Server, _: Scale) -> Result<Outcome> {
    let cluster = server.scratch_cluster("golden")?;
    cluster.create(&[])?;
    let missing = compile_locales(&cluster)?;
    cluster.start()?;
    let mut wanted: Option<String> = None;
    let mut identical = 0;
    for (encoding, options) in DATABASES {
        if let Some(locale) = missing.iter().find(|locale| options.contains(*locale)) {
            figure!("without locale {locale}, which cannot be compiled here");
            continue;
        }
        let options = format!("TEMPLATE template0 ENCODING '{encoding}' {options}");
        let database = Database::create(&cluster, "golden", &options)?;
        let mut client = database.connect()?;
        client.batch_execute("SET client_encoding = 'UTF8'; CREATE EXTENSION pg_neardup")?;
        let digest: String = client
            .query_one(&DIGEST.replace("TEXTS", TEXTS), &[])
            .with_context(|| options.clone())?
            .get(0);
        let first = wanted.get_or_insert_with(|| digest.clone());
        ensure!(digest == *first, "other signatures in {options}");
        identical += 1;
    }
    figure!("identical in {identical} databases");
    Ok(Outcome::Passed)
}

/// Compiles the locales into the cluster's own directory. Returns those that could not be compiled.
fn compile_locales(cluster: &Cluster) -> Result<Vec<&'static str>> {
    let dir = cluster.locales();
    fs::create_dir(&dir)?;
    let compile = |(name, source, charmap): &(&str, &str, &str)| {
        let mut command = Command::new("localedef");
        command.args(["--no-archive", "-i", source, "-f", charmap]);
        Path::new("/usr/share/i18n").is_dir() && shell::succeeds(command.arg(dir.join(name)))
    };
    let missing = LOCALES.iter().filter(|locale| !compile(locale));
    Ok(missing.map(|(name, _, _)| *name).collect())
}
