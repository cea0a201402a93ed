//! `docs/reference.md`: every object of the extension, from the catalog and its comments, with the shortest example
//! from the other pages.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;

use anyhow::{Result, bail, ensure};
use similar::TextDiff;
use testbed::server::database::Database;
use testbed::workspace;

use super::catalog::{self, Object};
use super::pages;
use super::samples::Samples;
use super::subjects::{Entry, SUBJECTS, Subject};
use crate::harness::Outcome;
use crate::shared;

/// The page. Its examples come from other pages and are run there.
pub const NAME: &str = "docs/reference.md";

const INTRODUCTION: &str = "# Reference

Every function, operator, type, operator class, cast and setting of the extension. The test suite
makes this page from the catalog's comments (`\\\\df+`, `\\\\do+`, `\\\\dT+` show them in psql) and checks
that nothing is missing.

Pass arguments by position or by name (`minhash(body, slots => 256)`); a default follows its `=`. In a function that takes
a query, the fields of the row `params` are the query's `$1`, `$2`... (`params => ROW(7, 'news')`); a literal without a
type is text, and a driver's parameter needs its type (`params => ROW(%s::text)`). Unless noted otherwise, functions are
IMMUTABLE and PARALLEL SAFE. They return NULL for a NULL argument; those for queries, guards and trackers reject it (22004).
NULL is valid for `key`, and where it is the default. A value out of range is 22023, with a hint that lists the valid ones.

