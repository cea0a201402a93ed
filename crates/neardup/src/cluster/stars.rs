//! Star clusters: every row belongs to the most similar canonical row before it.

use crate::candidates::Tokens;
use crate::set::sort_by;
use crate::{Error, Grow, Result, filled};

/// The canonical rows of star clusters, found by the keys that they share with a row. Memory: 8 bytes for each key
/// of a canonical row, 4 for each expected key, and 24 for each row.
///
/// A row is compared only with canonical rows, and with each of them at most once.
pub struct Canonicals {
    heads: Vec<u32>,
    /// A canonical row, and the index of the next entry in its chain. Later entries come first.
    entries: Vec<(u32, u32)>,
    places: Vec<BestCanonical>,
    /// For each canonical row, the last row that met it.
    met: Vec<u32>,
}

/// The canonical row most similar to a row, among those of the first `entries` entries, or the row itself if it is
/// canonical.
#[derive(Debug, Clone, Copy)]
struct BestCanonical {
    canonical: u32,
    similarity: f64,
    entries: u32,
}

/// Returns the similarity of a canonical row (first argument) and another row (second). Returns None unless it reaches
/// both the threshold and the third argument.
pub type SimilarityOf<'a> = &'a mut dyn FnMut(u32, u32, f64) -> Option<f64>;

const NONE: u32 = u32::MAX;

/// 16 Mi chains, 64 MiB: enough to keep chains short for millions of rows.
const MAX_CHAINS: usize = 1 << 24;

impl Canonicals {
    /// Returns an empty list with room for the canonical rows among the rows of `tokens`.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn new(tokens: &Tokens) -> Result<Self> {
        let rows = tokens.rows() as usize;
        let chains = (rows * tokens.looked_for())
            .clamp(1, MAX_CHAINS)
            .next_power_of_two();
        let unplaced = BestCanonical {
            canonical: NONE,
            similarity: 0.0,
            entries: 0,
        };
        Ok(Self {
            heads: filled(NONE, chains)?,
            entries: Vec::new(),
            places: filled(unplaced, rows)?,
            met: filled(NONE, rows)?,
        })
    }

    /// Returns the canonical row most similar to `row`, or the earliest of equals, and the similarity. Returns None if
    /// no canonical row is similar, so that `row` itself is canonical. `row` must follow all rows placed so far. It may
    /// be placed again on behalf of an identical row, and then meets only the canonical rows added since.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn place(
        &mut self,
        tokens: &Tokens,
        row: u32,
        similarity: SimilarityOf<'_>,
    ) -> Result<Option<(u32, f64)>> {
        let mut place = self.places[row as usize];
        if place.canonical != row {
            for key in tokens.keys(row).chain(tokens.prefix_keys(row, true)) {
                self.meet(tokens, row, key, &mut place, similarity);
            }
            place.entries = self.entries.len() as u32;
            if place.canonical == NONE {
                self.insert(tokens, row)?;
                return Ok(None);
            }
            self.places[row as usize] = place;
        }
        Ok(Some((place.canonical, place.similarity)))
    }

    /// Compares `row` with the canonical rows under `key` that it has not met yet. Updates `place` if one is more
    /// similar, or equally similar and earlier.
    fn meet(
        &mut self,
        tokens: &Tokens,
        row: u32,
        key: u32,
        place: &mut BestCanonical,
        similarity: SimilarityOf<'_>,
    ) {
        let mut entry = self.heads[self.chain(key)];
        while entry != NONE && entry >= place.entries {
            let (canonical, next) = self.entries[entry as usize];
            entry = next;
            let met = &mut self.met[canonical as usize];
            if std::mem::replace(met, row) == row || !tokens.share_enough(canonical, row) {
                continue;
            }
            if let Some(found) = similarity(canonical, row, place.similarity)
                && (found > place.similarity || canonical < place.canonical)
            {
                (place.canonical, place.similarity) = (canonical, found);
            }
        }
    }

    fn insert(&mut self, tokens: &Tokens, row: u32) -> Result<()> {
        self.places[row as usize].canonical = row;
        self.places[row as usize].similarity = 1.0;
        for key in tokens.keys(row).chain(tokens.prefix_keys(row, false)) {
            let chain = self.chain(key);
            self.entries.try_push((row, self.heads[chain]))?;
            let entries = u32::try_from(self.entries.len());
            self.heads[chain] = entries.map_err(|_| Error::OutOfMemory)? - 1;
        }
        Ok(())
    }

    fn chain(&self, key: u32) -> usize {
        key as usize & (self.heads.len() - 1)
    }
}

/// A pair of rows, the earlier first, and their similarity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimilarPair {
    pub earlier: u32,
    pub later: u32,
    pub similarity: f64,
}

/// Returns, for each of `rows` rows, the canonical row of its cluster and the similarity to it. A row is canonical,
/// with similarity 1, unless it is paired with an earlier canonical row. Otherwise it belongs to the most similar
/// earlier canonical row that it is paired with, or to the earliest of equals.
///
/// Sorts the pairs: O(p log p). Takes 16 bytes per row. Calls `check` often.
///
/// # Errors
/// `OutOfMemory`.
pub fn stars_of_pairs(
    rows: u32,
    pairs: &mut [SimilarPair],
    check: &mut dyn FnMut(),
) -> Result<Vec<(u32, f64)>> {
    sort_by(pairs, |a, b| a.later.cmp(&b.later), check);
    let mut stars = filled((0, 1.0), rows as usize)?;
    for (row, star) in (0..).zip(&mut stars) {
        star.0 = row;
    }
    for of_row in pairs.chunk_by(|a, b| a.later == b.later) {
        check();
        let mut best: Option<(u32, f64)> = None;
        for pair in of_row {
            let is_canonical = stars[pair.earlier as usize].0 == pair.earlier;
            let is_better = best.is_none_or(|(row, similarity)| {
                pair.similarity > similarity || pair.similarity == similarity && pair.earlier < row
            });
            if is_canonical && is_better {
                best = Some((pair.earlier, pair.similarity));
            }
        }
        if let Some(best) = best {
            stars[of_row[0].later as usize] = best;
        }
    }
    Ok(stars)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rows_belong_to_the_most_similar_earlier_canonical_row(
            pairs in prop::collection::vec((0u32..30, 0u32..30, 0u8..4), 0..120),
        ) {
            let pair = |(a, b, s): (u32, u32, u8)| (a != b).then_some(SimilarPair {
                earlier: a.min(b),
                later: a.max(b),
                similarity: f64::from(s) / 4.0,
            });
            let mut pairs: Vec<SimilarPair> = pairs.into_iter().filter_map(pair).collect();
            let stars = stars_of_pairs(30, &mut pairs, &mut || ()).expect("memory");
            let mut canonical = [false; 30];
            for row in 0..30 {
                let candidates = pairs.iter().filter(|pair| pair.later == row && canonical[pair.earlier as usize]);
                let best = candidates.fold(None, |best: Option<(u32, f64)>, pair| match best {
                    Some(best) if best.1 > pair.similarity
                        || best.1 == pair.similarity && best.0 <= pair.earlier => Some(best),
                    _ => Some((pair.earlier, pair.similarity)),
                });
                canonical[row as usize] = best.is_none();
                prop_assert_eq!(stars[row as usize], best.unwrap_or((row, 1.0)));
            }
        }
    }
}
