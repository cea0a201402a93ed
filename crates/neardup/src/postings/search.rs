//! T-occurrence: the rows that share at least T of a query's keys.
//!
//! Any T - 1 of the lists can be left unread: a row that is in no other list has fewer than T keys. Candidates that can
//! still reach T are looked up in the unread lists (Li, Lu, Lu, 'Efficient merging and filtering algorithms for
//! approximate string searches', ICDE 2008). Lists are usually short, and are counted as they are found; then it does
//! not matter which are left unread. Long lists, whose keys many rows share, are left unread where possible: the
//! directory shows which lists are longer than a leaf, and others are looked up in their place. Candidates are looked
//! up in unread long lists from the shortest to the longest.
//!
//! If the number of keys that a row needs depends on how many it has, rows that cannot reach theirs are excluded before
//! any unread list is looked at, such as rows that share only a template. If the long lists to be read have more
//! postings than there are rows, the sizes of the rows are read instead: few rows are so small that the keys of long
//! lists alone suffice.
//!
//! The candidates of such a query are compared afterwards, so the search need not be sure of them. Further lists are
//! looked up a few at a time, and candidates that miss too many are dropped, until comparing the rest takes less time
//! than looking up more lists.
//!
//! A search reads the groups that fit in memory together, level by level, so it waits for its storage once per level,
//! not once per page.

use super::comparison::{are_compared, comparison};
use super::count::{CountedRow, RowCounts, RowTally, merged};
use super::key_list::{KeyList, lists};
use super::long::{probe, scan};
use super::lookup::PageForKeys;
use super::part::{SegmentPart, offsets_of, parts};
use super::walk::{read_directory, read_leaf};
use super::{
    AHEAD, Directory, MAX_DEPTH, Needed, PageAhead, Pages, Posting, RowSizes, SegmentGroup,
};
use crate::bands::occurrence::Minimum;
use crate::memory::{Grow, collected, with_room};
use std::ops::Range;

/// Number of postings of long lists that can be read in the time of looking up another list.
const INSTEAD: u64 = 64;

/// Number of postings of long lists that can be read in the time of searching the unread lists for a row.
const SEARCHED: u64 = 256;

/// Number of further lists to look up together; doubled each time.
const FURTHER: u32 = 8;

/// Number of rows whose sizes are looked up at a time.
const SIZES: usize = 512;

/// Approximate numbers of children of a directory page and of bits of a leaf, for estimating the lengths of lists.
const CHILDREN: f64 = 512.0;
const LEAF_BITS: f64 = 65_000.0;

/// A query for [`search`].
#[derive(Debug, Clone, Copy)]
pub struct KeyQuery<'q> {
    pub keys: &'q [u32],
    /// The number of keys that a row must have, 1 or more. A key that the query repeats counts each time.
    pub needed: usize,
    /// Two minima, the first over fewer keys. Rows below any of them are left out.
    pub minima: [Minimum; 2],
    /// The number of keys that a row needs, if it depends on the row's size.
    pub by_size: Option<Needed>,
    /// True to count all shared keys of the rows found, not just enough to find them.
    pub is_exact: bool,
    /// Maximum number of postings to hold, and of rows to count at a time; at least 1. Groups that exceed both are
    /// searched in windows of this many rows.
    pub most: u32,
}

