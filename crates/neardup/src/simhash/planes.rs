//! Counting the bits of many words, bit position by bit position.

/// Planes of a count: plane p holds bit p of the counts of all 64 positions.
pub(super) const PLANES: usize = 13;

/// The most words that [`count`] takes.
pub(super) const MAX_WORDS: usize = (1 << PLANES) - 1;

/// How many of the words of some terms have each bit set, in planes. A tree of carry-save adders
/// (Harley and Seal; Warren, "Hacker's Delight", section 5-1) takes 5 operations a word for all 64
/// positions.
pub(super) fn count(terms: &[u64], word_of: impl Fn(u64) -> u64 + Copy) -> [u64; PLANES] {
    let mut planes = [0; PLANES];
    let (eights, rest) = terms.as_chunks::<8>();
    for terms in eights {
        add8(&mut planes, terms.map(word_of));
    }
    let mut last = [0; 8];
    last.iter_mut()
        .zip(rest)
        .for_each(|(word, term)| *word = word_of(*term));
    add8(&mut planes, last);
    planes
}

#[inline]
fn add8(planes: &mut [u64; PLANES], words: [u64; 8]) {
    let [ones, twos, fours, above @ ..] = planes;
    let [a, b, c, d, e, f, g, h] = words;
    let (a, b) = (add3(ones, a, b), add3(ones, c, d));
    let (c, d) = (add3(ones, e, f), add3(ones, g, h));
    let (a, b) = (add3(twos, a, b), add3(twos, c, d));
    let mut carry = add3(fours, a, b);
    for plane in above {
        (*plane, carry) = (*plane ^ carry, *plane & carry);
    }
}

/// Adds two words to a plane and returns the carries.
#[inline]
fn add3(plane: &mut u64, a: u64, b: u64) -> u64 {
    let half = *plane ^ a;
    let carry = (*plane & a) | (half & b);
    *plane = half ^ b;
    carry
}
