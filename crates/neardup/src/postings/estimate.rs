//! Estimates how many rows share a part of a query's keys, from a bounded number of pages.
//!
//! Keys are hashes, so keys on the same pages are a random sample of the query's. The rows of a list on one or two
//! leaves are read. The length of a longer list is estimated from the directory. Rows that have keys of many other rows
//! usually have them from one template, so all long lists are assumed to contain the same rows.

use super::directory::DirectoryEntry;
use super::part::{SegmentPart, parts};
use super::search::list_length;
use super::walk::{read_directory, read_leaf};
use super::{AHEAD, PageAhead, Pages, SegmentGroup};
use crate::memory::{Grow, collected, copied};

/// Maximum number of keys from which the keys to look up are chosen.
const MOST_KEYS: usize = 1024;

/// The rows that have some of a query's keys.
pub struct Estimate {
    /// The number of keys looked up.
    keys: usize,
    /// The lengths of long lists, longest first.
    long: Vec<f64>,
    /// The rows in other lists, ascending, each with the number of these lists that contain it.
    rows: Vec<(u64, usize)>,
    /// The number of all rows, which limits the result because lengths of long lists are guesses.
    all_rows: f64,
}

impl Estimate {
    /// Looks up as many of `keys` as `most_pages` pages allow.
    ///
    /// # Errors
    /// The errors of `pages`; damaged pages; `OutOfMemory`.
    pub fn new<P: Pages>(
        pages: &mut P,
        group: &SegmentGroup,
        keys: &[u32],
        most_pages: usize,
    ) -> Result<Self, P::Error> {
        let (lo, parts) = parts::<P::Error>(group)?;
        let mut sorted = copied(keys)?;
        sorted.sort_unstable();
        sorted.dedup();
        sorted.truncate(MOST_KEYS);
        // During a merge, a key is in the output or in the inputs.
        let output = group.output.map(|output| output.segment.number);
        let is_output = |part: &&SegmentPart| Some(part.segment.number) == output;
        let inputs = parts.iter().filter(|part| !is_output(part));
        let largest = inputs.max_by_key(|part| part.segment.postings);
        let mut found = Found::default();
        for part in parts.iter().find(is_output).into_iter().chain(largest) {
            let here = sorted.iter().filter(|key| part.range(**key).is_some());
            let here = collected(here.copied())?;
            found.left = most_pages * here.len() / sorted.len().max(1);
            let root = DirectoryEntry::of_root(part.segment);
            found.look_up(pages, part, part.segment.depth, root, &here)?;
        }
        found.keys.sort_unstable();
        found.keys.dedup();
        found.offsets.sort_unstable();
        let mut long = collected(found.long.iter().map(|(_, length)| *length))?;
        long.sort_unstable_by(|a, b| b.total_cmp(a));
        let same_row = found.offsets.chunk_by(|a, b| a == b);
        let hi = parts.iter().map(|part| part.segment.hi).max();
        Ok(Self {
            keys: found.keys.len() + long.len(),
            long,
            rows: collected(same_row.map(|same| (lo + u64::from(same[0]), same.len())))?,
            all_rows: hi.map_or(0.0, |hi| hi.saturating_sub(lo) as f64),
        })
    }

    /// Returns the approximate number of rows that have at least `share` of the query's keys, if no row has more than
    /// `greatest` of them.
    pub fn rows(&self, share: f64, greatest: f64) -> f64 {
        if share * (self.keys as f64) < 1.0 {
            let short = self.rows.iter().map(|(_, shared)| *shared as f64);
            let postings = short.sum::<f64>() + self.long.iter().sum::<f64>();
            let rows = postings / (self.keys as f64 * share.midpoint(greatest)).max(1.0);
            return rows.min(self.all_rows);
        }
        let least = self.enough(share).saturating_sub(self.long.len());
        self.sum(share, |shared| f64::from(u8::from(shared >= least)))
    }

    /// Returns the approximate number of rows that have at least `needed` of the query's `keys` keys, from the
    /// [`likelihood`](Self::likelihood) of each row.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn likely_rows(&self, needed: usize, keys: usize) -> crate::Result<f64> {
        let likelihoods = self.likelihoods(needed, keys)?;
        let share = needed as f64 / keys.max(1) as f64;
        Ok(self.sum(share, |shared| likelihoods[shared]))
    }

    /// Returns the [`likelihood`](Self::likelihood) of each number of short lists that a row is in.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn likelihoods(&self, needed: usize, keys: usize) -> crate::Result<Vec<f64>> {
        let most = self.rows.iter().map(|(_, shared)| *shared).max();
        let numbers = 0..=most.unwrap_or(0);
        collected(numbers.map(|shared| self.likelihood(shared, needed, keys)))
    }

    /// Returns the sum of `weight(n)` over all rows in short lists, where n is the number of short lists that contain
    /// the row. If there are enough long lists to give a row `share` of the keys, returns the length of the shortest
    /// one that the row must be in.
    fn sum(&self, share: f64, weight: impl Fn(usize) -> f64) -> f64 {
        let rows = match self.long.get(self.enough(share) - 1) {
            Some(length) => *length,
            None => self.rows.iter().map(|(_, shared)| weight(*shared)).sum(),
        };
        rows.min(self.all_rows)
    }

    /// Returns how many of the keys looked up a row has, on average, if it has `share` of all keys.
    fn enough(&self, share: f64) -> usize {
        (share * self.keys as f64).round().max(1.0) as usize
    }

    /// Returns the probability that a row in `shared` short lists has at least `needed` of the query's `keys` keys. The
    /// keys looked up are a random sample without replacement. A priori, the probability of having n of k keys is in
    /// proportion to k + 1 - n.
    pub fn likelihood(&self, shared: usize, needed: usize, keys: usize) -> f64 {
        let shared = (shared + self.long.len()).min(self.keys);
        let missed = self.keys - shared;
        let others = keys.saturating_sub(self.keys);
        let (mut frequency, mut all, mut enough) = (1.0, 0.0, 0.0);
        for more in 0..=others {
            all += frequency;
            if shared + more >= needed {
                enough += frequency;
            }
            let left = (others - more) as f64;
            let ratio = (shared + more + 1) as f64 / (more + 1) as f64;
            frequency *= ratio * left / (missed as f64 + 1.0 + left);
        }
        enough / all
    }

    /// Returns the known rows, ascending, each with the number of short lists that contain it.
    pub fn known(&self) -> &[(u64, usize)] {
        &self.rows
    }
}

