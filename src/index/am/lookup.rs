//! Looks up candidates for searches that visit rows in the order of insertion.

use super::find::find;
use super::log;
use super::meta::Meta;
use super::page::Index;
use super::rows::{RowEntry, RowTable};
use crate::index::classes::{IndexColumn, KeySearch};
use pgrx::{PgRelation, pg_sys};
use std::cell::Cell;

/// Returns the number of the next row to be inserted into the index.
///
/// # Safety
/// `relation` is an open index of this access method.
pub unsafe fn next_number(relation: pg_sys::Relation) -> u64 {
    let index = Index::new(relation);
    log::end(&index, &Meta::read(&index))
}

/// Returns whether `a` and `b` make the same keys from the same values, so that one search can be used for both.
///
/// # Safety
/// `a` and `b` are open indexes of this access method.
pub unsafe fn make_same_keys(a: pg_sys::Relation, b: pg_sys::Relation) -> bool {
    let [count, other] = [a, b].map(|index| (*(*index).rd_index).indnkeyatts);
    let is_like = |number| IndexColumn::new(a, number).is_like(&IndexColumn::new(b, number));
    count == other && (1..=count).all(is_like)
}

/// Calls `visit` with the place of each candidate of `search` numbered `from` or above, in the order of their numbers,
/// until `visit` returns false. Returns the number of the next row to be inserted when the search began: rows that the
/// search misses have this number or a greater one.
///
/// # Safety
/// `relation` is an open index of this access method.
pub unsafe fn for_each_candidate(
    relation: pg_sys::Relation,
    search: &KeySearch,
    from: u64,
    visit: &mut dyn FnMut(pg_sys::ItemPointerData) -> bool,
) -> u64 {
    PgRelation::from_pg(relation).count_index_scan();
    let (index, next) = (Index::new(relation), Cell::new(0));
    let look = |meta: &Meta| next.set(log::end(&index, meta));
    let (meta, mut remaining) = find(index, search, from, false, &look);
    let (mut table, mut places) = (RowTable::new(index, &meta), Vec::new());
    let mut goes_on = true;
    while goes_on {
        let mut add = |number: u64, entry: RowEntry| {
            places.extend((number >= from).then_some(entry.tid));
        };
        goes_on = remaining.look_up(&mut table, &mut add) && places.drain(..).all(&mut *visit);
    }
    next.get()
}
