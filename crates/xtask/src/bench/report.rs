//! Results as tables: JSON for programs, Markdown for people, put where the pages want them.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Serialize;

use super::machine::Machine;
use crate::workspace;

/// A ratio whose quartiles are further apart than this share of its median says little.
const NOISE: f64 = 0.15;

/// Pages in which a table replaces what stands between `<!-- bench:NAME -->` and `<!-- /bench -->`.
const PAGES: [&str; 2] = ["benches/RESULTS.md", "README.md"];

/// A ratio's median and quartiles over the rounds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Ratio {
    pub median: f64,
    pub low: f64,
    pub high: f64,
}

impl Ratio {
    /// Whether the machine was too noisy for it.
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

/// Three digits that count, more before the decimal point.
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

/// The fields of a row, each of whatever type a [`Cell`] can be.
#[macro_export]
macro_rules! row {
    ($($cell:expr),* $(,)?) => { vec![$($crate::bench::report::Cell::from($cell)),*] };
}

/// One table.
#[derive(Debug, Serialize)]
pub struct Table {
    /// By which pages ask for it.
    pub name: String,
    /// What was measured, and how.
    pub about: String,
    pub columns: Vec<&'static str>,
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    pub fn new(name: &str, about: impl Into<String>, columns: &[&'static str]) -> Table {
        Table {
            name: name.to_string(),
            about: about.into(),
            columns: columns.to_vec(),
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

    fn markdown(&self) -> String {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let mut text = format!("{}\n\n", self.about);
        text += &line(self.columns.iter().map(ToString::to_string).collect());
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

/// What one subject's measurement gave.
#[derive(Debug, Serialize)]
pub struct Report {
    pub subject: &'static str,
    pub machine: Machine,
    /// The command's options that matter.
    pub settings: String,
    pub tables: Vec<Table>,
}

impl Report {
    /// Prints the tables and writes them into the directory, as JSON and as Markdown.
    pub fn write(&self, dir: &std::path::Path) -> Result<()> {
        let text = self.markdown();
        println!("\n{text}");
        let file = |extension| dir.join(self.subject).with_extension(extension);
        fs::write(file("json"), serde_json::to_string_pretty(self)? + "\n")?;
        fs::write(file("md"), text)?;
        println!("Wrote {} and .md", file("json").display());
        Ok(())
    }

    /// Puts the tables into the pages that ask for them.
    pub fn embed(&self) -> Result<()> {
        for page in PAGES {
            let path = workspace::root().join(page);
            let text = fs::read_to_string(&path).with_context(|| format!("cannot read {page}"))?;
            let mut new = text.clone();
            for table in &self.tables {
                let about = format!("{}\n{}", table.markdown(), self.machine.line());
                new = replace(&new, &table.name, &about);
            }
            if new != text {
                fs::write(&path, new)?;
                println!("Updated {page}");
            }
        }
        Ok(())
    }

    fn markdown(&self) -> String {
        let mut text = format!(
            "# {}\n\n{}\n{}\n",
            self.subject,
            self.machine.line(),
            self.settings
        );
        for table in &self.tables {
            text += &format!("\n## {}\n\n{}", table.name, table.markdown());
        }
        text
    }
}

/// Where results that are kept go.
pub fn results_dir() -> PathBuf {
    workspace::root().join("benches/results")
}

/// Replaces the block of this name, if the page has one.
fn replace(page: &str, name: &str, content: &str) -> String {
    let (begin, end) = (format!("<!-- bench:{name} -->\n"), "<!-- /bench -->");
    let Some(start) = page.find(&begin).map(|at| at + begin.len()) else {
        return page.to_string();
    };
    let Some(length) = page[start..].find(end) else {
        return page.to_string();
    };
    format!(
        "{}{}\n{}",
        &page[..start],
        content.trim_end(),
        &page[start + length..]
    )
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
    fn only_the_block_of_the_name_is_replaced() {
        let page =
            "a\n<!-- bench:x -->\nold\n<!-- /bench -->\n<!-- bench:y -->\nkept\n<!-- /bench -->\n";
        let new = replace(page, "x", "new\n");
        assert_eq!(new, page.replace("old", "new"));
        assert_eq!(replace(page, "z", "new"), page);
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
