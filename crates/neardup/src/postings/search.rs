//! T-occurrence: the rows that share at least T of a query's keys.
//!
//! Any T - 1 of the lists can be left unread: a row that is in no other list is in fewer than T.
//! Candidates that can still reach T are looked up in them (Li, Lu, Lu, 'Efficient merging and
//! filtering algorithms for approximate string searches', ICDE 2008). Lists are short in general,
//! and counted as they are found; then it does not matter which are left. Where there are long ones,
//! those of keys that many rows share, the longest are left, and looked into from the shortest to the
//! longest.

use super::count::{Candidate, Counts, Tally};
use super::directory::Entry;
use super::leaf::{Block, Leaf};
use super::merge::split_of_input;
use super::walk::{Leaves, read_directory, read_leaf};
use super::{AHEAD, Ahead, Damaged, Group, MAX_ROWS, Output, Pages, Posting, Segment};
use std::collections::TryReserveError;
use std::ops::Range;

/// Postings of a list beyond which it is long.
const SHORT: usize = 128;

/// About as many children as a directory page has, as a power of 2: lengths of lists are estimated.
const CHILDREN_LOG2: u32 = 9;

/// Calls `found` with every row of a group that has at least `needed` of the keys, ascending, and
/// the number of keys that it has: exactly, a key that the query repeats counted as often.
///
/// Without long lists this looks at one leaf a key, but for `needed` - 1 of them, and at every
/// directory page on the way once; for the rest only where there are candidates. Where the postings read
/// are more than `most`, it looks at `most` rows (1 or more) at a time. Memory: 16 bytes for each of
/// `most`.
///
/// # Errors
/// Those of `pages` and `found`; damaged pages; too little memory.
pub fn search<P: Pages>(
    pages: &mut P,
    group: &Group,
    keys: &[u32],
    needed: usize,
    most: u32,
    found: &mut impl FnMut(u64, u32) -> Result<(), P::Error>,
) -> Result<(), P::Error> {
    let needed = needed.max(1);
    if keys.len() < needed {
        return Ok(());
    }
    let (lo, parts) = parts::<P::Error>(group)?;
    let mut found = |candidate: Candidate| found(lo + u64::from(candidate.offset), candidate.count);
    if search_rows(pages, &parts, keys, needed as u32, most, &mut found)? {
        return Ok(());
    }
    let end = offsets_of(&parts).end;
    for start in (0..end).step_by(most as usize) {
        let window = start..start.saturating_add(most).min(end);
        let mut within = Vec::new();
        within.try_reserve_exact(parts.len())?;
        within.extend(parts.iter().filter_map(|part| part.within(&window)));
        search_rows(pages, &within, keys, needed as u32, most, &mut found)?;
    }
    Ok(())
}

/// Calls `found` with the rows of parts that have at least `needed` of the keys, ascending. Returns false,
/// before the first, where the postings read and the rows are both more than `most`.
fn search_rows<P: Pages>(
    pages: &mut P,
    parts: &[Part],
    keys: &[u32],
    needed: u32,
    most: u32,
    found: &mut impl FnMut(Candidate) -> Result<(), P::Error>,
) -> Result<bool, P::Error> {
    let mut search = Search {
        lists: lists(keys)?,
        long: Vec::new(),
        below: Vec::new(),
        counts: Counts::All(Tally::new(offsets_of(parts), most as usize)),
    };
    let at_first = search.fewest(needed - 1);
    let rest = at_first..search.lists.len();
    for (number, part) in parts.iter().enumerate() {
        search.look_up(pages, part, number, 0..at_first)?;
    }
    if search.counts.is_full() {
        return Ok(false);
    }
    let mut most_unread = needed - 1;
    if search.long.is_empty() {
        most_unread = search.lists[rest.clone()]
            .iter()
            .map(|list| list.weight)
            .sum();
        let reached = needed - most_unread;
        let candidates = search
            .counts
            .candidates(reached, &mut || pages.interrupt())?;
        if candidates.is_empty() {
            return Ok(true);
        }
        search.counts = Counts::Of(candidates);
    }
    for (number, part) in parts.iter().enumerate() {
        if search.counts.can_be_in(part.shift, part.rows) {
            search.look_up(pages, part, number, rest.clone())?;
        }
    }
    let mut unread = search.leave_unread(most_unread);
    for long in &search.long {
        let list = &search.lists[long.list];
        if !list.unread {
            scan(pages, &parts[long.part], list, &mut search.counts)?;
        }
        if search.counts.is_full() {
            return Ok(false);
        }
    }
    let reached = needed - unread;
    let mut candidates = search
        .counts
        .candidates(reached, &mut || pages.interrupt())?;
    for same_list in search.long.chunk_by(|a, b| a.list == b.list) {
        let list = &search.lists[same_list[0].list];
        if !list.unread || candidates.is_empty() {
            continue;
        }
        for long in same_list {
            probe(pages, &parts[long.part], list, &mut candidates)?;
        }
        unread -= list.weight;
        candidates.retain(|candidate| candidate.count + unread >= needed);
    }
    for candidate in candidates {
        found(candidate)?;
    }
    Ok(true)
}

