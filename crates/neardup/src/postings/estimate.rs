//! Estimates how many rows share a part of a query's keys, from a bounded number of pages.
//!
//! Keys are hashes, so neighboring keys are a random sample of the query's. If a list is on one leaf, all of its rows
//! are known. The length of a longer list is estimated from the directory, and the rows on one of its leaves are known.
//! For all long lists, the leaf around the same row is read, so that they can be compared.

use super::directory::{Directory, DirectoryEntry};
use super::part::{SegmentPart, parts};
use super::sort::sort;
use super::walk::{read_directory, read_leaf};
use super::{AHEAD, PageAhead, Pages, Posting, SegmentGroup};
use crate::Result;
use crate::memory::{Grow, collected, copied};
use std::ops::Range;

/// Approximate number of children of a directory page, for estimating the lengths of lists.
const CHILDREN: f64 = 512.0;

/// Maximum number of keys from which the keys to look up are chosen.
pub(super) const MOST_KEYS: usize = 1024;

/// Number of rows of a long list to compare with the other lists.
const COMPARED: usize = 1024;

/// The rows that have some of a query's keys.
pub struct Estimate {
    /// The number of postings of each list, longest first. For a long list, also how many of them are among the
    /// compared rows.
    lists: Vec<(f64, Option<usize>)>,
    /// The rows that are in any of the lists. For long lists, only the compared rows.
    pub(super) shared: Vec<SharingRow>,
    /// The group's first row.
    lo: u64,
    /// The number of all rows, which limits the result because lengths of long lists are guesses.
    pub(super) all_rows: f64,
}

/// A row, and the numbers of short and long lists that contain it.
pub(super) struct SharingRow {
    offset: u32,
    pub(super) short: u32,
    pub(super) long: u32,
}

impl Estimate {
    /// Looks up as many of `keys` as `most_pages` pages allow. Reads long lists only around one row, which probably has
    /// about `share` of the keys, and compares them there.
    ///
    /// # Errors
    /// The errors of `pages`; damaged pages; `OutOfMemory`.
    pub fn new<P: Pages>(
        pages: &mut P,
        group: &SegmentGroup,
        keys: &[u32],
        most_pages: usize,
        share: f64,
    ) -> std::result::Result<Self, P::Error> {
        let (lo, parts) = parts::<P::Error>(group)?;
        let mut sorted = copied(keys)?;
        sorted.sort_unstable();
        sorted.dedup();
        sorted.truncate(MOST_KEYS);
        // During a merge, a key is in the output or in the inputs.
        let is_output = |part: &&SegmentPart| {
            let output = group.output.as_ref();
            output.is_some_and(|output| output.segment.number == part.segment.number)
        };
        let output = parts.iter().find(is_output);
        let inputs = parts.iter().filter(|part| !is_output(part));
        let largest = inputs.max_by_key(|part| part.segment.postings);
        let mut lists = Vec::new();
        for part in [output, largest].into_iter().flatten() {
            let here = |key: &u32| part.range(*key).is_some();
            let here: Vec<u32> = sorted.iter().copied().filter(here).collect();
            let most_pages = most_pages * here.len() / sorted.len().max(1);
            if most_pages > usize::from(part.segment.depth) {
                let (mut found, left) = find(pages, part, here, most_pages)?;
                choose_leaves(&mut found, share);
                lists.append(&mut read(pages, part, found, left)?);
            }
        }
        lists
            .sort_unstable_by(|a: &SampledList, b: &SampledList| b.postings.total_cmp(&a.postings));
        let window = window(&mut lists);
        let is_compared = |row: &&u32| window.contains(row);
        let compared = |list: &SampledList| {
            let is_long = list.window.is_some();
            is_long.then(|| list.rows.iter().filter(is_compared).count())
        };
        let hi = parts.iter().map(|part| part.segment.hi).max();
        Ok(Self {
            all_rows: hi.map_or(0.0, |hi| hi.saturating_sub(lo) as f64),
            lo,
            shared: shared(&lists, &window)?,
            lists: lists
                .iter()
                .map(|list| (list.postings, compared(list)))
                .collect(),
        })
    }