/// Calls `found` with every row of `groups` that has the number of keys it needs, and the number of keys it is known to
/// have. Rows come in the order of the groups, ascending within each. If the number needed depends on the row, a few
/// rows with too few keys may be included.
///
/// Without long lists, reads one leaf for each key of the first minimum, and every directory page on the way once.
/// Leaves for other keys are read only if there are candidates. Memory: some 40 bytes for each of `most` rows and for
/// each key.
///
/// # Errors
/// The errors of `pages` and `found`; damaged pages; `OutOfMemory`.
pub fn search<P: RowSizes>(
    pages: &mut P,
    groups: &[SegmentGroup],
    query: &KeyQuery,
    found: &mut impl FnMut(u64, u32) -> Result<(), P::Error>,
) -> Result<(), P::Error> {
    if query.keys.len() < query.needed {
        return Ok(());
    }
    // Each group's search has its own copy of the query's lists.
    let at_once = (query.most as usize / query.keys.len().max(1)).max(1);
    if groups.len() > at_once {
        let mut parts = groups.chunks(at_once);
        return parts.try_for_each(|groups| search(pages, groups, query, found));
    }
    let share = (query.most / groups.len().max(1) as u32).max(1);
    let mut searches = with_room(groups.len())?;
    for group in groups {
        pages.interrupt()?;
        let (lo, parts) = parts::<P::Error>(group)?;
        searches.push(GroupSearch::new(lo, parts, query, share)?);
    }
    count(pages, &mut searches, query)?;
    for (group, counted) in groups.iter().zip(searches) {
        if counted.finish(pages, found)? {
            continue;
        }
        let (lo, parts) = parts::<P::Error>(group)?;
        let end = offsets_of(&parts).end;
        for start in (0..end).step_by(query.most as usize) {
            let window = start..start.saturating_add(query.most).min(end);
            let within = collected(parts.iter().filter_map(|part| part.within(&window)))?;
            let mut alone = [GroupSearch::new(lo, within, query, query.most)?];
            count(pages, &mut alone, query)?;
            for counted in alone {
                counted.finish(pages, found)?;
            }
        }
    }
    Ok(())
}

/// Looks up lists until only candidates can still be found, then further short lists while these decide about
/// candidates.
fn count<P: RowSizes>(
    pages: &mut P,
    searches: &mut [GroupSearch],
    query: &KeyQuery,
) -> Result<(), P::Error> {
    let [first, second] = query.minima;
    look_up(pages, searches, |search| search.first_lists(first.of))?;
    for search in searches.iter_mut() {
        search.find_candidates(pages, first)?;
    }
    if query.by_size.is_none() {
        look_up(
            pages,
            searches,
            |search| Ok(search.further_lists(second.of)),
        )?;
        for search in searches.iter_mut() {
            search.keep_candidates(second);
        }
        return look_up(pages, searches, |search| Ok(search.further_lists(u32::MAX)));
    }
    let mut further = FURTHER;
    loop {
        let mut is_decided = true;
        for search in searches.iter_mut() {
            search.goal = search.weight(..search.end);
            if !search.decide() && search.end < search.lists.len() {
                search.goal = search.goal.saturating_add(further);
                is_decided = false;
            }
        }
        if is_decided {
            return Ok(());
        }
        look_up(pages, searches, |search| {
            Ok(search.further_lists(search.goal))
        })?;
        further = further.saturating_mul(2);
    }
}

/// Looks up lists in all `searches` until `next` returns no more for any of them. Announces the pages of a level
/// together.
fn look_up<P: Pages>(
    pages: &mut P,
    searches: &mut [GroupSearch],
    next: impl Fn(&mut GroupSearch) -> crate::Result<Range<usize>>,
) -> Result<(), P::Error> {
    let mut levels: [Vec<PageVisit>; MAX_DEPTH as usize + 1] = Default::default();
    loop {
        // Lists that a directory shows to be long are replaced by others before the leaves are read.
        loop {
            let mut is_done = true;
            for (number, search) in searches.iter_mut().enumerate() {
                let lists = next(search)?;
                is_done &= lists.is_empty();
                search.push_roots(number, &lists, &mut levels)?;
            }
            if is_done {
                break;
            }
            for level in (1..levels.len()).rev() {
                let mut visits = std::mem::take(&mut levels[level]);
                look_at(pages, searches, &mut visits, |pages, search, visit| {
                    search.look_at_directory(pages, visit, level, &mut levels[level - 1])
                })?;
            }
        }
        let mut leaves = std::mem::take(&mut levels[0]);
        if leaves.is_empty() {
            return Ok(());
        }
        look_at(pages, searches, &mut leaves, |pages, search, visit| {
            search.look_at_leaf(pages, visit)
        })?;
    }
}

