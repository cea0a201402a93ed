//! Hamming distance of bit strings.

use crate::kernels::active;

/// Returns the number of bits in which bit strings `a` and `b` differ. Both have the same length, and unused bits are
/// 0.
pub fn distance(a: &[u8], b: &[u8]) -> u32 {
    let bits = 8 * a.len();
    (bits - active().count_equal(a, b, bits, 1)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn counts_differing_bits(pairs in prop::collection::vec(any::<(u8, u8)>(), 0..100)) {
            let (a, b): (Vec<u8>, Vec<u8>) = pairs.into_iter().unzip();
            let differs = |bit: &usize| (a[bit / 8] ^ b[bit / 8]) >> (bit % 8) & 1 == 1;
            let expected = (0..8 * a.len()).filter(differs).count();
            prop_assert_eq!(distance(&a, &b) as usize, expected);
        }
    }
}
