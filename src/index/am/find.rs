//! The candidates of a search: rows that share enough keys with the query.

use super::candidates::{Found, foreseen};
use super::hold;
use super::log;
use super::meta::Meta;
use super::page::Index;
use super::rows::{self, Rows};
use super::segment::{SegmentPages, Stop, groups};
use crate::index::classes::Search;
use crate::pg::error::{check_interrupts, or_out_of_memory};
use neardup::postings::{self, Needed};

/// Rows that a search leaves to be looked at.
pub enum Remaining {
    /// Ascending row numbers, and how many of them have been looked up.
    Some(Vec<Found>, usize),
    /// All rows from a page of the row table on, up to before a row.
    All { page: u64, end: u64 },
}

/// Finds the rows of a search. `look` sees the metapage before.
pub fn find(index: Index, search: &Search, look: &dyn Fn(&Meta)) -> (Meta, Remaining) {
    with_meta(index, &mut |meta| {
        look(meta);
        remaining(index, meta, search)
    })
}

/// Finds all rows of a search from a row number on, and maybe earlier ones. New rows are found without a look
/// at the segments.
pub fn find_from(index: Index, search: &Search, from: u64) -> (Meta, Remaining) {
    with_meta(index, &mut |meta| match search {
        Search::Keys { keys, needed } if from > 0 && from >= meta.log_start => {
            let mut found = Vec::new();
            find_in_log(&index, meta, keys, needed, from, &mut found)?;
            keep_enough(&mut Rows::new(index, meta), needed, &mut found);
            Ok(Remaining::Some(found, 0))
        }
        Search::Everything => Ok(Remaining::All {
            page: rows::page_of(from),
            end: log::end(&index, meta),
        }),
        _ => remaining(index, meta, search),
    })
}

/// Returns what a search finds, and the metapage that it began with: anew where a page that this
/// names has been reused meanwhile.
pub fn with_meta<R>(index: Index, search: &mut dyn FnMut(&Meta) -> Result<R, Stop>) -> (Meta, R) {
    let mut before: Option<Meta> = None;
    loop {
        let meta = Meta::read(&index);
        hold::point("search_reads_metapage");
        match search(&meta) {
            Ok(found) => return (meta, found),
            // A page is reused only after the metapage has changed.
            Err(Stop::Restart(_)) if before.is_none_or(|before| before != meta) => {}
            Err(stop) => stop.raise(&index),
        }
        before = Some(meta);
        check_interrupts();
    }
}

fn remaining(index: Index, meta: &Meta, search: &Search) -> Result<Remaining, Stop> {
    match search {
        Search::Nothing => Ok(Remaining::Some(Vec::new(), 0)),
        Search::Everything => {
            let end = log::end(&index, meta);
            Ok(Remaining::All { page: 0, end })
        }
        Search::Keys { keys, needed } => {
            let found = match foreseen(&index, keys, needed) {
                Some(found) => found,
                None => candidates(&index, meta, keys, needed)?,
            };
            Ok(Remaining::Some(found, 0))
        }
    }
}

/// Returns the rows that share enough of the keys, ascending.
///
/// # Errors
/// `Restart` where a page has been reused.
pub fn candidates(
    index: &Index,
    meta: &Meta,
    keys: &[u32],
    needed: &Needed,
) -> Result<Vec<Found>, Stop> {
    let mut found = Vec::new();
    find_in_log(index, meta, keys, needed, 0, &mut found)?;
    let mut pages = SegmentPages::new(*index);
    for group in groups(index, meta) {
        postings::search(
            &mut pages,
            &group.group(),
            keys,
            needed.least(),
            &mut |row, shared| {
                found.try_reserve(1)?;
                found.push(Found { row, shared });
                Ok(())
            },
        )?;
    }
    found.sort_unstable_by_key(|found| found.row);
    keep_enough(&mut Rows::new(*index, meta), needed, &mut found);
    Ok(found)
}

/// Adds the rows of the log, from the page with a row number on, that share enough of the keys, ascending.
///
/// # Errors
/// `Restart` where a page has been reused.
fn find_in_log(
    index: &Index,
    meta: &Meta,
    keys: &[u32],
    needed: &Needed,
    from: u64,
    found: &mut Vec<Found>,
) -> Result<(), Stop> {
    let query = needed.log_query(keys)?;
    log::search(
        index,
        meta,
        from,
        &query,
        needed.least(),
        &mut |row, shared| {
            or_out_of_memory(found.try_reserve(1));
            found.push(Found { row, shared });
        },
    )
}

/// Keeps those of ascending candidates that have enough of the keys for what they have themselves, as
/// the row table says, if that matters.
fn keep_enough(table: &mut Rows, needed: &Needed, found: &mut Vec<Found>) {
    if !needed.depends_on_row() {
        return;
    }
    let (mut kept, mut start) = (0, 0);
    while let Some(first) = found.get(start) {
        check_interrupts();
        let place = rows::page_of(first.row);
        let here = found[start..].partition_point(|found| rows::page_of(found.row) == place);
        let page = table.page(place);
        for at in start..start + here {
            let candidate = found[at];
            let own = page
                .as_ref()
                .and_then(|page| rows::live_entry(page, candidate.row));
            if own.is_some_and(|own| needed.is_reached(candidate.shared as usize, own.keys.into()))
            {
                found[kept] = candidate;
                kept += 1;
            }
        }
        start += here;
    }
    found.truncate(kept);
}
