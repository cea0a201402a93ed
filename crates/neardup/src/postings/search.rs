//! T-occurrence: the rows that share at least T of a query's keys.
//!
//! Any T - 1 of the lists can be left unread: a row that is in no other list has fewer than T keys. Candidates that
//! can still reach T are looked up in the unread lists (Li, Lu, Lu, 'Efficient merging and filtering algorithms for
//! approximate string searches', ICDE 2008). Lists are usually short, and are counted as they are found; then it
//! does not matter which are left unread. If there are long lists, of keys that many rows share, the longest are
//! left unread. Candidates are looked up in these from the shortest to the longest.
//!
//! All groups are searched together, level by level, so that a search waits for its storage once a level, not once a
//! page.

use super::count::{RowCounts, RowTally};
use super::key_list::{KeyList, fewest, lists};
use super::long::{probe, scan};
use super::lookup::PageForKeys;
use super::part::{SegmentPart, offsets_of, parts};
use super::walk::{read_directory, read_leaf};
use super::{AHEAD, MAX_DEPTH, PageAhead, Pages, Posting, SegmentGroup};
use crate::bands::occurrence::Minimum;
use crate::memory::{Grow, collected, with_room};
use std::ops::Range;

/// A list with more postings is long.
const SHORT: usize = 128;

/// About as many children as a directory page has, and postings as a leaf has, as powers of 2; with these, lengths
/// of lists are estimated.
const CHILDREN_LOG2: u32 = 9;
const POSTINGS_LOG2: u32 = 11;

/// A query for [`search`].
#[derive(Debug, Clone, Copy)]
pub struct KeyQuery<'q> {
    pub keys: &'q [u32],
    /// The number of keys that a row must have, 1 or more. A key that the query repeats counts each time.
    pub needed: usize,
    /// Ascending numbers of keys: after each, rows with fewer of these keys are left out.
    pub minima: [Minimum; 2],
    /// True if all keys of found rows are counted, not only those that decide that the rows are found.
    pub is_exact: bool,
    /// The most rows to count at a time if more postings than this are read, 1 or more.
    pub most: u32,
}

/// Calls `found` with every row of the groups that has at least as many keys as a query needs, and the number of
/// keys that it is known to have. Rows come in the order of the groups, ascending within each.
///
/// Without long lists, reads one leaf for each key of the first minimum, and every directory page on the way once.
/// Leaves for other keys are read only if there are candidates. Memory: 16 bytes for each of `most` rows.
///
/// # Errors
/// Those of `pages` and `found`; damaged pages; too little memory.
pub fn search<P: Pages>(
    pages: &mut P,
    groups: &[SegmentGroup],
    query: &KeyQuery,
    found: &mut impl FnMut(u64, u32) -> Result<(), P::Error>,
) -> Result<(), P::Error> {
    if query.keys.len() < query.needed {
        return Ok(());
    }
    let share = (query.most / groups.len().max(1) as u32).max(1);
    let mut searches = with_room(groups.len())?;
    for group in groups {
        let (lo, parts) = parts::<P::Error>(group)?;
        searches.push(GroupSearch::new(lo, parts, query, share)?);
    }
    count_short(pages, &mut searches, query)?;
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
            count_short(pages, &mut alone, query)?;
            for counted in alone {
                counted.finish(pages, found)?;
            }
        }
    }
    Ok(())
}

/// Counts the short lists of searches, as far as they decide which rows are found.
fn count_short<P: Pages>(
    pages: &mut P,
    searches: &mut [GroupSearch],
    query: &KeyQuery,
) -> Result<(), P::Error> {
    let Some(first) = searches.first() else {
        return Ok(());
    };
    let all = first.lists.len();
    let ends = query.minima.map(|minimum| {
        let rest = (query.keys.len() as u32).saturating_sub(minimum.of);
        fewest(&first.lists, rest)
    });
    let mut start = 0;
    for (end, minimum) in ends.into_iter().zip(&query.minima) {
        look_up(pages, searches, start..end)?;
        for search in searches.iter_mut() {
            search.keep_candidates(pages, end, minimum.shared)?;
        }
        start = end;
    }
    look_up(pages, searches, start..all)
}

/// Looks up lists in the searches that want more of them. All pages of a level are announced together.
fn look_up<P: Pages>(
    pages: &mut P,
    searches: &mut [GroupSearch],
    lists: Range<usize>,
) -> Result<(), P::Error> {
    let mut levels: [Vec<PageVisit>; MAX_DEPTH as usize + 1] = Default::default();
    for (number, search) in searches.iter().enumerate() {
        search.push_roots(number, &lists, &mut levels)?;
    }
    for level in (0..levels.len()).rev() {
        let mut visits = std::mem::take(&mut levels[level]);
        for together in visits.chunks_mut(AHEAD) {
            pages.announce(together, |visit| visit.ahead(&searches[visit.search].lists))?;
            for visit in together {
                pages.interrupt()?;
                let search = &mut searches[visit.search];
                match level.checked_sub(1) {
                    Some(below) => {
                        search.look_at_directory(pages, visit, level, &mut levels[below])?;
                    }
                    None => search.look_at_leaf(pages, visit)?,
                }
            }
        }
    }
    Ok(())
}

