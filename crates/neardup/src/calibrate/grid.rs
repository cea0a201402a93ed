//! The methods that calibration compares.

use super::{Cut, Scale};
use crate::memory::{Grow, collected};
use crate::shingle::{Key, Shingling, shingle_hashes};
use crate::simhash::{self, Weighting, Width};
use crate::text::{Fold, Unit};
use crate::{Error, Result, hamming, set};

/// Bits of a SimHash.
pub const BITS: u32 = 64;

/// The greatest distance that an index supports.
const MAX_DISTANCE: u32 = 63;

/// The largest number of methods in a grid.
pub const MAX_METHODS: usize = 1000;

/// A measure of how similar two documents are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GridMeasure {
    /// The Jaccard similarity of the documents' sets of shingles.
    Resemblance,
    /// The Hamming distance of the documents' SimHashes of [`BITS`] bits.
    SimHash(Weighting),
}

/// A measure, and how it cuts documents into shingles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GridMethod {
    pub measure: GridMeasure,
    pub shingling: Shingling,
}

impl GridMethod {
    /// Returns how similar two documents are: their similarity, or their negative distance. A document without a
    /// shingle has the score at the floor of the scale with every other document.
    ///
    /// # Errors
    /// `OutOfMemory`; `Invalid` for 2^31 shingles or more.
    pub fn score(&self, a: &[u8], b: &[u8], check: &mut dyn FnMut()) -> Result<f64> {
        let key = Key::from_seed(0);
        let score = match self.measure {
            GridMeasure::Resemblance => {
                let a = shingle_hashes(a, &self.shingling, &key, check)?;
                let b = shingle_hashes(b, &self.shingling, &key, check)?;
                set::jaccard(&a, &b, check)
            }
            GridMeasure::SimHash(weighting) => {
                let mut bits = |doc| {
                    let width = Width::new(i64::from(BITS))?;
                    simhash::document(doc, &self.shingling, &key, width, weighting, check)
                };
                match (bits(a)?, bits(b)?) {
                    (Some(a), Some(b)) => {
                        -f64::from(hamming::distance(a.as_raw_slice(), b.as_raw_slice()))
                    }
                    _ => self.scale().floor,
                }
            }
        };
        Ok(score)
    }

    /// Returns the scores that a threshold can take.
    pub fn scale(&self) -> Scale {
        match self.measure {
            GridMeasure::Resemblance => Scale::SIMILARITY,
            GridMeasure::SimHash(_) => Scale {
                floor: -f64::from(MAX_DISTANCE) - 1.0,
                top: 0.0,
            },
        }
    }

    /// Returns the distance in the middle of a cut through distances, the smaller of two.
    pub fn middle_distance(&self, cut: &Cut) -> u32 {
        let (least, beyond) = (-cut.lowest as u32, -cut.below as u32);
        least + (beyond - 1 - least) / 2
    }
}

/// The values of each parameter.
#[derive(Debug, Clone, Default)]
pub struct Grid {
    pub units: Vec<Unit>,
    pub lengths: Vec<i64>,
    pub folds: Vec<Fold>,
    /// Weightings of SimHash; with none, SimHash is left out.
    pub weightings: Vec<Weighting>,
}

impl Grid {
    /// Returns every combination: resemblance first, then SimHash by weighting; within each by unit, then length,
    /// then fold.
    ///
    /// # Errors
    /// `Invalid` unless there are 1 to [`MAX_METHODS`] of them, and for lengths out of range; `OutOfMemory`.
    pub fn methods(&self) -> Result<Vec<GridMethod>> {
        let simhash = self
            .weightings
            .iter()
            .map(|&weighting| GridMeasure::SimHash(weighting));
        let measures = collected(std::iter::once(GridMeasure::Resemblance).chain(simhash))?;
        let factors = [
            measures.len(),
            self.units.len(),
            self.lengths.len(),
            self.folds.len(),
        ];
        let count = factors
            .iter()
            .fold(1usize, |all, &one| all.saturating_mul(one));
        if !(1..=MAX_METHODS).contains(&count) {
            return Err(Error::invalid(
                format!("{count} combinations of parameters"),
                format!(
                    "Give at least one unit, k and fold; valid are up to {MAX_METHODS} combinations."
                ),
            ));
        }
        let mut methods = Vec::new();
        for &measure in &measures {
            for &unit in &self.units {
                for &length in &self.lengths {
                    for &fold in &self.folds {
                        let shingling = Shingling::new(length, unit, fold)?;
                        methods.try_push(GridMethod { measure, shingling })?;
                    }
                }
            }
        }
        Ok(methods)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn method(measure: GridMeasure, k: i64) -> GridMethod {
        GridMethod {
            measure,
            shingling: Shingling::new(k, Unit::Word, Fold::Case).unwrap(),
        }
    }

    #[test]
    fn scores_are_those_of_the_measures() {
        let resemblance = method(GridMeasure::Resemblance, 1);
        let simhash = method(GridMeasure::SimHash(Weighting::Set), 1);
        let score = |method: &GridMethod, a: &str, b: &str| {
            let score = method.score(a.as_bytes(), b.as_bytes(), &mut || {});
            score.unwrap()
        };
        assert_eq!(score(&resemblance, "a b c", "B c d"), 0.5);
        assert_eq!(score(&resemblance, "", ""), 0.0);
        assert_eq!(score(&simhash, "a b c", "c b a"), 0.0);
        assert!(score(&simhash, "a b c", "x y z") < 0.0);
        assert_eq!(score(&simhash, "a", ""), simhash.scale().floor);
    }

    #[test]
    fn distances_in_the_middle() {
        let simhash = method(GridMeasure::SimHash(Weighting::Set), 1);
        let middle =
            |(lowest, below)| simhash.middle_distance(&Cut::new(lowest, below, Default::default()));
        let cuts = [(-3.0, -4.0), (-3.0, -6.0), (0.0, -1.0), (-63.0, -64.0)];
        assert_eq!(cuts.map(middle), [3, 4, 0, 63]);
    }

    #[test]
    fn every_combination_in_order() {
        let grid = Grid {
            units: vec![Unit::Word, Unit::Char],
            lengths: vec![1, 3],
            folds: vec![Fold::Case],
            weightings: vec![Weighting::Logarithm],
        };
        let methods = grid.methods().unwrap();
        assert_eq!(methods.len(), 8);
        assert_eq!(methods[1], method(GridMeasure::Resemblance, 3));
        assert_eq!(
            methods[4],
            method(GridMeasure::SimHash(Weighting::Logarithm), 1)
        );
        assert!(Grid::default().methods().is_err());
        for lengths in [vec![0], vec![1; MAX_METHODS]] {
            let grid = grid.clone();
            assert!(Grid { lengths, ..grid }.methods().is_err());
        }
    }
}
