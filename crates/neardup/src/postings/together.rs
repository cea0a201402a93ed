//! T-occurrence for many queries: their keys are looked up in order, so that each leaf is read once for all queries.

use super::lookup::PageForKeys;
use super::part::{SegmentPart, parts};
use super::sort::sort;
use super::walk::{read_directory, read_leaf};
use super::{AHEAD, Damaged, Log, PageAhead, Pages, SegmentGroup};
use crate::Error;
use crate::memory::Grow;

/// If a key has more postings than this, or more queries have it, these queries are searched one by one. So memory
/// stays within 8 bytes for each of this many postings of every key.
const SHORT: usize = 16;

/// Queries that are searched together, numbered in the order in which they were added.
#[derive(Default)]
pub struct Queries {
    /// Key and query in one number.
    keys: Vec<u64>,
    needed: Vec<u32>,
    hits: Hits,
}

/// Postings found so far in a group.
#[derive(Default)]
struct Hits {
    /// Query and offset in one number.
    hits: Vec<u64>,
    /// True for queries that must be searched alone.
    crowded: Vec<bool>,
}

fn key_of(number: u64) -> u32 {
    (number >> 32) as u32
}

fn have_same_key(a: &u64, b: &u64) -> bool {
    key_of(*a) == key_of(*b)
}

impl Queries {
    /// Adds a query for the rows that have at least `needed` of the keys.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn add(&mut self, keys: &[u32], needed: usize) -> crate::Result<()> {
        let query = self.needed.len() as u64;
        let numbered = keys.iter().map(|key| u64::from(*key) << 32 | query);
        self.keys.try_extend(numbered)?;
        self.needed.try_push(needed.max(1) as u32)?;
        self.hits.crowded.try_push(false)
    }

    /// Sorts the keys, after all queries have been added.
    pub fn sort(&mut self) {
        self.keys.sort_unstable();
        for same in self.keys.chunk_by(have_same_key) {
            if same.len() > SHORT {
                self.hits.crowd(same);
            }
        }
        let crowded = &self.hits.crowded;
        self.keys.retain(|number| !crowded[*number as u32 as usize]);
    }

    /// Returns whether a query has a key that many rows or queries have, so that the search does not find all of its
    /// rows.
    pub fn is_crowded(&self, query: usize) -> bool {
        self.hits.crowded[query]
    }

    /// Calls `found` with a query, a row of the group that has as many of its keys as it needs, and the number of
    /// these keys. The rows of a query come in their order.
    ///
    /// # Errors
    /// Those of `pages` and `found`; damaged pages; too little memory.
    pub fn search<P: Pages>(
        &mut self,
        pages: &mut P,
        group: &SegmentGroup,
        found: &mut impl FnMut(usize, u64, u32) -> Result<(), P::Error>,
    ) -> Result<(), P::Error> {
        let (lo, parts) = parts::<P::Error>(group)?;
        self.hits.hits.clear();
        for part in &parts {
            self.look_up(pages, part)?;
        }
        self.count(&mut |query, offset, shared| found(query, lo + u64::from(offset), shared))
    }

    /// Does the same with the rows of a log page, identified by their places.
    ///
    /// # Errors
    /// Those of `found`; a damaged page; too little memory.
    pub fn search_log<E: From<Damaged> + From<Error>>(
        &mut self,
        log: &Log,
        found: &mut impl FnMut(usize, u32, u32) -> Result<(), E>,
    ) -> Result<(), E> {
        self.hits.hits.clear();
        for (place, row) in (0..).zip(log.iter()) {
            for key in row?.keys() {
                let start = self.keys.partition_point(|number| key_of(*number) < key);
                let rest = self.keys[start..].iter();
                let same = rest.take_while(|number| key_of(**number) == key);
                for number in same {
                    self.hits.push(*number, place)?;
                }
            }
        }
        self.count(found)
    }

    /// Finds the postings of a part.
    fn look_up<P: Pages>(&mut self, pages: &mut P, part: &SegmentPart) -> Result<(), P::Error> {
        let Self { keys, hits, .. } = self;
        let counts = |number: &u64| part.range(key_of(*number)).is_some();
        let start = keys.iter().position(counts).unwrap_or(keys.len());
        let end = keys.iter().rposition(counts).map_or(start, |last| last + 1);
        if start == end {
            return Ok(());
        }
        let root = PageForKeys::root(part, start..end);
        hits.look_at(pages, part, keys, part.segment.depth, &mut [root])
    }

    /// Calls `found` with the rows that were hit as often as is needed.
    fn count<E>(
        &mut self,
        found: &mut impl FnMut(usize, u32, u32) -> Result<(), E>,
    ) -> Result<(), E> {
        let Hits { hits, crowded } = &mut self.hits;
        sort(hits);
        for same in hits.chunk_by(|a, b| a == b) {
            let (query, shared) = ((same[0] >> 32) as usize, same.len() as u32);
            if shared >= self.needed[query] && !crowded[query] {
                found(query, same[0] as u32, shared)?;
            }
        }
        Ok(())
    }
}

impl Hits {
    /// Looks up keys on pages of a level, and on the pages below them.
    fn look_at<P: Pages>(
        &mut self,
        pages: &mut P,
        part: &SegmentPart,
        keys: &[u64],
        level: u8,
        visits: &mut [PageForKeys],
    ) -> Result<(), P::Error> {
        let key = |place: usize| key_of(keys[place]);
        for together in visits.chunks_mut(AHEAD) {
            pages.interrupt()?;
            if level == 0 {
                pages.announce(together, |visit| PageAhead {
                    block: visit.page.block,
                    place: 0.0,
                })?;
            }
            for visit in together {
                if level == 0 {
                    read_leaf(pages, part.segment, visit.page, |leaf| {
                        visit.read::<SHORT, _>(&leaf, part, key, |same, rows| {
                            Ok(self.take(&keys[same], rows)?)
                        })
                    })?;
                    continue;
                }
                let mut below = Vec::new();
                read_directory(pages, part.segment, level, visit.page, |directory| {
                    let put = |page| below.try_push(page);
                    visit.below(&directory, part, key, put, |_, _| Ok(false))
                })?;
                self.look_at(pages, part, keys, level - 1, &mut below)?;
            }
        }
        Ok(())
    }

    /// Adds the rows that have the key of some entries; `rows` is None if there are many.
    fn take(&mut self, same: &[u64], rows: Option<&[u32]>) -> Result<(), Error> {
        let Some(rows) = rows else {
            self.crowd(same);
            return Ok(());
        };
        for (entry, row) in same
            .iter()
            .flat_map(|entry| rows.iter().map(move |row| (entry, row)))
        {
            self.push(*entry, *row)?;
        }
        Ok(())
    }

    /// Notes a row that has the key of an entry.
    fn push(&mut self, entry: u64, offset: u32) -> Result<(), Error> {
        self.hits.try_push(entry << 32 | u64::from(offset))
    }

    /// Notes that the queries that have a key must be searched alone.
    fn crowd(&mut self, same: &[u64]) {
        for number in same {
            self.crowded[*number as u32 as usize] = true;
        }
    }
}
