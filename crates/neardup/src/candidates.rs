//! From the bands of a collection's rows to the pairs worth comparing.
//!
//! Two similar rows share at least `needed` of their b tokens, one token a band. Order the tokens of
//! all rows from rare to frequent: the rarest token that two rows share is, in either row, among the
//! b - needed + 1 rarest, for `needed` - 1 shared ones follow it. So a row looks for partners under
//! these only (Chaudhuri, Ganti, Kaushik, ICDE 2006), and text that many rows share is never
//! enumerated. Any order will do, so an approximate count serves; a row that has fewer than `needed`
//! tokens in common with anybody is dropped altogether.

use crate::cluster::UnionFind;
use crate::shingle::{GOLDEN, finish};
use std::collections::TryReserveError;

/// Bits of a token; the highest bit says that it is one to look for partners under.
const TOKEN_BITS: u32 = 31;
const LOOK_HERE: u32 = 1 << TOKEN_BITS;
const TOKEN: u32 = LOOK_HERE - 1;

/// The token of a band from the band's hash.
#[inline]
pub fn token(band_hash: u64) -> u32 {
    (band_hash >> (64 - TOKEN_BITS)) as u32
}

/// One well-mixed hash of a band number and its token.
#[inline]
fn place(band: usize, token: u32) -> u64 {
    finish((((band as u64) << 32) | u64::from(token)).wrapping_mul(GOLDEN))
}

/// Approximately how many rows have a token: never too low for one row, and 2 at least for two.
///
/// Counters of 4 bits (Morris, CACM 1978): exact up to 2, then each step stands for twice as many
/// rows, up to 2^13. Tokens that fall on the same counter are counted together.
pub struct Frequencies {
    nibbles: Vec<u8>,
    mask: u64,
    coin: u64,
}

impl Frequencies {
    /// Counters for about `tokens` tokens in at most `max_bytes` bytes.
    ///
    /// # Errors
    /// Where memory does not suffice.
    pub fn new(tokens: usize, max_bytes: usize) -> Result<Self, TryReserveError> {
        let most = 1usize << max_bytes.max(64).ilog2();
        let bytes = tokens
            .saturating_mul(2)
            .checked_next_power_of_two()
            .map_or(most, |wanted| wanted.clamp(64, most));
        let mut nibbles = Vec::new();
        nibbles.try_reserve_exact(bytes)?;
        nibbles.resize(bytes, 0);
        Ok(Self {
            nibbles,
            mask: 2 * bytes as u64 - 1,
            coin: GOLDEN,
        })
    }

    /// Counts the tokens of one row.
    pub fn add(&mut self, tokens: &[u32]) {
        for (band, &token) in tokens.iter().enumerate() {
            let counter = place(band, token) & self.mask;
            let count = self.read(counter);
            if count < 2 || (count < 15 && self.heads(count - 1)) {
                self.nibbles[(counter / 2) as usize] += 1 << (4 * (counter % 2));
            }
        }
    }

    /// 0 to 15, rising with the number of rows.
    fn count(&self, band: usize, token: u32) -> u8 {
        self.read(place(band, token) & self.mask)
    }

    #[inline]
    fn read(&self, counter: u64) -> u8 {
        (self.nibbles[(counter / 2) as usize] >> (4 * (counter % 2))) & 15
    }

    /// True once in 2^`bits` times; the same on every run.
    fn heads(&mut self, bits: u8) -> bool {
        self.coin = self.coin.wrapping_add(GOLDEN);
        finish(self.coin) >> (64 - u32::from(bits)) == 0
    }
}

/// The tokens of the rows that may have partners: 4 bytes a band. Rows are numbered in the order in
/// which they were kept.
pub struct Tokens {
    flagged: Vec<u32>,
    bands: usize,
    needed: usize,
    /// Of the row that is being looked at.
    counts: Vec<u8>,
}

impl Tokens {
    pub fn new(bands: usize, needed: usize) -> Self {
        Self {
            flagged: Vec::new(),
            bands,
            needed,
            counts: Vec::new(),
        }
    }

    pub fn bands(&self) -> usize {
        self.bands
    }

    /// Rows kept.
    pub fn rows(&self) -> u32 {
        (self.flagged.len() / self.bands) as u32
    }

