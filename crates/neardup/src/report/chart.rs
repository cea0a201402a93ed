//! Bars with their figures, as a table.

/// A bar, partly filled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bar {
    pub label: String,
    pub all: u64,
    pub part: u64,
}

impl Bar {
    /// Returns a bar that is completely filled.
    pub fn filled_with(label: String, all: u64) -> Self {
        Self {
            label,
            all,
            part: all,
        }
    }

    /// Returns how much of the bar is filled, in percent.
    pub fn filled(&self) -> f64 {
        percent(self.part, self.all)
    }
}

/// Bars under a title.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chart {
    pub title: &'static str,
    /// The headings over labels, figures and filled parts; the last one is empty if no bar has a separate part.
    pub columns: [&'static str; 3],
    pub bars: Vec<Bar>,
}

impl Chart {
    /// Returns the width of a bar in percent of the widest bar.
    pub fn width(&self, bar: &Bar) -> f64 {
        percent(
            bar.all,
            self.bars.iter().map(|bar| bar.all).max().unwrap_or(0),
        )
    }
}

fn percent(part: u64, all: u64) -> f64 {
    (part as f64 / all.max(1) as f64 * 1000.0).round() / 10.0
}
