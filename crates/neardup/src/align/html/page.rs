//! What all parts of the page write with.

use std::fmt::Write;

/// The page as far as it is written.
pub(super) struct Page(pub String);

impl Page {
    /// Appends formatted text.
    pub fn write(&mut self, text: std::fmt::Arguments<'_>) {
        self.0
            .write_fmt(text)
            .expect("writing to a String does not fail");
    }
}

/// Returns the color of a chunk, an angle on the color wheel: steps of the golden angle keep any
/// number of neighbors apart.
pub(super) fn hue(chunk: usize) -> u32 {
    (chunk as f64 * 137.508 + 205.0) as u32 % 360
}
