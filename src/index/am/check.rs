//! `near_dup_index_check`: an index against itself and against its table, as amcheck does for
//! B-trees.

use super::hold;
use super::log;
use super::merge::Merging;
use super::meta::Meta;
use super::open::Opened;
use super::page::{Index, META_BLOCK, raise_corrupted};
use super::rows::{self, Entry, ROWS_PER_PAGE, Rows};
use super::segment::{SegmentPages, Stop};
use crate::index::classes::RowKeys;
use crate::pg::call::Call;
use crate::pg::error::{check_interrupts, or_out_of_memory};
use crate::pg::rights::OwnerRights;
use neardup::postings::{self, Posting};
use pgrx::prelude::*;
use std::ffi::c_void;
use std::ops::Range;

/// Checks an index: that its segments and its log are in order, that their postings are as many as
/// they say, and that every row of the table is in the index, with all of its keys. Returns nothing,
/// or ends with an ERROR.
///
/// Reads index and table once for as many rows as fit into maintenance_work_mem, at 56 bytes a row;
/// one more bit of memory a row. Sessions that insert may wait while a segment is read.
///
/// # Errors
/// `index_corrupted`; `wrong_object_type` if it is no neardup index; `insufficient_privilege` unless
/// the caller owns it or is a member of pg_stat_scan_tables.
#[pg_extern(sql = false)]
pub fn near_dup_index_check(fcinfo: pg_sys::FunctionCallInfo) {
    // SAFETY: the call is running.
    let call = unsafe { Call::new(fcinfo) };
    let index = pg_sys::Oid::from(call.argument(0, "index").value() as u32);
    let opened = Opened::new(index);
    let index = opened.index();
    // The index's expressions may call functions of the owner's.
    // SAFETY: the table is open.
    let rights = OwnerRights::assume(unsafe { (*(*opened.table).rd_rel).relowner });
    // SAFETY: whatever this snapshot sees is in the index by now, and cannot be removed from it. One of a
    // transaction that is older than the index would also see rows that the index need not have.
    unsafe {
        let snapshot = pg_sys::RegisterSnapshot(pg_sys::GetLatestSnapshot());
        let end = log::end(&index, &Meta::read(&index));
        let mut found = Found::default();
        for range in passes(end) {
            let rows = read_index(&index, &range);
            compare(&opened, &rows, &mut found, range.end == end, snapshot);
        }
        pg_sys::UnregisterSnapshot(snapshot);
    }
    rights.resign();
}

/// A row of the index: where it lies in the heap, the sum of its keys' hashes, and their number as the
/// row table has it.
struct Row {
    tid: u64,
    keys: u64,
    count: u16,
}

/// Sums of this tell sets of keys apart.
fn hash(key: u32) -> u64 {
    let mixed = (u64::from(key) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93)
}

/// Bytes that a row takes while it is compared.
const ROW_LEN: usize = 56;

/// Returns the ranges of row numbers that are compared one after another, up to `end`; at least
/// one.
fn passes(end: u64) -> impl Iterator<Item = Range<u64>> {
    // SAFETY: reads a setting of the backend.
    let memory = unsafe { pg_sys::maintenance_work_mem } as usize * 1024;
    let rows = (memory / ROW_LEN) as u64;
    let starts = (0..end.max(1)).step_by(rows as usize);
    starts.map(move |start| start..end.min(start + rows))
}

/// A bit for each row of the table, in the order of a scan: set once it is found in the index.
#[derive(Default)]
struct Found {
    bits: Vec<u64>,
    /// The row that the scan comes to next.
    next: usize,
}

impl Found {
    /// Goes on to the next row, and notes whether it was found; returns whether it had been before.
    fn advance(&mut self, is_found: bool) -> bool {
        let (word, bit) = (self.next / 64, self.next % 64);
        self.next += 1;
        if word == self.bits.len() {
            or_out_of_memory(self.bits.try_reserve(1));
            self.bits.push(0);
        }
        let was_found = self.bits[word] >> bit & 1 == 1;
        self.bits[word] |= u64::from(is_found) << bit;
        was_found
    }
}

/// Sums of the keys of the rows in a range.
struct Sums {
    start: u64,
    sums: Vec<u64>,
}

impl Sums {
    fn new(range: &Range<u64>) -> Self {
        let rows = (range.end - range.start) as usize;
        let mut sums = Vec::new();
        or_out_of_memory(sums.try_reserve_exact(rows));
        sums.resize(rows, 0);
        Self {
            start: range.start,
            sums,
        }
    }

