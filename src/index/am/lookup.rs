//! Looks up candidates with their row numbers, for searches that visit rows in the order of insertion.

use super::find::find;
use super::log;
use super::meta::Meta;
use super::page::Index;
use super::rows::{self, RowEntry, RowTable};
use crate::index::classes::{IndexColumn, KeySearch, RowKeys};
use crate::pg::spool::NumberPairs;
use pgrx::{PgRelation, pg_sys};

/// A row found by an index.
#[derive(Clone, Copy)]
pub struct NumberedRow {
    /// Grows with every row of the index: of two rows, a search for the later one finds the earlier one.
    pub number: u64,
    pub tid: pg_sys::ItemPointerData,
}

/// Returns the number of the next row to be inserted into the index.
///
/// # Safety
/// `relation` is an open index of this access method.
pub unsafe fn next_number(relation: pg_sys::Relation) -> u64 {
    let index = Index::new(relation);
    log::end(&index, &Meta::read(&index))
}

/// Returns whether two indexes make the same keys from the same values, so that a search can be used for both.
///
/// # Safety
/// `a` and `b` are open indexes of this access method.
pub unsafe fn make_same_keys(a: pg_sys::Relation, b: pg_sys::Relation) -> bool {
    let [count, other] = [a, b].map(|index| (*(*index).rd_index).indnkeyatts);
    let is_like = |number| IndexColumn::new(a, number).is_like(&IndexColumn::new(b, number));
    count == other && (1..=count).all(is_like)
}

/// Returns the search for a scan with `keys`.
///
/// # Safety
/// `relation` is an open index of this access method, and `keys` belong to a scan of it.
pub unsafe fn search(relation: pg_sys::Relation, keys: &[pg_sys::ScanKeyData]) -> KeySearch {
    RowKeys::of_index(relation).search(keys).0
}

/// Returns the candidates of `search` in the order of their numbers: all those numbered `from` or above, and possibly
/// some earlier ones.
///
/// # Safety
/// `relation` is an open index of this access method.
pub unsafe fn candidates(
    relation: pg_sys::Relation,
    search: &KeySearch,
    from: u64,
) -> impl Iterator<Item = NumberedRow> + use<> {
    // SAFETY: guaranteed by the caller.
    let index = unsafe {
        PgRelation::from_pg(relation).count_index_scan();
        Index::new(relation)
    };
    let (meta, mut remaining) = find(index, search, from, false, &|_| ());
    let mut table = RowTable::new(index, &meta);
    let mut found = NumberPairs::new();
    let mut add = |number, RowEntry { tid, .. }| found.push([number, rows::number_of(&tid)]);
    while remaining.look_up(&mut table, &mut add) {}
    (0..found.len()).map(move |place| {
        let [number, tid] = found.get(place);
        let tid = rows::tid_of(tid);
        NumberedRow { number, tid }
    })
}
