//! The key of one element of a set.
//!
//! Scheme 1, frozen by known-answer vectors because indexes store the key: the high half of `split_mix` of
//! [`crate::hash`]. Elements need not be well mixed. Different elements rarely share a key. If they do, they count as
//! shared, so no lookup misses a row.

use crate::hash::split_mix;

/// Returns the key of `element`.
#[inline]
pub fn element_key(element: i64) -> u32 {
    (split_mix(element as u64) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::element_key;

    #[test]
    fn known_answers_are_frozen() {
        let keys = [0, 1, -1, i64::MAX, i64::MIN].map(element_key);
        assert_eq!(
            keys,
            [0, 0x5692_161D, 0xB4D0_55FC, 0x5A68_2AFE, 0x25C2_6EA5]
        );
    }
}
