//! The install script: pgrx makes it from the library's description of itself, in an order that differs from run to
//! run.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use object::{Object, ObjectSection};
use pgrx_sql_entity_graph::section::{ELF_SECTION_NAME, decode_entities};
use pgrx_sql_entity_graph::{ControlFile, PgrxSql, SqlGraphEntity};

const BEGIN: &str = "/* <begin connected objects> */\n";

/// Returns the script that creates the library's SQL objects.
pub fn generate(library: &Path, control: &str) -> Result<String> {
    let data = fs::read(library)?;
    let file = object::File::parse(&*data)?;
    let section = file.section_by_name(ELF_SECTION_NAME);
    let section = section.context("the library does not describe its SQL objects")?;
    let control = SqlGraphEntity::ExtensionRoot(ControlFile::from_str(control)?);
    let entities = decode_entities(section.data()?).map_err(|error| anyhow!("{error:#}"))?;
    let entities = std::iter::once(control).chain(entities);
    let sql = PgrxSql::build(entities, "pg_neardup".to_string(), false);
    let sql = sql.and_then(|sql| sql.to_sql());
    sql.map_err(|error| anyhow!("{error:#}"))
}

/// A part of the script that is made from one item of the sources.
struct Block<'s> {
    names: Vec<String>,
    requires: Vec<&'s str>,
    text: &'s str,
}

/// The order of independent blocks: the bootstrap, then by file and line, then those declared to be last.
type Place<'s> = (Rank, &'s str, usize);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    First,
    Any,
    Last,
}

/// Returns a script with its blocks in the order of their sources below `root`, each block after those that it
/// requires.
pub fn sorted(script: &str, root: &Path) -> Result<String> {
    let mut left: BTreeMap<Place, Block> = BTreeMap::new();
    for text in script.split(BEGIN).skip(1) {
        let (place, block) = parse(text, root)?;
        if left.insert(place, block).is_some() {
            bail!("two parts of the script are from {place:?}");
        }
    }
    let mut sorted = String::new();
    while !left.is_empty() {
        // A block may require a function that has the block's own name.
        let is_ready = |(place, block): &(&Place, &Block)| {
            let others = left.iter().filter(|(other, _)| other != place);
            let mut names = others.flat_map(|(_, other)| &other.names);
            !names.any(|name| block.requires.contains(&name.as_str()))
        };
        let ready = left.iter().find(is_ready);
        let place = *ready.context("parts of the script require each other")?.0;
        let block = left.remove(&place);
        sorted.extend(block.into_iter().flat_map(|block| [BEGIN, block.text]));
    }
    Ok(sorted)
}

fn parse<'s>(text: &'s str, root: &Path) -> Result<(Place<'s>, Block<'s>)> {
    let mut block = Block {
        names: Vec::new(),
        requires: Vec::new(),
        text,
    };
    let rank = match text {
        _ if text.contains("\n-- bootstrap\n") => Rank::First,
        _ if text.contains("\n-- finalize\n") => Rank::Last,
        _ => Rank::Any,
    };
    let mut place = (rank, "", 0);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some((file, number)) = line.strip_prefix("-- ").and_then(source) {
            if block.names.is_empty() {
                place = (rank, file, number);
            }
            block.names.push(name_at(&root.join(file), number)?);
        } else if line == "-- requires:" {
            let names = lines.by_ref().map_while(|line| line.strip_prefix("--   "));
            block.requires.extend(names);
        }
    }
    if block.names.is_empty() {
        place.0 = Rank::First;
    }
    Ok((place, block))
}

/// Returns the file and line of a comment such as `src/lib.rs:30`.
fn source(comment: &str) -> Option<(&str, usize)> {
    let (file, number) = comment.split_once(".rs:")?;
    let file = comment.get(..file.len() + 3)?;
    Some((file, number.parse().ok()?))
}

/// Returns the name by which others require the item at a line: that of the function, or the name given to the SQL.
fn name_at(file: &Path, number: usize) -> Result<String> {
    let text = fs::read_to_string(file)?;
    let from = text.lines().skip(number - 1);
    let is_sql = from
        .clone()
        .next()
        .is_some_and(|line| line.contains("extension_sql"));
    let before = if is_sql { "name = \"" } else { "fn " };
    let rest = from
        .clone()
        .find_map(|line| Some(line.split_once(before)?.1));
    let rest = rest.with_context(|| format!("no name at {}:{number}", file.display()))?;
    let is_end = |letter: char| !letter.is_alphanumeric() && letter != '_';
    Ok(rest.split(is_end).next().unwrap_or(rest).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace;

    #[test]
    fn every_order_becomes_the_same() {
        let block = |file: &str, wanted: &str, rest: &str| {
            let source = fs::read_to_string(workspace::root().join(file)).unwrap();
            let line = source.lines().position(|line| line.contains(wanted));
            let number = line.unwrap() + 1;
            format!("{BEGIN}-- {file}:{number}\n{rest}/* </end connected objects> */\n\n")
        };
        let created = block(
            "src/index/ball.rs",
            "extension_sql!",
            "-- requires:\n--   _ball_in\n\nCREATE TYPE;\n",
        );
        let function = block(
            "src/index/ball.rs",
            "#[pg_extern",
            "-- pg_neardup::index::ball\nCREATE FUNCTION;\n",
        );
        let last = block("src/lib.rs", "comments.sql", "-- finalize\nCOMMENT;\n");
        let head = format!("{BEGIN}/* about */\n");
        let expected = format!("{head}{function}{created}{last}");
        for parts in [
            [&last, &head, &function, &created],
            [&created, &last, &head, &function],
        ] {
            let script: String = parts.into_iter().map(String::as_str).collect();
            assert_eq!(sorted(&script, workspace::root()).unwrap(), expected);
        }
    }
}
