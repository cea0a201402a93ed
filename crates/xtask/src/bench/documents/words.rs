//! Words drawn as often as real texts use them.

use fastrand::Rng;

/// Every occurrence of a word in some texts; drawing one at random draws words by their frequency.
pub struct Words(Vec<String>);

/// Texts that are longer bring no more words that matter.
const ENOUGH: usize = 4_000_000;

impl Words {
    /// The words of the texts, in lower case.
    pub fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Words {
        let words = texts.into_iter().flat_map(|text| {
            text.split(|c: char| !c.is_alphabetic())
                .filter(|word| !word.is_empty())
        });
        Words(words.take(ENOUGH).map(str::to_lowercase).collect())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A word.
    pub fn draw(&self, rng: &mut Rng) -> &str {
        &self.0[rng.usize(..self.0.len())]
    }
}
