//! Candidates with their row numbers, for a search that looks at rows in the order of their
//! insertion.

use super::candidates::Found;
use super::find::{Remaining, entry_of, find_from};
use super::log;
use super::meta::Meta;
use super::page::Index;
use super::rows::{Entry, ROWS_PER_PAGE, Rows};
use super::statistics::count_scan;
use crate::index::classes::RowKeys;
use crate::pg::error::{check_interrupts, or_out_of_memory};
use neardup::postings::Needed;
use pgrx::pg_sys;

/// A row that an index finds.
#[derive(Clone, Copy)]
pub struct Candidate {
    /// Grows with every row of the index: of two rows, a search for the later one finds the earlier.
    pub number: u64,
    pub tid: pg_sys::ItemPointerData,
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
/// The relation is an open index of this access method, and the keys are those of a scan of it.
pub unsafe fn candidates(
    relation: pg_sys::Relation,
    keys: &[pg_sys::ScanKeyData],
    from: u64,
) -> Vec<Candidate> {
    // SAFETY: vouched for by the caller.
    let (index, search) = unsafe {
        count_scan(relation);
        let (search, _) = RowKeys::of_index(relation).search(keys);
        (Index::new(relation), search)
    };
    let (meta, remaining) = find_from(index, &search, from);
    let mut table = Rows::new(index, &meta);
    let mut found = Vec::new();
    let mut here = Vec::new();
    match remaining {
        Remaining::Some(mut candidates, needed) => {
            while let Some(place) = candidates.take_page(&mut here) {
                add_live(&mut table, place, &here, &needed, &mut found);
            }
        }
        Remaining::All { page, end } => {
            for page in page..end.div_ceil(ROWS_PER_PAGE) {
                let first = page * ROWS_PER_PAGE;
                let rows = first..end.min(first + ROWS_PER_PAGE);
                here.clear();
                here.extend(rows.map(|row| Found { row, shared: 1 }));
                add_live(&mut table, page, &here, &Needed::Bands(1), &mut found);
            }
        }
    }
    found
}

/// Adds those of the rows on a page of the row table that are not known to be dead and have enough keys.
fn add_live(
    table: &mut Rows,
    place: u64,
    here: &[Found],
    needed: &Needed,
    found: &mut Vec<Candidate>,
) {
    check_interrupts();
    let Some(page) = table.page(place) else {
        return;
    };
    for candidate in here {
        if let Some(Entry { tid, .. }) = entry_of(&page, candidate, needed) {
            table.ensure_in_table(&tid);
            or_out_of_memory(found.try_reserve(1));
            let number = candidate.row;
            found.push(Candidate { number, tid });
        }
    }
}
