//! The errors of estimates by the number of shingles, compared with textbook MinHash.

use anyhow::Result;
use fastrand::Rng;
use neardup::hash::split_mix;
use neardup::minhash::sketch::Sketch;
use plotters::chart::SeriesLabelPosition;
use testbed::progress::bar;

use crate::context::Bench;
use crate::report::chart::{Axis, Chart, Curve};
use crate::report::table::{Table, row};

const SLOTS: usize = 128;
const SIMILARITIES: [f64; 3] = [0.3, 0.5, 0.8];
/// The numbers of shingles of a document, and of trials at each similarity.
const SIZES: [(usize, usize); 7] = [
    (10, 2000),
    (50, 2000),
    (128, 2000),
    (300, 1000),
    (1000, 500),
    (3000, 200),
    (10_000, 60),
];

/// Returns all tables of this subject.
pub fn measure(bench: &Bench<'_>) -> Result<Vec<Table>> {
    let about = "Mean squared error of an estimate from 128 slots, as a multiple of J (1 - J) / 128, what independent \
                 slots would give, by the number of shingles of each of two documents (J = 0.3, 0.5, 0.8); textbook is \
                 the minimum of 128 hash functions, as datasketch and gaoya compute it.";
    let columns = "shingles | pairs | minhash | textbook | standard error of these";
    let mut table = Table::new("quality.error", about, columns);
    let progress = bar(SIZES.len() as u64, "errors of estimates")?;
    let mut curves = ["minhash", "textbook"].map(|label| Curve {
        label: label.to_string(),
        points: Vec::new(),
    });
    for (size, trials) in SIZES {
        let errors = errors(size, trials);
        for (curve, error) in curves.iter_mut().zip(errors) {
            curve.points.push((size as f64, error));
        }
        let pairs = (trials * SIMILARITIES.len()) as f64;
        table.push(row![
            size as f64,
            pairs,
            errors[0],
            errors[1],
            (2.0 / pairs).sqrt()
        ]);
        progress.inc(1);
    }
    progress.finish_and_clear();
    let chart = Chart {
        title: "Squared error of an estimate from 128 slots".to_string(),
        below: Axis::powers("shingles of a document", 10.0, 10_000.0),
        beside: Axis::even("times J (1 - J) / 128", 0.0, 1.4, 8),
        legend: SeriesLabelPosition::LowerRight,
        curves: curves.into(),
    };
    chart.draw(&bench.results.join("error.svg"))?;
    Ok(vec![table])
}

/// Returns the mean squared errors of our MinHash and of textbook MinHash.
fn errors(size: usize, trials: usize) -> [f64; 2] {
    let mut rng = Rng::with_seed(size as u64);
    let mut sums = [0.0; 2];
    for similarity in SIMILARITIES {
        let common = (2.0 * size as f64 * similarity / (1.0 + similarity)).round() as usize;
        let truth = common as f64 / (2 * size - common) as f64;
        let unit = truth * (1.0 - truth) / SLOTS as f64;
        for _ in 0..trials {
            let union: Vec<u64> = (0..2 * size - common).map(|_| rng.u64(..)).collect();
            let (a, b) = (&union[..size], &union[size - common..]);
            for (sum, sketch) in sums.iter_mut().zip([ours, textbook]) {
                let equal = sketch(a)
                    .iter()
                    .zip(&sketch(b))
                    .filter(|(x, y)| x == y)
                    .count();
                *sum += (equal as f64 / SLOTS as f64 - truth).powi(2) / unit;
            }
        }
    }
    sums.map(|sum| sum / (trials * SIMILARITIES.len()) as f64)
}

fn ours(set: &[u64]) -> Vec<u64> {
    let mut sketch = Sketch::new(SLOTS);
    sketch.add(set);
    sketch.slots().iter().map(|&slot| u64::from(slot)).collect()
}

/// Returns the minimum of each of `SLOTS` hash functions.
fn textbook(set: &[u64]) -> Vec<u64> {
    let function = |n: u64| {
        let key = split_mix(n);
        let hashes = set.iter().map(|&element| split_mix(element ^ key));
        hashes.min().unwrap_or(u64::MAX)
    };
    (0..SLOTS as u64).map(function).collect()
}

#[cfg(test)]
mod tests {
    use super::errors;

    #[test]
    fn short_documents_are_estimated_better_than_by_the_textbook() {
        let [ours, textbook] = errors(50, 400);
        assert!(
            ours < 0.75 && (0.85..1.15).contains(&textbook),
            "{ours} {textbook}"
        );
    }
}
