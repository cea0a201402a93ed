//! The cost of comparisons: of signatures in a scan, and of documents.

use anyhow::Result;
use testbed::documents::load;
use testbed::server::database::Database;

use crate::context::Bench;
use crate::measure::race::{Contender, race};
use crate::measure::session::Session;
use crate::peers;
use crate::report::table::{Table, row};

/// Signatures and bit strings of the same size. Their content does not affect the time.
const TABLES: &str = "
    CREATE UNLOGGED TABLE sigs AS
        SELECT minhash(ARRAY[i, i / 2, i / 3, i / 5, i / 7, i / 11]::bigint[]) AS sig FROM generate_series(1, ROWS) i;
    CREATE UNLOGGED TABLE bits AS SELECT (minhash_describe(sig)).bits::bit(4096) AS b FROM sigs;
    CREATE UNLOGGED TABLE bytes AS SELECT sig::bytea AS bytes FROM sigs;
    CREATE UNLOGGED TABLE packed AS SELECT minhash_pack(sig, 8) AS sig FROM sigs";

/// The operation applied to every row, and the table that is scanned.
const SCANS: &[(&str, &str)] = &[
    ("count(octet_length(bytes))", "bytes"),
    (
        "count(minhash_sim(sig, (SELECT sig FROM sigs LIMIT 1)))",
        "sigs",
    ),
    (
        "count(minhash_sim(sig, (SELECT sig FROM packed LIMIT 1)))",
        "packed",
    ),
    (
        "count(bit_hamming(b, (SELECT b FROM bits LIMIT 1)))",
        "bits",
    ),
    ("count(b <~> (SELECT b FROM bits LIMIT 1))", "bits"),
];

/// Measures on pairs of documents: ours, each followed by the peer's.
const MEASURES: &[(&str, &str)] = &[
    ("resemblance(a.body, b.body)", "similarity(a.body, b.body)"),
    (
        "edit_distance(left(a.body, 255), left(b.body, 255))",
        "levenshtein(left(a.body, 255), left(b.body, 255))",
    ),
];

/// Returns all tables of this subject.
pub fn measure(bench: &Bench<'_>) -> Result<Vec<Table>> {
    let cluster = bench.started_cluster()?;
    let database = Database::with_extension(&cluster, "compare")?;
    let session = Session::open(&database)?;
    peers::create_extensions(&mut session.client())?;
    Ok(vec![scans(bench, &session)?, documents(bench, &session)?])
}

fn scans(bench: &Bench<'_>, session: &Session) -> Result<Table> {
    let rows = bench.scale.documents as usize;
    session.execute(&TABLES.replace("ROWS", &rows.to_string()))?;
    session.vacuum("sigs, bits, bytes, packed")?;
    let contenders = SCANS
        .iter()
        .map(|(what, table)| session.contender(what, rows, &format!("SELECT {what} FROM {table}")))
        .collect();
    let results = race("comparing signatures", bench.scale.rounds, contenders)?;
    let about = format!(
        "Sequential scan of {rows} rows of 528 bytes (packed: 144), one backend: signatures, bit strings of 4096 bits \
         (`<~>` is pgvector's), and trivial work on the same bytes."
    );
    let columns = "every row | ns a row | times trivial work | times pgvector";
    let mut table = Table::new("compare.scan", about, columns);
    let trivial = results.get(SCANS[0].0);
    let pgvector = results.get(SCANS[4].0);
    for times in results.iter() {
        let over =
            |base: Option<_>| base.map_or("not there".into(), |base| times.over(base).into());
        let what = format!("`{}`", times.name);
        table.push(vec![
            what.into(),
            (1e3 * times.microseconds()).into(),
            over(trivial),
            over(pgvector),
        ]);
    }
    Ok(table)
}

/// Compares neighboring documents.
fn documents(bench: &Bench<'_>, session: &Session) -> Result<Table> {
    let bodies = bench.texts.bodies.iter().map(String::as_str);
    load(&mut session.client(), "docs", bodies)?;
    session.execute("CREATE TABLE pairs AS SELECT a.body AS a, b.body AS b FROM docs a JOIN docs b ON b.id = a.id + 1 LIMIT 500")?;
    let pairs = session.number("SELECT count(*) FROM pairs")? as usize;
    let mut contenders: Vec<Contender<'_>> = Vec::new();
    for (ours, peer) in MEASURES {
        for measure in [ours, peer] {
            let expression = measure.replace("a.body", "a").replace("b.body", "b");
            let query = format!("SELECT count({expression}) FROM pairs");
            contenders.push(session.contender(measure, pairs, &query));
        }
    }
    let results = race("comparing documents", bench.scale.rounds, contenders)?;
    let about = "Pairs of documents without signatures; `similarity` is pg_trgm's, `levenshtein` fuzzystrmatch's.";
    let columns = "ours | µs a pair | theirs | µs a pair | times ours";
    let mut table = Table::new("compare.documents", about, columns);
    for (ours, peer) in MEASURES {
        if let (Some(ours), Some(peer)) = (results.get(ours), results.get(peer)) {
            let names = [&ours.name, &peer.name].map(|name| format!("`{name}`"));
            let [name, peer_name] = names;
            table.push(row![
                name,
                ours.microseconds(),
                peer_name,
                peer.microseconds(),
                peer.over(ours)
            ]);
        }
    }
    Ok(table)
}
