//! The indexes that find what is near.

use crate::guard::options::GuardOptions;
use crate::guard::table::Rule;
use crate::live::tracker::Tracker;
use crate::pg::relation::Relation;
use crate::pg::statement::server_text;

/// Returns how a column of a table, the tracked one or one of the tracker's own, is searched for what
/// is near within equal values of scope columns.
pub fn rule<'a>(
    tracker: &Tracker,
    table: &Relation,
    column: &str,
    scope: impl Iterator<Item = &'a str>,
) -> Rule {
    let options = GuardOptions {
        column: server_text(column),
        bound: tracker.threshold.to_string(),
        scope: scope.map(server_text).collect(),
        verify: None,
        within: None,
        by: None,
    };
    // SAFETY: the table is open, and the function one of the extension's.
    unsafe { Rule::new(table.as_ptr(), options, tracker.function) }
}
