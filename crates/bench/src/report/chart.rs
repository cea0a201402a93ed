//! Curves as SVG for pages.

use std::path::Path;

use anyhow::Result;
use plotters::prelude::*;

/// Colors of Okabe and Ito, which color-blind readers can distinguish, on a white background because pages may be
/// dark.
const COLORS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(0, 0, 0),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(150, 150, 150),
];

/// A line with its name.
pub struct Curve {
    pub label: String,
    pub points: Vec<(f64, f64)>,
}

/// The label and the range of an axis.
pub struct Axis {
    about: String,
    from: f64,
    to: f64,
    labels: usize,
    powers: bool,
}

impl Axis {
    /// Returns an axis with equal steps.
    pub fn even(about: &str, from: f64, to: f64, labels: usize) -> Axis {
        Axis {
            about: about.to_string(),
            from,
            to,
            labels,
            powers: false,
        }
    }

    /// Returns an axis with powers of ten.
    pub fn powers(about: &str, from: f64, to: f64) -> Axis {
        let (from, to) = (from.log10().floor(), to.log10().ceil());
        Axis {
            labels: (to - from) as usize + 1,
            powers: true,
            ..Axis::even(about, from, to, 0)
        }
    }

    fn place(&self, value: f64) -> f64 {
        match self.powers {
            true => value.log10(),
            false => value,
        }
    }

    fn label(&self, place: f64) -> String {
        match self.powers {
            true => format!("{}", 10f64.powf(place)),
            false => format!("{}", (place * 1000.0).round() / 1000.0),
        }
    }
}

/// Curves over common axes.
pub struct Chart {
    pub title: String,
    pub below: Axis,
    pub beside: Axis,
    /// The position of the legend: a corner without curves.
    pub legend: SeriesLabelPosition,
    pub curves: Vec<Curve>,
}

impl Chart {
    /// Writes the file.
    pub fn draw(self, path: &Path) -> Result<()> {
        let (below, beside) = (&self.below, &self.beside);
        // Twice as large as shown, because the backend rounds to pixels.
        let area = SVGBackend::new(path, (1440, 880)).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .caption(&self.title, ("sans-serif", 40))
            .margin(24)
            .margin_right(60)
            .x_label_area_size(88)
            .y_label_area_size(112)
            .build_cartesian_2d(below.from..below.to, beside.from..beside.to)?;
        chart
            .configure_mesh()
            .x_desc(&below.about)
            .y_desc(&beside.about)
            .x_labels(below.labels)
            .y_labels(beside.labels)
            .x_label_formatter(&|place| below.label(*place))
            .y_label_formatter(&|place| beside.label(*place))
            .label_style(("sans-serif", 28))
            .light_line_style(WHITE)
            .draw()?;
        for (curve, color) in self.curves.iter().zip(COLORS) {
            let line = color.stroke_width(4);
            let points = curve.points.iter();
            let points = points.map(|&(x, y)| (below.place(x), beside.place(y)));
            chart
                .draw_series(LineSeries::new(points, line))?
                .label(&curve.label)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 44, y)], line));
        }
        chart
            .configure_series_labels()
            .position(self.legend)
            .legend_area_size(60)
            .background_style(WHITE)
            .border_style(BLACK.mix(0.3))
            .label_font(("sans-serif", 28))
            .draw()?;
        area.present()?;
        println!("Wrote {}", path.display());
        Ok(())
    }
}
