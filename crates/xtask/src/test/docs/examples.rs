//! The examples of a page: every SQL block is run, in order, in one psql session and
//! one fresh database per page.
//!
//! A block ```` ```sql ```` holds what one types into psql. A block ```` ```text ```` that follows
//! it directly holds what psql prints, compared but for trailing spaces; a block without one has
//! to run without an error. A file that does not create the extension finds it there. A block
//! ```` ```sql no-run ```` is only shown.

use std::fs;
use std::ops::Range;

use anyhow::{Result, bail};
use similar::TextDiff;

use super::pages::Page;
use crate::server::Server;
use crate::server::database::Database;
use crate::test::tally::{Outcome, Tally};

/// Printed by psql between two examples; no example prints such a line.
const MARKER: &str = "-- next example --";

/// Runs the page's examples, or writes their output into the page.
pub fn run(server: &Server, page: &Page, bless: bool, tally: &mut Tally) -> Result<()> {
    let examples = parse(&page.text);
    if examples.is_empty() {
        return Ok(());
    }
    let outputs = execute(server, &examples)?;
    if bless {
        fs::write(&page.path, rewrite(&page.text, &examples, &outputs))?;
    }
    for (example, output) in examples.iter().zip(&outputs) {
        let name = format!("{}:{}", page.name, example.line);
        tally.record(&name, || example.check(output, bless));
    }
    Ok(())
}

/// One SQL block.
#[derive(Debug, PartialEq)]
pub struct Example {
    /// The line of its fence, from 1.
    pub line: usize,
    pub sql: String,
    /// The lines between the fences of its output block, from 0.
    output: Option<Range<usize>>,
    expected: String,
    is_run: bool,
}

impl Example {
    fn check(&self, output: &str, bless: bool) -> Result<Outcome> {
        if !self.is_run {
            return Ok(Outcome::Skipped("only shown".into()));
        }
        if self.output.is_none() {
            let is_error = |line: &str| {
                ["ERROR:", "FATAL:", "psql:", "invalid command"]
                    .iter()
                    .any(|start| line.starts_with(start))
            };
            if output.lines().any(is_error) {
                bail!("{}", output.trim_end());
            }
        } else if !bless && output != self.expected {
            let diff = TextDiff::from_lines(self.expected.as_str(), output);
            let mut diff = diff.unified_diff();
            bail!("{}", diff.header("documented", "printed"));
        }
        Ok(Outcome::Passed)
    }
}

/// Finds the SQL blocks and the output blocks that belong to them.
pub fn parse(text: &str) -> Vec<Example> {
    let lines: Vec<&str> = text.lines().collect();
    let block_end = |start: usize| {
        let length = lines[start..].iter().position(|line| *line == "```");
        start + length.unwrap_or(lines.len() - start)
    };
    let mut examples = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let Some(info) = lines[at].strip_prefix("```") else {
            at += 1;
            continue;
        };
        let line = at + 1;
        let end = block_end(line);
        at = end + 1;
        let Some(flags) = info.strip_prefix("sql") else {
            continue;
        };
        let blank = lines.iter().skip(at).take_while(|line| line.is_empty());
        let fence = at + blank.count();
        let has_output = lines
            .get(fence)
            .is_some_and(|line| ["```", "```text"].contains(line));
        let output = has_output.then(|| fence + 1..block_end(fence + 1));
        at = output.as_ref().map_or(at, |lines| lines.end + 1);
        examples.push(Example {
            line,
            sql: lines[line..end].join("\n"),
            expected: normal(&lines[output.clone().unwrap_or_default()]),
            output,
            is_run: flags.trim() != "no-run",
        });
    }
    examples
}

/// Lines without trailing spaces, and without empty lines at the end.
fn normal(lines: &[&str]) -> String {
    let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
    let text = lines.join("\n");
    match text.trim_end() {
        "" => String::new(),
        text => format!("{text}\n"),
    }
}

/// What psql prints for each example.
fn execute(server: &Server, examples: &[Example]) -> Result<Vec<String>> {
    let database = Database::create(&server.main, "docs", "")?;
    let creates =
        |example: &Example| example.is_run && example.sql.contains("CREATE EXTENSION pg_neardup");
    if !examples.iter().any(creates) {
        database
            .connect()?
            .batch_execute("CREATE EXTENSION pg_neardup")?;
    }
    let mut script = String::new();
    for example in examples {
        let sql = if example.is_run {
            example.sql.as_str()
        } else {
            ""
        };
        // The extra semicolon ends a statement that lacks one; on its own it does nothing.
        script.push_str(&format!("{sql}\n;\n\\echo '{MARKER}'\n"));
    }
    let printed = database.psql(&script)?;
    let lines: Vec<&str> = printed.lines().collect();
    let outputs: Vec<String> = lines.split(|line| *line == MARKER).map(normal).collect();
    if outputs.len() <= examples.len() {
        bail!("psql ended early:\n{printed}");
    }
    Ok(outputs)
}

/// The text with the output blocks filled by what was printed.
fn rewrite(text: &str, examples: &[Example], outputs: &[String]) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    for (example, output) in examples.iter().zip(outputs).rev() {
        if let Some(range) = example.output.clone().filter(|_| example.is_run) {
            lines.splice(range, output.lines());
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::{parse, rewrite};

    const PAGE: &str = "# A\n```sql\nSELECT 1;\n```\n\n```text\n 1\n```\n```sh\nls\n```\n\
                        ```sql\nSELECT 2;\n```\ntext\n```\nx\n```\n```sql no-run\nx\n```\n";

    #[test]
    fn blocks_and_their_output() {
        let examples = parse(PAGE);
        assert_eq!(examples.len(), 3);
        assert_eq!(
            (examples[0].line, examples[0].output.clone()),
            (2, Some(6..7))
        );
        assert_eq!(
            (examples[0].sql.as_str(), examples[0].expected.as_str()),
            ("SELECT 1;", " 1\n")
        );
        assert_eq!(examples[1].output, None);
        assert!(examples[1].is_run && !examples[2].is_run);
    }

    #[test]
    fn only_output_blocks_are_rewritten() {
        let outputs = ["a\nb\n".to_string(), "c\n".to_string(), String::new()];
        let page = rewrite(PAGE, &parse(PAGE), &outputs);
        assert_eq!(page, PAGE.replace("\n 1\n", "\na\nb\n"));
    }
}
