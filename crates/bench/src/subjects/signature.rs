//! The cost of a signature, compared with an exact hash in the same query, and with the peers'.

use std::path::Path;

use anyhow::Result;
use testbed::documents::{load, on_one_line, write_lines};
use testbed::server::ScratchCluster;
use testbed::server::database::Database;

use crate::context::Bench;
use crate::measure::race::{Contender, Results, race};
use crate::measure::session::Session;
use crate::peers::dir;
use crate::report::table::{Table, row};

/// MinHash as users write it on a server without a function for it.
const TEXTBOOK: &str = "CREATE FUNCTION textbook_minhash(doc text) RETURNS bigint[] LANGUAGE sql IMMUTABLE AS $$
    WITH words AS (SELECT regexp_split_to_array(lower(doc), '[^[:alnum:]]+') AS w),
    shingles AS (SELECT DISTINCT hashtextextended(array_to_string(w[i:i + 2], ' '), 0) AS h
                 FROM words, generate_series(1, greatest(cardinality(w) - 2, 1)) i)
    SELECT array_agg(least ORDER BY n)
    FROM (SELECT n, min(hashint8extended(h, n)) AS least FROM shingles, generate_series(1, 128) n GROUP BY n) slots
$$";

/// Peers, each with the share of the documents that is measured; a small one is enough for slow peers.
const PEERS: &[(&str, usize)] = &[
    ("ClickHouse wordShingleMinHash", 1),
    ("ClickHouse wordShingleMinHashCaseInsensitiveUTF8", 1),
    ("gaoya", 1),
    ("gaoya with shingling", 1),
    ("rensa rho", 1),
    ("rensa", 1),
    ("rensa with shingling", 1),
    ("datasketch", 10),
    ("datasketch with shingling", 10),
    ("DuckDB, plain SQL", 10),
];

const WEIGHTINGS: [&str; 3] = ["tf", "log", "set"];

/// Returns all tables of this subject.
pub fn measure(bench: &Bench<'_>) -> Result<Vec<Table>> {
    let bodies: Vec<String> = bench
        .texts
        .bodies
        .iter()
        .map(|body| on_one_line(body))
        .collect();
    let mut servers = Vec::new();
    for kernels in neardup::kernels::available() {
        servers.push((kernels.name, server(bench, kernels.name)?));
    }
    let mut paths = Vec::new();
    for (name, cluster) in &servers {
        let database = Database::with_extension(cluster, "signature")?;
        let session = Session::open(&database)?;
        load(
            &mut session.client(),
            "docs",
            bodies.iter().map(String::as_str),
        )?;
        paths.push((*name, session, database));
    }
    let Some((_, session, _)) = paths.first() else {
        return Ok(Vec::new());
    };
    let sessions: Vec<(&str, &Session)> = paths
        .iter()
        .map(|(name, session, _)| (*name, session))
        .collect();
    Ok(vec![
        price(bench, &sessions, bodies.len())?,
        beside_peers(bench, session, &bodies)?,
        simhash(bench, session, &bodies)?,
    ])
}

/// Returns a server whose signatures use one path of the kernels.
fn server(bench: &Bench<'_>, kernels: &str) -> Result<ScratchCluster> {
    let mut cluster = bench.cluster(kernels)?;
    cluster.set_environment("NEARDUP_KERNELS", kernels);
    cluster.start()?;
    Ok(cluster)
}

/// Measures each function and md5 over the same table, in the same backend.
fn price(bench: &Bench<'_>, paths: &[(&str, &Session)], documents: usize) -> Result<Table> {
    let functions = [("minhash(body)", "minhash"), ("simhash(body)", "simhash")];
    let mut contenders = Vec::new();
    for (path, session) in paths {
        let md5 = format!("md5, {path}");
        contenders.push(session.contender(&md5, documents, "SELECT count(md5(body)) FROM docs"));
        for (function, name) in functions {
            let query = format!("SELECT count({function}) FROM docs");
            contenders.push(session.contender(&format!("{name}, {path}"), documents, &query));
        }
    }
    let (first, session) = paths[0];
    let query = "SELECT count(to_tsvector('english', body)) FROM docs";
    contenders.push(session.contender("to_tsvector", documents, query));
    let results = race("signature beside md5", bench.scale.rounds, contenders)?;

    let about = "`SELECT count(FUNCTION(body))` against `SELECT count(md5(body))`, same warm table, one backend.";
    let columns = "function | kernels | µs a document | md5, µs | times md5";
    let mut table = Table::new("signature.price", about, columns);
    let mut add = |name: &str, function: &str, path: &str| {
        let (times, md5) = (results.get(name), results.get(&format!("md5, {path}")));
        if let (Some(times), Some(md5)) = (times, md5) {
            let (time, base) = (times.microseconds(), md5.microseconds());
            table.push(row![function, path, time, base, times.over(md5)]);
        }
    };
    for (function, name) in functions {
        for (path, _) in paths {
            add(&format!("{name}, {path}"), function, path);
        }
    }
    add("to_tsvector", "to_tsvector('english', body)", first);
    Ok(table)
}

