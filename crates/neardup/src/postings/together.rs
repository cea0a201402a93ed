//! T-occurrence for many queries: their keys are looked up in order, so that a leaf is read once for
//! all of them.

use super::search::{Part, parts};
use super::walk::Leaves;
use super::{Damaged, Group, Leaf, Log, Pages, Posting};
use std::collections::TryReserveError;

/// Postings of a key, or queries that have it, beyond which these queries are searched one by one: so
/// memory stays within 8 bytes for each of this many postings of every key.
const SHORT: usize = 16;

/// Queries that are searched together, numbered in the order in which they were added.
#[derive(Default)]
pub struct Queries {
    /// Key and query, as numbers.
    keys: Vec<u64>,
    needed: Vec<u32>,
    hits: Hits,
}

/// Postings found so far in a group.
#[derive(Default)]
struct Hits {
    /// Query and offset, as numbers.
    hits: Vec<u64>,
    /// Queries that have to be searched alone.
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
    /// Returns where memory does not suffice.
    pub fn add(&mut self, keys: &[u32], needed: usize) -> Result<(), TryReserveError> {
        let query = self.needed.len() as u64;
        self.keys.try_reserve(keys.len())?;
        self.needed.try_reserve(1)?;
        self.hits.crowded.try_reserve(1)?;
        let numbered = keys.iter().map(|key| u64::from(*key) << 32 | query);
        self.keys.extend(numbered);
        self.needed.push(needed.max(1) as u32);
        self.hits.crowded.push(false);
        Ok(())
    }

    /// Orders the keys, when all queries are there.
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

    /// Returns whether a query has keys that many rows or queries have: what was found of it is not
    /// all.
    pub fn is_crowded(&self, query: usize) -> bool {
        self.hits.crowded[query]
    }

    /// Calls `found` with every query, row of a group that has as many of its keys as it needs, and
    /// the number of these; those of a query come in the order of the rows.
    ///
    /// # Errors
    /// Those of `pages` and `found`; damaged pages; too little memory.
    pub fn search<P: Pages>(
        &mut self,
        pages: &mut P,
        group: &Group,
        found: &mut impl FnMut(usize, u64, u32) -> Result<(), P::Error>,
    ) -> Result<(), P::Error> {
        let (lo, parts) = parts::<P::Error>(group)?;
        self.hits.hits.clear();
        for part in &parts {
            self.look_up(pages, part)?;
        }
        self.count(&mut |query, offset, shared| found(query, lo + u64::from(offset), shared))
    }

    /// Does the same with the rows of a page of the log, by their places.
    ///
    /// # Errors
    /// Those of `found`; a damaged page; too little memory.
    pub fn search_log<E: From<Damaged> + From<TryReserveError>>(
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
    fn look_up<P: Pages>(&mut self, pages: &mut P, part: &Part) -> Result<(), P::Error> {
        let Self { keys, hits, .. } = self;
        let mut left = &keys[..];
        while let Some(first) = left.first() {
            let Some((first, _)) = part.range(key_of(*first)) else {
                left = &left[1..];
                continue;
            };
            let mut leaves = Leaves::seek(pages, part.segment, first)?;
            let taken = leaves.visit(pages, |leaf| Ok(hits.take(&leaf, part, left)))?;
            let Some(taken) = taken.transpose()?.transpose()? else {
                return Ok(());
            };
            let (here, rest) = left.split_at(taken);
            let last = here.chunk_by(have_same_key).next_back().unwrap_or_default();
            let range = last.first().and_then(|number| part.range(key_of(*number)));
            if let (Some((_, end)), Some(next)) = (range, leaves.next())
                && next.first <= end
            {
                hits.crowd(last);
            }
            left = rest;
        }
        Ok(())
    }

    /// Calls `found` with what was hit as often as is needed.
    fn count<E>(
        &mut self,
        found: &mut impl FnMut(usize, u32, u32) -> Result<(), E>,
    ) -> Result<(), E> {
        let Hits { hits, crowded } = &mut self.hits;
        hits.sort_unstable();
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
    /// Takes the postings that a leaf has of the first key, and of those behind it that begin on the
    /// leaf. Returns the number of entries of these keys.
    fn take(
        &mut self,
        leaf: &Leaf,
        part: &Part,
        keys: &[u64],
    ) -> Result<Result<usize, TryReserveError>, Damaged> {
        let leaf_last = leaf.last()?;
        let mut taken = 0;
        for same in keys.chunk_by(have_same_key) {
            let Some((first, last)) = part.range(key_of(same[0])) else {
                break;
            };
            if taken > 0 && first > leaf_last {
                break;
            }
            taken += same.len();
            if let Err(failed) = self.take_list(leaf, part, (first, last), same)? {
                return Ok(Err(failed));
            }
        }
        Ok(Ok(taken))
    }

    /// Takes the postings that a leaf has of one key.
    fn take_list(
        &mut self,
        leaf: &Leaf,
        part: &Part,
        (first, last): (Posting, Posting),
        same: &[u64],
    ) -> Result<Result<(), TryReserveError>, Damaged> {
        let (mut found, mut failed) = (0, Ok(()));
        leaf.visit(first, last, &mut |run| {
            found += run.len();
            if found > SHORT {
                self.crowd(same);
                return Ok(false);
            }
            for posting in run {
                let offset = part.group_offset(*posting)?;
                failed = same
                    .iter()
                    .try_for_each(|number| self.push(*number, offset));
            }
            Ok(failed.is_ok())
        })?;
        Ok(failed)
    }

    /// Notes a row that has the key of an entry.
    fn push(&mut self, entry: u64, offset: u32) -> Result<(), TryReserveError> {
        self.hits.try_reserve(1)?;
        self.hits.push(entry << 32 | u64::from(offset));
        Ok(())
    }

    /// Notes that the queries of a key have to be searched alone.
    fn crowd(&mut self, same: &[u64]) {
        for number in same {
            self.crowded[*number as u32 as usize] = true;
        }
    }
}
