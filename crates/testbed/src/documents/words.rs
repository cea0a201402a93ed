//! Words, drawn with the frequency that they have in real texts.

use std::collections::HashMap;

use fastrand::Rng;

/// The distinct words of some texts, and every occurrence of them: drawing a random occurrence draws words by their
/// frequency.
pub struct Words {
    different: Vec<String>,
    occurrences: Vec<u32>,
}

/// Number of occurrences that fit into a processor's cache, which makes drawing ten times faster.
const ENOUGH: usize = 300_000;

impl Words {
    /// Returns the words of the texts in lower case.
    pub fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Words {
        let words = texts.into_iter().flat_map(|text| {
            text.split(|c: char| !c.is_alphabetic())
                .filter(|word| !word.is_empty())
        });
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let mut different = Vec::new();
        let number = |word: &str| {
            let word = word.to_lowercase();
            *numbers.entry(word).or_insert_with_key(|word| {
                different.push(word.clone());
                different.len() as u32 - 1
            })
        };
        let occurrences = words.take(ENOUGH).map(number).collect();
        Words {
            different,
            occurrences,
        }
    }

    /// Returns whether there are no words.
    pub fn is_empty(&self) -> bool {
        self.occurrences.is_empty()
    }

    /// Returns a random word.
    pub fn draw(&self, rng: &mut Rng) -> &str {
        let number = self.occurrences[rng.usize(..self.occurrences.len())];
        &self.different[number as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_drawn_by_their_frequency() {
        let words = Words::of(["The cat, the dog", "the 3 ends"]);
        let mut rng = Rng::with_seed(1);
        let the = (0..6000).filter(|_| words.draw(&mut rng) == "the").count();
        assert!((2800..3200).contains(&the), "{the}");
    }
}