    /// Keeps a row, unless it shares fewer than `needed` tokens with others.
    ///
    /// # Errors
    /// Where memory does not suffice.
    pub fn keep(&mut self, row: &[u32], counts: &Frequencies) -> Result<bool, TryReserveError> {
        self.counts.clear();
        let count_of = |(band, &token): (usize, &u32)| counts.count(band, token);
        self.counts.extend(row.iter().enumerate().map(count_of));
        let mut rows_with = [0usize; 16];
        for &count in &self.counts {
            rows_with[usize::from(count)] += 1;
        }
        if self.bands - rows_with[0] - rows_with[1] < self.needed {
            return Ok(false);
        }
        let mut looked_for = self.bands - self.needed + 1;
        let mut last = 0;
        while rows_with[last] < looked_for {
            looked_for -= rows_with[last];
            last += 1;
        }
        self.flagged.try_reserve(self.bands)?;
        for (&token, &count) in row.iter().zip(&self.counts) {
            let count = usize::from(count);
            let rare = count < last || (count == last && looked_for > 0);
            looked_for -= usize::from(count == last && rare);
            let flag = if rare && count >= 2 { LOOK_HERE } else { 0 };
            self.flagged.push(token | flag);
        }
        Ok(true)
    }

    fn row(&self, row: u32) -> &[u32] {
        let start = row as usize * self.bands;
        &self.flagged[start..start + self.bands]
    }

    /// The keys under which a row is to look for partners, for sorting. Rows that share such a
    /// token share its key.
    pub fn keys(&self, row: u32) -> impl Iterator<Item = u32> + '_ {
        let looks_here = |&(_, token): &(usize, &u32)| token & LOOK_HERE != 0;
        let tokens = self.row(row).iter().enumerate().filter(looks_here);
        tokens.map(|(band, &token)| key(band, token))
    }

    /// Whether two rows that met under `met` are to be compared: it is the first key that they
    /// share, so that a pair is compared once, and they share as many tokens as similar rows do.
    pub fn meet(&self, a: u32, b: u32, met: u32) -> bool {
        let (a, b) = (self.row(a), self.row(b));
        let shared_key = |(x, y): (&u32, &u32)| x == y && x & LOOK_HERE != 0;
        let first = a.iter().zip(b).position(shared_key);
        if first.is_none_or(|band| key(band, a[band]) != met) {
            return false;
        }
        self.needed <= 1 || count_shared(a, b) >= self.needed
    }
}

#[inline]
fn key(band: usize, token: u32) -> u32 {
    (place(band, token & TOKEN) >> 32) as u32
}

fn count_shared(a: &[u32], b: &[u32]) -> usize {
    let shared = |(x, y): (&u32, &u32)| u32::from((x ^ y) & TOKEN == 0);
    a.iter().zip(b).map(shared).sum::<u32>() as usize
}

/// The two sides of a join. A row may stand for rows of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sides {
    pub a: bool,
    pub b: bool,
}

impl Sides {
    pub const BOTH: Self = Self { a: true, b: true };
}

/// Visits every pair of a group of rows, ascending, that is to be compared: those that met under the
/// key of the group, and of which one stands for rows of side a and the other for rows of side b.
pub fn pairs_of_group(
    tokens: &Tokens,
    group: &[u32],
    met: u32,
    sides: &dyn Fn(u32) -> Sides,
    visit: &mut dyn FnMut(u32, u32),
) {
    let (ours, theirs): (Vec<u32>, Vec<u32>) = (
        group.iter().copied().filter(|&row| sides(row).a).collect(),
        group.iter().copied().filter(|&row| sides(row).b).collect(),
    );
    for &x in &ours {
        let x_is_both = sides(x).b;
        for &y in &theirs {
            // Where either row could be on either side, the pair comes twice.
            let again = y >= x && (y == x || (x_is_both && sides(y).a));
            if !again && tokens.meet(x, y, met) {
                visit(x.min(y), x.max(y));
            }
        }
    }
}

