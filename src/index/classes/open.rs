//! The operator class of a column.

use super::{ComparedClass, IndexColumn, constraint, document, hamming, minhash, set};
use crate::index::constraint_key::near_dup_key_near_wrapper;
use crate::minhash::similarity::near_dup_wrapper;
use crate::pg::catalog::{CFunction, is_at};
use crate::simhash::hamming::hamming_within_wrapper;
use crate::text::measures::{near_dup_documents_wrapper, near_dup_of_sets_wrapper};

/// Makes a class for a column of an index; None if its options are out of range.
type Open = fn(column: &IndexColumn) -> Option<Box<dyn ComparedClass>>;

/// The classes, each by its support function [`super::PREDICATE_FUNCTION`].
const CLASSES: [(CFunction, Open); 5] = [
    (near_dup_wrapper, minhash::open),
    (hamming_within_wrapper, hamming::open),
    (near_dup_of_sets_wrapper, set::open),
    (near_dup_documents_wrapper, document::open),
    (near_dup_key_near_wrapper, constraint::open),
];

/// Returns the class of a column that compares values; None for options out of range, and for a class that
/// is none of ours.
pub fn open(column: &IndexColumn) -> Option<Box<dyn ComparedClass>> {
    let function = column.predicate();
    let (_, open) = CLASSES
        .iter()
        .find(|(own, _)| is_at(&function.fn_addr, *own))?;
    open(column)
}
