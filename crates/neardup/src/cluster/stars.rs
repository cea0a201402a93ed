//! Star clusters: every row with the most similar canonical row before it.

use crate::candidates::Tokens;
use std::collections::TryReserveError;

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
    /// Makes room for the canonical rows among those of `tokens`.
    ///
    /// # Errors
    /// Returns where memory does not suffice.
    #[allow(clippy::disallowed_methods, reason = "reserved before")]
    pub fn new(tokens: &Tokens) -> Result<Self, TryReserveError> {
        let rows = tokens.rows() as usize;
        let chains = (rows * tokens.looked_for())
            .clamp(1, MAX_CHAINS)
            .next_power_of_two();
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

    /// Returns the canonical row that `row`, which comes after all rows placed so far, is most
    /// similar to (the earlier of equals), and how similar. None if there is none: `row` is
    /// canonical then. `similarity` says so for two rows where it reaches the threshold. A row may
    /// come again, for an identical one.
    ///
    /// # Errors
    /// Returns where memory does not suffice.
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

    #[allow(clippy::disallowed_methods, reason = "reserved before")]
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