/// Announces the pages of `visits`, which are on one level, and calls `look` for each visit.
fn look_at<'g, P: Pages>(
    pages: &mut P,
    searches: &mut [GroupSearch<'g>],
    visits: &mut [PageVisit],
    mut look: impl FnMut(&mut P, &mut GroupSearch<'g>, &PageVisit) -> Result<(), P::Error>,
) -> Result<(), P::Error> {
    for together in visits.chunks_mut(AHEAD) {
        pages.announce(together, |visit| visit.ahead(&searches[visit.search].lists))?;
        for visit in together {
            pages.interrupt()?;
            look(pages, &mut searches[visit.search], visit)?;
        }
    }
    Ok(())
}

/// A page to look at, and the lists to look up on it.
struct PageVisit {
    /// Index of the search, and of the part within it.
    search: usize,
    part: usize,
    lists: PageForKeys,
}

/// The piece of a long list in one part of the group.
struct Long {
    list: usize,
    part: usize,
}

/// The search of a group.
struct GroupSearch<'g> {
    /// The group's first row.
    lo: u64,
    parts: Vec<SegmentPart<'g>>,
    lists: Vec<KeyList>,
    /// `lists[..end]` have been looked up.
    end: usize,
    /// Number of the query's keys whose lists are to be looked up.
    goal: u32,
    needed: u32,
    by_size: Option<Needed>,
    is_exact: bool,
    /// Long lists that have not been read.
    long: Vec<Long>,
    counts: RowCounts,
}

impl<'g> GroupSearch<'g> {
    fn new(
        lo: u64,
        parts: Vec<SegmentPart<'g>>,
        query: &KeyQuery,
        most: u32,
    ) -> crate::Result<Self> {
        Ok(Self {
            lo,
            counts: RowCounts::All(RowTally::new(offsets_of(&parts), most as usize)),
            parts,
            lists: lists(query.keys)?,
            end: 0,
            goal: 0,
            needed: query.needed as u32,
            by_size: query.by_size,
            is_exact: query.is_exact,
            long: Vec::new(),
        })
    }

    /// Takes lists to look up until the short ones cover `of` of the query's keys, or reading long ones takes less
    /// time.
    fn first_lists(&mut self, of: u32) -> crate::Result<Range<usize>> {
        if self.counts.is_full() {
            return Ok(self.end..self.end);
        }
        let looked_up = self.lists[..self.end].iter();
        let short = looked_up.filter(|list| !list.is_long());
        let (lists, weight) = short.fold((0, 0), |(lists, weight), list| {
            (lists + 1, weight + list.weight)
        });
        let missing = of.saturating_sub(weight);
        let all_to_short = self.end.max(1) as f64 / f64::from(lists.max(1));
        let wanted = (f64::from(missing) * all_to_short).ceil() as u32;
        let looked_up = u64::from(wanted.min(self.weight(self.end..)));
        Ok(match self.postings_instead(missing)? {
            Some(postings) if postings <= looked_up * INSTEAD => self.end..self.end,
            _ => self.take_lists(wanted),
        })
    }

    /// Returns the number of postings in the shortest long lists that together cover `missing` of the query's keys.
    /// Returns None if the long lists cover too few keys.
    fn postings_instead(&self, mut missing: u32) -> crate::Result<Option<u64>> {
        let long = self.lists[..self.end].iter().filter(|list| list.is_long());
        let mut long = collected(long.map(|list| (list.long_postings.get(), list.weight)))?;
        long.sort_unstable();
        let mut postings = 0;
        for (length, weight) in long {
            if missing == 0 {
                break;
            }
            postings += length;
            missing = missing.saturating_sub(weight);
        }
        Ok((missing == 0).then_some(postings))
    }

    /// Takes lists to look up until all lists taken cover `of` of the query's keys. Takes none if no candidate needs
    /// another list.
    fn further_lists(&mut self, of: u32) -> Range<usize> {
        let wants_more = match &self.counts {
            RowCounts::All(_) => false,
            RowCounts::Of(candidates) => candidates
                .iter()
                .any(|candidate| self.is_exact || candidate.count < candidate.needed),
        };
        if !wants_more {
            return self.end..self.end;
        }
        let before = self.weight(..self.end);
        self.take_lists(of.saturating_sub(before))
    }

    /// Takes the next lists that together cover `wanted` of the query's keys.
    fn take_lists(&mut self, mut wanted: u32) -> Range<usize> {
        let start = self.end;
        while wanted > 0
            && let Some(list) = self.lists.get(self.end)
        {
            wanted = wanted.saturating_sub(list.weight);
            self.end += 1;
        }
        start..self.end
    }

    fn weight(&self, lists: impl std::slice::SliceIndex<[KeyList], Output = [KeyList]>) -> u32 {
        self.lists[lists].iter().map(|list| list.weight).sum()
    }

