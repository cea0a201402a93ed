//! The examples of a page: all SQL blocks are run, in order, in one psql session and one fresh database per page.
//!
//! A block ```` ```sql ```` contains the input of psql. A block ```` ```text ```` directly after it contains the output
//! of psql, which is compared except for trailing spaces; a block without one must run without an error. If a file does
//! not create the extension, the database already has it. A block ```` ```sql no-run ```` is only shown.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use anyhow::{Result, anyhow, bail};
use libtest_mimic::Trial;
use pulldown_cmark::{CodeBlockKind, Event, Tag, TagEnd};
use similar::TextDiff;
use testbed::server::Server;
use testbed::server::database::Database;

use super::guards;
use super::pages::{self, Page, line_of};
use crate::harness::{Outcome, trial};
use crate::shared;

/// Printed by psql between two examples; no example prints such a line.
const MARKER: &str = "-- next example --";

/// Returns all examples of the page that are run, as trials.
pub fn trials(page: &Page) -> Vec<Trial> {
    let session = Arc::new(Session {
        path: page.path.clone(),
        examples: parse(&page.text),
        printed: OnceLock::new(),
    });
    let mut trials = Vec::new();
    for (number, example) in session.examples.iter().enumerate() {
        if example.is_run {
            let name = format!("docs::{}:{}", page.name, example.line);
            let session = session.clone();
            trials.push(trial(name, move || session.check(number)));
        }
    }
    if !trials.is_empty() {
        let name = format!("docs::guards on the tables of {}", page.name);
        trials.push(trial(name, move || session.check_guards()));
    }
    trials
}

/// The examples of a page. All of them are run when the first is needed.
struct Session {
    path: PathBuf,
    examples: Vec<Example>,
    printed: OnceLock<Result<Printed, String>>,
}

/// The outcome of a page's examples.
struct Printed {
    outputs: Vec<String>,
    /// The result of adding a guard to their tables.
    guards: Result<(), String>,
}

impl Session {
    /// Checks one example, or accepts the output of all.
    fn check(&self, number: usize) -> Result<Outcome> {
        self.examples[number].check(&self.printed()?.outputs[number])
    }

    fn check_guards(&self) -> Result<Outcome> {
        match &self.printed()?.guards {
            Ok(()) => Ok(Outcome::Passed),
            Err(error) => bail!("{error}"),
        }
    }

    fn printed(&self) -> Result<&Printed> {
        let run = || self.run().map_err(|error| format!("{error:#}"));
        let printed = self.printed.get_or_init(run).as_ref();
        printed.map_err(|error| anyhow!("{error}"))
    }

    fn run(&self) -> Result<Printed> {
        let printed = execute(shared::server(), &self.examples)?;
        if shared::is_blessing() {
            let text = fs::read_to_string(&self.path)?;
            fs::write(&self.path, rewrite(&text, &self.examples, &printed.outputs))?;
        }
        Ok(printed)
    }
}

/// One SQL block.
#[derive(Debug, PartialEq)]
pub struct Example {
    /// The line of its fence, counted from 1.
    pub line: usize,
    pub sql: String,
    /// The range between the fences of its output block, in bytes of the page.
    output: Option<Range<usize>>,
    expected: String,
    pub is_run: bool,
}

impl Example {
    /// Returns whether it begins with a statement that fails, to show the message.
    pub fn fails(&self) -> bool {
        self.expected.starts_with("ERROR:")
    }

    pub fn check(&self, output: &str) -> Result<Outcome> {
        if self.output.is_none() {
            let is_error = |line: &str| {
                ["ERROR:", "FATAL:", "psql:", "invalid command"]
                    .iter()
                    .any(|start| line.starts_with(start))
            };
            if output.lines().any(is_error) {
                bail!("{}", output.trim_end());
            }
        } else if !shared::is_blessing() && output != self.expected {
            let diff = TextDiff::from_lines(self.expected.as_str(), output);
            let mut diff = diff.unified_diff();
            bail!("{}", diff.header("documented", "printed"));
        }
        Ok(Outcome::Passed)
    }
}

/// Finds the SQL blocks and the output blocks that belong to them.
pub fn parse(text: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    // True if the previous block is an SQL block.
    let mut follows = false;
    for (event, range) in pages::parse(text) {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                let content = content(text, &range);
                if let Some(flags) = info.strip_prefix("sql") {
                    examples.push(Example {
                        line: line_of(text, range.start),
                        sql: text[content].trim_end_matches('\n').to_string(),
                        output: None,
                        expected: String::new(),
                        is_run: flags.trim() != "no-run",
                    });
                    follows = true;
                    continue;
                }
                if follows
                    && ["", "text"].contains(&&*info)
                    && let Some(example) = examples.last_mut()
                {
                    example.expected = normal(text[content.clone()].lines());
                    example.output = Some(content);
                }
                follows = false;
            }
            Event::Text(_) | Event::End(TagEnd::CodeBlock) => {}
            _ => follows = false,
        }
    }
    examples
}

/// Returns the text between the fences of a code block.
fn content(text: &str, block: &Range<usize>) -> Range<usize> {
    let block_text = text[block.clone()].trim_end();
    let start = block_text.find('\n').map_or(block_text.len(), |at| at + 1);
    let end = block_text.rfind('\n').map_or(start, |at| at + 1);
    block.start + start..block.start + end
}

/// Removes trailing spaces, and empty lines at the end.
pub fn normal<'a>(lines: impl IntoIterator<Item = &'a str>) -> String {
    let lines: Vec<&str> = lines.into_iter().map(str::trim_end).collect();
    let text = lines.join("\n");
    match text.trim_end() {
        "" => String::new(),
        text => format!("{text}\n"),
    }
}

/// Returns the output of psql for each example.
fn execute(server: &Server, examples: &[Example]) -> Result<Printed> {
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
        // The extra semicolon ends a statement that lacks one; alone, it has no effect.
        script.push_str(&format!("{sql}\n;\n\\echo '{MARKER}'\n"));
    }
    let printed = database.psql(&script)?;
    let lines: Vec<&str> = printed.lines().collect();
    let outputs: Vec<String> = lines
        .split(|line| *line == MARKER)
        .map(|lines| normal(lines.iter().copied()))
        .collect();
    if outputs.len() <= examples.len() {
        bail!("psql ended early:\n{printed}");
    }
    let guards = guards::check(&mut database.connect()?).map_err(|error| format!("{error:#}"));
    Ok(Printed { outputs, guards })
}

/// Returns the text with the output blocks replaced by the actual output.
pub fn rewrite(text: &str, examples: &[Example], outputs: &[String]) -> String {
    let mut new = text.to_string();
    for (example, output) in examples.iter().zip(outputs).rev() {
        if let Some(range) = example.output.clone().filter(|_| example.is_run) {
            new.replace_range(range, output);
        }
    }
    new
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
        assert_eq!(examples[0].line, 2);
        let output = examples[0].output.clone().map(|range| &PAGE[range]);
        assert_eq!(output, Some(" 1\n"));
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