    /// Returns the approximate number of rows that have at least `share` of the query's keys, if no row has more than
    /// `greatest` of them.
    pub fn rows(&self, share: f64, greatest: f64) -> f64 {
        let all = self.lists.len() as f64;
        if share * all < 1.0 {
            let postings: f64 = self.lists.iter().map(|(postings, _)| postings).sum();
            let rows = postings / (all * share.midpoint(greatest)).max(1.0);
            return rows.min(self.all_rows);
        }
        let mut least = enough(share, self.lists.len());
        let scale = self.scale(least);
        if scale.is_none() {
            // Rows that have only keys of long lists have too few, so these keys are left out.
            let short = self.lists.iter().filter(|(_, compared)| compared.is_none());
            least = enough(share, short.count());
        }
        let rows = self.shared.iter().map(|row| {
            if row.short as usize >= least {
                1.0
            } else if (row.short + row.long) as usize >= least {
                scale.unwrap_or(0.0)
            } else {
                0.0
            }
        });
        rows.sum::<f64>().min(self.all_rows)
    }

    /// Returns the number of lists looked up.
    pub(super) fn lists(&self) -> usize {
        self.lists.len()
    }

    /// Returns the maximum number of looked up keys that a row has.
    pub(super) fn most_shared(&self) -> usize {
        let shared = self.shared.iter().map(|row| row.short + row.long);
        shared.max().unwrap_or(0) as usize
    }

    /// Returns how many rows a compared row represents, if rows need `least` of the keys looked up. Returns None if
    /// they need some whose lists are short.
    pub(super) fn scale(&self, least: usize) -> Option<f64> {
        let &(postings, compared) = self.lists.get(least - 1)?;
        compared.map(|compared| postings / compared.max(1) as f64)
    }

    /// Returns the known rows, in ascending order, each with the number of looked up keys that it has, if `is_wanted`
    /// holds for that number.
    pub fn sharing(&self, is_wanted: impl Fn(u32) -> bool) -> impl Iterator<Item = (u64, u32)> {
        let rows = self.shared.iter();
        let rows = rows.map(|row| (self.lo + u64::from(row.offset), row.short + row.long));
        rows.filter(move |(_, shared)| is_wanted(*shared))
    }
}

/// The rows that have a key.
struct SampledList {
    key: u32,
    /// The approximate number of leaves on which the list continues after its first leaf.
    leaves: f64,
    /// Its leaves below one directory page, and the first posting of the leaf after these.
    children: Vec<DirectoryEntry>,
    end: Option<Posting>,
    /// The leaf to read.
    leaf: DirectoryEntry,
    postings: f64,
    /// Offsets of the rows read.
    rows: Vec<u32>,
    /// The range of rows in which the list is fully known; None if all of it is known.
    window: Option<Range<u32>>,
}

impl SampledList {
    fn new(
        key: u32,
        leaves: f64,
        children: Vec<DirectoryEntry>,
        end: Option<Posting>,
    ) -> Option<Self> {
        Some(Self {
            key,
            leaves,
            leaf: *children.first()?,
            children,
            end,
            postings: 0.0,
            rows: Vec::new(),
            window: None,
        })
    }

    /// Chooses the leaf around the row at `offset`.
    fn choose(&mut self, offset: u32) {
        let around = Posting {
            key: self.key,
            offset,
        };
        let after = self.children.partition_point(|leaf| leaf.first <= around);
        let place = after.saturating_sub(1);
        self.leaf = self.children[place];
        let offset_of = |first: Posting| (first.key == self.key).then_some(first.offset);
        let next = self.children.get(place + 1).map(|leaf| leaf.first);
        let end = next.or(self.end).and_then(offset_of);
        self.window = Some(offset_of(self.leaf.first).unwrap_or(0)..end.unwrap_or(u32::MAX));
    }
}

