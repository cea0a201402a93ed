//! The pages of the documentation, and the headings that links can refer to.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use anyhow::Result;
use pulldown_cmark::{Event, Options, Parser, Tag};
use testbed::workspace;
use walkdir::WalkDir;

/// One Markdown file.
pub struct Page {
    /// Its path in the checkout.
    pub name: String,
    pub path: PathBuf,
    pub text: String,
}

/// Returns README.md, SECURITY.md, and the pages of `docs/` by name.
pub fn read() -> Result<Vec<Page>> {
    let root = workspace::root();
    let mut paths = vec![root.join("README.md"), root.join("SECURITY.md")];
    let entries = WalkDir::new(root.join("docs")).sort_by_file_name();
    paths.extend(entries.into_iter().flatten().map(|entry| entry.into_path()));
    paths.retain(|path| path.is_file() && path.extension().is_some_and(|ext| ext == "md"));
    let page = |path: PathBuf| {
        let name = path.strip_prefix(root)?.display().to_string();
        let text = fs::read_to_string(&path)?;
        Ok(Page { name, path, text })
    };
    paths.into_iter().map(page).collect()
}

/// A heading.
#[derive(Debug, PartialEq)]
pub struct Heading {
    /// Its line, counted from 1.
    pub line: usize,
    /// The text as written, without the number signs.
    pub title: String,
    /// The fragment of a link to it, after `#`.
    pub anchor: String,
}

/// Parses a Markdown text into events with their positions.
pub fn parse(text: &str) -> impl Iterator<Item = (Event<'_>, Range<usize>)> {
    Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter()
}

/// Returns the line, counted from 1, of a position in a text.
pub fn line_of(text: &str, at: usize) -> usize {
    1 + text[..at].matches('\n').count()
}

/// Returns the headings of a Markdown text, in order.
pub fn headings(text: &str) -> Vec<Heading> {
    let mut found: Vec<Heading> = Vec::new();
    for (event, range) in parse(text) {
        if !matches!(event, Event::Start(Tag::Heading { .. })) {
            continue;
        }
        let line = line_of(text, range.start);
        let title = text[range].trim_start_matches('#').trim().to_string();
        let base = slug(&title);
        let earlier = found.iter().filter(|other| slug(&other.title) == base);
        let anchor = match earlier.count() {
            0 => base,
            count => format!("{base}-{count}"),
        };
        found.push(Heading {
            line,
            title,
            anchor,
        });
    }
    found
}

/// Returns the anchor that the usual renderers make from a heading: in lower case, without punctuation, with hyphens
/// for spaces.
fn slug(title: &str) -> String {
    let kept = title
        .chars()
        .filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[cfg(test)]
mod tests {
    use super::headings;

    #[test]
    fn anchors_are_unique_and_code_has_none() {
        let text = "# A `b`, c\n```sh\n# no heading\n```\n## Options\n## Options\n#no\n";
        let anchors: Vec<String> = headings(text).into_iter().map(|h| h.anchor).collect();
        assert_eq!(anchors, ["a-b-c", "options", "options-1"]);
    }
}
