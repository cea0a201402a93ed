//! `near_dup_index_check`: checks an index against itself and against its table, as amcheck does for B-trees, while
//! others write.
//!
//! For the rows that a snapshot sees, hashes of their keys in the table are added up, and hashes of their keys in the
//! index are subtracted: if the sum is not 0, the keys differ. Merges move postings, but keep their order by key and
//! row. So the index is read in the order of key and row, a part at a time. Each part is read with one version of the
//! metapage and without a lock, as lookups do. The log is read first, all of it at once, and its rows are not looked
//! for anywhere else.
//!
//! If there is not enough memory for one sum per row, adjacent rows share a sum, and another pass checks only the rows
//! of the first sum that is not 0, until each row has its own sum.

use super::find::with_meta;
use super::log;
use super::meta::Meta;
use super::open::Opened;
use super::page::{Index, META_BLOCK, raise_corrupted};
use super::rows::{self, ROWS_PER_PAGE, RowTable};
use super::segment::{SearchPages, groups};
use super::stop::Stop;
use super::table::TableScan;
use crate::index::classes::RowKeys;
use crate::pg::prelude::*;
use crate::pg::rights::OwnerRights;
use crate::pg::sort::PairSort;
use bitvec::prelude::*;
use neardup::bands::RowSize;
use neardup::hash::{GOLDEN, split_mix};
use neardup::memory::with_room;
use neardup::postings::{KeyAndRow, sweep};
use pgrx::prelude::*;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Number of postings read with one version of the metapage.
const POSTINGS_AT_ONCE: usize = 1 << 16;

/// Maximum number of rows that an error names.
const NAMED: usize = 10;

/// Checks that the pages of an index are in order, and that every row of the table is in the index, with its keys and
/// no others. Returns nothing, or ends with an ERROR.
///
/// Reads the index and the table once, and again to name rows that differ in a large index. Uses maintenance_work_mem
/// and one bit per row. Holds no lock that writers wait for.
///
/// # Errors
/// `index_corrupted` if the check fails; `wrong_object_type` if the relation is not a neardup index;
/// `insufficient_privilege` unless the caller owns the index or is a member of pg_stat_scan_tables.
#[pg_extern(sql = false)]
pub fn near_dup_index_check(call: Call) {
    let opened = Opened::new(call.oid(0, "index"));
    // The index's expressions may call functions, which must run with the owner's rights.
    let rights = OwnerRights::assume(opened.table.owner());
    // SAFETY: whatever this snapshot sees is already in the index, and cannot be removed from it. The snapshot of a
    // transaction older than the index might also see rows that need not be in the index.
    unsafe {
        let snapshot = pg_sys::RegisterSnapshot(pg_sys::GetLatestSnapshot());
        check(&opened, snapshot);
        pg_sys::UnregisterSnapshot(snapshot);
    }
    rights.resign();
}

/// # Safety
/// `snapshot` is registered.
unsafe fn check(opened: &Opened, snapshot: pg_sys::Snapshot) {
    let index = opened.index();
    let end = log::end(&index, &Meta::read(&index));
    let meta = Meta::read(&index);
    meta.check(&index);
    let mut above = 0;
    for segment in meta.segments() {
        if segment.lo < above || segment.hi <= segment.lo || segment.hi > meta.log_start {
            raise_corrupted(&index, Some(META_BLOCK), "segments whose rows overlap");
        }
        above = segment.hi;
    }
    if end > RowTable::new(index, &meta).places(&meta).end * ROWS_PER_PAGE {
        raise_corrupted(&index, meta.tail(), "rows after the end of its row table");
    }
    // The table is open.
    let expected = f64::from((*(*opened.table.as_ptr()).rd_rel).reltuples).max(0.0);
    let mut rows = 0..end;
    loop {
        let (seen, sort) = read_row_table(&index, &rows);
        let mut comparison = TableComparison {
            index,
            entries: Entries::new(sort),
            is_whole: rows == (0..end),
            seen,
            sums: KeySums::new(&rows),
            progress: Progress::about("checking the table", expected),
        };
        scan_table(opened, &mut comparison, snapshot);
        comparison.entries.sort.end();
        let (seen, mut sums) = (comparison.seen, comparison.sums);
        let log_start = subtract_log(&index, &seen, &mut sums);
        subtract_segments(&index, log_start, &seen, &mut sums);
        let few = sums.differing().next();
        match few {
            None => return,
            Some(_) if sums.rows_each == 1 => raise_different(&index, &sums),
            Some(few) => rows = few,
        }
    }
}

