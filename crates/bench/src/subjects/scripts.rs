//! The cost of a signature of texts in many scripts, compared with MD5.

use anyhow::Result;
use testbed::corpora::Corpus;
use testbed::documents::{load, translations};
use testbed::server::database::Database;

use crate::context::Bench;
use crate::measure::race::race;
use crate::measure::session::Session;
use crate::report::table::{Table, row};

/// Languages, and the names of their translations.
const LANGUAGES: &[(&str, &str)] = &[
    ("English", "en_GB"),
    ("German", "de"),
    ("French", "fr"),
    ("Polish", "pl"),
    ("Turkish", "tr"),
    ("Vietnamese", "vi"),
    ("Russian", "ru"),
    ("Greek", "el"),
    ("Hebrew", "he"),
    ("Arabic", "ar"),
    ("Hindi", "hi"),
    ("Thai", "th"),
    ("Chinese", "zh_CN"),
    ("Japanese", "ja"),
    ("Korean", "ko"),
];

/// Corpora in scripts other than Latin.
const CORPORA: &[(&str, &str)] = &[
    ("Arabic, vocalized and plain hadiths", "hadith_ar"),
    ("Chinese poems", "song_zh"),
];

/// The number of bytes of a document, the maximum number of documents of a language, and the minimum number worth
/// measuring.
const BYTES: usize = 1500;
const MOST: usize = 2000;
const FEWEST: usize = 50;

const FUNCTIONS: &[(&str, &str)] = &[
    ("md5", "md5(body)"),
    ("minhash", "minhash(body)"),
    ("simhash", "simhash(body)"),
    ("none", "minhash(body, fold => 'none')"),
    ("marks", "minhash(body, fold => 'marks')"),
    ("char", "minhash(body, 5, 'char')"),
];

/// Returns all tables of this subject.
pub fn measure(bench: &Bench<'_>) -> Result<Vec<Table>> {
    let cluster = bench.started_cluster()?;
    let database = Database::with_extension(&cluster, "scripts")?;
    let session = Session::open(&database)?;
    let about = format!(
        "`SELECT count(FUNCTION(body))` against `SELECT count(md5(body))`, same warm table, one backend: translations \
         of programs' messages of {BYTES} bytes, and corpora. The last two columns are beside `fold => 'case'`."
    );
    let columns = "texts | documents | bytes | md5, µs | minhash, times md5 | simhash, times md5 | unit => 'char', \
         times md5 | fold => 'none' | fold => 'marks'";
    let mut table = Table::new("signature.scripts", about, columns);
    for (language, name) in LANGUAGES {
        let documents = translations::documents(name, BYTES)?;
        add(bench, &session, &mut table, language, documents)?;
    }
    for &(texts, name) in CORPORA {
        if let Some(corpus) = Corpus::find(name) {
            let documents = corpus.documents()?.into_iter().map(|(_, body)| body);
            add(bench, &session, &mut table, texts, documents.collect())?;
        }
    }
    Ok(vec![table])
}

/// Adds the row of some texts, unless there are too few.
fn add(
    bench: &Bench<'_>,
    session: &Session,
    table: &mut Table,
    texts: &str,
    mut documents: Vec<String>,
) -> Result<()> {
    documents.truncate(MOST);
    if documents.len() < FEWEST {
        return Ok(());
    }
    session.execute("DROP TABLE IF EXISTS texts")?;
    load(
        &mut session.client(),
        "texts",
        documents.iter().map(String::as_str),
    )?;
    let contender = |(name, function): &(&str, &str)| {
        let query = format!("SELECT count({function}) FROM texts");
        session.contender(name, documents.len(), &query)
    };
    let what = format!("signatures of {texts}");
    let results = race(
        &what,
        bench.scale.rounds,
        FUNCTIONS.iter().map(contender).collect(),
    )?;
    let all: Option<Vec<_>> = FUNCTIONS
        .iter()
        .map(|(name, _)| results.get(name))
        .collect();
    if let Some(&[md5, minhash, simhash, none, marks, char]) = all.as_deref() {
        let bytes: usize = documents.iter().map(String::len).sum();
        table.push(row![
            texts,
            documents.len() as i64,
            (bytes / documents.len()) as i64,
            md5.microseconds(),
            minhash.over(md5),
            simhash.over(md5),
            char.over(md5),
            none.over(minhash),
            marks.over(minhash)
        ]);
    }
    Ok(())
}