/// A page to look at for some lists.
struct PageVisit {
    /// The numbers of the search and of its part.
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
    needed: u32,
    is_exact: bool,
    /// The number of the query's keys that unread lists may have.
    most_unread: u32,
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
        let lists = lists(query.keys)?;
        let needed = query.needed as u32;
        Ok(Self {
            lo,
            counts: RowCounts::All(RowTally::new(offsets_of(&parts), most as usize)),
            parts,
            lists,
            needed,
            is_exact: query.is_exact,
            most_unread: needed - 1,
            long: Vec::new(),
        })
    }

    /// Keeps as candidates the rows that have at least `shared` of the lists before list `end`, once all of these
    /// lists are short.
    fn keep_candidates<P: Pages>(
        &mut self,
        pages: &mut P,
        end: usize,
        shared: u32,
    ) -> Result<(), P::Error> {
        let (looked_up, rest) = self.lists.split_at(end);
        let long = looked_up.iter().filter(|list| list.long_postings.get() > 0);
        let uncounted: u32 = long.map(|list| list.weight).sum();
        if let RowCounts::Of(candidates) = &mut self.counts {
            candidates.retain(|candidate| candidate.count + uncounted >= shared);
        } else if self.long.is_empty() && !self.counts.is_full() {
            self.most_unread = rest.iter().map(|list| list.weight).sum();
            let candidates = self.counts.candidates(shared, &mut || pages.interrupt())?;
            self.counts = RowCounts::Of(candidates);
        }
        Ok(())
    }

    /// Returns whether further lists can decide about rows.
    fn wants_more(&self) -> bool {
        match &self.counts {
            RowCounts::All(_) => !self.counts.is_full(),
            RowCounts::Of(candidates) => candidates
                .iter()
                .any(|candidate| self.is_exact || candidate.count < self.needed),
        }
    }

    /// Adds the roots of the parts in which lists must be looked up.
    fn push_roots(
        &self,
        number: usize,
        lists: &Range<usize>,
        levels: &mut [Vec<PageVisit>],
    ) -> crate::Result<()> {
        if !self.wants_more() {
            return Ok(());
        }
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
        &self,
        pages: &mut P,
        visit: &PageVisit,
        level: usize,
        below: &mut Vec<PageVisit>,
    ) -> Result<(), P::Error> {
        let part = &self.parts[visit.part];
        let key = |number: usize| self.lists[number].key;
        let put = |lists| below.try_push(PageVisit { lists, ..*visit });
        let goes_on = |number: usize, children: usize| {
            let leaves = (children as u64) << (CHILDREN_LOG2 * (level - 1) as u32);
            self.lists[number].lengthen(leaves << POSTINGS_LOG2);
        };
        let page = visit.lists.page;
        read_directory(pages, part.segment, level as u8, page, |directory| {
            visit.lists.below(&directory, part, key, put, goes_on)
        })
    }

    /// Counts the short lists of a leaf, and notes its long ones.
    fn look_at_leaf<P: Pages>(&mut self, pages: &mut P, visit: &PageVisit) -> Result<(), P::Error> {
        let part = &self.parts[visit.part];
        let (lists, counts, long) = (&self.lists, &mut self.counts, &mut self.long);
        let key = |number: usize| lists[number].key;
        read_leaf(pages, part.segment, visit.lists.page, |leaf| {
            visit
                .lists
                .read::<SHORT, _>(&leaf, part, key, |places, rows| {
                    let (number, list) = (places.start, &lists[places.start]);
                    if let Some(rows) = rows {
                        return Ok(counts.add(rows, list.weight)?);
                    }
                    if let Some((first, last)) = part.range(list.key) {
                        let here = leaf.rank(last)?.saturating_sub(leaf.rank(first)?);
                        list.lengthen(here.max(1) as u64);
                    }
                    let part = visit.part;
                    Ok(long.try_push(Long { list: number, part })?)
                })
        })
    }

    /// Reads the long lists, and calls `found` with the rows that have enough keys, ascending. Returns false,
    /// without any call, if both the postings read and the rows are more than the limit.
    fn finish<P: Pages>(
        mut self,
        pages: &mut P,
        found: &mut impl FnMut(u64, u32) -> Result<(), P::Error>,
    ) -> Result<bool, P::Error> {
        let mut unread = self.leave_unread();
        for long in &self.long {
            let list = &self.lists[long.list];
            if !list.unread && !self.counts.is_full() {
                scan(pages, &self.parts[long.part], list, &mut self.counts)?;
            }
        }
        if self.counts.is_full() {
            return Ok(false);
        }
        let reached = self.needed.saturating_sub(unread).max(1);
        let mut candidates = self.counts.candidates(reached, &mut || pages.interrupt())?;
        for same_list in self.long.chunk_by(|a, b| a.list == b.list) {
            let list = &self.lists[same_list[0].list];
            if !list.unread || candidates.is_empty() {
                continue;
            }
            for long in same_list {
                probe(pages, &self.parts[long.part], list, &mut candidates)?;
            }
            unread -= list.weight;
            candidates.retain(|candidate| candidate.count + unread >= self.needed);
        }
        for candidate in candidates {
            found(self.lo + u64::from(candidate.offset), candidate.count)?;
        }
        Ok(true)
    }

    /// Marks the longest lists that may be left unread, and returns their number of keys of the query. Orders the
    /// long parts by the length of their lists.
    fn leave_unread(&mut self) -> u32 {
        let lists = &mut self.lists;
        self.long
            .sort_unstable_by_key(|long| (lists[long.list].long_postings.get(), long.list));
        let mut unread = 0;
        for long in self.long.iter().rev() {
            let list = &mut lists[long.list];
            if !list.unread && list.weight <= self.most_unread - unread {
                list.unread = true;
                unread += list.weight;
            }
        }
        unread
    }
}

impl PageVisit {
    /// Returns the page, and where on it the first list probably is, because keys are usually spread evenly.
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
