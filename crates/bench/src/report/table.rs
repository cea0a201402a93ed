//! Tables of results, for programs and in Markdown.

use serde::Serialize;

/// A ratio is noisy if its quartiles are further apart than this share of its median.
const NOISE: f64 = 0.15;

/// A ratio's median and quartiles over the rounds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Ratio {
    pub median: f64,
    pub low: f64,
    pub high: f64,
}

impl Ratio {
    /// Returns whether the machine was too noisy for this ratio.
    pub fn is_noisy(&self) -> bool {
        self.high - self.low > NOISE * self.median
    }
}

/// A field of a table.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Cell {
    Text(String),
    Number(f64),
    Ratio(Ratio),
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_string())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Cell {
        Cell::Number(number)
    }
}

impl From<i64> for Cell {
    fn from(number: i64) -> Cell {
        Cell::Number(number as f64)
    }
}

impl From<Ratio> for Cell {
    fn from(ratio: Ratio) -> Cell {
        Cell::Ratio(ratio)
    }
}

impl Cell {
    fn markdown(&self) -> String {
        match self {
            Cell::Text(text) => text.clone(),
            Cell::Number(number) => shown(*number),
            Cell::Ratio(ratio) => {
                let [median, low, high] = [ratio.median, ratio.low, ratio.high].map(shown);
                let noisy = if ratio.is_noisy() { ", noisy" } else { "" };
                format!("{median} ({low} to {high}{noisy})")
            }
        }
    }
}

/// Returns a number with three significant digits, or with more if they are before the decimal point.
pub fn shown(number: f64) -> String {
    if number == 0.0 || !number.is_finite() {
        return format!("{number}");
    }
    let before = number.abs().log10().floor() as i32 + 1;
    let decimals = (3 - before).clamp(0, 9) as usize;
    let text = format!("{number:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

/// Makes a row of fields of any types that a [`Cell`] can have.
macro_rules! row {
    ($($cell:expr),* $(,)?) => { vec![$($crate::report::table::Cell::from($cell)),*] };
}
pub(crate) use row;

/// One table.
#[derive(Debug, Serialize)]
pub struct Table {
    /// The name by which pages ask for it.
    pub name: String,
    /// Describes the measurement.
    pub about: String,
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// Returns a table without rows; ` | ` separates the names of columns.
    pub fn new(name: &str, about: impl Into<String>, columns: &str) -> Table {
        Table {
            name: name.to_string(),
            about: about.into(),
            columns: columns.split(" | ").map(str::to_string).collect(),
            rows: Vec::new(),
        }
    }

    pub fn push(&mut self, row: Vec<Cell>) {
        self.rows.push(row);
    }

    fn is_noisy(&self) -> bool {
        let mut cells = self.rows.iter().flatten();
        cells.any(|cell| matches!(cell, Cell::Ratio(ratio) if ratio.is_noisy()))
    }

    pub fn markdown(&self) -> String {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let mut text = format!("{}\n\n", self.about);
        text += &line(self.columns.clone());
        text += &line(self.columns.iter().map(|_| "---".to_string()).collect());
        for row in &self.rows {
            text += &line(row.iter().map(Cell::markdown).collect());
        }
        if self.is_noisy() {
            text += "\nThe machine was too noisy for the ratios marked so: their quartiles are more than 15 % apart.\n";
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_that_count() {
        let numbers = [0.0, 0.001234, 0.5, 1.0, 12.345, 1234.5, 1e6];
        let texts = ["0", "0.00123", "0.5", "1", "12.3", "1234", "1000000"];
        assert_eq!(numbers.map(shown), texts);
    }

    #[test]
    fn a_wide_ratio_is_noisy() {
        let ratio = |low, high| Ratio {
            median: 1.0,
            low,
            high,
        };
        assert!(!ratio(0.95, 1.05).is_noisy());
        assert!(ratio(0.9, 1.1).is_noisy());
    }
}