/// The rows that have a key.
struct List {
    key: u32,
    /// The number of times that the query has the key.
    weight: u32,
    /// Leaves that the list goes on for in the segment looked at, roughly.
    leaves: u64,
    /// Postings on long parts, roughly.
    long_postings: u64,
    unread: bool,
}

fn lists(keys: &[u32]) -> Result<Vec<List>, TryReserveError> {
    let mut sorted = Vec::new();
    sorted.try_reserve_exact(keys.len())?;
    sorted.extend_from_slice(keys);
    sorted.sort_unstable();
    let mut lists = Vec::new();
    lists.try_reserve_exact(keys.len())?;
    lists.extend(sorted.chunk_by(|a, b| a == b).map(|same| List {
        key: same[0],
        weight: same.len() as u32,
        leaves: 0,
        long_postings: 0,
        unread: false,
    }));
    Ok(lists)
}

/// The postings of one segment that count: all, or those on its side of a merge's split.
pub(super) struct Part<'g> {
    pub(super) segment: &'g Segment,
    rows: u64,
    /// From the group's first row to the segment's.
    shift: u32,
    /// The first and the last that count, as numbers.
    first: u64,
    last: u64,
    /// The first and the last offset of rows that count.
    offsets: (u32, u32),
}

impl<'g> Part<'g> {
    /// Returns the postings from `first` to `last` of a segment, if there can be any.
    fn new(segment: &'g Segment, lo: u64, first: u64, last: u64) -> Result<Option<Self>, Damaged> {
        let rows = segment.rows()?;
        let shift = segment.lo.checked_sub(lo);
        let shift = shift.filter(|shift| shift.saturating_add(rows) <= MAX_ROWS);
        let shift = shift.ok_or(Damaged("segments too far apart to be merged"))?;
        let part = Self {
            segment,
            rows,
            shift: shift as u32,
            first,
            last,
            offsets: (0, u32::MAX),
        };
        Ok((segment.postings > 0 && rows > 0).then_some(part))
    }

    /// Returns what counts of some of the group's rows, if there can be any.
    fn within(&self, window: &Range<u32>) -> Option<Self> {
        let start = window.start.saturating_sub(self.shift);
        let end = window.end.checked_sub(self.shift)?;
        (u64::from(start) < self.rows && start < end).then(|| Self {
            offsets: (start, end - 1),
            ..*self
        })
    }

    /// Returns the first and the last place of the postings of a key.
    #[inline]
    pub(super) fn range(&self, key: u32) -> Option<(Posting, Posting)> {
        let [first, last] = <[u32; 2]>::from(self.offsets).map(|offset| Posting { key, offset });
        let first = self.first.max(first.into());
        let last = self.last.min(last.into());
        (first <= last).then_some((first.into(), last.into()))
    }

    /// Returns whether a posting is among those that count.
    pub(super) fn has(&self, posting: Posting) -> bool {
        (self.first..=self.last).contains(&posting.into())
    }

