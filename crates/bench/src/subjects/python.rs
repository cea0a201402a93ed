//! The Python package beside the peers that one imports there.

use anyhow::Result;
use testbed::documents::{on_one_line, write_lines};

use super::signature::{add_peers, peer_contender};
use crate::context::Bench;
use crate::measure::race::race;
use crate::peers::dir;
use crate::report::table::Table;

const OURS: &str = "neardup";

/// Contenders, and the share of the documents that is enough for the slow ones.
const CONTENDERS: &[(&str, usize)] = &[
    (OURS, 1),
    ("neardup, all processors", 1),
    ("neardup, Arrow", 1),
    ("neardup, Arrow, all processors", 1),
    ("rensa rho", 1),
    ("rensa", 1),
    ("rensa with shingling", 1),
    ("datasketch", 10),
    ("datasketch with shingling", 10),
];

/// Signatures of a list of texts.
pub fn measure(bench: &Bench<'_>) -> Result<Vec<Table>> {
    let bodies: Vec<String> = bench
        .texts
        .bodies
        .iter()
        .map(|body| on_one_line(body))
        .collect();
    let number = |part: usize| bodies.len().div_ceil(part);
    let files = [1, 10].map(|part| dir().join(format!("python-{part}.txt")));
    for (file, part) in files.iter().zip([1, 10]) {
        write_lines(bodies[..number(part)].iter().map(String::as_str), file)?;
    }
    let contenders = CONTENDERS.iter().map(|(name, part)| {
        let file = &files[usize::from(*part > 1)];
        peer_contender(bench, name, number(*part), file)
    });
    let results = race(
        "signatures in Python",
        bench.scale.rounds,
        contenders.collect(),
    )?;
    let about = "Signatures of 128 slots in Python, one processor each unless said otherwise. Ours always starts from \
                 texts, in a list or in an Arrow array; \"with shingling\" does so too, other rows of datasketch and rensa are given the \
                 shingles.";
    let columns = ["who", "µs a document", "neardup, µs", "times neardup"];
    let mut table = Table::new("python.signatures", about, &columns);
    add_peers(&mut table, &results, OURS);
    Ok(vec![table])
}