/// Returns a range of rows in which every long list is fully known, with at most about [`COMPARED`] rows of each
/// list.
fn window(lists: &mut [SampledList]) -> Range<u32> {
    let windows = lists.iter().filter_map(|list| list.window.clone());
    let both = |a: Range<u32>, b: Range<u32>| a.start.max(b.start)..a.end.min(b.end);
    let mut window = windows.reduce(both).unwrap_or(0..0);
    for list in lists.iter_mut().filter(|list| list.window.is_some()) {
        list.rows.sort_unstable();
        let start = list.rows.partition_point(|row| *row < window.start);
        if let Some(last) = list.rows.get(start + COMPARED) {
            window.end = window.end.min(*last);
        }
    }
    window
}

/// Returns the rows in ascending order, each with the numbers of short and long lists that contain it. Of long lists,
/// counts only the rows in `window`.
fn shared(lists: &[SampledList], window: &Range<u32>) -> Result<Vec<SharingRow>> {
    let mut rows: Vec<u64> = Vec::new();
    for list in lists {
        let is_long = list.window.is_some();
        let known = list.rows.iter();
        let known = known.filter(|row| !is_long || window.contains(row));
        rows.try_extend(known.map(|row| u64::from(*row) << 1 | u64::from(is_long)))?;
    }
    sort(&mut rows);
    let of_row = |same: &[u64]| {
        let long = same.iter().filter(|row| **row & 1 == 1).count();
        SharingRow {
            offset: (same[0] >> 1) as u32,
            short: (same.len() - long) as u32,
            long: long as u32,
        }
    };
    collected(rows.chunk_by(|a, b| a >> 1 == b >> 1).map(of_row))
}

/// Returns how many of `keys` keys a row has, on average, if it has `share` of all keys.
pub(super) fn enough(share: f64, keys: usize) -> usize {
    (share * keys as f64).round().max(1.0) as usize
}

/// A directory page to read for some keys.
struct PageToSample {
    page: DirectoryEntry,
    /// The first posting of the next page.
    end: Option<Posting>,
    keys: Vec<u32>,
    /// Number of leaves after the page on which the list of its only key continues.
    leaves: f64,
}

impl PageToSample {
    /// Adds the lists that begin below `directory` to `lists` if its level is 1. Otherwise adds the pages to read below
    /// it to `below`.
    fn descend(
        &self,
        part: &SegmentPart,
        directory: &Directory,
        lists: &mut Vec<SampledList>,
        below: &mut Vec<Self>,
    ) -> Result<()> {
        let level = directory.level();
        let begin = |child| directory.get(child).map(|entry| entry.first);
        lists.try_reserve(self.keys.len())?;
        below.try_reserve(self.keys.len())?;
        for &key in &self.keys {
            let Some((first, last)) = part.range(key) else {
                continue;
            };
            let (from, to) = (directory.child_of(first), directory.child_of(last));
            let here = to.saturating_sub(from) as f64 * CHILDREN.powi(i32::from(level) - 1);
            let leaves = here + self.leaves;
            if level == 1 {
                let children = (from..=to).filter_map(|child| directory.get(child));
                let end = begin(to + 1).or(self.end);
                lists.extend(SampledList::new(key, leaves, children.collect(), end));
                continue;
            }
            let child = from.midpoint(to);
            let Some(page) = directory.get(child) else {
                continue;
            };
            let is_same = |last: &&mut Self| last.page == page && leaves + last.leaves == 0.0;
            match below.last_mut().filter(is_same) {
                Some(last) => last.keys.push(key),
                None => below.push(Self {
                    page,
                    end: begin(child + 1).or(self.end),
                    keys: Vec::from([key]),
                    leaves,
                }),
            }
        }
        Ok(())
    }
}

