//! The subjects of the benchmarks, one module each.

pub mod bursts;
mod calibration;
pub mod cold;
mod compare;
pub mod containment;
pub mod cores;
pub mod documents;
mod estimate;
pub mod groups;
pub mod guard;
mod hamming;
mod known_pairs;
pub mod live;
pub mod lookup;
mod lookup_peers;
mod methods;
pub mod pairs;
mod pairs_peers;
pub mod passages;
pub mod pipelines;
mod python;
mod quality;
pub mod scale;
mod scripts;
mod signature;
pub mod spark;
pub mod templates;

use anyhow::Result;
use clap::ValueEnum;

use crate::context::Bench;
use crate::report::table::Table;

#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub enum Subject {
    All,
    Signature,
    Python,
    Compare,
    Lookup,
    Index,
    Pairs,
    Guard,
    Pipelines,
    Live,
    Groups,
    Passages,
    Containment,
    Templates,
    Quality,
    Calibration,
    Scale,
    Cold,
    Spark,
    Generate,
    Figures,
}

/// Measures a subject.
pub type Measure = fn(&Bench<'_>) -> Result<Vec<Table>>;

/// Every measured subject: its name, and the functions that measure it.
pub const SUBJECTS: &[(Subject, &str, &[Measure])] = &[
    (
        Subject::Signature,
        "signature",
        &[signature::measure, scripts::measure],
    ),
    (Subject::Python, "python", &[python::measure]),
    (Subject::Compare, "compare", &[compare::measure]),
    (
        Subject::Lookup,
        "lookup",
        &[lookup::measure, lookup_peers::measure, hamming::measure],
    ),
    (Subject::Index, "index", &[documents::measure]),
    (
        Subject::Pairs,
        "pairs",
        &[
            pairs::measure,
            cores::measure,
            guard::measure,
            pairs_peers::measure,
        ],
    ),
    (Subject::Guard, "guard", &[bursts::measure]),
    (Subject::Pipelines, "pipelines", &[pipelines::measure]),
    (Subject::Live, "live", &[live::measure]),
    (Subject::Groups, "groups", &[groups::measure]),
    (Subject::Passages, "passages", &[passages::measure]),
    (Subject::Containment, "containment", &[containment::measure]),
    (Subject::Templates, "templates", &[templates::measure]),
    (
        Subject::Quality,
        "quality",
        &[quality::measure, estimate::measure],
    ),
    (Subject::Calibration, "calibration", &[calibration::measure]),
    (Subject::Scale, "scale", &[scale::measure]),
    (Subject::Cold, "cold", &[cold::measure]),
    (Subject::Spark, "spark", &[spark::measure]),
];
