//! The similar pairs of a few rows that are all in memory.

use super::{Frequencies, Tokens, token};
use crate::Result;
use crate::bands::band_hashes;
use crate::bands::plan::Plan;
use crate::memory::Grow;
use crate::minhash::{Signature, estimate};
use std::collections::HashSet;

/// Memory for counting tokens.
const COUNTER_BYTES: usize = 1 << 23;

/// Visits the pairs of signatures, comparable and not empty, whose estimate reaches `low`, above 0,
/// with the estimate, until `visit` returns false. None comes twice; all come if `visit` never does.
///
/// The time is that of a search by bands, not of comparing all with all. Memory: 5 bytes a band of a
/// signature, and 16 for each pair visited.
///
/// # Errors
/// `Incomparable` for signatures made with different parameters; `OutOfMemory`.
pub fn for_each_pair(
    signatures: &[Signature<'_>],
    low: f64,
    check: &mut dyn FnMut(),
    visit: &mut dyn FnMut(usize, usize, f64) -> bool,
) -> Result<()> {
    let Some(first) = signatures.first() else {
        return Ok(());
    };
    let (slots, bits) = (
        usize::from(first.header.slots),
        u32::from(first.header.slot_bits),
    );
    let Plan { bands, needed } = Plan::estimate(slots, bits, low);
    #[allow(clippy::disallowed_methods, reason = "a token a band")]
    let row = |row: &Signature<'_>| band_hashes(row, &bands).map(token).collect::<Vec<u32>>();
    let mut counts = Frequencies::new(signatures.len() * bands.bands, COUNTER_BYTES)?;
    for signature in signatures {
        check();
        counts.add(&row(signature));
    }
    let mut tokens = Tokens::new(bands.bands, needed);
    let mut keys: Vec<(u32, u32)> = Vec::new();
    for (number, signature) in signatures.iter().enumerate() {
        check();
        if tokens.keep(&row(signature), &counts)? {
            let new = tokens
                .keys(tokens.rows() - 1)
                .map(|key| (key, number as u32));
            for entry in new {
                keys.try_push(entry)?;
            }
        }
    }
    keys.sort_unstable();
    let mut visited = HashSet::new();
    for group in keys.chunk_by(|a, b| a.0 == b.0) {
        for (i, &(_, a)) in group.iter().enumerate() {
            check();
            for &(_, b) in &group[..i] {
                let similarity = estimate(&signatures[a as usize], &signatures[b as usize])?;
                if similarity < low {
                    continue;
                }
                visited.try_reserve(1)?;
                if visited.insert((a, b)) && !visit(a as usize, b as usize, similarity) {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Key;
    use crate::minhash::{Header, Sketch};
    use crate::shingle::{Shingling, for_each_block};
    use crate::text::{Fold, Unit};

    /// Signatures of texts in groups of four, that share more or less of their words.
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

    fn pairs(rows: &[Vec<u8>], low: f64) -> Vec<(usize, usize)> {
        let read: Vec<_> = rows
            .iter()
            .map(|row| Signature::from_bytes(row).unwrap())
            .collect();
        let mut pairs = Vec::new();
        for_each_pair(&read, low, &mut || {}, &mut |a, b, _| {
            pairs.push((a, b));
            true
        })
        .unwrap();
        pairs.sort_unstable();
        pairs
    }

    #[test]
    fn the_pairs_are_those_of_all_with_all() {
        let rows = signatures(400);
        let read: Vec<_> = rows
            .iter()
            .map(|row| Signature::from_bytes(row).unwrap())
            .collect();
        for low in [0.3, 0.58, 0.8] {
            let expected: Vec<_> = (0..rows.len())
                .flat_map(|a| (0..a).map(move |b| (a, b)))
                .filter(|&(a, b)| estimate(&read[a], &read[b]).unwrap() >= low)
                .collect();
            assert!(expected.len() > 50, "{low}: {}", expected.len());
            assert_eq!(pairs(&rows, low), expected, "{low}");
        }
    }

    #[test]
    fn it_ends_when_told() {
        let rows = vec![signatures(1).remove(0); 5000];
        let read: Vec<_> = rows
            .iter()
            .map(|row| Signature::from_bytes(row).unwrap())
            .collect();
        let (mut visits, mut checks) = (0, 0);
        for_each_pair(&read, 0.5, &mut || checks += 1, &mut |_, _, similarity| {
            assert_eq!(similarity, 1.0);
            visits += 1;
            visits < 100
        })
        .unwrap();
        assert_eq!(visits, 100);
        assert!(checks < 3 * rows.len(), "{checks}");
        assert!(for_each_pair(&[], 0.5, &mut || {}, &mut |_, _, _| true).is_ok());
    }
}
