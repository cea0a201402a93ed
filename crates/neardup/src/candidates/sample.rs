//! The similar pairs among a few rows, all of them in memory.

use super::{Frequencies, Tokens, token};
use crate::Result;
use crate::bands::band_hashes;
use crate::bands::plan::BandPlan;
use crate::memory::Grow;
use crate::minhash::{Signature, estimate};

/// Memory for counting tokens.
const COUNTER_BYTES: usize = 1 << 23;

/// The most pairs that share a key and are examined: about a second of work.
const MOST_MEETINGS: f64 = 1e8;

/// Visits the pairs of signatures whose estimate reaches `low`, which is above 0; every pair once, with the
/// estimate. The signatures are comparable and not empty. Returns how many signatures were searched: all, or only
/// the first ones if more than [`MOST_MEETINGS`] pairs share a key.
///
/// Takes the time of a search by bands, not of comparing all pairs. Memory: 5 bytes for each band of a signature.
///
/// # Errors
/// `Incomparable` if signatures were made with different parameters; `OutOfMemory`.
pub fn for_each_pair(
    signatures: &[Signature<'_>],
    low: f64,
    check: &mut dyn FnMut(),
    visit: &mut dyn FnMut(usize, usize, f64),
) -> Result<usize> {
    let Some(first) = signatures.first() else {
        return Ok(0);
    };
    let (slots, bits) = first.header.size();
    let plan = BandPlan::estimate(slots, bits, low);
    let (tokens, rows) = tokens(signatures, &plan, check)?;
    let mut keys = Vec::new();
    for row in 0..tokens.rows() {
        check();
        keys.try_extend(tokens.keys(row).map(|key| (key, row)))?;
    }
    keys.sort_unstable();
    let groups = || keys.chunk_by(|a, b| a.0 == b.0);
    // The number of pairs that share a key grows with the square of the number of signatures.
    let meetings: f64 = groups()
        .map(|group| (group.len() as f64).powi(2) / 2.0)
        .sum();
    let share = (MOST_MEETINGS / meetings).sqrt().min(1.0);
    let searched = (signatures.len() as f64 * share) as usize;
    for group in groups() {
        let end = group.partition_point(|&(_, kept)| (rows[kept as usize] as usize) < searched);
        for (i, &(key, a)) in group[..end].iter().enumerate() {
            check();
            for &(_, b) in &group[..i] {
                if !tokens.meet(a, b, key) {
                    continue;
                }
                let [a, b] = [a, b].map(|kept| rows[kept as usize] as usize);
                let similarity = estimate(&signatures[a], &signatures[b])?;
                if similarity >= low {
                    visit(a, b, similarity);
                }
            }
        }
    }
    Ok(searched)
}

/// Returns the tokens of the signatures that may have partners, and their numbers.
fn tokens(
    signatures: &[Signature<'_>],
    plan: &BandPlan,
    check: &mut dyn FnMut(),
) -> Result<(Tokens, Vec<u32>)> {
    let bands = &plan.bands;
    #[allow(clippy::disallowed_methods, reason = "a token a band")]
    let row = |row: &Signature<'_>| band_hashes(row, bands).map(token).collect::<Vec<u32>>();
    let mut counts = Frequencies::new(signatures.len() * bands.bands, COUNTER_BYTES)?;
    for signature in signatures {
        check();
        counts.add(&row(signature));
    }
    let mut tokens = Tokens::new(bands.bands, plan.needed);
    let mut rows = Vec::new();
    for (number, signature) in (0..).zip(signatures) {
        check();
        if tokens.keep(&row(signature), &counts)? {
            rows.try_push(number)?;
        }
    }
    Ok((tokens, rows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Key;
    use crate::minhash::{Header, Sketch};
    use crate::shingle::{Shingling, for_each_block};
    use crate::text::{Fold, Unit};

    /// Returns signatures of texts in groups of four that share more or fewer of their words.
    fn signatures(rows: usize) -> Vec<Vec<u8>> {
        let shingling = Shingling::new(1, Unit::Word, Fold::Case).unwrap();
        let key = Key::from_seed(0);
        let signature = |row: usize| {
            let own = row % 4 * 5;
            let word = |w: usize| match w {
                w if w < own => format!("w{row}x{w} "),
                w if w < 55 => format!("g{}x{w} ", row / 4),
                w => format!("everybody{w} "),
            };
            let text: String = (0..60).map(word).collect();
            let mut sketch = Sketch::new(128);
            for_each_block(text.as_bytes(), &shingling, &key, &mut |hashes| {
                sketch.add(hashes);
                Ok(())
            })
            .unwrap();
            sketch.encode(Header::of_document(&shingling, 128, key.id()))
        };
        (0..rows).map(signature).collect()
    }

    fn read(rows: &[Vec<u8>]) -> Vec<Signature<'_>> {
        let signatures = rows.iter().map(|row| Signature::from_bytes(row));
        signatures.map(Result::unwrap).collect()
    }

    #[test]
    fn the_pairs_are_those_of_all_with_all() {
        let rows = signatures(400);
        let read = read(&rows);
        for low in [0.3, 0.58, 0.8] {
            let expected: Vec<_> = (0..rows.len())
                .flat_map(|a| (0..a).map(move |b| (a, b)))
                .filter(|&(a, b)| estimate(&read[a], &read[b]).unwrap() >= low)
                .collect();
            assert!(expected.len() > 50, "{low}: {}", expected.len());
            let mut pairs = Vec::new();
            let searched = for_each_pair(&read, low, &mut || {}, &mut |a, b, _| pairs.push((a, b)));
            assert_eq!(searched, Ok(rows.len()));
            pairs.sort_unstable();
            assert_eq!(pairs, expected, "{low}");
        }
    }

    #[test]
    fn so_many_alike_that_few_are_searched() {
        let rows = vec![signatures(1).remove(0); 20_000];
        let read = read(&rows);
        let (mut pairs, mut last) = (0, 0);
        let searched = for_each_pair(&read, 0.5, &mut || {}, &mut |a, b, similarity| {
            assert_eq!(similarity, 1.0);
            pairs += 1;
            last = last.max(a).max(b);
        })
        .unwrap();
        assert!((1000..10_000).contains(&searched), "{searched}");
        assert_eq!(pairs, searched * (searched - 1) / 2);
        assert_eq!(last, searched - 1);
        let nothing = for_each_pair(&[], 0.5, &mut || {}, &mut |_, _, _| ());
        assert_eq!(nothing, Ok(0));
    }
}
