//! Comparison of found pairs with true ones.

use std::collections::HashSet;

/// Numbers of two documents, the smaller first.
pub type Pair = (u32, u32);

/// A found pair, and the similarity that was found.
pub type Scored = (u32, u32, f64);

/// Precision and recall of found pairs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// Pairs at or above this similarity count as found.
    pub cut: f64,
    pub precision: f64,
    pub recall: f64,
}

impl Score {
    fn new(cut: f64, right: usize, found: usize, wanted: usize) -> Score {
        let share = |of: usize| {
            if of == 0 {
                0.0
            } else {
                right as f64 / of as f64
            }
        };
        Score {
            cut,
            precision: share(found),
            recall: share(wanted),
        }
    }

    /// Returns the harmonic mean of precision and recall.
    pub fn f1(&self) -> f64 {
        match self.precision + self.recall {
            0.0 => 0.0,
            sum => 2.0 * self.precision * self.recall / sum,
        }
    }
}

/// Returns the score of the pairs at or above a similarity.
pub fn at(found: &[Scored], truth: &HashSet<Pair>, cut: f64) -> Score {
    let taken = found.iter().filter(|pair| pair.2 >= cut);
    let (mut right, mut all) = (0, 0);
    for (a, b, _) in taken {
        right += usize::from(truth.contains(&(*a, *b)));
        all += 1;
    }
    Score::new(cut, right, all, truth.len())
}

/// Returns the scores at every similarity that occurs, beginning with the highest.
pub fn curve(found: &[Scored], truth: &HashSet<Pair>) -> Vec<Score> {
    let mut sorted = found.to_vec();
    sorted.sort_by(|a, b| b.2.total_cmp(&a.2));
    let (mut scores, mut right) = (Vec::new(), 0);
    for (place, &(a, b, similarity)) in sorted.iter().enumerate() {
        right += usize::from(truth.contains(&(a, b)));
        if sorted.get(place + 1).is_none_or(|next| next.2 < similarity) {
            scores.push(Score::new(similarity, right, place + 1, truth.len()));
        }
    }
    scores
}

/// Returns the cut with the highest F1.
pub fn best(found: &[Scored], truth: &HashSet<Pair>) -> Option<Score> {
    let scores = curve(found, truth).into_iter();
    scores.max_by(|a, b| a.f1().total_cmp(&b.f1()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precision_and_recall_at_every_cut() {
        let truth = HashSet::from([(1, 2), (3, 4), (5, 6)]);
        let found = [(1, 2, 0.9), (2, 3, 0.5), (3, 4, 0.5), (7, 8, 0.1)];
        let score = |cut, precision, recall| Score {
            cut,
            precision,
            recall,
        };
        assert_eq!(at(&found, &truth, 0.9), score(0.9, 1.0, 1.0 / 3.0));
        let expected = [
            score(0.9, 1.0, 1.0 / 3.0),
            score(0.5, 2.0 / 3.0, 2.0 / 3.0),
            score(0.1, 0.5, 2.0 / 3.0),
        ];
        assert_eq!(curve(&found, &truth), expected);
        assert_eq!(best(&found, &truth), Some(score(0.5, 2.0 / 3.0, 2.0 / 3.0)));
        assert_eq!(at(&[], &truth, 0.5).f1(), 0.0);
    }
}
