//! Counting and adding the bits of many words, bit position by bit position.

/// Planes of a count: plane p holds bit p of the counts of all 64 positions.
const PLANES: usize = 13;

/// The most words that [`count`] takes.
pub(super) const MAX_WORDS: usize = (1 << PLANES) - 1;

/// How many of the words have each bit set, in planes. A tree of carry-save adders (Harley and
/// Seal; Warren, "Hacker's Delight", section 5-1) takes 5 operations a word for all 64 positions.
pub(super) fn count(mut words: impl Iterator<Item = u64>) -> [u64; PLANES] {
    let mut planes = [0; PLANES];
    while let Some(first) = words.next() {
        let mut next = || words.next().unwrap_or(0);
        let [ones, twos, fours, above @ ..] = &mut planes;
        let a = add3(ones, first, next());
        let b = add3(ones, next(), next());
        let c = add3(twos, a, b);
        let a = add3(ones, next(), next());
        let b = add3(ones, next(), next());
        let d = add3(twos, a, b);
        let mut carry = add3(fours, c, d);
        for plane in above {
            (*plane, carry) = (*plane ^ carry, *plane & carry);
        }
    }
    planes
}

/// Adds two words to a plane and returns the carries.
#[inline]
fn add3(plane: &mut u64, a: u64, b: u64) -> u64 {
    let half = *plane ^ a;
    let carry = (*plane & a) | (half & b);
    *plane = half ^ b;
    carry
}

/// Adds a weight to the sums of all positions whose bit is set.
pub(super) fn add_where_set(bits: u64, weight: i64, sums: &mut [i64; 64]) {
    for (bit, sum) in sums.iter_mut().enumerate() {
        *sum += weight & ((bits >> bit & 1) as i64).wrapping_neg();
    }
}