    #[inline]
    pub(super) fn group_offset(&self, number: u64) -> Result<u32, Damaged> {
        let offset = Posting::from(number).offset;
        if u64::from(offset) >= self.rows {
            return Err(Damaged("posting of a row that is not its segment's"));
        }
        Ok(self.shift + offset)
    }
}

/// Returns a group's first row, and what counts of its segments.
pub(super) fn parts<'g, E>(group: &'g Group) -> Result<(u64, Vec<Part<'g>>), E>
where
    E: From<Damaged> + From<TryReserveError>,
{
    let lowest_input = group.inputs.iter().map(|input| input.lo).min();
    let output_lo = group.output.map(|output| output.segment.lo);
    let lo = output_lo.or(lowest_input).unwrap_or(0);
    let mut parts = Vec::new();
    parts.try_reserve_exact(group.inputs.len() + 1)?;
    if let Some(Output { segment, split }) = &group.output
        && let Some(last) = u64::from(*split).checked_sub(1)
    {
        parts.extend(Part::new(segment, lo, 0, last)?);
    }
    for input in group.inputs {
        let split = group.output.map_or(Posting::MIN, |output| {
            split_of_input(output.split, input.lo.saturating_sub(lo))
        });
        parts.extend(Part::new(input, lo, split.into(), u64::MAX)?);
    }
    Ok((lo, parts))
}

/// Returns the offsets of the rows of parts.
fn offsets_of(parts: &[Part]) -> Range<u32> {
    let first = parts.iter().map(|part| part.shift + part.offsets.0);
    let end = parts.iter().map(|part| {
        let rows = part.rows.min(u64::from(part.offsets.1) + 1);
        (u64::from(part.shift) + rows).min(MAX_ROWS) as u32
    });
    first.min().unwrap_or(0)..end.max().unwrap_or(0)
}

/// A page to look at for some lists.
struct Visit {
    level: u8,
    page: Entry,
    /// The beginning of the page behind it.
    next: Option<Posting>,
    lists: Range<usize>,
}

/// The piece of a list in one part of the group; it is long.
struct Long {
    list: usize,
    part: usize,
}

struct Search {
    lists: Vec<List>,
    long: Vec<Long>,
    /// Pages to be looked at on the next level.
    below: Vec<Visit>,
    counts: Counts,
}

impl Search {
    /// Returns the number of lists, from the first on, to be read if the rest may make up `most` keys
    /// of the query.
    fn fewest(&self, mut most: u32) -> usize {
        let mut count = self.lists.len();
        while let Some(left) = count
            .checked_sub(1)
            .and_then(|last| most.checked_sub(self.lists[last].weight))
        {
            (count, most) = (count - 1, left);
        }
        count
    }

    /// Counts those of some lists that are short in a part, and notes the long ones.
    fn look_up<P: Pages>(
        &mut self,
        pages: &mut P,
        part: &Part,
        number: usize,
        lists: Range<usize>,
    ) -> Result<(), P::Error> {
        let (first, last) = (Posting::from(part.first).key, Posting::from(part.last).key);
        let among = &mut self.lists[lists.clone()];
        among.iter_mut().for_each(|list| list.leaves = 0);
        let start = lists.start + among.partition_point(|list| list.key < first);
        let end = lists.start + among.partition_point(|list| list.key <= last);
        if start >= end {
            return Ok(());
        }
        self.below.clear();
        self.below.try_reserve(1)?;
        self.below.push(Visit {
            level: part.segment.depth,
            page: Entry {
                first: Posting::MIN,
                block: part.segment.root,
            },
            next: None,
            lists: start..end,
        });
        for level in (0..=part.segment.depth).rev() {
            let visits = std::mem::take(&mut self.below);
            for together in visits.chunks(AHEAD) {
                pages.interrupt()?;
                let lists = &self.lists;
                pages.announce(together.iter().map(|visit| visit.ahead(lists)))?;
                for visit in together {
                    if level == 0 {
                        self.look_at_leaf(pages, part, number, visit)?;
                    } else {
                        self.look_at_directory(pages, part, visit)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn look_at_directory<P: Pages>(
        &mut self,
        pages: &mut P,
        part: &Part,
        visit: &Visit,
    ) -> Result<(), P::Error> {
        let (lists, visits) = (&mut self.lists, &mut self.below);
        visits.try_reserve(visit.lists.len())?;
        let before = visits.len();
        let first = visit.first(part);
        let level = visit.level;
        read_directory(
            pages,
            part.segment,
            level,
            visit.page.block,
            first,
            |directory| {
                let mut last_child = None;
                for number in visit.lists.clone() {
                    let list = &mut lists[number];
                    let Some((first, last)) = part.range(list.key) else {
                        continue;
                    };
                    let child = directory.child_of(first);
                    let page = directory.get(child);
                    let page = page.ok_or(Damaged("directory page without entries"))?;
                    let next = directory.get(child + 1).map(|entry| entry.first);
                    if next.is_some_and(|next| next <= last) {
                        let children = (directory.child_of(last) - child) as u64;
                        list.leaves += children << (CHILDREN_LOG2 * u32::from(level - 1));
                    }
                    if last_child == Some(child) && visits.len() > before {
                        let at = visits.len() - 1;
                        visits[at].lists.end = number + 1;
                    } else {
                        visits.push(Visit {
                            level: level - 1,
                            page,
                            next: next.or(visit.next),
                            lists: number..number + 1,
                        });
                    }
                    last_child = Some(child);
                }
                Ok::<(), Damaged>(())
            },
        )??;
        Ok(())
    }

    fn look_at_leaf<P: Pages>(
        &mut self,
        pages: &mut P,
        part: &Part,
        part_number: usize,
        visit: &Visit,
    ) -> Result<(), P::Error> {
        let first = visit.first(part);
        read_leaf(pages, part.segment, visit.page.block, first, |leaf| {
            let mut short = [0; SHORT];
            for number in visit.lists.clone() {
                let list = &mut self.lists[number];
                let Some((first, last)) = part.range(list.key) else {
                    continue;
                };
                let goes_on = visit.next.is_some_and(|next| next <= last);
                let mut found = 0;
                let mut is_long = goes_on;
                leaf.visit(first, last, &mut |run| {
                    let Some(places) = short.get_mut(found..found + run.len()) else {
                        is_long = true;
                        return Ok(false);
                    };
                    for (place, number) in places.iter_mut().zip(run) {
                        *place = part.group_offset(*number)?;
                    }
                    found += run.len();
                    Ok(true)
                })?;
                if !is_long {
                    if let Err(failed) = self.counts.add(&short[..found], list.weight) {
                        return Ok(Err(failed));
                    }
                    continue;
                }
                let here = leaf.rank(last)?.saturating_sub(leaf.rank(first)?);
                list.long_postings += here as u64 + list.leaves * leaf.len() as u64;
                if let Err(failed) = self.long.try_reserve(1) {
                    return Ok(Err(failed));
                }
                self.long.push(Long {
                    list: number,
                    part: part_number,
                });
            }
            Ok(Ok(()))
        })??;
        Ok(())
    }

    /// Marks the longest lists that make up at most `most` keys of the query as not to be read, and
    /// returns how many keys they make up. Orders the long parts by the length of their lists.
    fn leave_unread(&mut self, most: u32) -> u32 {
        let lists = &mut self.lists;
        self.long
            .sort_unstable_by_key(|long| (lists[long.list].long_postings, long.list));
        let mut unread = 0;
        for long in self.long.iter().rev() {
            let list = &mut lists[long.list];
            if !list.unread && list.weight <= most - unread {
                list.unread = true;
                unread += list.weight;
            }
        }
        unread
    }
}

impl Visit {
    /// Returns the posting that the page has to begin with, unknown of a root.
    fn first(&self, part: &Part) -> Option<Posting> {
        (self.level != part.segment.depth).then_some(self.page.first)
    }

    /// Returns the page, and where on it the first list probably is, as keys are spread evenly in
    /// general.
    fn ahead(&self, lists: &[List]) -> Ahead {
        let end = self.next.map_or(u32::MAX, |next| next.key);
        let key = lists.get(self.lists.start).map_or(0, |list| list.key);
        let from = |key: u32| key.saturating_sub(self.page.first.key) as f32;
        Ahead {
            block: self.page.block,
            place: (from(key) / from(end)).clamp(0.0, 1.0),
        }
    }
}

/// Reads the part of a list that lies in a segment.
fn scan<P: Pages>(
    pages: &mut P,
    part: &Part,
    list: &List,
    counts: &mut Counts,
) -> Result<(), P::Error> {
    let Some((first, last)) = part.range(list.key) else {
        return Ok(());
    };
    let mut leaves = Leaves::seek(pages, part.segment, first)?;
    let mut run: Vec<u32> = Vec::new();
    while leaves.next().is_some_and(|leaf| leaf.first <= last) {
        let read = leaves.visit(pages, |leaf| {
            run.clear();
            if let Err(failed) = run.try_reserve(leaf.len()) {
                return Ok(Err(failed));
            }
            leaf.visit(first, last, &mut |numbers| {
                for number in numbers {
                    let offset = part.group_offset(*number)?;
                    if run.last().is_some_and(|last| *last >= offset) {
                        return Err(Damaged("postings of a leaf page out of order"));
                    }
                    run.push(offset);
                }
                Ok(true)
            })?;
            Ok(Ok(()))
        })?;
        read.transpose()?;
        counts.add(&run, list.weight)?;
        if counts.is_full() {
            return Ok(());
        }
    }
    Ok(())
}

/// Looks candidates up in the part of a list that lies in a segment.
fn probe<P: Pages>(
    pages: &mut P,
    part: &Part,
    list: &List,
    candidates: &mut [Candidate],
) -> Result<(), P::Error> {
    let Some((first, last)) = part.range(list.key) else {
        return Ok(());
    };
    let posting_of = |candidate: &Candidate| {
        let offset = candidate.offset.checked_sub(part.shift)?;
        Some(Posting {
            key: list.key,
            offset,
        })
    };
    let below = |candidate: &Candidate| posting_of(candidate).is_none_or(|posting| posting < first);
    let above = |candidate: &Candidate| posting_of(candidate).is_some_and(|posting| posting > last);
    let start = candidates.partition_point(below);
    let end = candidates.partition_point(|candidate| !above(candidate));
    let mut left = candidates.get_mut(start..end).unwrap_or_default();
    while let Some(target) = left.first().and_then(posting_of) {
        let mut leaves = Leaves::seek(pages, part.segment, target)?;
        let looked_up = leaves.visit(pages, |leaf| {
            let mut probe = Probe::new(leaf)?;
            let leaf_last = leaf.last()?;
            let mut looked_up = 0;
            for candidate in left.iter_mut() {
                let posting = posting_of(candidate).filter(|posting| *posting <= leaf_last);
                let Some(posting) = posting else {
                    break;
                };
                candidate.count += u32::from(probe.contains(posting)?) * list.weight;
                looked_up += 1;
            }
            Ok(looked_up)
        })?;
        // Those between this leaf's last posting and the next leaf are in none.
        let Some(next) = leaves.next() else {
            return Ok(());
        };
        let passed = |candidate: &Candidate| posting_of(candidate) < Some(next.first);
        let passed = left.partition_point(passed).max(looked_up.unwrap_or(0));
        if passed == 0 {
            return Err(Damaged("entries of a directory out of order").into());
        }
        left = &mut left[passed..];
    }
    Ok(())
}

/// Looks up ascending postings in a leaf.
struct Probe<'l> {
    leaf: Leaf<'l>,
    number: usize,
    block: Block,
}

impl<'l> Probe<'l> {
    fn new(leaf: Leaf<'l>) -> Result<Self, Damaged> {
        let block = leaf.block(0)?;
        Ok(Self {
            leaf,
            number: 0,
            block,
        })
    }

    fn contains(&mut self, posting: Posting) -> Result<bool, Damaged> {
        let wanted = u64::from(posting);
        if self
            .block
            .numbers()
            .last()
            .is_some_and(|last| *last < wanted)
        {
            let number = self.leaf.block_of(posting);
            if number != self.number {
                self.block = self.leaf.block(number)?;
                self.number = number;
            }
        }
        Ok(self.block.numbers().binary_search(&wanted).is_ok())
    }
}