/// Returns half of maintenance_work_mem, in kB. One half is for the sort, the other for the sums.
fn half_of_memory() -> i32 {
    // SAFETY: reads a setting of the backend.
    unsafe { pg_sys::maintenance_work_mem / 2 }
}

/// Sums of the hashes of keys and rows, each for `rows_each` adjacent rows.
struct KeySums {
    rows: Range<u64>,
    rows_each: u64,
    sums: Vec<u128>,
}

impl KeySums {
    fn new(rows: &Range<u64>) -> Self {
        let most = (half_of_memory() as usize * 1024 / size_of::<u128>()) as u64;
        let count = rows.end - rows.start;
        let rows_each = count.div_ceil(most).max(1);
        let len = count.div_ceil(rows_each) as usize;
        Self {
            rows: rows.clone(),
            rows_each,
            sums: filled(0, len).or_raise(),
        }
    }

    fn sum_of(&mut self, row: u64) -> &mut u128 {
        &mut self.sums[((row - self.rows.start) / self.rows_each) as usize]
    }

    fn add(&mut self, (key, row): KeyAndRow) {
        let sum = self.sum_of(row);
        *sum = sum.wrapping_add(hash(key, row));
    }

    fn subtract(&mut self, (key, row): KeyAndRow) {
        let sum = self.sum_of(row);
        *sum = sum.wrapping_sub(hash(key, row));
    }

    /// Returns the ranges of rows whose sums are not 0.
    fn differing(&self) -> impl Iterator<Item = Range<u64>> {
        let starts = self.rows.clone().step_by(self.rows_each as usize);
        let differing = starts.zip(&self.sums).filter(|(_, sum)| **sum != 0);
        differing.map(|(start, _)| start..self.rows.end.min(start + self.rows_each))
    }
}

/// Returns a hash of `key` and `row`. The sums of these hashes differ for different sets of keys and rows, except by
/// chance.
fn hash(key: u32, row: u64) -> u128 {
    let low = split_mix(row.wrapping_mul(GOLDEN).wrapping_add(u64::from(key)));
    let high = split_mix(low ^ u64::from(key) << 32);
    u128::from(high) << 64 | u128::from(low)
}

/// The rows that the scan of the table has seen: one bit for each row on a page of the row table, by the page's place.
/// Covers only pages that still exist.
#[derive(Default)]
struct Seen(FxHashMap<u64, [u64; ROWS_PER_PAGE.div_ceil(64) as usize]>);

impl Seen {
    fn push_page(&mut self, place: u64) {
        self.0.try_reserve(1).or_raise();
        self.0.insert(place, [0; _]);
    }

    fn add(&mut self, row: u64) {
        if let Some(bits) = self.0.get_mut(&rows::page_of(row)) {
            let place = (row % ROWS_PER_PAGE) as usize;
            bits.view_bits_mut::<Lsb0>().set(place, true);
        }
    }

    fn contains(&self, row: u64) -> bool {
        let bits = self.0.get(&rows::page_of(row));
        let place = (row % ROWS_PER_PAGE) as usize;
        bits.is_some_and(|bits| bits.view_bits::<Lsb0>()[place])
    }
}