    /// Reads the shortest long lists until the lists read cover `first.of` of the query's keys. Keeps as candidates the
    /// rows that have `first.shared` of these keys and can still reach the number that they need.
    fn find_candidates<P: RowSizes>(
        &mut self,
        pages: &mut P,
        first: Minimum,
    ) -> Result<(), P::Error> {
        self.sort_long();
        let short = self.lists[..self.end].iter().filter(|list| !list.is_long());
        let mut read: u32 = short.map(|list| list.weight).sum();
        let postings = self.postings_instead(first.of.saturating_sub(read))?;
        if let Some(by_size) = self.by_size
            && !self.counts.is_full()
            && let Some(postings) = postings
            && postings > offsets_of(&self.parts).len() as u64
        {
            let unread = self.weight(..) - read;
            let most = (postings / SEARCHED) as usize;
            if let Some(small) = self.small_rows(pages, &by_size, unread, most)? {
                let counted = self.counts.candidates(1, &mut || pages.interrupt())?;
                self.counts = RowCounts::Of(merged(&counted, &small)?);
                return self.exclude(pages, unread);
            }
        }
        let mut pieces = 0;
        for same_list in self.long.chunk_by(|a, b| a.list == b.list) {
            if read >= first.of || self.counts.is_full() {
                break;
            }
            let list = &self.lists[same_list[0].list];
            for long in same_list {
                scan(pages, &self.parts[long.part], list, &mut self.counts)?;
            }
            read += list.weight;
            pieces += same_list.len();
        }
        if self.counts.is_full() {
            return Ok(());
        }
        self.long.drain(..pieces);
        let unread = self.weight(..) - read;
        let least = match read >= first.of {
            true => first.shared,
            false => 1,
        };
        let least = self.needed.saturating_sub(unread).max(least);
        let candidates = self.counts.candidates(least, &mut || pages.interrupt())?;
        self.counts = RowCounts::Of(candidates);
        self.exclude(pages, unread)
    }

    /// Returns the rows that need at most `unread` keys, in ascending order, or None if there are more than `most`.
    fn small_rows<P: RowSizes>(
        &self,
        pages: &mut P,
        by_size: &Needed,
        unread: u32,
        most: usize,
    ) -> Result<Option<Vec<CountedRow>>, P::Error> {
        let rows = offsets_of(&self.parts);
        let mut small = Vec::new();
        let mut of_row = by_size.of_rows();
        let mut numbers = with_room(SIZES.min(rows.len()))?;
        for start in rows.clone().step_by(SIZES) {
            pages.interrupt()?;
            let end = rows.end.min(start.saturating_add(SIZES as u32));
            numbers.clear();
            numbers.extend((start..end).map(|offset| self.lo + u64::from(offset)));
            small
                .try_reserve(numbers.len())
                .map_err(crate::Error::from)?;
            pages.sizes(&numbers, &mut |place, own| {
                if let Some(needed) = of_row(own).filter(|needed| *needed <= unread) {
                    small.push(CountedRow {
                        offset: start + place as u32,
                        count: 0,
                        needed,
                    });
                }
            })?;
            if small.len() > most {
                return Ok(None);
            }
        }
        Ok(Some(small))
    }

    /// Sets how many keys each candidate needs. Drops the candidates that do not reach it even with all `unread` keys.
    fn exclude<P: RowSizes>(&mut self, pages: &mut P, unread: u32) -> Result<(), P::Error> {
        let RowCounts::Of(candidates) = &mut self.counts else {
            return Ok(());
        };
        let Some(by_size) = &self.by_size else {
            for candidate in candidates {
                candidate.needed = self.needed;
            }
            return Ok(());
        };
        let (mut kept, mut start) = (0, 0);
        let mut of_row = by_size.of_rows();
        let mut rows = with_room(SIZES.min(candidates.len()))?;
        while start < candidates.len() {
            pages.interrupt()?;
            let end = candidates.len().min(start + SIZES);
            let numbers = candidates[start..end].iter();
            rows.clear();
            rows.extend(numbers.map(|candidate| self.lo + u64::from(candidate.offset)));
            pages.sizes(&rows, &mut |place, size| {
                let candidate = candidates[start + place];
                let needed = of_row(size);
                if let Some(needed) = needed.filter(|needed| candidate.count + unread >= *needed) {
                    candidates[kept] = CountedRow {
                        needed,
                        ..candidate
                    };
                    kept += 1;
                }
            })?;
            start = end;
        }
        candidates.truncate(kept);
        Ok(())
    }