    fn range(&self) -> Range<u64> {
        self.start..self.start + self.sums.len() as u64
    }

    /// Adds to the sum of a row, if it is in the range.
    fn add(&mut self, row: u64, hash: u64) {
        let place = row.wrapping_sub(self.start) as usize;
        if let Some(sum) = self.sums.get_mut(place) {
            *sum = sum.wrapping_add(hash);
        }
    }

    fn of_row(&self, row: u64) -> u64 {
        self.sums[(row - self.start) as usize]
    }
}

/// Reads and checks an index, and returns its rows in a range, by tid.
fn read_index(index: &Index, range: &Range<u64>) -> Vec<Row> {
    let merging = Merging::wait(index);
    loop {
        let meta = Meta::read(index);
        hold::point("check_reads_metapage");
        match sums(index, &meta, range) {
            Ok(sums) => {
                drop(merging);
                return read_rows(index, &meta, &sums);
            }
            Err(stop) => stop.raise(index),
        }
        // SAFETY: reads the backend's own state.
        if !unsafe { pg_sys::RecoveryInProgress() } {
            let reason = "a page is not where its directory says";
            raise_corrupted(index, Some(META_BLOCK), reason);
        }
        // On a replica nobody waits for the lock: what merged on the primary is read anew.
        check_interrupts();
    }
}

/// Checks segments and log, and returns the sums of the keys of the rows in a range.
fn sums(index: &Index, meta: &Meta, range: &Range<u64>) -> Result<Sums, Stop> {
    let mut sums = Sums::new(range);
    check_segments(index, meta, &mut sums)?;
    log::for_each_page(index, meta, |start, log| {
        for (number, row) in (start..).zip(log.iter()) {
            let mut keys: Vec<u32> = row?.keys().collect();
            sums.add(number, sum(&mut keys));
        }
        Ok(())
    })?;
    Ok(sums)
}

/// Returns the sum of a row's keys, each counted once.
fn sum(keys: &mut Vec<u32>) -> u64 {
    keys.sort_unstable();
    keys.dedup();
    keys.iter().fold(0, |sum, key| sum.wrapping_add(hash(*key)))
}

fn check_segments(index: &Index, meta: &Meta, sums: &mut Sums) -> Result<(), Stop> {
    let mut pages = SegmentPages::new(*index);
    let mut end = 0;
    let mut numbers: Vec<u64> = meta
        .merges()
        .iter()
        .map(|merge| merge.output.number)
        .collect();
    for segment in meta.segments() {
        numbers.push(segment.number);
        if segment.lo < end || segment.hi <= segment.lo || segment.hi > meta.log_start {
            return Err(Stop::Damaged(
                Some(META_BLOCK),
                "segments whose rows overlap",
            ));
        }
        end = segment.hi;
    }
    numbers.sort_unstable();
    if numbers.windows(2).any(|two| two[0] == two[1])
        || numbers
            .last()
            .is_some_and(|last| *last >= meta.next_segment)
    {
        return Err(Stop::Damaged(
            Some(META_BLOCK),
            "segments of the same number",
        ));
    }
    for group in super::segment::groups(index, meta).iter().rev() {
        let group = group.group();
        let lo = group.inputs.first().map_or(0, |input| input.lo);
        let hi = group.inputs.last().map_or(0, |input| input.hi);
        let range = sums.range();
        // The first pass has checked all.
        if range.start > 0 && (hi <= range.start || lo >= range.end) {
            continue;
        }
        let mut add = |row: u64, key: u32| sums.add(row, hash(key));
        match group.output {
            None => {
                for input in group.inputs {
                    postings::check(&mut pages, input, None, &mut add)?;
                }
            }
            Some(output) => {
                postings::check(&mut pages, &output.segment, Some(output.split), &mut add)?;
                read_rest(&mut pages, group.inputs, lo, output.split, &mut add)?;
            }
        }
    }
    Ok(())
}

/// Reads what a merge has not taken yet.
fn read_rest(
    pages: &mut SegmentPages,
    inputs: &[postings::Segment],
    lo: u64,
    split: Posting,
    add: &mut impl FnMut(u64, u32),
) -> Result<(), Stop> {
    let mut merge = postings::Merge::new(inputs, lo, split)?;
    merge.for_each(pages, &mut |posting| {
        add(lo + u64::from(posting.offset), posting.key);
    })
}

