//! `cargo xtask figures`: the documentation's curves, from the functions that users call.

use std::path::Path;

use anyhow::Result;
use neardup::bands::lsh_probability;
use neardup::minhash::interval::share_limits;
use plotters::prelude::*;

use crate::workspace;

/// Colours of Okabe and Ito, which colour-blind readers tell apart, on a white background: the
/// pages may be dark.
const COLOURS: [RGBColor; 5] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(0, 0, 0),
];

/// Draws every figure into `docs/images`.
pub fn run() -> Result<()> {
    for (name, figure) in [("s_curves", s_curves()?), ("margin", margins())] {
        let path = workspace::root().join(format!("docs/images/{name}.svg"));
        figure.draw(&path)?;
        println!("Wrote {}", path.display());
    }
    Ok(())
}

struct Curve {
    label: String,
    points: Vec<(f64, f64)>,
}

struct Figure {
    title: &'static str,
    below: &'static str,
    beside: &'static str,
    top: f64,
    /// Where no curve is, in pixels.
    legend: (i32, i32),
    curves: Vec<Curve>,
}

/// Bands and rows of 100 slots.
fn s_curves() -> Result<Figure> {
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
    Ok(Figure {
        title: "Probability of a common band",
        below: "Jaccard similarity",
        beside: "probability",
        top: 1.0,
        legend: (270, 220),
        curves: shapes.into_iter().map(curve).collect::<Result<_>>()?,
    })
}

/// Half the width of the 95 % interval around every estimate that so many slots can give.
fn margins() -> Figure {
    let curve = |slots: usize| Curve {
        label: format!("{slots} slots"),
        points: (0..=slots)
            .map(|equal| {
                let (low, high) = share_limits(equal, slots, 0.95);
                (equal as f64 / slots as f64, 50.0 * (high - low))
            })
            .collect(),
    };
    Figure {
        title: "How far an estimate can be off (95 % confidence)",
        below: "estimated similarity",
        beside: "\u{b1} percentage points",
        top: 14.0,
        legend: (530, 480),
        curves: [64, 128, 200, 256].map(curve).into(),
    }
}

impl Figure {
    fn draw(self, path: &Path) -> Result<()> {
        // Twice as large as shown, because the backend rounds to pixels.
        let area = SVGBackend::new(path, (1440, 880)).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .caption(self.title, ("sans-serif", 40))
            .margin(24)
            .x_label_area_size(88)
            .y_label_area_size(112)
            .build_cartesian_2d(0.0..1.0, 0.0..self.top)?;
        chart
            .configure_mesh()
            .x_desc(self.below)
            .y_desc(self.beside)
            .x_labels(11)
            .y_labels(8)
            .label_style(("sans-serif", 28))
            .light_line_style(WHITE)
            .draw()?;
        for (curve, colour) in self.curves.into_iter().zip(COLOURS) {
            let line = colour.stroke_width(4);
            chart
                .draw_series(LineSeries::new(curve.points, line))?
                .label(curve.label)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 44, y)], line));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::Coordinate(
                self.legend.0,
                self.legend.1,
            ))
            .legend_area_size(60)
            .background_style(WHITE)
            .border_style(BLACK.mix(0.3))
            .label_font(("sans-serif", 28))
            .draw()?;
        area.present()?;
        Ok(())
    }
}