/// Reads the pages of the row table that hold `rows`. Returns a [`Seen`] for these pages, with no row seen yet, and the
/// rows among `rows` that are not blank, sorted by their places in the table.
fn read_row_table(index: &Index, rows: &Range<u64>) -> (Seen, PairSort) {
    let mut table = RowTable::new(*index, &Meta::read(index));
    let mut seen = Seen::default();
    let mut sort = PairSort::begin(pg_sys::INT8OID, 2, half_of_memory());
    let places = rows::page_of(rows.start)..rows.end.div_ceil(ROWS_PER_PAGE);
    let length = places.end.saturating_sub(places.start) as usize;
    let mut progress = Progress::begin("reading the row table", length);
    let mut live = Vec::new();
    for place in places {
        progress.step();
        if !table.read_page(place, &mut live) {
            continue;
        }
        seen.push_page(place);
        for (row, entry) in live.iter().filter(|(row, _)| rows.contains(row)) {
            let number = row << 16 | u64::from(digest(entry.size()));
            sort.put(rows::number_of(&entry.tid).into(), number as i64);
        }
    }
    sort.sort();
    (seen, sort)
}

/// A row of the row table.
struct KnownRow {
    tid: u64,
    number: u64,
    /// The digest of the row's size.
    size: u16,
}

/// Returns a digest of a size, short enough to leave room for a row number.
fn digest(size: RowSize) -> u16 {
    (split_mix(size.0.into()) >> 48) as u16
}

/// The rows of the row table in the order of their places in the table.
struct Entries {
    sort: PairSort,
    /// The rows of the block last asked for.
    block: Vec<KnownRow>,
    next: Option<KnownRow>,
}

impl Entries {
    fn new(sort: PairSort) -> Self {
        let mut entries = Self {
            sort,
            block: Vec::new(),
            next: None,
        };
        entries.next = entries.read();
        entries
    }

    fn read(&mut self) -> Option<KnownRow> {
        self.sort.next().map(|(tid, number)| KnownRow {
            tid: tid.value() as u64,
            number: number as u64 >> 16,
            size: number as u16,
        })
    }

    /// Returns the row at the place `tid` of the table, or None if the row table has none there. Calls must ask for
    /// blocks in ascending order.
    fn find(&mut self, index: &Index, tid: u64) -> Option<&KnownRow> {
        let first = self.block.first();
        if first.is_none_or(|row| row.tid >> 16 != tid >> 16) {
            self.block.clear();
            while let Some(row) = self.next.take_if(|row| row.tid >> 16 <= tid >> 16) {
                if self.block.last().is_some_and(|last| last.tid == row.tid) {
                    let reason = "two rows lie at the same place of the table";
                    raise_corrupted(index, None, reason);
                }
                if row.tid >> 16 == tid >> 16 {
                    self.block.try_push(row).or_raise();
                }
                self.next = self.read();
            }
        }
        let place = self.block.binary_search_by_key(&tid, |row| row.tid).ok()?;
        self.block.get(place)
    }
}

/// The state of the scan of the table.
struct TableComparison<'a> {
    index: Index<'a>,
    entries: Entries,
    /// True if the entries cover all rows, not just a range.
    is_whole: bool,
    seen: Seen,
    sums: KeySums,
    progress: Progress,
}

/// Adds the keys of every row that `snapshot` sees to the sums.
///
/// # Safety
/// `snapshot` is registered, and was taken before the row table was read.
unsafe fn scan_table(
    opened: &Opened,
    comparison: &mut TableComparison,
    snapshot: pg_sys::Snapshot,
) {
    let index = opened.index();
    // The relations are open. Like amcheck, this scans as a concurrent build does, which reads the rows that the
    // snapshot sees.
    let info = pg_sys::BuildIndexInfo(index.as_ptr());
    (*info).ii_Concurrent = true;
    (*info).ii_ExclusionOps = std::ptr::null_mut();
    let table = opened.table.as_ptr();
    let keys = std::ptr::null_mut();
    let scan = TableScan {
        table,
        index: index.as_ptr(),
        info,
        scan: pg_sys::table_beginscan_strat(table, snapshot, 0, keys, true, false),
    };
    let row_keys = RowKeys::of_index(index.as_ptr());
    scan.for_each(&row_keys, &mut |tid, _, keys, size| {
        comparison.take(tid, keys, size)
    });
}