/// Joins the sets of similar rows of a group that met under the key of the group. Rows whose sets
/// are one already are not compared, so that a group of copies takes one comparison a row.
pub fn connect_group(
    tokens: &Tokens,
    group: &[u32],
    met: u32,
    sets: &mut UnionFind,
    similar: &mut dyn FnMut(u32, u32) -> bool,
) {
    let mut by_set: Vec<(u32, u32)> = group.iter().map(|&row| (sets.find(row), row)).collect();
    by_set.sort_unstable();
    let mut parts: Vec<Vec<u32>> = Vec::new();
    for part in by_set.chunk_by(|a, b| a.0 == b.0) {
        let mut joined: Vec<u32> = part.iter().map(|&(_, row)| row).collect();
        parts.retain_mut(|other| {
            let mut pairs = other
                .iter()
                .flat_map(|&x| joined.iter().map(move |&y| (x, y)));
            let found = pairs.find(|&(x, y)| tokens.meet(x, y, met) && similar(x, y));
            if let Some((x, y)) = found {
                sets.union(x, y);
                // The longer list goes on growing: a row is moved log n times at most.
                if other.len() > joined.len() {
                    std::mem::swap(other, &mut joined);
                }
                joined.append(other);
            }
            found.is_none()
        });
        parts.push(joined);
    }
}

/// The canonical rows of star clusters, found by the tokens that they share with a row. 8 bytes for
/// each key of a canonical row, and 4 for each key expected.
pub struct Canonicals {
    is_canonical: Vec<bool>,
    heads: Vec<u32>,
    /// A row, and the index of the next entry in its chain.
    entries: Vec<(u32, u32)>,
}

const NONE: u32 = u32::MAX;

/// 16 Mi chains, 64 MiB: enough to keep chains short for millions of rows.
const MAX_CHAINS: usize = 1 << 24;

impl Canonicals {
    /// # Errors
    /// Where memory does not suffice.
    pub fn new(tokens: &Tokens) -> Result<Self, TryReserveError> {
        let rows = tokens.rows() as usize;
        let looked_for = tokens.bands - tokens.needed + 1;
        let chains = (rows * looked_for).clamp(1, MAX_CHAINS).next_power_of_two();
        let mut heads = Vec::new();
        heads.try_reserve_exact(chains)?;
        heads.resize(chains, NONE);
        let mut is_canonical = Vec::new();
        is_canonical.try_reserve_exact(rows)?;
        is_canonical.resize(rows, false);
        Ok(Self {
            is_canonical,
            heads,
            entries: Vec::new(),
        })
    }

    /// The canonical row that `row`, which comes after all rows placed so far, is most similar to
    /// (the earlier of equals), and how similar. None if there is none: `row` is canonical then.
    /// `similarity` says so for two rows where it reaches the threshold. A row may come again, for
    /// an identical one.
    ///
    /// # Errors
    /// Where memory does not suffice.
    pub fn place(
        &mut self,
        tokens: &Tokens,
        row: u32,
        similarity: &mut dyn FnMut(u32, u32) -> Option<f64>,
    ) -> Result<Option<(u32, f64)>, TryReserveError> {
        if self.is_canonical[row as usize] {
            return Ok(Some((row, 1.0)));
        }
        let mut best: Option<(u32, f64)> = None;
        for key in tokens.keys(row) {
            let mut entry = self.heads[self.chain(key)];
            while entry != NONE {
                let (canonical, next) = self.entries[entry as usize];
                entry = next;
                if !tokens.meet(canonical, row, key) {
                    continue;
                }
                let Some(found) = similarity(canonical, row) else {
                    continue;
                };
                if best.is_none_or(|(first, s)| found > s || (found == s && canonical < first)) {
                    best = Some((canonical, found));
                }
            }
        }
        if best.is_none() {
            self.insert(tokens, row)?;
        }
        Ok(best)
    }

    fn insert(&mut self, tokens: &Tokens, row: u32) -> Result<(), TryReserveError> {
        self.is_canonical[row as usize] = true;
        for key in tokens.keys(row) {
            let chain = self.chain(key);
            self.entries.try_reserve(1)?;
            self.entries.push((row, self.heads[chain]));
            self.heads[chain] = self.entries.len() as u32 - 1;
        }
        Ok(())
    }

