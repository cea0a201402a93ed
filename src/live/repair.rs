//! A refresh that goes out from the rows in the queue.

use crate::live::neighborhood::Neighborhood;
use crate::live::rows::{After, TrackedRows};
use crate::live::shape::Shape;
use crate::pg::error::OrRaise;
use crate::pg::statement::Connection;
use neardup::cluster::live::{Placed, repair};
use neardup::memory::collected;

/// Returns the affected rows with the outcome of each, and the numbers of the rows that can be near others,
/// in their order; None where more than `most` rows are affected, or rows have changed that are not in the
/// queue. The queue has about `changed` rows. Takes a search of the index for each row that becomes
/// canonical, and one for each that was canonical and is no longer; after many changes one for each affected
/// row, all together.
///
/// # Errors
/// ERROR `invalid_parameter_value` where a changed row's signature was made with other parameters.
pub fn run(
    connection: &Connection,
    shape: &Shape,
    changed: i64,
    most: usize,
) -> Option<(TrackedRows, Vec<u32>)> {
    let neighborhood = Neighborhood::new(connection, shape);
    let placed = repair(&neighborhood, neighborhood.affected(changed, most)?).or_raise()?;
    let mut rows = neighborhood.into_rows();
    placed.iter().for_each(|placed| note(&mut rows, placed));
    let order = collected(placed.iter().map(|placed| placed.row)).or_raise();
    Some((rows, order))
}

fn note(rows: &mut TrackedRows, placed: &Placed) {
    let (canonical, similarity) = match placed.canonical {
        Some(near) => (near.canonical, near.similarity),
        None => (placed.row, 1.0),
    };
    rows.get_mut(placed.row).after = After::In {
        canonical,
        similarity: Some(similarity),
    };
}
