//! The indexes that find near values.

use crate::guard::options::GuardOptions;
use crate::guard::table::Rule;
use crate::live::measure::Measure;
use crate::live::tracker::Tracker;
use crate::pg::statement::server_text;

/// Returns the rule by which a column is searched for the values near another, by a measure, within equal
/// values of scope columns. The table is the tracked one or one of the tracker's own.
pub fn rule<'a>(
    tracker: &Tracker,
    measure: &Measure,
    column: &str,
    scope: impl Iterator<Item = &'a str>,
) -> Rule {
    let bound = measure.threshold().to_string();
    let options = GuardOptions {
        scope: scope.map(server_text).collect(),
        ..GuardOptions::new(server_text(column), bound)
    };
    Rule {
        options,
        kind: measure.kind,
        bound: measure.bound,
        objects: measure.kind.objects(tracker.function),
    }
}
