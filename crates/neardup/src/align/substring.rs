//! The longest run of characters that two documents share.

use super::characters::{bytes_of_first, code_points};
use super::information::longest_matches;
use super::numbered::Numbered;
use super::pace::Pace;
use super::suffixes::Suffixes;
use crate::Result;
use std::cmp::Reverse;
use std::ops::Range;

/// A common substring. Counts start at 0.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Substring {
    /// Its length in code points; 0 if the documents have no character in common.
    pub chars: u32,
    /// Its first code point in `a`.
    pub a: u32,
    /// Its first code point in `b`.
    pub b: u32,
    /// Its place in `a`, in bytes.
    pub bytes: Range<usize>,
}

/// Returns the longest common substring of two texts, which are not folded. If there are several, returns the leftmost
/// in `a`, then the leftmost in `b`. Time O(n), memory 29 bytes per character.
///
/// # Errors
/// `TooLarge` above [`super::MAX_UNITS`] characters, `OutOfMemory`.
pub fn longest_common_substring(a: &[u8], b: &[u8], check: &mut dyn FnMut()) -> Result<Substring> {
    let pace = &mut Pace::new(check);
    let [code_points_a, code_points_b] = code_points([a, b], pace)?;
    let characters = Numbered::new([&code_points_a, &code_points_b], pace)?;
    let suffixes = Suffixes::new(&characters.a, &characters.b, characters.distinct, pace)?;
    let longest = longest_matches(&suffixes, pace)?;
    let in_a = (0..).zip(&longest[..suffixes.split as usize]);
    let Some((first_a, &length @ 1..)) = in_a.min_by_key(|&(p, length)| (Reverse(length), p))
    else {
        return Ok(Substring::default());
    };
    let mut groups = suffixes.groups(length);
    let group = groups.find(|group| group.contains(&first_a));
    let in_b = group.into_iter().flatten().filter(|&&p| p > suffixes.split);
    let first_b = *in_b.min().expect("the run is in both documents");
    let start = bytes_of_first(a, first_a as usize, pace);
    let end = start + bytes_of_first(&a[start..], length as usize, pace);
    Ok(Substring {
        chars: length,
        a: first_a,
        b: suffixes.to_b(first_b),
        bytes: start..end,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(a: &str, b: &str) -> (String, u32, u32) {
        let found = longest_common_substring(a.as_bytes(), b.as_bytes(), &mut || {}).unwrap();
        let text = &a[found.bytes];
        assert_eq!(text.chars().count(), found.chars as usize);
        (text.to_owned(), found.a, found.b)
    }

    #[test]
    fn known_answers() {
        assert_eq!(found("", ""), (String::new(), 0, 0));
        assert_eq!(found("abc", "xyz"), (String::new(), 0, 0));
        assert_eq!(found("xabcy", "zzabcq"), ("abc".into(), 1, 2));
        assert_eq!(found("abab", "baba"), ("aba".into(), 0, 1));
        assert_eq!(found("größer", "Vergrößerung"), ("größer".into(), 0, 3));
        assert_eq!(found("aXbYc", "cYbXa"), ("a".into(), 0, 4));
    }

    #[test]
    fn bytes_that_are_no_utf8() {
        let found = longest_common_substring(b"a\xff\xfeb", b"\xff\xfec", &mut || {}).unwrap();
        assert_eq!([found.chars, found.a, found.b], [2, 1, 0]);
        assert_eq!(found.bytes, 1..3);
    }

    fn brute_force(a: &[char], b: &[char]) -> (usize, usize, usize) {
        let mut best = (0, 0, 0);
        for i in 0..a.len() {
            for j in 0..b.len() {
                let pairs = a[i..].iter().zip(&b[j..]);
                let shared = pairs.take_while(|(x, y)| x == y).count();
                if shared > best.0 {
                    best = (shared, i, j);
                }
            }
        }
        best
    }

    proptest! {
        #[test]
        fn as_brute_force(a in "[ab\u{e9}]{0,40}", b in "[ab\u{e9}\u{10348}]{0,40}") {
            let (text, at_a, at_b) = found(&a, &b);
            let chars: [Vec<char>; 2] = [a.chars().collect(), b.chars().collect()];
            let expected = brute_force(&chars[0], &chars[1]);
            prop_assert_eq!((text.chars().count(), at_a as usize, at_b as usize), expected);
        }
    }
}
