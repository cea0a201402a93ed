//! A test of the measurements.

use std::time::Duration;

use anyhow::{Result, ensure};
use testbed::documents::words::Words;
use testbed::documents::{Texts, on_one_line};
use testbed::server::Server;

use crate::context::{Bench, Scale};
use crate::peers::{self, Peers};
use crate::report::table::Table;
use crate::subjects::{
    bursts, cold, containment, cores, documents, groups, guard, live, lookup, pairs, passages,
    pipelines, scale, templates,
};

/// Measures only our own extension, with so few documents that this only tests the measurements.
pub fn run(server: &Server) -> Result<()> {
    let body = include_str!("../../../README.md").to_string();
    let texts = Texts {
        origin: "the README".to_string(),
        bodies: vec![on_one_line(&body)],
    };
    let scale = Scale {
        documents: 1000,
        length: 24,
        rounds: 1,
        long_rounds: 1,
    };
    let bench = Bench {
        server,
        peers: &Peers::none(),
        words: &Words::of([body.as_str()]),
        texts: &texts,
        scale,
        results: peers::dir().join("smoke"),
    };
    std::fs::create_dir_all(&bench.results)?;
    for measure in [
        lookup::measure,
        documents::measure,
        pairs::measure,
        cores::measure,
        guard::measure,
        short_bursts,
        live::measure,
        groups::measure,
        passages::measure,
        pipelines::measure,
        containment::measure,
        templates::measure,
        scale::measure,
        cold::measure,
    ] {
        for table in measure(&bench)? {
            ensure!(!table.rows.is_empty(), "{} is empty", table.name);
        }
    }
    Ok(())
}

fn short_bursts(bench: &Bench<'_>) -> Result<Vec<Table>> {
    bursts::measure_for(bench, Duration::from_millis(20), &[10])
}