| to | use |
|---|---|
| compare two documents | [`resemblance`](#resemblance), [`near_dup_explain`](#near_dup_explain) |
| look near-duplicates up | [`CREATE INDEX ... USING neardup`](#neardup), [`near_dup`](#near_dup) |
| find pairs, clusters | [`near_dup_pairs`](#near_dup_pairs), [`near_dup_clusters`](#near_dup_clusters) |
| compare a batch with a table | [`near_dup_join`](#near_dup_join) |
| keep near-duplicates out | [`near_dup_key`](#near_dup_key) in a constraint, [`near_dup_protect`](#near_dup_protect) |
| keep clusters up to date | [`near_dup_track`](#near_dup_track), [`near_dup_refresh`](#near_dup_refresh) |
| cut copied passages | [`copied_passages`](#copied_passages) |
";

/// Fails unless the page corresponds to the catalog, or writes it.
pub fn check() -> Result<Outcome> {
    let pages = pages::read()?;
    let database = Database::with_extension(&shared::server().main, "reference")?;
    let objects = catalog::objects(&mut database.connect()?)?;
    let others = pages
        .iter()
        .filter(|page| page.name != NAME && page.name != "SECURITY.md");
    let wanted = render(&objects, &Samples::collect(others))?;
    let path = workspace::root().join(NAME);
    if shared::is_blessing() {
        fs::write(path, wanted)?;
        return Ok(Outcome::Passed);
    }
    let present = fs::read_to_string(path).unwrap_or_default();
    if present == wanted {
        return Ok(Outcome::Passed);
    }
    let diff = TextDiff::from_lines(&present, &wanted);
    let mut diff = diff.unified_diff();
    bail!(
        "{NAME} is out of date; after changes: cargo xtask test docs --bless\n{}",
        diff.header("documented", "in the catalog")
    )
}

/// Returns the whole page. Fails if an object is in no subject, or if a subject names one that no longer exists.
fn render(objects: &[Object], samples: &Samples) -> Result<String> {
    let mut page = INTRODUCTION.replace("\\\\", "\\") + &contents();
    let mut placed = BTreeSet::new();
    for subject in SUBJECTS {
        let (title, guide) = (subject.title, subject.page);
        write!(page, "\n## {title}\n\nGuide: [{title}]({guide})\n")?;
        for entry in subject.entries {
            let found: Vec<&Object> = objects.iter().filter(|object| object.is(entry)).collect();
            ensure!(!found.is_empty(), "there is no {entry:?} any more");
            placed.extend(found.iter().map(|object| &object.identity));
            page.push_str(&section(entry, &found, samples)?);
        }
    }
    let rest = objects
        .iter()
        .filter(|object| !placed.contains(&object.identity));
    page.push_str(&support(rest)?);
    Ok(page)
}

/// Returns the names of all subjects except those that begin with an underscore.
fn contents() -> String {
    let mut text = String::from("\n## All names\n\n");
    for Subject { title, entries, .. } in SUBJECTS {
        let anchor = title.to_lowercase().replace(' ', "-");
        let mut names: Vec<_> = entries.iter().map(Entry::title).collect();
        names.retain(|name| !name.starts_with('_'));
        names.dedup();
        let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        text += &format!("- [{title}](#{anchor}): {}\n", names.join(", "));
    }
    text
}

/// Returns the section of one name: overloads, comments, an example.
fn section(entry: &Entry, objects: &[&Object], samples: &Samples) -> Result<String> {
    let mut text = format!("\n### `{}`\n\n", entry.title());
    for object in objects {
        let (call, arguments) = split_arguments(&object.signature);
        writeln!(text, "- `{call}`{}  ", object.marks)?;
        writeln!(text, "  {}", sentence(&object.comment))?;
        if !arguments.is_empty() {
            writeln!(text, "  Arguments: `{}`.", arguments.join("`, `"))?;
        }
    }
    if let Some(sample) = samples.of(entry) {
        let (title, link) = (&sample.title, &sample.link);
        match sample.sql.contains('\n') {
            true => write!(text, "\nExample: [{title}]({link}).\n")?,
            false => write!(
                text,
                "\n```sql\n{}\n```\n\nFrom [{title}]({link}).\n",
                sample.sql
            )?,
        }
    }
    Ok(text)
}

/// The number of arguments up to which a signature is on one line.
const SHORT: usize = 3;

/// Returns a signature, and the arguments to list below it. A long signature has only the names of its arguments, which
/// are listed below it.
fn split_arguments(signature: &str) -> (String, Vec<&str>) {
    let parts = signature.split_once('(').and_then(|(name, rest)| {
        let (arguments, result) = rest.rsplit_once(") -> ")?;
        Some((name, arguments, result))
    });
    let Some((name, list, result)) = parts else {
        return (signature.to_string(), Vec::new());
    };
    let (mut arguments, mut start, mut is_quoted) = (Vec::new(), 0, false);
    for (at, sign) in list.char_indices() {
        is_quoted ^= sign == '\'';
        if sign == ',' && !is_quoted {
            arguments.push(list[start..at].trim());
            start = at + 1;
        }
    }
    arguments.push(list[start..].trim());
    let (outputs, inputs): (Vec<&str>, Vec<&str>) = arguments
        .into_iter()
        .partition(|argument| argument.starts_with("OUT "));
    let outputs: Vec<_> = outputs
        .iter()
        .map(|output| &output["OUT ".len()..])
        .collect();
    let result = match outputs.is_empty() {
        true => result.to_string(),
        false => result.replace("record", &format!("({})", outputs.join(", "))),
    };
    let are_named = inputs.iter().all(|input| input.contains(' '));
    if inputs.len() <= SHORT || !are_named {
        return (
            format!("{name}({}) -> {result}", inputs.join(", ")),
            Vec::new(),
        );
    }
    let names: Vec<_> = inputs
        .iter()
        .filter_map(|input| input.split(' ').next())
        .collect();
    (format!("{name}({}) -> {result}", names.join(", ")), inputs)
}

/// Returns a comment as sentences: with a capital first letter, unless it begins with a name, and with a full stop.
fn sentence(comment: &str) -> String {
    let is_name = comment
        .split(' ')
        .next()
        .is_some_and(|word| word.contains(['_', '(', '=', '%']));
    let mut letters = comment.chars();
    let first = letters.next().filter(|_| !is_name);
    let begun = match first {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => comment.to_string(),
    };
    begun + "."
}

/// Returns the section of the functions that only PostgreSQL calls.
fn support<'a>(objects: impl Iterator<Item = &'a Object>) -> Result<String> {
    let mut text = "\n## Behind the scenes\n\nCalled by PostgreSQL itself.\n\n\
                    | object | |\n|---|---|\n"
        .to_string();
    for object in objects {
        ensure!(
            object.is_support(),
            "{} is in no subject of crates/server-tests/src/docs/subjects.rs",
            object.identity
        );
        writeln!(text, "| `{}` | {} |", object.identity, object.comment)?;
    }
    Ok(text)
}
