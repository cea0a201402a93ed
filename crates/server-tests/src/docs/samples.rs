//! The shortest statement in the documentation that uses an object, and its location.

use super::examples;
use super::pages::{Page, headings};
use super::subjects::Entry;

/// Statements longer than this explain their page, not the function.
const LONGEST: usize = 400;

/// A statement of a page.
pub struct Sample {
    pub sql: String,
    /// The page's section.
    pub title: String,
    /// A link to it, relative to `docs/`.
    pub link: String,
}

/// All statements of the examples that are run.
pub struct Samples(Vec<Sample>);

impl Samples {
    /// Reads the pages.
    pub fn collect<'a>(pages: impl Iterator<Item = &'a Page>) -> Samples {
        let mut samples: Vec<Sample> = pages.flat_map(statements).collect();
        samples.sort_by_key(|sample| sample.sql.chars().count());
        Samples(samples)
    }

    /// Returns the shortest statement that uses the object, if any.
    pub fn of(&self, entry: &Entry) -> Option<&Sample> {
        self.0.iter().find(|sample| uses(&sample.sql, entry))
    }
}

fn statements(page: &Page) -> Vec<Sample> {
    let headings = headings(&page.text);
    let file = match page.name.strip_prefix("docs/") {
        Some(name) => name.to_string(),
        None => format!("../{}", page.name),
    };
    let mut found = Vec::new();
    for example in examples::parse(&page.text)
        .into_iter()
        .filter(|example| !example.fails())
    {
        let above = headings.iter().rfind(|heading| heading.line < example.line);
        let Some(heading) = above else { continue };
        for sql in split(&example.sql) {
            found.push(Sample {
                sql,
                title: heading.title.clone(),
                link: format!("{file}#{}", heading.anchor),
            });
        }
    }
    found
}

/// Returns the statements of a block that can be shown alone.
fn split(sql: &str) -> Vec<String> {
    let ends = sql.split_inclusive(";\n");
    let whole = |text: &&str| text.matches("$$").count().is_multiple_of(2) && text.len() <= LONGEST;
    let plain = |text: &&str| !text.starts_with('\\') && !text.starts_with("CREATE FUNCTION");
    ends.map(str::trim)
        .filter(whole)
        .filter(plain)
        .map(str::to_string)
        .collect()
}

fn uses(sql: &str, entry: &Entry) -> bool {
    match entry {
        Entry::Function(name) => is_called(sql, name),
        Entry::OperatorClass(name)
        | Entry::AccessMethod(name)
        | Entry::Type(name)
        | Entry::View(name) => has_word(sql, name),
        Entry::Setting(name) => sql.contains(&format!("SET {name}")),
        // The symbols of the other operators have other meanings, too.
        Entry::Operator("<=>") => sql.contains(" <=> "),
        Entry::Operator("||") => sql.contains(") || minhash"),
        Entry::Operator(_) | Entry::Casts => false,
    }
}

fn is_called(sql: &str, name: &str) -> bool {
    let calls = sql
        .match_indices(name)
        .filter(|(at, _)| starts_word(sql, *at));
    let mut rests = calls.map(|(at, _)| &sql[at + name.len()..]);
    rests.any(|rest| rest.starts_with('('))
}

fn has_word(sql: &str, name: &str) -> bool {
    let is_end =
        |at: usize| !sql[at + name.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
    let mut places = sql.match_indices(name);
    places.any(|(at, _)| {
        starts_word(sql, at) && is_end(at) && !sql[at + name.len()..].starts_with('(')
    })
}

fn starts_word(sql: &str, at: usize) -> bool {
    !sql[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::{is_called, split};

    #[test]
    fn calls_are_of_the_whole_name() {
        assert!(is_called("SELECT minhash(body)", "minhash"));
        assert!(!is_called("SELECT near_minhash(a)", "minhash"));
        assert!(!is_called("SELECT minhash_sim(a)", "minhash"));
    }

    #[test]
    fn halves_of_functions_are_no_statements() {
        let sql = "SELECT 1;\nCREATE TABLE a AS SELECT $$x;\ny$$;\nSELECT 2;";
        assert_eq!(split(sql), ["SELECT 1;", "SELECT 2;"]);
    }
}
