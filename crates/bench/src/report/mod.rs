//! Results of a subject: written as JSON and Markdown, and inserted into the pages that ask for them.

pub mod chart;
pub mod machine;
pub mod table;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Serialize;
use testbed::workspace;

use machine::Machine;
use table::Table;

/// Pages in which a table replaces the text between `<!-- bench:NAME -->` and `<!-- /bench -->`.
const PAGES: [&str; 2] = ["benches/RESULTS.md", "docs/choosing.md"];

/// Results of one subject.
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

    /// Inserts the tables into the pages that ask for them.
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

/// Returns the directory of the results that are kept.
pub fn results_dir() -> PathBuf {
    workspace::root().join("benches/results")
}

/// Returns the page with the block of this name replaced, if it has one.
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
    fn only_the_block_of_the_name_is_replaced() {
        let page =
            "a\n<!-- bench:x -->\nold\n<!-- /bench -->\n<!-- bench:y -->\nkept\n<!-- /bench -->\n";
        let new = replace(page, "x", "new\n");
        assert_eq!(new, page.replace("old", "new"));
        assert_eq!(replace(page, "z", "new"), page);
    }
}