    /// Drops the candidates that cannot be in `second.shared` of the lists looked up, once these cover `second.of` of
    /// the query's keys.
    fn keep_candidates(&mut self, second: Minimum) {
        self.sort_long();
        let uncounted = self.unread_weight();
        if self.weight(..self.end) >= second.of
            && let RowCounts::Of(candidates) = &mut self.counts
        {
            candidates.retain(|candidate| candidate.count + uncounted >= second.shared);
        }
    }

    /// Drops the candidates that miss too many of the lists looked up. Returns whether the search can stop: none are
    /// left, or so few that they are compared instead.
    fn decide(&mut self) -> bool {
        self.sort_long();
        let all = self.weight(..);
        let unread = self.weight(self.end..) + self.unread_weight();
        let comparison = comparison(self.elements());
        let is_exact = self.is_exact;
        let RowCounts::Of(candidates) = &mut self.counts else {
            return true;
        };
        candidates.retain(|candidate| candidate.count + unread >= candidate.needed);
        candidates.is_empty()
            || !is_exact && are_compared(candidates, [all - unread, all], comparison)
    }

    /// Returns the approximate number of elements of a candidate.
    fn elements(&self) -> usize {
        match self.by_size {
            Some(Needed::Resembling { members, .. }) => members,
            _ => self.lists.len(),
        }
    }

    /// Sorts the unread long lists by length.
    fn sort_long(&mut self) {
        let lists = &self.lists;
        self.long
            .sort_unstable_by_key(|long| (lists[long.list].long_postings.get(), long.list));
    }

    /// Returns how many of the query's keys the unread long lists cover. These must be sorted.
    fn unread_weight(&self) -> u32 {
        let unread = self.long.chunk_by(|a, b| a.list == b.list);
        unread.map(|same| self.lists[same[0].list].weight).sum()
    }

    /// Adds to `levels` the roots of the parts in which `lists` must be looked up. `number` is the index of this
    /// search.
    fn push_roots(
        &self,
        number: usize,
        lists: &Range<usize>,
        levels: &mut [Vec<PageVisit>],
    ) -> crate::Result<()> {
        for (place, part) in self.parts.iter().enumerate() {
            let (first, last) = (Posting::from(part.first).key, Posting::from(part.last).key);
            let among = &self.lists[lists.clone()];
            let start = lists.start + among.partition_point(|list| list.key < first);
            let end = lists.start + among.partition_point(|list| list.key <= last);
            if start >= end || !self.counts.can_be_in(part.shift, part.rows) {
                continue;
            }
            let visits = &mut levels[usize::from(part.segment.depth)];
            visits.try_push(PageVisit {
                search: number,
                part: place,
                lists: PageForKeys::root(part, start..end),
            })?;
        }
        Ok(())
    }

    fn look_at_directory<P: Pages>(
        &mut self,
        pages: &mut P,
        visit: &PageVisit,
        level: usize,
        below: &mut Vec<PageVisit>,
    ) -> Result<(), P::Error> {
        let part = &self.parts[visit.part];
        let (lists, long) = (&self.lists, &mut self.long);
        let key = |number: usize| lists[number].key;
        let put = |lists| below.try_push(PageVisit { lists, ..*visit });
        let page = visit.lists.page;
        read_directory(pages, part.segment, level as u8, page, |directory| {
            // All children between the first and the last hold postings of one key only; the last may hold few.
            let goes_on = |number: usize, children: Range<usize>| {
                let is_long = children.len() > 1;
                if is_long {
                    let (density, _) = density(&directory, &children);
                    lists[number].lengthen((density * part.valid_rows()) as u64);
                    let part = visit.part;
                    long.try_push(Long { list: number, part })?;
                }
                Ok(is_long)
            };
            visit.lists.below(&directory, part, key, put, goes_on)
        })
    }

