//! Prefixes of sets: a set that contains a share of another has at least one element of its prefix.
//!
//! A set that contains at least T of n elements lacks at most n - T of them, so it has at least one of any n - T + 1.
//! The rarest elements are taken, because the fewest other sets have them (Chaudhuri, Ganti, Kaushik, "A primitive
//! operator for similarity joins in data cleaning", ICDE 2006).

use super::Frequencies;
use crate::Result;
use crate::bands::{Occurrence, element_key};
use crate::memory::{Grow, collected};

/// Appends to `chosen` the minimum number of elements of `set` that are its share `threshold`, and then the tokens of its
/// rarest elements. Every set that contains this share of `set` has at least one of them. Appends nothing for an empty
/// set, which nothing contains.
///
/// # Errors
/// `OutOfMemory`.
pub fn rarest(
    set: &[i64],
    threshold: f64,
    counts: &Frequencies,
    chosen: &mut Vec<u32>,
) -> Result<()> {
    let Some(occurrence) = Occurrence::contained(set.len(), threshold) else {
        return Ok(());
    };
    let mut tokens = collected(set.iter().copied().map(element_key))?;
    let rarity = |token: &u32| (counts.count(*token), *token);
    tokens.select_nth_unstable_by_key(occurrence.probes() - 1, rarity);
    tokens.truncate(occurrence.probes());
    chosen.try_push(occurrence.needed as u32)?;
    chosen.try_extend_from_slice(&tokens)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::containment;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn set() -> impl Strategy<Value = Vec<i64>> {
        prop::collection::btree_set(0i64..60, 0..40).prop_map(|set| set.into_iter().collect())
    }

    proptest! {
        #[test]
        fn whoever_contains_the_share_has_one(
            sets in prop::collection::vec(set(), 1..20),
            threshold in prop_oneof![1e-9..=1.0f64, Just(1.0)],
        ) {
            let mut counts = Frequencies::new(1000, 1 << 12).expect("memory");
            for element in sets.iter().flatten() {
                counts.add(element_key(*element));
            }
            for part in &sets {
                let mut chosen = Vec::new();
                rarest(part, threshold, &counts, &mut chosen).expect("memory");
                prop_assert_eq!(chosen.is_empty(), part.is_empty());
                let Some((needed, tokens)) = chosen.split_first() else { continue };
                let tokens: BTreeSet<u32> = tokens.iter().copied().collect();
                for whole in &sets {
                    let has_one = whole.iter().any(|element| tokens.contains(&element_key(*element)));
                    let share = containment(part, whole, &mut || ());
                    prop_assert!(share < threshold || has_one && whole.len() as u32 >= *needed);
                }
            }
        }
    }
}
