//! Hamming distance of bit strings.

/// The number of differing bits of two bit strings of equal length, as bytes whose unused bits
/// are 0.
pub fn distance(a: &[u8], b: &[u8]) -> u32 {
    debug_assert_eq!(a.len(), b.len());
    let (a_words, a_rest) = a.as_chunks::<8>();
    let (b_words, b_rest) = b.as_chunks::<8>();
    let word = |bytes: &[u8; 8]| u64::from_ne_bytes(*bytes);
    let words = a_words.iter().zip(b_words);
    let rest = a_rest.iter().zip(b_rest);
    words
        .map(|(a, b)| (word(a) ^ word(b)).count_ones())
        .sum::<u32>()
        + rest.map(|(a, b)| (a ^ b).count_ones()).sum::<u32>()
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
