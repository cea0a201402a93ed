//! Two documents and their common chunks, as a part of a page.

use super::column::DocumentColumn;
use super::comparison::{AlignedPair, Look, hue};
use crate::Result;
use crate::align::explain::Explanation;
use crate::align::tiling::CommonRun;
use crate::html::{HtmlText, Number};
use askama::Template;
use askama::filters::HtmlSafe;

/// Words listed for each side, at most, and bytes of each.
const WORDS: usize = 12;
const BYTES: usize = 48;

/// Ribbons of a map, the longest chunks first: more of them would cover each other.
const RIBBONS: usize = 1000;

/// Width of the longer document's bar in a map.
const WIDTH: f64 = 1000.0;

/// The map of a comparison, and its documents as columns.
#[derive(Template)]
#[template(path = "side_by_side.html")]
pub(crate) struct SideBySide<'s> {
    pub map: Map<'s>,
    look: Look<'s>,
}

impl HtmlSafe for SideBySide<'_> {}

impl<'s> SideBySide<'s> {
    /// # Errors
    /// `OutOfMemory`.
    pub fn new(comparison: &'s AlignedPair<'s>, look: Look<'s>) -> Result<Self> {
        let map = Map {
            comparison,
            longest: comparison.longest(RIBBONS)?,
        };
        Ok(Self { map, look })
    }

    pub fn columns(&self) -> [DocumentColumn<'_>; 2] {
        [0, 1].map(|side| DocumentColumn {
            comparison: self.map.comparison,
            side,
            look: &self.look,
        })
    }
}

/// Both documents as bars, each common chunk as a ribbon from one to the other.
#[derive(Template)]
#[template(path = "map.html")]
pub(crate) struct Map<'m> {
    comparison: &'m AlignedPair<'m>,
    longest: Vec<usize>,
}

impl HtmlSafe for Map<'_> {}

impl Map<'_> {
    fn scaled(&self, words: usize) -> f64 {
        let longer = self.comparison.similarity().longer.max(1);
        (words as f64 / longer as f64 * 10.0 * WIDTH).round() / 10.0
    }

    fn bars(&self) -> [f64; 2] {
        let sides = &self.comparison.alignment.words.sides;
        sides.each_ref().map(|side| self.scaled(side.len()))
    }

    /// Returns the color of each ribbon, and its beginning and end in the first document and in the second.
    fn ribbons(&self) -> impl Iterator<Item = (u32, [f64; 4])> {
        self.longest.iter().map(|&chunk| {
            let CommonRun { a, b, words } = self.comparison.alignment.chunks[chunk];
            let ends = [a, a + words, b, b + words];
            (hue(chunk), ends.map(|word| self.scaled(word as usize)))
        })
    }
}

/// The difference between two documents: its kind, and the words that only one side has.
#[derive(Template)]
#[template(path = "difference.html")]
pub(crate) struct Difference {
    pub explanation: Explanation,
    /// How a sentence refers to each document.
    pub names: [&'static str; 2],
}

impl HtmlSafe for Difference {}

impl Difference {
    /// Returns words, element and name of each side that has words of its own.
    fn sides(&self) -> impl Iterator<Item = (&Vec<Vec<u8>>, &str, &str)> {
        let [a, b] = self.names;
        let found = &self.explanation;
        let sides = [(&found.only_in_a, "del", a), (&found.only_in_b, "ins", b)];
        sides.into_iter().filter(|(words, ..)| !words.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::align::explain;

    fn written(a: &str, b: &str) -> String {
        let explanation = explain(a.as_bytes(), b.as_bytes(), &mut || {}).unwrap();
        let names = ["A", "B"];
        Difference { explanation, names }.to_string()
    }

    #[test]
    fn words_of_one_side() {
        assert_eq!(written("same", "same"), "identical");
        assert_eq!(
            written("twelve chairs", "twelve <b>tables</b> here"),
            "rewritten<br>\n<small>only in A:</small> <del dir=\"auto\">chairs</del><br>\n\
             <small>only in B:</small> <ins dir=\"auto\">b, tables, here</ins>"
        );
        let many: String = (0..30).map(|i| format!("w{i} ")).collect();
        assert!(written("x", &many).ends_with("w11</ins> <small>and 18 more</small>"));
        assert!(written("x", &"w".repeat(99)).contains("ww\u{2026}</ins>"));
    }
}
