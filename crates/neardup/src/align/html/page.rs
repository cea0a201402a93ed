//! What all parts of the page write with.

use crate::Result;
use crate::align::tiling::Run;
use crate::memory::{FirstError, GrowText, collected};
use std::cmp::Reverse;
use std::fmt;

/// The page as far as it is written.
#[derive(Default)]
pub(super) struct Page {
    text: String,
    /// Set when the page does not fit into memory; [`Page::finish`] returns it.
    error: FirstError,
}

impl Page {
    /// Makes an empty page with room for `bytes`.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn new(bytes: usize) -> Result<Self> {
        let mut page = Self::default();
        page.text.try_reserve_exact(bytes)?;
        Ok(page)
    }

    /// Appends text.
    pub fn push(&mut self, text: &str) {
        self.error.run(|| self.text.try_push_str(text));
    }

    /// Appends formatted text.
    pub fn write(&mut self, text: fmt::Arguments<'_>) {
        fmt::Write::write_fmt(self, text).expect("writing to a page does not fail");
    }

    /// Returns the text.
    ///
    /// # Errors
    /// `OutOfMemory`, if a part did not fit.
    pub fn finish(self) -> Result<String> {
        self.error.into_result()?;
        Ok(self.text)
    }
}

impl fmt::Write for Page {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text);
        Ok(())
    }
}

/// Returns the numbers of the longest chunks, at most `count`, the longest first.
///
/// # Errors
/// `OutOfMemory`.
pub(super) fn longest(chunks: &[Run], count: usize) -> Result<Vec<usize>> {
    let mut longest = collected(0..chunks.len())?;
    longest.sort_unstable_by_key(|&i| (Reverse(chunks[i].words), i));
    longest.truncate(count);
    Ok(longest)
}

/// Returns the color of a chunk, an angle on the color wheel: steps of the golden angle keep any
/// number of neighbors apart.
pub(super) fn hue(chunk: usize) -> u32 {
    (chunk as f64 * 137.508 + 205.0) as u32 % 360
}
