//! The Python package compared with Python packages of others.

use anyhow::Result;
use testbed::documents::{on_one_line, write_lines};

use super::signature::{add_peers, peer_contender};
use crate::context::Bench;
use crate::measure::race::race;
use crate::peers::dir;
use crate::report::table::Table;

const OURS: &str = "neardup";

/// Minimum number of documents, so that a call takes longer than starting its threads.
const LEAST: usize = 60_000;

/// Ways to call ours.
const WAYS: [&str; 4] = [
    OURS,
    "neardup, all processors",
    "neardup, Arrow",
    "neardup, Arrow, all processors",
];

/// Peers. They are slow, so that one in `PART` of the documents is enough.
const PEERS: [&str; 5] = [
    "rensa rho",
    "rensa",
    "rensa with shingling",
    "datasketch",
    "datasketch with shingling",
];
const PART: usize = 10;

/// Measures signatures of columns of texts. Our ways are compared with each other before the peers make their
/// shingles, because millions of small objects in the same process slow down every allocation.
pub fn measure(bench: &Bench<'_>) -> Result<Vec<Table>> {
    let texts = &bench.texts.bodies;
    let repeated = texts.iter().cycle().take(texts.len().max(LEAST));
    let bodies: Vec<String> = repeated.map(|body| on_one_line(body)).collect();
    let (all, part) = (bodies.len(), bodies.len().div_ceil(PART));
    let files = [1, PART].map(|part| dir().join(format!("python-{part}.txt")));
    for (file, number) in files.iter().zip([all, part]) {
        write_lines(bodies[..number].iter().map(String::as_str), file)?;
    }
    let about = format!(
        "Signatures of 128 slots of {all} texts in Python, which are {} again and again, in a list or in an Arrow array; \
         one processor unless said otherwise.",
        bench.texts.origin
    );
    let columns = "who | µs a document | neardup, µs | times neardup";
    let mut ways = Table::new("python.processors", about, columns);
    let contenders = WAYS.map(|name| peer_contender(bench, name, all, &files[0]));
    let rounds = bench.scale.rounds;
    let results = race("signatures in Python", rounds, contenders.into())?;
    add_peers(&mut ways, &results, OURS);
    let about = "Signatures of 128 slots in Python, one processor each. Ours always starts from a list of texts; \
                 \"with shingling\" does so too, other rows of datasketch and rensa are given the shingles.";
    let mut peers = Table::new("python.signatures", about, columns);
    let contenders = [&[OURS], PEERS.as_slice()].concat();
    let contenders = contenders
        .iter()
        .map(|name| peer_contender(bench, name, part, &files[1]));
    let results = race(
        "signatures in Python beside peers",
        rounds,
        contenders.collect(),
    )?;
    add_peers(&mut peers, &results, OURS);
    Ok(vec![ways, peers])
}
