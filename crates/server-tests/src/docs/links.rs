//! Relative links: the file, the image and the heading exist. Web addresses are not checked.

use std::fs;
use std::path::Path;

use anyhow::{Result, bail};
use pulldown_cmark::{Event, Tag};

use super::pages::{Page, headings, line_of, parse};
use crate::harness::Outcome;

/// Fails, and lists all links without a valid target.
pub fn check(page: &Page) -> Result<Outcome> {
    let dir = page.path.parent().unwrap_or(Path::new("."));
    let mut broken = Vec::new();
    for (line, target) in links(&fs::read_to_string(&page.path)?) {
        if target.contains("://") || target.starts_with("mailto:") {
            continue;
        }
        if !resolves(page, dir, &target)? {
            broken.push(format!("{}:{line}: {target} leads nowhere", page.name));
        }
    }
    if broken.is_empty() {
        return Ok(Outcome::Passed);
    }
    bail!("{}", broken.join("\n"))
}

fn resolves(page: &Page, dir: &Path, target: &str) -> Result<bool> {
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = match file {
        "" => page.path.clone(),
        file => dir.join(file),
    };
    if !path.exists() || anchor.is_empty() {
        return Ok(path.exists());
    }
    let text = fs::read_to_string(&path)?;
    Ok(headings(&text)
        .iter()
        .any(|heading| heading.anchor == anchor))
}

/// Returns the targets of links and images, with their lines, counted from 1.
fn links(text: &str) -> Vec<(usize, String)> {
    let target = |(event, range): (Event<'_>, std::ops::Range<usize>)| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
            Some((line_of(text, range.start), dest_url.into_string()))
        }
        _ => None,
    };
    parse(text).filter_map(target).collect()
}

#[cfg(test)]
mod tests {
    use super::links;

    #[test]
    fn links_and_images_outside_of_code() {
        let text =
            "[a](b.md#c), ![d](e.png) `[f](g)`\n```text\n[h](i)\n```\n[`j`](k) and (l) [m]\n";
        let found = links(text);
        let found: Vec<_> = found
            .iter()
            .map(|(line, to)| (*line, to.as_str()))
            .collect();
        assert_eq!(found, [(1, "b.md#c"), (1, "e.png"), (5, "k")]);
    }
}
