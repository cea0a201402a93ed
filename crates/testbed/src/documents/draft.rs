//! A document as sentences, in the form that edits work on.

use fastrand::Rng;

use super::words::Words;

/// Number of words of a sentence.
const SENTENCE: std::ops::RangeInclusive<usize> = 6..=24;

/// A document before it is written out.
pub struct Draft<'a> {
    /// Lines before the text.
    pub head: Vec<String>,
    pub sentences: Vec<Vec<&'a str>>,
    /// Lines after the text.
    pub foot: Vec<String>,
}

impl<'a> Draft<'a> {
    /// Returns a new text of about `length` words, half to twice as many.
    pub fn draw(words: &'a Words, length: usize, rng: &mut Rng) -> Draft<'a> {
        let wanted = (length as f64 * 2f64.powf(rng.f64() * 2.0 - 1.0)) as usize;
        Draft::of_length(words, wanted.max(1), rng)
    }

    /// Returns a new text of `length` words.
    pub fn of_length(words: &'a Words, length: usize, rng: &mut Rng) -> Draft<'a> {
        let mut sentences = Vec::new();
        let mut left = length;
        while left > 0 {
            let size = rng.usize(SENTENCE).min(left);
            sentences.push((0..size).map(|_| words.draw(rng)).collect());
            left -= size;
        }
        Draft {
            head: Vec::new(),
            sentences,
            foot: Vec::new(),
        }
    }

    /// Returns how many words the text has, without head and foot.
    pub fn length(&self) -> usize {
        self.sentences.iter().map(Vec::len).sum()
    }

    /// Returns the sentence of the nth word, and the word's place in it.
    pub fn place(&self, mut nth: usize) -> (usize, usize) {
        for (number, sentence) in self.sentences.iter().enumerate() {
            if nth < sentence.len() {
                return (number, nth);
            }
            nth -= sentence.len();
        }
        unreachable!("there are not so many words")
    }

    /// Returns the document, all on one line.
    pub fn write(&self) -> String {
        let sentences = self.sentences.iter().map(|words| {
            let sentence = words.join(" ");
            let mut letters = sentence.chars();
            let first = letters.next().into_iter().flat_map(char::to_uppercase);
            first.chain(letters.by_ref()).chain(['.']).collect()
        });
        let parts = self.head.iter().cloned().chain(sentences);
        let parts: Vec<String> = parts.chain(self.foot.iter().cloned()).collect();
        parts.join(" ")
    }
}
