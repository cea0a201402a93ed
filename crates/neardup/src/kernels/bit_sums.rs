//! Weighted sums of bit positions, for any processor.

/// Adds to the sum of every position, from the lowest bit, the weights of the words that set it.
#[inline]
pub fn add_where_set(words: &[u64], weights: &[i64], sums: &mut [i64; 64]) {
    for (word, weight) in words.iter().zip(weights) {
        for (bit, sum) in sums.iter_mut().enumerate() {
            *sum += weight & ((word >> bit & 1) as i64).wrapping_neg();
        }
    }
}