    /// Counts the rows of the short lists on a leaf, and adds its long lists to `self.long`.
    fn look_at_leaf<P: Pages>(&mut self, pages: &mut P, visit: &PageVisit) -> Result<(), P::Error> {
        let part = &self.parts[visit.part];
        let (lists, counts, long) = (&self.lists, &mut self.counts, &mut self.long);
        let key = |number: usize| lists[number].key;
        read_leaf(pages, part.segment, visit.lists.page, |leaf| {
            visit.lists.read(&leaf, part, key, |number, rows| {
                let list = &lists[number];
                if let Some(rows) = rows {
                    return Ok(counts.add(rows, list.weight)?);
                }
                if let Some((first, last)) = part.range(list.key) {
                    let here = leaf.rank(last)?.saturating_sub(leaf.rank(first)?) as f64;
                    let next = visit.lists.next.filter(|next| *next <= last);
                    let more = next.map_or(1.0, |next| part.valid_rows() / f64::from(next.offset));
                    list.lengthen((here * more) as u64);
                }
                let part = visit.part;
                Ok(long.try_push(Long { list: number, part })?)
            })
        })
    }

    /// Calls `found` with the rows that have enough keys, in ascending order. Returns false without calling it if the
    /// postings read and the rows both exceeded the limit.
    fn finish<P: Pages>(
        mut self,
        pages: &mut P,
        found: &mut impl FnMut(u64, u32) -> Result<(), P::Error>,
    ) -> Result<bool, P::Error> {
        self.sort_long();
        let mut unread = self.unread_weight();
        let (all, comparison) = (self.weight(..), comparison(self.elements()));
        let RowCounts::Of(mut candidates) = self.counts else {
            return Ok(false);
        };
        candidates.retain(|candidate| candidate.count + unread >= candidate.needed);
        for same_list in self.long.chunk_by(|a, b| a.list == b.list) {
            let wants_more =
                |candidate: &CountedRow| self.is_exact || candidate.count < candidate.needed;
            if !candidates.iter().any(wants_more) {
                break;
            }
            let list = &self.lists[same_list[0].list];
            for long in same_list {
                probe(pages, &self.parts[long.part], list, &mut candidates)?;
            }
            unread -= list.weight;
            candidates.retain(|candidate| candidate.count + unread >= candidate.needed);
            if self.by_size.is_some() && !self.is_exact {
                are_compared(&mut candidates, [all - unread, all], comparison);
            }
        }
        for candidate in candidates {
            found(self.lo + u64::from(candidate.offset), candidate.count)?;
        }
        Ok(true)
    }
}

/// Returns the estimated number of postings of a list that begins on the first of `children`, at least two, and ends on
/// the child after them.
pub(super) fn list_length(directory: &Directory, children: Range<usize>) -> f64 {
    let (density, rows) = density(directory, &children);
    // The first and the last child hold as many as one of the others, on average.
    density * rows * (1.0 + 1.0 / (children.len() - 1) as f64)
}

/// Returns the estimated share of rows that have a key, and the number of rows for which the share is estimated. The
/// key's postings fill the pages from the second of `children` (at least two) to the last.
fn density(directory: &Directory, children: &Range<usize>) -> (f64, f64) {
    let offset = |child| directory.get(child).map_or(0, |child| child.first.offset);
    let rows = f64::from(offset(children.end).saturating_sub(offset(children.start + 1)));
    let leaves = (children.len() - 1) as f64 * CHILDREN.powi(i32::from(directory.level) - 1);
    // A posting takes about 1.5 bits, plus the bits of the greatest gap between rows in a block of 64.
    let bits = |density: f64| 1.5 + (64.0 / density).log2();
    let of_row = leaves * LEAF_BITS / rows.max(1.0);
    let improve = |density: f64, _| (of_row / bits(density)).min(1.0);
    ((0..3).fold(1.0, improve), rows)
}

impl PageVisit {
    /// Returns the page and the likely place of the first list on it, assuming that keys are spread evenly.
    fn ahead(&self, lists: &[KeyList]) -> PageAhead {
        let PageForKeys { page, next, keys } = &self.lists;
        let end = next.map_or(u32::MAX, |next| next.key);
        let key = lists.get(keys.start).map_or(0, |list| list.key);
        let from = |key: u32| key.saturating_sub(page.first.key) as f32;
        PageAhead {
            block: page.block,
            place: (from(key) / from(end)).clamp(0.0, 1.0),
        }
    }
}
