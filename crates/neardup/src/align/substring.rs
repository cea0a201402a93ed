//! The longest run of characters that two documents share.

use super::characters::{bytes_of_first, code_points};
use super::information::longest_matches;
use super::numbered::Numbered;
use super::pace::Pace;
use super::suffixes::Suffixes;
use crate::Result;
use std::cmp::Reverse;
use std::ops::Range;

/// Returns the range of bytes in `a` of the longest common substring of `a` and `b`, which are not folded. The range is
/// empty if they have no character in common. If two or more common substrings are the longest, returns the leftmost in
/// `a`. Time O(n), memory 29 bytes per character.
///
/// # Errors
/// `TooLarge` above [`super::MAX_UNITS`] characters, `OutOfMemory`.
pub fn longest_common_substring(
    a: &[u8],
    b: &[u8],
    check: &mut dyn FnMut(),
) -> Result<Range<usize>> {
    let pace = &mut Pace::new(check);
    let [code_points_a, code_points_b] = code_points([a, b], pace)?;
    let characters = Numbered::new([&code_points_a, &code_points_b], pace)?;
    let suffixes = Suffixes::new(&characters.a, &characters.b, characters.distinct, pace)?;
    let longest = longest_matches(&suffixes, pace)?;
    let in_a = longest[..suffixes.split as usize].iter().enumerate();
    let found = in_a.min_by_key(|&(first, length)| (Reverse(length), first));
    let (first, &length) = found.unwrap_or((0, &0));
    let start = bytes_of_first(a, first, pace);
    Ok(start..start + bytes_of_first(&a[start..], length as usize, pace))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the substring, and the number of characters before it.
    fn found(a: &str, b: &str) -> (String, usize) {
        let found = longest_common_substring(a.as_bytes(), b.as_bytes(), &mut || {}).unwrap();
        (
            a[found.clone()].to_owned(),
            a[..found.start].chars().count(),
        )
    }

    #[test]
    fn known_answers() {
        assert_eq!(found("", ""), (String::new(), 0));
        assert_eq!(found("abc", "xyz"), (String::new(), 0));
        assert_eq!(found("xabcy", "zzabcq"), ("abc".into(), 1));
        assert_eq!(found("abab", "baba"), ("aba".into(), 0));
        assert_eq!(found("größer", "Vergrößerung"), ("größer".into(), 0));
        assert_eq!(found("aXbYc", "cYbXa"), ("a".into(), 0));
    }

    #[test]
    fn bytes_that_are_no_utf8() {
        let found = longest_common_substring(b"a\xff\xfeb", b"\xff\xfec", &mut || {}).unwrap();
        assert_eq!(found, 1..3);
    }

    fn brute_force(a: &[char], b: &[char]) -> (usize, usize) {
        let mut best = (0, 0);
        for i in 0..a.len() {
            for j in 0..b.len() {
                let pairs = a[i..].iter().zip(&b[j..]);
                let shared = pairs.take_while(|(x, y)| x == y).count();
                if shared > best.0 {
                    best = (shared, i);
                }
            }
        }
        best
    }

    proptest! {
        #[test]
        fn as_brute_force(a in "[ab\u{e9}]{0,40}", b in "[ab\u{e9}\u{10348}]{0,40}") {
            let (text, at_a) = found(&a, &b);
            let chars: [Vec<char>; 2] = [a.chars().collect(), b.chars().collect()];
            let expected = brute_force(&chars[0], &chars[1]);
            prop_assert_eq!((text.chars().count(), at_a), expected);
            prop_assert!(b.contains(&text));
        }
    }
}
