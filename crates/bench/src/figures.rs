//! The documentation's curves, drawn with the functions that users call.

use anyhow::Result;
use neardup::bands::lsh_probability;
use neardup::minhash::interval::share_limits;
use plotters::chart::SeriesLabelPosition;
use testbed::workspace;

use crate::report::chart::{Axis, Chart, Curve};

/// Draws every figure into `docs/images`.
pub fn draw_all() -> Result<()> {
    for (name, figure) in [("s_curves", s_curves()?), ("margin", margins())] {
        figure.draw(&workspace::root().join(format!("docs/images/{name}.svg")))?;
    }
    Ok(())
}

/// Returns the S-curves of bands and rows of 100 slots.
fn s_curves() -> Result<Chart> {
    let curve = |(bands, rows)| -> Result<Curve> {
        let point = |step| {
            let similarity = f64::from(step) / 200.0;
            Ok((similarity, lsh_probability(similarity, bands, rows)?))
        };
        Ok(Curve {
            label: format!("{bands} bands of {rows}"),
            points: (0..=200).map(point).collect::<Result<_>>()?,
        })
    };
    let shapes = [(50, 2), (20, 5), (10, 10), (5, 20), (2, 50)];
    Ok(Chart {
        title: "Probability of a common band".to_string(),
        below: Axis::even("Jaccard similarity", 0.0, 1.0, 11),
        beside: Axis::even("probability", 0.0, 1.0, 8),
        legend: SeriesLabelPosition::Coordinate(270, 220),
        curves: shapes.into_iter().map(curve).collect::<Result<_>>()?,
    })
}

/// Returns half the width of the 95 % interval around every estimate, by the number of slots.
fn margins() -> Chart {
    let curve = |slots: usize| Curve {
        label: format!("{slots} slots"),
        points: (0..=slots)
            .map(|equal| {
                let (low, high) = share_limits(equal as f64, slots as f64, 0.95);
                (equal as f64 / slots as f64, 50.0 * (high - low))
            })
            .collect(),
    };
    Chart {
        title: "How far an estimate can be off (95 % confidence)".to_string(),
        below: Axis::even("estimated similarity", 0.0, 1.0, 11),
        beside: Axis::even("\u{b1} percentage points", 0.0, 14.0, 8),
        legend: SeriesLabelPosition::Coordinate(530, 480),
        curves: [64, 128, 200, 256].map(curve).into(),
    }
}
