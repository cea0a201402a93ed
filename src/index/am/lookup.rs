//! Candidates with their row numbers, for a search that looks at rows in the order of their
//! insertion.

use super::find::find_from;
use super::log;
use super::meta::Meta;
use super::page::Index;
use super::rows::{self, RowEntry, RowTable};
use super::statistics::count_scan;
use crate::index::classes::RowKeys;
use crate::pg::spool::NumberPairs;
use pgrx::pg_sys;

/// A row that an index finds.
#[derive(Clone, Copy)]
pub struct NumberedRow {
    /// Grows with every row of the index: of two rows, a search for the later one finds the earlier.
    pub number: u64,
    pub tid: pg_sys::ItemPointerData,
}

/// Rows that an index finds, in the order of their numbers. Those beyond work_mem are in a temporary file.
pub struct Looked(NumberPairs);

impl Looked {
    /// Goes through all rows.
    pub fn iter(&mut self) -> impl Iterator<Item = NumberedRow> {
        (0..self.0.len()).map(|place| {
            let [number, tid] = self.0.get(place);
            let tid = rows::tid_of(tid);
            NumberedRow { number, tid }
        })
    }
}

/// Returns a number that no row of the index has reached yet.
///
/// # Safety
/// The relation is an open index of this access method.
pub unsafe fn next_number(relation: pg_sys::Relation) -> u64 {
    // SAFETY: vouched for by the caller.
    let index = unsafe { Index::new(relation) };
    log::end(&index, &Meta::read(&index))
}

/// Returns the candidates of a scan with these keys, in the order of their numbers, all from a number on
/// among them; earlier ones may be left out.
///
/// # Safety
/// The relation is an open index of this access method, and the keys belong to a scan of it.
pub unsafe fn candidates(
    relation: pg_sys::Relation,
    keys: &[pg_sys::ScanKeyData],
    from: u64,
) -> Looked {
    // SAFETY: vouched for by the caller.
    let (index, search) = unsafe {
        count_scan(relation);
        let (search, _) = RowKeys::of_index(relation).search(keys);
        (Index::new(relation), search)
    };
    let (meta, mut remaining) = find_from(index, &search, from);
    let mut table = RowTable::new(index, &meta);
    let (mut found, mut here) = (NumberPairs::new(), Vec::new());
    let mut add = |number, RowEntry { tid, .. }| found.push([number, rows::number_of(&tid)]);
    while remaining.look_up(&mut table, &mut here, &mut add) {}
    Looked(found)
}
