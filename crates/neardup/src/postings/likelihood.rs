//! The probability that a row has enough of a query's keys, given how many of the keys looked up it has.

use super::estimate::{Estimate, MOST_KEYS, enough};
use crate::Result;
use crate::memory::{Grow, filled};

/// The probability that a row has a given number of a query's keys, by the number of looked up keys that it has. The
/// keys looked up are a random sample without replacement. A priori, all numbers are equally likely.
pub struct Likelihood {
    /// `tails[shared][n]`: the probability that a row with `shared` of the keys looked up has at least n of all keys.
    /// If there are more than [`MOST_KEYS`] keys, n counts in proportion.
    tails: Vec<Vec<f64>>,
    /// The number of the query's keys.
    keys: usize,
}

impl Likelihood {
    /// Returns the likelihood for a query of `keys` keys, given an estimate that looked up some of them.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn new(estimate: &Estimate, keys: usize) -> Result<Self> {
        let looked_up = estimate.lists();
        let all = keys.clamp(looked_up.max(1), MOST_KEYS);
        let mut tails = Vec::new();
        // On a damaged page, a list can have a row twice.
        for shared in 0..=looked_up.min(estimate.most_shared()) {
            tails.try_push(tail(all, looked_up, shared)?)?;
        }
        let keys = keys.max(1);
        Ok(Self { tails, keys })
    }

    /// Returns the probability that a row with `shared` of the keys looked up has at least `needed` of all.
    pub fn of(&self, shared: u32, needed: usize) -> f64 {
        let tail = &self.tails[self.tails.len().min(shared as usize + 1) - 1];
        let all = tail.len() - 1;
        let place = (needed * all).div_ceil(self.keys);
        tail.get(place).copied().unwrap_or(0.0)
    }

    /// Returns the approximate number of rows that have at least `needed` of the query's keys.
    pub fn rows(&self, estimate: &Estimate, needed: usize) -> f64 {
        let share = needed as f64 / self.keys as f64;
        let scale = estimate.scale(enough(share, estimate.lists()));
        let rows = estimate.shared.iter().map(|row| {
            let [of_short, of_all] =
                [row.short, row.short + row.long].map(|shared| self.of(shared, needed));
            of_short + scale.unwrap_or(1.0) * (of_all - of_short)
        });
        rows.sum::<f64>().min(estimate.all_rows)
    }
}

/// Returns the probabilities that a row has at least 0, 1, ... `all` of a query's `all` keys, if it has `shared` of
/// `looked_up` keys.
fn tail(all: usize, looked_up: usize, shared: usize) -> Result<Vec<f64>> {
    let (others, missed) = (all - looked_up, (looked_up - shared) as f64);
    let mut tail = filled(0.0, all + 1)?;
    tail[shared] = 1.0;
    for more in 1..=others {
        let left = (others - more + 1) as f64;
        let ratio = left / (missed + left) * (shared + more) as f64 / more as f64;
        tail[shared + more] = tail[shared + more - 1] * ratio;
    }
    let mut sum = 0.0;
    for frequency in tail.iter_mut().rev() {
        sum += *frequency;
        *frequency = sum;
    }
    tail.iter_mut().for_each(|frequency| *frequency /= sum);
    Ok(tail)
}

#[cfg(test)]
mod tests {
    use super::tail;

    /// By Bayes' rule over all numbers of keys that a row can have.
    #[test]
    fn tails_are_those_of_equally_likely_numbers() {
        for (all, looked_up) in [(3, 1), (7, 3), (9, 9), (12, 0)] {
            for shared in 0..=looked_up {
                let choose = |n: usize, k: usize| -> f64 {
                    (0..k)
                        .map(|i| n.saturating_sub(i) as f64 / (i + 1) as f64)
                        .product()
                };
                let ways = |has: usize| choose(has, shared) * choose(all - has, looked_up - shared);
                let sum: f64 = (0..=all).map(ways).sum();
                for (needed, found) in tail(all, looked_up, shared).unwrap().iter().enumerate() {
                    let expected = (needed..=all).map(ways).sum::<f64>() / sum;
                    assert!(
                        (found - expected).abs() < 1e-12,
                        "{all} {looked_up} {shared} {needed}"
                    );
                }
            }
        }
    }
}
