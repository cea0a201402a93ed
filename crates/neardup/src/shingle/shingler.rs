//! The hashes of shingles, made from the hashes of their tokens.

use super::stop::StopHashes;
use super::{BLOCK, Key, Shingling};
use crate::Result;
use crate::hash::combine;
use crate::kernels::active;
use crate::memory::FirstError;
use crate::text::Unit;

/// Makes shingle hashes from token hashes.
pub(super) struct Shingler<'a> {
    k: usize,
    /// Tokens whose shingles have not been passed on yet.
    pub tokens: Vec<u64>,
    hashes: Vec<u64>,
    stop: Option<StopHashes>,
    is_long_enough: bool,
    sink: &'a mut dyn FnMut(&[u64]) -> Result<()>,
    error: FirstError,
}

impl<'a> Shingler<'a> {
    /// Returns a shingler that uses the given lists for tokens and hashes.
    pub fn new(
        shingling: &Shingling,
        key: &Key,
        (mut tokens, hashes): (Vec<u64>, Vec<u64>),
        sink: &'a mut dyn FnMut(&[u64]) -> Result<()>,
    ) -> Self {
        tokens.clear();
        Self {
            k: shingling.k,
            tokens,
            hashes,
            stop: (shingling.unit == Unit::Stop).then(|| StopHashes::new(shingling.fold, key)),
            is_long_enough: false,
            sink,
            error: FirstError::default(),
        }
    }

    pub fn heartbeat(&mut self) {
        self.error.run(|| (self.sink)(&[]));
    }

    /// Passes shingles to the sink if there are enough for a block.
    pub fn flush_if_full(&mut self) {
        if self.tokens.len() >= BLOCK + self.k - 1 {
            self.flush();
        }
    }

    /// Passes the shingles of the tokens so far to the sink, and keeps the tokens that begin further shingles.
    fn flush(&mut self) {
        if self.tokens.len() < self.k {
            return;
        }
        self.is_long_enough = true;
        self.hashes.clear();
        active().combine_windows(&self.tokens, self.k, &mut self.hashes);
        if let Some(stop) = &self.stop {
            let mut firsts = self.tokens.iter();
            self.hashes
                .retain(|_| firsts.next().is_some_and(|first| stop.contains(*first)));
        }
        for block in self.hashes.chunks(BLOCK) {
            self.error.run(|| (self.sink)(block));
        }
        self.tokens.drain(..=self.tokens.len() - self.k);
    }

    /// Passes the remaining shingles to the sink, and returns the lists for the next document's tokens and hashes.
    pub fn finish(mut self) -> (Result<()>, (Vec<u64>, Vec<u64>)) {
        self.flush();
        if !self.is_long_enough && !self.tokens.is_empty() && self.stop.is_none() {
            let whole = combine(&self.tokens);
            self.error.run(|| (self.sink)(&[whole]));
        }
        (self.error.into_result(), (self.tokens, self.hashes))
    }
}
