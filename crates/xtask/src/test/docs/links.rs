//! Relative links: the file, the image and the heading are there. Addresses of the web are not
//! visited.

use std::fs;
use std::path::Path;

use anyhow::{Result, bail};

use super::pages::{Page, headings, prose};
use crate::test::tally::Outcome;

/// Fails with all links that lead nowhere.
pub fn check(page: &Page) -> Result<Outcome> {
    let dir = page.path.parent().unwrap_or(Path::new("."));
    let mut broken = Vec::new();
    for (line, target) in links(&page.text) {
        if target.contains("://") || target.starts_with("mailto:") {
            continue;
        }
        if !resolves(page, dir, target)? {
            broken.push(format!(
                "{}:{}: {target} leads nowhere",
                page.name,
                line + 1
            ));
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

/// The targets of `[text](target)` and `![text](target)`, with their lines from 0.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        // What stands between backticks is code.
        for part in line.split('`').step_by(2) {
            let targets = part.match_indices("](").filter_map(|(at, _)| {
                let target = &part[at + 2..];
                target.find(')').map(|end| &target[..end])
            });
            found.extend(targets.map(|target| (number, target)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::links;

    #[test]
    fn links_and_images_outside_of_code() {
        let text =
            "[a](b.md#c), ![d](e.png) `[f](g)`\n```text\n[h](i)\n```\n[`j`](k) and (l) [m]\n";
        assert_eq!(links(text), [(0, "b.md#c"), (0, "e.png"), (4, "k")]);
    }
}