/// Measures signatures of 128 slots by every peer (ClickHouse: 6 hashes) and ours, in turn.
fn beside_peers(bench: &Bench<'_>, session: &Session, bodies: &[String]) -> Result<Table> {
    let files = [1, 10].map(|part| dir().join(format!("documents-{part}.txt")));
    let number = |part: usize| bodies.len().div_ceil(part);
    for (file, part) in files.iter().zip([1, 10]) {
        write_lines(bodies[..number(part)].iter().map(String::as_str), file)?;
    }
    session.execute(TEXTBOOK)?;
    let few = number(100);
    let textbook = format!("SELECT count(textbook_minhash(body)) FROM docs WHERE id < {few}");
    let mut contenders = vec![
        session.contender(
            "minhash",
            bodies.len(),
            "SELECT count(minhash(body)) FROM docs",
        ),
        session.contender("plain SQL in PostgreSQL", few, &textbook),
    ];
    for (peer, part) in PEERS {
        let file = &files[usize::from(*part > 1)];
        contenders.push(peer_contender(bench, peer, number(*part), file));
    }
    let results = race("signature beside peers", bench.scale.rounds, contenders)?;
    let about = "Signatures of 128 slots (ClickHouse: 6 hashes, the time of reading its table taken off), one thread \
                 each. Ours always starts from the text in its table; \"with shingling\" does so too, other rows of \
                 datasketch, rensa and gaoya are given the shingles.";
    let columns = "who | µs a document | minhash, µs | times minhash";
    let mut table = Table::new("signature.peers", about, columns);
    add_peers(&mut table, &results, "minhash");
    Ok(table)
}

/// Returns a contender for a peer's signatures. ClickHouse's time does not include reading the documents.
pub fn peer_contender<'a>(
    bench: &'a Bench<'_>,
    peer: &'a str,
    documents: usize,
    file: &'a Path,
) -> Contender<'a> {
    Contender::new(peer, documents, move || {
        let mut worker = bench.peers.worker(peer)?;
        let reading = match peer.starts_with("ClickHouse") {
            true => worker.sign("ClickHouse reads", file)?,
            false => 0.0,
        };
        Ok(worker.sign(peer, file)? - reading)
    })
}

pub fn add_peers(table: &mut Table, results: &Results, ours: &str) {
    let Some(base) = results.get(ours) else {
        return;
    };
    for times in results.iter().filter(|times| times.name != ours) {
        let (time, ours) = (times.microseconds(), base.microseconds());
        table.push(row![times.name.clone(), time, ours, times.over(base)]);
    }
}

/// Measures SimHash and ClickHouse's at equal k.
fn simhash(bench: &Bench<'_>, session: &Session, bodies: &[String]) -> Result<Table> {
    let file = dir().join("documents-1.txt");
    let peers = [
        "wordShingleSimHash",
        "wordShingleSimHashCaseInsensitiveUTF8",
    ];
    let names: Vec<Vec<String>> = [1, 3]
        .map(|k| {
            peers
                .map(|peer| format!("ClickHouse {peer}, k = {k}"))
                .to_vec()
        })
        .to_vec();
    let about = "SimHash of 64 bits beside ClickHouse's at equal k (the time of reading its table taken off), one \
                 thread each.";
    let columns = "k | weighting | simhash, µs | who | µs a document | times simhash";
    let mut table = Table::new("signature.simhash", about, columns);
    for (k, names) in [1, 3].into_iter().zip(&names) {
        let mut contenders: Vec<Contender<'_>> = WEIGHTINGS
            .iter()
            .map(|weighting| {
                let query = format!(
                    "SELECT count(simhash(body, {k}, weighting => '{weighting}')) FROM docs"
                );
                session.contender(weighting, bodies.len(), &query)
            })
            .collect();
        contenders.extend(
            names
                .iter()
                .map(|name| peer_contender(bench, name, bodies.len(), &file)),
        );
        let results = race("SimHash beside ClickHouse", bench.scale.rounds, contenders)?;
        for ours in WEIGHTINGS
            .iter()
            .filter_map(|weighting| results.get(weighting))
        {
            for peer in names.iter().filter_map(|name| results.get(name)) {
                let (time, ours_time) = (peer.microseconds(), ours.microseconds());
                let name = peer.name.clone();
                table.push(row![
                    f64::from(k),
                    ours.name.clone(),
                    ours_time,
                    name,
                    time,
                    peer.over(ours)
                ]);
            }
        }
    }
    Ok(table)
}