/// The lists found for a query's keys so far.
#[derive(Default)]
struct Found {
    /// Number of pages that may still be read.
    left: usize,
    /// The keys of short lists that have been read, some of them twice.
    keys: Vec<u32>,
    /// The offsets of the rows in these lists.
    offsets: Vec<u32>,
    /// The keys and lengths of long lists.
    long: Vec<(u32, f64)>,
}

/// Neighboring pages, and the keys whose lists are entirely on these pages.
type Run = (Vec<DirectoryEntry>, Vec<u32>);

impl Found {
    /// Looks up `keys`, in ascending order, on `page` of `level` and the pages below it.
    fn look_up<P: Pages>(
        &mut self,
        pages: &mut P,
        part: &SegmentPart,
        level: u8,
        page: DirectoryEntry,
        keys: &[u32],
    ) -> Result<(), P::Error> {
        if self.left <= usize::from(level) {
            return Ok(());
        }
        self.left -= 1;
        pages.interrupt()?;
        let ranges = keys
            .iter()
            .filter_map(|key| Some((*key, part.range(*key)?)));
        if level == 0 {
            return read_leaf(pages, part.segment, page, |leaf| {
                let room = self.offsets.try_reserve(leaf.len());
                room.map_err(crate::Error::from)?;
                for (key, (first, last)) in ranges {
                    self.keys.try_push(key)?;
                    leaf.visit(first, last, &mut |run| {
                        for number in run {
                            self.offsets.push(part.group_offset(*number)?);
                        }
                        Ok(true)
                    })?;
                }
                Ok(())
            });
        }
        let mut runs: Vec<Run> = Vec::new();
        read_directory(pages, part.segment, level, page, |directory| {
            let mut end = 0;
            for (key, (first, last)) in ranges {
                let (from, to) = (directory.child_of(first), directory.child_of(last));
                if to > from + 1 {
                    let length = list_length(&directory, from..to);
                    match self.long.last_mut().filter(|(long, _)| *long == key) {
                        Some((_, before)) => *before += length,
                        None => self.long.try_push((key, length))?,
                    }
                    continue;
                }
                if runs.is_empty() || from >= end {
                    runs.try_push(Run::default())?;
                    end = from;
                }
                if let Some((run, keys)) = runs.last_mut() {
                    run.try_extend((end..=to).filter_map(|child| directory.get(child)))?;
                    keys.try_push(key)?;
                    end = end.max(to + 1);
                }
            }
            Ok(())
        })?;
        // A key takes a page on every level, so pages with many keys come first.
        let keys_per_page = |(run, keys): &Run| keys.len() as f64 / run.len() as f64;
        runs.sort_by(|a, b| keys_per_page(b).total_cmp(&keys_per_page(a)));
        let mut below = Vec::new();
        let mut room = (self.left / usize::from(level)).min(AHEAD);
        for (run, keys) in runs {
            if run.len() > room {
                continue;
            }
            room -= run.len();
            for (place, page) in run.iter().enumerate() {
                let next = run.get(place + 1).map(|next| next.first);
                let is_here = |key: &&u32| {
                    let range = part.range(**key);
                    let goes_on = range.is_some_and(|(_, last)| place == 0 || last >= page.first);
                    goes_on && next.is_none_or(|next| range.is_some_and(|(first, _)| first < next))
                };
                below.try_push((*page, collected(keys.iter().filter(is_here).copied())?))?;
            }
        }
        if level == 1 {
            pages.announce(&mut below, |(page, _)| PageAhead {
                block: page.block,
                place: 0.0,
            })?;
        }
        for (page, keys) in below {
            self.look_up(pages, part, level - 1, page, &keys)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Estimate;

    /// By Bayes' rule over all numbers of keys that a row can have.
    #[test]
    fn likelihoods_are_those_of_falling_numbers() {
        for (all, looked_up) in [(3, 1), (7, 3), (9, 9), (12, 0)] {
            for (shared, long) in (0..=looked_up).flat_map(|shared| [(shared, 0), (0, shared)]) {
                let estimate = Estimate {
                    keys: looked_up,
                    long: vec![1.0; long],
                    rows: Vec::new(),
                    all_rows: 1.0,
                };
                let choose = |n: usize, k: usize| -> f64 {
                    (0..k)
                        .map(|i| n.saturating_sub(i) as f64 / (i + 1) as f64)
                        .product()
                };
                let ways = |has: usize| {
                    let known = shared + long;
                    let prior = (all + 1 - has) as f64;
                    prior * choose(has, known) * choose(all - has, looked_up - known)
                };
                let sum: f64 = (0..=all).map(ways).sum();
                for needed in 0..=all {
                    let expected = (needed..=all).map(ways).sum::<f64>() / sum;
                    let found = estimate.likelihood(shared, needed, all);
                    assert!(
                        (found - expected).abs() < 1e-12,
                        "{all} {looked_up} {shared} {long} {needed}"
                    );
                }
            }
        }
    }
}