/// Finds the leaves of as many of `keys` as `most_pages` pages allow. Returns the lists, and how many pages are left
/// for reading leaves.
fn find<P: Pages>(
    pages: &mut P,
    part: &SegmentPart,
    keys: Vec<u32>,
    most_pages: usize,
) -> std::result::Result<(Vec<SampledList>, usize), P::Error> {
    let page = DirectoryEntry::of_root(part.segment);
    let depth = part.segment.depth;
    let mut lists = Vec::new();
    if depth == 0 {
        let list = |&key: &u32| SampledList::new(key, 0.0, Vec::from([page]), None);
        lists.try_extend(keys.iter().filter_map(list))?;
    }
    let mut left = most_pages;
    let mut visits = Vec::from([PageToSample {
        page,
        end: None,
        keys,
        leaves: 0.0,
    }]);
    for level in (1..=depth).rev() {
        let mut below = Vec::new();
        // The pages with the most keys come first, because each key takes a page on every level below.
        visits.sort_unstable_by_key(|visit| std::cmp::Reverse((visit.keys.len(), visit.keys[0])));
        let mut room = left;
        for visit in visits {
            if room <= usize::from(level) {
                break;
            }
            room = room.saturating_sub(1 + visit.keys.len() * usize::from(level));
            left -= 1;
            pages.interrupt()?;
            read_directory(pages, part.segment, level, visit.page, |directory| {
                Ok(visit.descend(part, &directory, &mut lists, &mut below)?)
            })?;
        }
        visits = below;
    }
    Ok((lists, left))
}

/// Chooses the leaf of every long list around the same row, which is in the middle of a list that contains rows with
/// `share` of the keys.
fn choose_leaves(lists: &mut [SampledList], share: f64) {
    let least = enough(share, lists.len());
    lists.sort_unstable_by(|a, b| b.leaves.total_cmp(&a.leaves).then(a.key.cmp(&b.key)));
    let mut of_matches = lists.iter().take(least);
    let middle = of_matches
        .rfind(|list| list.children.len() > 1)
        .map_or(0, |list| {
            list.children[list.children.len() / 2].first.offset
        });
    for list in lists.iter_mut().filter(|list| list.leaves > 0.0) {
        list.choose(middle);
    }
    lists.sort_unstable_by_key(|list| list.key);
}

/// Reads the lists on at most `most_pages` leaves, then the other leaf of each list that is on two. Returns the lists
/// read.
fn read<P: Pages>(
    pages: &mut P,
    part: &SegmentPart,
    mut lists: Vec<SampledList>,
    most_pages: usize,
) -> std::result::Result<Vec<SampledList>, P::Error> {
    let (mut count, mut left) = (0, most_pages);
    let leaves = lists
        .chunk_by(|a, b| a.leaf == b.leaf)
        .take(most_pages.min(AHEAD));
    let mut blocks: Vec<u32> = leaves.map(|same| same[0].leaf.block).collect();
    pages.announce(&mut blocks, |&block| PageAhead { block, place: 0.0 })?;
    for same in lists.chunk_by_mut(|a, b| a.leaf == b.leaf).take(most_pages) {
        read_lists(pages, part, same[0].leaf, same)?;
        count += same.len();
        left -= 1;
    }
    lists.truncate(count);
    let on_two = |list: &&mut SampledList| list.leaves == 1.0 && list.children.len() == 2;
    for list in lists.iter_mut().filter(on_two).take(left) {
        let is_first = list.leaf == list.children[0];
        let other = list.children[usize::from(is_first)];
        list.window = None;
        read_lists(pages, part, other, std::slice::from_mut(list))?;
    }
    Ok(lists)
}

fn read_lists<P: Pages>(
    pages: &mut P,
    part: &SegmentPart,
    leaf: DirectoryEntry,
    lists: &mut [SampledList],
) -> std::result::Result<(), P::Error> {
    pages.interrupt()?;
    read_leaf(pages, part.segment, leaf, |leaf| {
        for list in lists {
            let Some((first, last)) = part.range(list.key) else {
                continue;
            };
            let about = leaf.rank(last)?.saturating_sub(leaf.rank(first)?) + 1;
            list.rows.try_reserve(about).map_err(crate::Error::from)?;
            leaf.visit(first, last, &mut |run| {
                for number in run {
                    list.rows.push(part.group_offset(*number)?);
                }
                Ok(true)
            })?;
            let (all, here) = (leaf.len() as f64, list.rows.len() as f64);
            list.postings = match list.window {
                None => here,
                Some(_) if here == all => list.leaves * all,
                Some(_) => (list.leaves - 1.0) * all + 2.0 * here,
            };
        }
        Ok(())
    })
}