impl TableComparison<'_> {
    /// Checks that the row at `tid` is in the index with this `size`, and adds its `keys` to the sums. Ignores a row
    /// missing from `entries` if these cover only a range of rows.
    fn take(&mut self, tid: pg_sys::ItemPointerData, keys: &mut [u32], size: RowSize) {
        self.progress.step();
        let place = rows::number_of(&tid);
        let Some(row) = self.entries.find(&self.index, place) else {
            if self.is_whole {
                let message = format!("the row at {} of the table is not in the index", at(&tid));
                raise_corrupted(&self.index, None, &message);
            }
            return;
        };
        let (number, said) = (row.number, row.size);
        if digest(size) != said {
            let message = format!("the row at {} of the table has a different size", at(&tid));
            raise_corrupted(&self.index, None, &message);
        }
        self.seen.add(number);
        keys.sort_unstable();
        for distinct in keys.chunk_by(|a, b| a == b) {
            self.sums.add((distinct[0], number));
        }
    }
}

/// Returns a place of the table as text, in the format of `ctid`.
fn at(tid: &pg_sys::ItemPointerData) -> String {
    let number = rows::number_of(tid);
    format!("({},{})", number >> 16, number & 0xffff)
}

/// Subtracts the keys of the `seen` rows in the log from `sums`. Returns the number of the log's first row.
fn subtract_log(index: &Index, seen: &Seen, sums: &mut KeySums) -> u64 {
    let (meta, mut places) = with_meta(*index, &mut |meta| {
        let mut places: Vec<KeyAndRow> = Vec::new();
        log::for_each_page(index, meta, |start, log| {
            for (number, row) in (start..).zip(log.iter()) {
                let row = row?;
                if seen.contains(number) {
                    let of_row = row.keys().map(|key| (key, number));
                    places.try_extend(of_row).or_raise();
                }
            }
            Ok(())
        })?;
        Ok(places)
    });
    // A row may have a key twice.
    places.sort_unstable();
    places.dedup();
    for place in places {
        sums.subtract(place);
    }
    meta.log_start
}

/// Subtracts the keys of the `seen` rows before `end`, which are in segments, from `sums`.
fn subtract_segments(index: &Index, end: u64, seen: &Seen, sums: &mut KeySums) {
    let meta = Meta::read(index);
    let postings: u64 = meta.segments().iter().map(|segment| segment.postings).sum();
    let mut progress = Progress::about("reading keys", postings as f64);
    let mut done = 0;
    let mut next = Some((0, 0));
    while let Some(from) = next {
        let (_, (places, after)) =
            with_meta(*index, &mut |meta| read_part(index, meta, from, end, seen));
        places.into_iter().for_each(|place| sums.subtract(place));
        next = after;
        done += POSTINGS_AT_ONCE;
        progress.reach(done);
    }
}

/// Reads up to [`POSTINGS_AT_ONCE`] postings of segments, starting with `from`. Returns the postings of `seen` rows
/// before `end`, and the posting to continue with, or None after the last one.
fn read_part(
    index: &Index,
    meta: &Meta,
    from: KeyAndRow,
    end: u64,
    seen: &Seen,
) -> Result<(Vec<KeyAndRow>, Option<KeyAndRow>), Stop> {
    let mut places = with_room(POSTINGS_AT_ONCE)?;
    let mut groups = groups(index, meta);
    groups.retain(|group| group.inputs.first().is_some_and(|first| first.lo < end));
    let mut left = POSTINGS_AT_ONCE;
    let mut pages = SearchPages::new(*index, meta);
    let next = sweep(&mut pages, &groups, from, &mut |(key, row)| {
        if left == 0 {
            return false;
        }
        left -= 1;
        if row < end && seen.contains(row) {
            places.push((key, row));
        }
        true
    })?;
    Ok((places, next))
}

/// Ends the statement with an ERROR that names up to [`NAMED`] rows whose sums are not 0.
fn raise_different(index: &Index, sums: &KeySums) -> ! {
    let mut table = RowTable::new(*index, &Meta::read(index));
    let mut named = Vec::new();
    for row in sums.differing().flatten().take(NAMED) {
        named.extend(table.live_entry(row).map(|entry| at(&entry.tid)));
    }
    let places = named.join(", ");
    let reason = format!("rows of the table have different keys in the index, at {places}");
    raise_corrupted(index, None, &reason);
}