    fn chain(&self, key: u32) -> usize {
        key as usize & (self.heads.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Rows of tokens from few values, so that many are shared, as 8 bands.
    fn rows() -> impl Strategy<Value = Vec<Vec<u32>>> {
        let token = prop_oneof![3 => 0u32..4, 1 => 0u32..1000];
        prop::collection::vec(prop::collection::vec(token, 8), 0..40)
    }

    /// The tokens of the kept rows, and which rows these are.
    fn keep_all(rows: &[Vec<u32>], needed: usize, counters: usize) -> (Tokens, Vec<usize>) {
        let mut counts = Frequencies::new(rows.len() * 8, counters).unwrap();
        for row in rows {
            counts.add(row);
        }
        let mut tokens = Tokens::new(8, needed);
        let kept = |&row: &usize| tokens.keep(&rows[row], &counts).unwrap();
        let kept = (0..rows.len()).filter(kept).collect();
        (tokens, kept)
    }

    fn shared(a: &[u32], b: &[u32]) -> usize {
        a.iter().zip(b).filter(|(x, y)| x == y).count()
    }

    /// All groups, as sorting the keys gives them.
    fn visited(tokens: &Tokens, sides: &dyn Fn(u32) -> Sides) -> Vec<(u32, u32)> {
        let mut groups: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for row in 0..tokens.rows() {
            for key in tokens.keys(row) {
                groups.entry(key).or_default().push(row);
            }
        }
        let mut pairs = Vec::new();
        for (met, group) in groups {
            let mut visit = |x, y| pairs.push((x, y));
            pairs_of_group(tokens, &group, met, sides, &mut visit);
        }
        pairs.sort_unstable();
        pairs
    }

    proptest! {
        #[test]
        fn every_pair_that_shares_enough_is_visited_once(
            rows in rows(),
            needed in 1usize..=8,
            counters in prop::sample::select(vec![64usize, 4096]),
            sides in prop::collection::vec((any::<bool>(), any::<bool>()), 40),
        ) {
            let (tokens, kept) = keep_all(&rows, needed, counters);
            let side = |row: usize| Sides { a: sides[row].0, b: sides[row].1 };
            let found: Vec<(usize, usize)> = visited(&tokens, &|row| side(kept[row as usize]))
                .into_iter()
                .map(|(x, y)| (kept[x as usize], kept[y as usize]))
                .collect();
            let across = |x: usize, y: usize| (side(x).a && side(y).b) || (side(y).a && side(x).b);
            let expected: Vec<(usize, usize)> = (0..rows.len())
                .flat_map(|x| (x + 1..rows.len()).map(move |y| (x, y)))
                .filter(|&(x, y)| across(x, y) && shared(&rows[x], &rows[y]) >= needed)
                .collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn stars_follow_their_definition(rows in rows(), needed in 1usize..=8) {
            let (tokens, kept) = keep_all(&rows, needed, 4096);
            let similar = |x: usize, y: usize| {
                let shared = shared(&rows[x], &rows[y]);
                (shared >= needed).then_some(shared as f64 / 8.0)
            };
            let mut canonicals = Canonicals::new(&tokens).unwrap();
            let mut place = |row: u32| {
                let mut similarity = |x: u32, y: u32| similar(kept[x as usize], kept[y as usize]);
                let found = canonicals.place(&tokens, row, &mut similarity).unwrap();
                found.map(|(first, s)| (kept[first as usize], s))
            };
            let mut expected: Vec<Option<(usize, f64)>> = vec![None; rows.len()];
            let mut best = expected.clone();
            for row in 0..rows.len() {
                for earlier in (0..row).rev().filter(|&earlier| expected[earlier].is_none()) {
                    if let Some(s) = similar(earlier, row) {
                        let better = best[row].filter(|&(_, best)| best > s);
                        best[row] = better.or(Some((earlier, s)));
                    }
                }
                expected[row] = best[row];
            }
            for (number, &row) in kept.iter().enumerate() {
                prop_assert_eq!(place(number as u32), expected[row]);
            }
        }
    }

    #[test]
    fn tokens_that_nobody_shares_leave_no_rows() {
        let rows: Vec<Vec<u32>> = (0..100).map(|row| vec![row; 8]).collect();
        let (tokens, _) = keep_all(&rows, 6, 1 << 16);
        assert!(tokens.rows() < 3);
    }

    #[test]
    fn counts_rise_with_the_rows() {
        let mut counts = Frequencies::new(1000, 1 << 20).unwrap();
        let mut last = 0;
        for rows in [1, 2, 100, 10_000] {
            let before = if rows <= 2 { rows - 1 } else { 0 };
            (before..rows).for_each(|_| counts.add(&[7]));
            assert!(counts.count(0, 7) > last);
            last = counts.count(0, 7);
        }
        assert_eq!(counts.count(1, 7), 0);
    }
}