/// Returns the rows of the row table that have sums and are not blank.
fn read_rows(index: &Index, meta: &Meta, sums: &Sums) -> Vec<Row> {
    let range = sums.range();
    let mut table = Rows::new(*index, meta);
    let mut found = Vec::new();
    for place in rows::page_of(range.start)..range.end.div_ceil(ROWS_PER_PAGE) {
        check_interrupts();
        let Some(page) = table.page(place) else {
            continue;
        };
        let first = place * ROWS_PER_PAGE;
        or_out_of_memory(found.try_reserve(ROWS_PER_PAGE as usize));
        for (row, entry) in (first..).zip(rows::entries(page.payload())) {
            if range.contains(&row) && !entry.is_blank() {
                found.push(Row {
                    tid: rows::number_of(&entry.tid),
                    keys: sums.of_row(row),
                    count: entry.keys,
                });
            }
        }
    }
    found.sort_unstable_by_key(|row| row.tid);
    if found.windows(2).any(|two| two[0].tid == two[1].tid) {
        raise_twice(index);
    }
    found
}

fn raise_twice(index: &Index) -> ! {
    raise_corrupted(index, None, "two rows lie at the same place of the table")
}

/// The state of the table's scan.
struct Comparison<'a> {
    index: Index<'a>,
    row_keys: RowKeys,
    rows: &'a [Row],
    found: &'a mut Found,
    is_last: bool,
    keys: Vec<u32>,
}

/// Looks every row that a snapshot sees up among some of the index, which after the last pass have
/// been all.
///
/// # Safety
/// The snapshot is registered, and older than the reading of the rows.
unsafe fn compare(
    opened: &Opened,
    rows: &[Row],
    found: &mut Found,
    is_last: bool,
    snapshot: pg_sys::Snapshot,
) {
    found.next = 0;
    let index = opened.index();
    // SAFETY: the relations are open, and the callback gets what it expects. As amcheck does it: a
    // concurrent build's scan, of the rows that the snapshot sees.
    unsafe {
        let info = pg_sys::BuildIndexInfo(index.as_ptr());
        (*info).ii_Concurrent = true;
        (*info).ii_Unique = false;
        (*info).ii_ExclusionOps = std::ptr::null_mut();
        (*info).ii_ExclusionProcs = std::ptr::null_mut();
        (*info).ii_ExclusionStrats = std::ptr::null_mut();
        let mut comparison = Comparison {
            index,
            row_keys: RowKeys::of_index(index.as_ptr()),
            rows,
            found,
            is_last,
            keys: Vec::new(),
        };
        let scan = pg_sys::table_beginscan_strat(
            opened.table,
            snapshot,
            0,
            std::ptr::null_mut(),
            true,
            false,
        );
        // The scan itself begins with the first block, so that all passes come to the rows in one
        // order; a call with a scan of its own has to allow others.
        pg_sys::table_index_build_scan(
            opened.table,
            index.as_ptr(),
            info,
            true,
            false,
            Some(compare_row),
            (&raw mut comparison).cast(),
            scan,
        );
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn compare_row(
    _index: pg_sys::Relation,
    tid: pg_sys::ItemPointer,
    values: *mut pg_sys::Datum,
    is_null: *mut bool,
    _alive: bool,
    comparison: *mut c_void,
) {
    // SAFETY: the table scan calls this with a row's values and what it was given.
    unsafe {
        let comparison = &mut *comparison.cast::<Comparison>();
        comparison.keys.clear();
        comparison
            .row_keys
            .keys(values, is_null, &mut comparison.keys);
        let number = rows::number_of(&*tid);
        let count = Entry::new(*tid, comparison.keys.len()).keys;
        let wanted = sum(&mut comparison.keys);
        let place = comparison.rows.binary_search_by_key(&number, |row| row.tid);
        let row = place.ok().map(|place| &comparison.rows[place]);
        let was_found = comparison.found.advance(row.is_some());
        let reason = match row {
            Some(_) if was_found => raise_twice(&comparison.index),
            Some(row) if row.keys == wanted && row.count == count => return,
            Some(_) => "has other keys in the index",
            None if was_found || !comparison.is_last => return,
            None => "is not in the index",
        };
        let (block, offset) = (number >> 16, number & 0xffff);
        let message = format!("the row at ({block},{offset}) of the table {reason}");
        raise_corrupted(&comparison.index, None, &message);
    }
}
