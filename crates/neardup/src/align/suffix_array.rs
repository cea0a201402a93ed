//! Suffix sorting by induced sorting, SA-IS: Nong, Zhang, Chan, 'Two efficient algorithms for
//! linear time suffix array construction', IEEE Transactions on Computers 60(10), 2011.
//!
//! Words need an alphabet of millions of numbers. The Rust crates sort bytes, stop at 65 536 letters or use threads;
//! the binding to libsais brings C code that cannot be canceled.

use super::pace::Pace;
use crate::{Grow, Result, collected, copied, filled};

const NONE: u32 = u32::MAX;

/// Returns the start positions of the suffixes of `text`, in ascending order of the suffixes. Every number in `text` is
/// below `letters`. Time O(n + letters). Memory: at most 18 bytes per unit and 16 per letter.
///
/// # Errors
/// `OutOfMemory`.
pub(super) fn suffix_array(text: &[u32], letters: usize, pace: &mut Pace) -> Result<Vec<u32>> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let level = SuffixLevel::new(text, letters, pace)?;
    let mut marks = Vec::new();
    for p in 1..text.len() {
        pace.step();
        if level.is_mark(p) {
            marks.try_push(p as u32)?;
        }
    }
    let mut order = filled(NONE, text.len())?;
    level.induce(&marks, &mut order, pace)?;
    if !marks.is_empty() {
        let sorted = level.sort_marks(marks, &order, pace)?;
        level.induce(&sorted, &mut order, pace)?;
    }
    Ok(order)
}

/// One level of the recursion.
struct SuffixLevel<'t> {
    text: &'t [u32],
    /// True for a suffix that is smaller than the next one (type S).
    rises: Vec<bool>,
    /// For each letter, the place in the order of the first suffix that starts with the letter. The last entry is the
    /// end of the order.
    starts: Vec<u32>,
}

impl<'t> SuffixLevel<'t> {
    fn new(text: &'t [u32], letters: usize, pace: &mut Pace) -> Result<Self> {
        let mut starts = filled(0, letters + 1)?;
        let mut rises = filled(false, text.len())?;
        for p in (0..text.len()).rev() {
            pace.step();
            starts[text[p] as usize + 1] += 1;
            if p + 1 < text.len() {
                rises[p] = text[p] < text[p + 1] || (text[p] == text[p + 1] && rises[p + 1]);
            }
        }
        for letter in 0..letters {
            starts[letter + 1] += starts[letter];
        }
        Ok(Self {
            text,
            rises,
            starts,
        })
    }

    /// Returns whether position `p` is a mark: the start of a rising suffix after a falling one (leftmost S, LMS).
    fn is_mark(&self, p: usize) -> bool {
        p > 0 && self.rises[p] && !self.rises[p - 1]
    }

    /// Sorts all suffixes into `order`, given `marks` in the order of their suffixes.
    fn induce(&self, marks: &[u32], order: &mut [u32], pace: &mut Pace) -> Result<()> {
        order.fill(NONE);
        let mut tails = copied(&self.starts[1..])?;
        for &p in marks.iter().rev() {
            pace.step();
            put_last(&mut tails, order, self.text[p as usize], p);
        }
        let mut heads = copied(&self.starts[..self.starts.len() - 1])?;
        let last = self.text.len() - 1;
        put_first(&mut heads, order, self.text[last], last as u32);
        for i in 0..order.len() {
            pace.step();
            if let Some(p) = previous(order[i])
                && !self.rises[p]
            {
                put_first(&mut heads, order, self.text[p], p as u32);
            }
        }
        tails.copy_from_slice(&self.starts[1..]);
        for i in (0..order.len()).rev() {
            pace.step();
            if let Some(p) = previous(order[i])
                && self.rises[p]
            {
                put_last(&mut tails, order, self.text[p], p as u32);
            }
        }
        Ok(())
    }

    /// Returns `marks` sorted by their suffixes. In `order`, they are already sorted by their stretches up to the next
    /// mark (LMS substrings).
    fn sort_marks(&self, marks: Vec<u32>, order: &[u32], pace: &mut Pace) -> Result<Vec<u32>> {
        let mut names = filled(NONE, self.text.len())?;
        let mut name = 0;
        let mut before = None;
        for &p in order {
            pace.step();
            if self.is_mark(p as usize) {
                name += u32::from(before.is_some_and(|q| !self.same_stretch(q, p, pace)));
                names[p as usize] = name;
                before = Some(p);
            }
        }
        let reduced = collected(marks.iter().map(|&p| names[p as usize]))?;
        drop(names);
        let mut sorted = suffix_array(&reduced, name as usize + 1, pace)?;
        for mark in &mut sorted {
            *mark = marks[*mark as usize];
        }
        Ok(sorted)
    }

    /// Returns whether the stretches from the marks `p` and `q` to the next marks are equal.
    fn same_stretch(&self, p: u32, q: u32, pace: &mut Pace) -> bool {
        let (p, q) = (p as usize, q as usize);
        for i in 0.. {
            pace.step();
            let (p, q) = (p + i, q + i);
            if p.max(q) == self.text.len() || self.text[p] != self.text[q] {
                return false;
            }
            if i > 0 && (self.is_mark(p) || self.is_mark(q)) {
                return self.is_mark(p) && self.is_mark(q);
            }
        }
        unreachable!("a stretch ends with the text at the latest")
    }
}

fn previous(p: u32) -> Option<usize> {
    (p != NONE && p > 0).then(|| p as usize - 1)
}

fn put_first(heads: &mut [u32], order: &mut [u32], letter: u32, p: u32) {
    let head = &mut heads[letter as usize];
    order[*head as usize] = p;
    *head += 1;
}

fn put_last(tails: &mut [u32], order: &mut [u32], letter: u32, p: u32) {
    let tail = &mut tails[letter as usize];
    *tail -= 1;
    order[*tail as usize] = p;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sorted(text: &[u32]) -> Vec<u32> {
        let letters = text.iter().max().map_or(0, |m| *m as usize + 1);
        suffix_array(text, letters, &mut Pace::new(&mut || {})).unwrap()
    }

    fn brute_force(text: &[u32]) -> Vec<u32> {
        let mut order: Vec<u32> = (0..text.len() as u32).collect();
        order.sort_by_key(|&p| &text[p as usize..]);
        order
    }

    #[test]
    fn repetitions() {
        for text in [
            &b"mmiissiissiippii"[..],
            b"aaaaaaaa",
            b"abababab",
            b"babababa",
            b"abaababaabaab",
        ] {
            let text: Vec<u32> = text.iter().map(|b| u32::from(*b)).collect();
            assert_eq!(sorted(&text), brute_force(&text));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn as_sorting_does(letters in 1u32..9, text in prop::collection::vec(0u32..1000, 0..80)) {
            let text: Vec<u32> = text.into_iter().map(|x| x % letters).collect();
            prop_assert_eq!(sorted(&text), brute_force(&text));
        }
    }
}
