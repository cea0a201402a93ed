//! Scopes: groups of rows, such as tenants, languages or days, whose keys must not meet.
//!
//! Scheme 1, frozen by known-answer vectors because indexes store it. A scope starts with [`GOLDEN`], and each
//! column's hash is added by `h = split_mix(h + hash)`. A key of the scope is the high half of `split_mix(h ^ key)`,
//! with `split_mix` of [`crate::hash`].

use crate::hash::{GOLDEN, split_mix};

/// The group within which a row is compared: the hashes of its scope columns, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scope(u64);

impl Default for Scope {
    fn default() -> Self {
        Self(GOLDEN)
    }
}

impl Scope {
    /// Returns the scope extended by a column whose value has this `hash`.
    #[must_use]
    pub fn with(self, hash: u64) -> Self {
        Self(split_mix(self.0.wrapping_add(hash)))
    }

    /// Returns the key for `key` within this scope.
    #[inline]
    pub fn key(&self, key: u32) -> u32 {
        (split_mix(self.0 ^ u64::from(key)) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::Scope;

    #[test]
    fn known_answers_are_frozen() {
        let keys = |scope: Scope| [0, 1, u32::MAX].map(|key| scope.key(key));
        let scope = Scope::default().with(5);
        assert_eq!(keys(scope), [0xAC20_4F0B, 0x80F7_3B75, 0x1184_EC28]);
        let scope = scope.with(0xFEDC_BA98_7654_3210);
        assert_eq!(keys(scope), [0x1F10_D8C8, 0x7DD3_4502, 0xB061_E7DC]);
    }

    #[test]
    fn columns_and_their_order_count() {
        let of = |hashes: &[u64]| {
            let scope = hashes
                .iter()
                .fold(Scope::default(), |scope, &h| scope.with(h));
            [0, 1, u32::MAX].map(|key| scope.key(key))
        };
        let scopes = [of(&[]), of(&[0]), of(&[0, 0]), of(&[1, 2]), of(&[2, 1])];
        for (i, a) in scopes.iter().enumerate() {
            for b in &scopes[..i] {
                assert_ne!(a, b);
            }
        }
    }
}
