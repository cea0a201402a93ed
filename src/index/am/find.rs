//! The candidates of a search: rows that share enough keys with the query.

use super::candidates::{FoundRow, SearchCandidates};
use super::hold;
use super::log;
use super::meta::Meta;
use super::page::Index;
use super::rows::{self, ROWS_PER_PAGE, RowEntry, RowTable};
use super::segment::{SearchPages, groups};
use super::stop::Stop;
use crate::index::classes::KeySearch;
use crate::pg::prelude::*;
use neardup::postings::{self, KeyQuery, Needed};

/// Maximum memory, in bytes, for counting the shared keys of one row.
const COUNTED: usize = 16;

/// Minimum number of rows whose keys are counted together, however little memory there is.
const LEAST_COUNTED: usize = 1 << 16;

/// Number of attempts before a search looks at all rows. Sessions that insert can reuse pages faster than it reads the
/// lists of a large document.
const MOST_ATTEMPTS: usize = 16;

/// The rows that a search still has to look up.
pub enum Remaining {
    /// Candidates, and how many of the query's keys they need.
    Some(SearchCandidates, Box<Needed>),
    /// All rows from `page` of the row table up to, but not including, row `end`.
    All { page: u64, end: u64 },
}

impl Remaining {
    /// Looks up the next rows. Calls `visit` with the number and entry of each that is not known to be dead. Candidates
    /// also need enough of the query's keys for their size. Returns false if there are no more rows.
    pub fn look_up(&mut self, table: &mut RowTable, visit: &mut dyn FnMut(u64, RowEntry)) -> bool {
        let (here, needed) = match self {
            Self::Some(candidates, needed) => (candidates.take(), **needed),
            Self::All { page, end } => {
                let first = *page * ROWS_PER_PAGE;
                let rows = first..(*end).min(first + ROWS_PER_PAGE);
                let here = rows.map(|row| FoundRow { row, shared: 1 }).collect();
                *page += 1;
                (here, Needed::Elements(1))
            }
        };
        let rows: Vec<u64> = here.iter().map(|found| found.row).collect();
        table.for_each_live(&rows, &mut |table, number, entry| {
            if needed.is_reached(here[number].shared as usize, entry.size()) {
                table.ensure_in_table(&entry.tid);
                visit(rows[number], entry);
            }
        });
        !here.is_empty()
    }
}

/// Finds the rows of `search` numbered `from` or above, and possibly earlier ones. Returns the metapage that the search
/// began with, and the rows that remain to be looked up. With `is_exact`, counts all keys that they share. Calls `look`
/// with the metapage first. Does not read the segments if all rows from `from` are in the log.
pub fn find(
    index: Index,
    search: &KeySearch,
    from: u64,
    is_exact: bool,
    look: &dyn Fn(&Meta),
) -> (Meta, Remaining) {
    let mut attempts = 0;
    with_meta(index, &mut |meta| {
        look(meta);
        attempts += 1;
        match search {
            KeySearch::Nothing => Ok(Remaining::All { page: 0, end: 0 }),
            KeySearch::Keys { keys, needed } if attempts <= MOST_ATTEMPTS => {
                let found = candidates(&index, meta, keys, needed, from, is_exact)?;
                Ok(Remaining::Some(found, Box::new(*needed)))
            }
            _ => Ok(Remaining::All {
                page: rows::page_of(from),
                end: log::end(&index, meta),
            }),
        }
    })
}

/// Returns the metapage that `search` began with, and the result of `search`. Restarts the search if a page that the
/// metapage names has been reused in the meantime.
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

/// Returns the rows that share enough of `keys` for the smallest match.
///
/// # Errors
/// `Restart` if a page has been reused; `Damaged` and `OutOfMemory`.
fn candidates(
    index: &Index,
    meta: &Meta,
    keys: &[u32],
    needed: &Needed,
    from: u64,
    is_exact: bool,
) -> Result<SearchCandidates, Stop> {
    // The log is read first, because its pages are reused first.
    let mut newest = Vec::new();
    let query = needed.log_query(keys)?;
    let least = needed.least() as u32;
    log::for_each_page(index, meta, |start, log| {
        let is_before = start + u64::from(log.rows) <= from;
        for (row, keys) in (start..).zip(log.iter()).take_while(|_| !is_before) {
            let shared = query.shared(keys?, least);
            if shared >= least {
                newest.try_push(FoundRow { row, shared }).or_raise();
            }
        }
        Ok(())
    })?;
    let mut found = SearchCandidates::new();
    let mut pages = SearchPages::new(*index, meta);
    let most = (work_mem_bytes() / COUNTED).clamp(LEAST_COUNTED, u32::MAX as usize) as u32;
    let mut groups = match from >= meta.log_start {
        true => Vec::new(),
        false => groups(index, meta),
    };
    groups.reverse();
    let query = KeyQuery {
        keys,
        needed: needed.least(),
        minima: needed.minima(keys.len()),
        by_size: needed.depends_on_row().then_some(*needed),
        is_exact,
        most,
    };
    postings::search(&mut pages, &groups, &query, &mut |row, shared| {
        found.push(FoundRow { row, shared });
        Ok(())
    })?;
    newest.into_iter().for_each(|newest| found.push(newest));
    Ok(found)
}
