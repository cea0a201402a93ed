//! Forecast of the cost and recall of an index of band keys, from a sample of its rows.

use crate::Result;
use crate::bands::Bands;
use crate::memory::{Grow, filled};

/// A band is crowded if more rows of the table share it.
pub const CROWDED: f64 = 1000.0;

/// Sampled rows that are looked up to count candidates; their mean is within a tenth of that of all
/// rows where lookups differ by no more than their mean.
const LOOKUPS: usize = 500;

/// Bytes of an entry of a GIN index with one row: item pointer, tuple header and key, posting list
/// header with the row's address.
const ENTRY_BYTES: f64 = 28.0;

/// Bytes that round an entry up to a multiple of 8, on average.
const PADDING: f64 = 3.5;

/// Share of its pages that a GIN index fills that was built in one pass: the entries come in order, and
/// each split leaves half a page behind.
const FILL: f64 = 0.51;

/// Returns the length of keys with which about 15 of `rows` rows share one by chance, within the
/// range that indexes offer. With fewer, lookups read long lists; with more, entries are shared
/// less.
pub fn key_bits(rows: f64) -> u32 {
    ((rows / 15.0).max(1.0).log2().round() as u32).clamp(8, 24)
}

/// Returns the estimated bytes of a GIN index for one of `rows` rows of a table of `pages` pages, with
/// `bands` keys a row of `key_bits` bits, built within `maintenance_work_mem`. One built in several passes
/// takes up to 45 % less.
pub fn bytes_per_row(rows: f64, pages: f64, bands: usize, key_bits: u32) -> f64 {
    let keys = 2f64.powi(key_bits as i32);
    let used_keys = keys * -(-rows / keys).exp_m1();
    let rows_a_key = (rows / used_keys).max(1.0);
    let others = (rows_a_key - 1.0) * difference_bytes(pages.max(1.0) * 2048.0 / rows_a_key);
    bands as f64 * (ENTRY_BYTES + others + PADDING.min(others)) / rows_a_key / FILL
}

/// Returns the mean bytes of a difference of row addresses in a posting list, 7 bits a byte, where the
/// differences are exponentially distributed. Addresses have 11 bits for the rows of a page.
fn difference_bytes(mean: f64) -> f64 {
    let is_longer = |bits: i32| (-2f64.powi(bits) / mean).exp();
    1.0 + [7, 14, 21, 28, 35].map(is_longer).iter().sum::<f64>()
}

/// The band hashes of sampled rows, in order of hash.
pub struct Sample {
    entries: Vec<(u64, u32)>,
    rows: u32,
    scale: f64,
}

impl Sample {
    /// Sorts the band hashes of sampled rows: `hashes` yields those of each row, and the table has
    /// `table_rows`.
    ///
    /// # Errors
    /// `OutOfMemory`: it takes 16 bytes a band and row.
    pub fn new<H: IntoIterator<Item = u64>>(
        hashes: impl IntoIterator<Item = H>,
        table_rows: f64,
    ) -> Result<Self> {
        let mut entries = Vec::new();
        let mut rows = 0;
        for row in hashes {
            for hash in row {
                entries.try_push((hash, rows))?;
            }
            rows += 1;
        }
        entries.sort_unstable();
        let scale = (table_rows - 1.0).max(0.0) / (f64::from(rows) - 1.0).max(1.0);
        Ok(Self {
            entries,
            rows,
            scale,
        })
    }

    /// Returns the share of the rows with so many crowded bands that a lookup of them, which reads
    /// all but the `intact` - 1 longest lists, has to read a crowded one.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn crowded(&self, intact: usize) -> Result<f64> {
        let mut crowded_bands = filled(0usize, self.rows as usize)?;
        for group in self.entries.chunk_by(|a, b| a.0 == b.0) {
            if (group.len() - 1) as f64 * self.scale > CROWDED {
                group
                    .iter()
                    .for_each(|&(_, row)| crowded_bands[row as usize] += 1);
            }
        }
        let crowded = crowded_bands.iter().filter(|&&bands| bands >= intact);
        Ok(crowded.count() as f64 / f64::from(self.rows.max(1)))
    }

    /// Returns the mean number of rows that a lookup of a row finds besides it, before they are
    /// rechecked: those that share `intact` of its bands, and those that seem to, with keys of
    /// `key_bits` bits.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn candidates(
        &self,
        bands: &Bands,
        intact: usize,
        key_bits: u32,
        check: &mut dyn FnMut(),
    ) -> Result<f64> {
        let lookups = LOOKUPS.min(self.rows as usize);
        let mut keys = filled(Vec::new(), lookups)?;
        for &(hash, row) in &self.entries {
            if let Some(keys) = keys.get_mut(row as usize) {
                keys.try_push(hash)?;
            }
        }
        let mut found = 0;
        for keys in &keys {
            found += self.sharing(keys, intact, check)?;
        }
        // Less the row itself.
        let others = found as f64 / lookups.max(1) as f64 - 1.0;
        let rows = self.scale * f64::from(self.rows);
        Ok(others.max(0.0) * self.scale + rows * by_chance(bands.bands, intact, key_bits))
    }

    /// Returns how many sampled rows have at least `intact` of these band hashes.
    fn sharing(&self, hashes: &[u64], intact: usize, check: &mut dyn FnMut()) -> Result<usize> {
        let mut shared = filled(0usize, self.rows as usize)?;
        for hash in hashes {
            check();
            let start = self.entries.partition_point(|entry| entry.0 < *hash);
            let group = self.entries[start..].iter();
            for &(_, row) in group.take_while(|entry| entry.0 == *hash) {
                shared[row as usize] += 1;
            }
        }
        Ok(shared.iter().filter(|&&bands| bands >= intact).count())
    }
}

/// Returns the probability that an unrelated row has `intact` of `bands` keys.
fn by_chance(bands: usize, intact: usize, key_bits: u32) -> f64 {
    let hit = 0.5f64.powi(key_bits as i32);
    let mut probability = (1.0 - hit).powi(bands as i32);
    let mut at_least = 0.0;
    for hits in 0..=bands {
        if hits >= intact {
            at_least += probability;
        }
        probability *= (bands - hits) as f64 / (hits + 1) as f64 * hit / (1.0 - hit);
    }
    at_least
}

#[cfg(test)]
mod tests {
    use super::*;

    const BANDS: Bands = Bands {
        slots: 128,
        bands: 30,
    };

    #[test]
    fn bytes_are_those_measured() {
        for (rows, bands, key_bits, measured) in [
            (5e3, 30, 8, 244.0),
            (5e3, 30, 16, 1642.0),
            (2e4, 75, 10, 648.0),
            (2e4, 30, 10, 260.0),
            (1e5, 30, 13, 326.0),
            (1e5, 15, 16, 515.0),
            (3e5, 30, 14, 293.0),
            (1e6, 30, 16, 327.0),
            (1e6, 15, 16, 164.0),
        ] {
            let estimated = bytes_per_row(rows, rows * 564.0 / 8192.0, bands, key_bits);
            let ratio = estimated / measured;
            assert!((0.9..1.1).contains(&ratio), "{estimated} {measured}");
        }
    }

    #[test]
    fn key_bits_follow_the_rows() {
        assert_eq!([1.0, 1e4, 1e6, 1e8, 1e12].map(key_bits), [8, 9, 16, 23, 24]);
    }

    #[test]
    fn chance_of_one_and_of_all() {
        assert!((by_chance(30, 1, 16) - 30.0 / 65536.0).abs() < 1e-6);
        assert!((by_chance(2, 2, 8) - 1.0 / 65536.0).abs() < 1e-12);
    }

    #[test]
    fn candidates_and_crowds_of_a_table_that_is_its_own_sample() {
        // Rows in groups of four that share all 30 bands; every row has one band of everybody's.
        let row =
            |row: u64| (0..30).map(move |band| if band == 0 { 0 } else { row / 4 * 100 + band });
        let sample = Sample::new((0..2000).map(row), 2000.0).unwrap();
        let candidates = sample.candidates(&BANDS, 5, 16, &mut || {}).unwrap();
        assert!((candidates - 3.0).abs() < 0.01, "{candidates}");
        assert_eq!(sample.crowded(1).unwrap(), 1.0);
        assert_eq!(sample.crowded(2).unwrap(), 0.0);
    }

    #[test]
    fn an_empty_table() {
        let sample = Sample::new(std::iter::empty::<Vec<u64>>(), 0.0).unwrap();
        assert_eq!(sample.crowded(1).unwrap(), 0.0);
        assert_eq!(sample.candidates(&BANDS, 5, 16, &mut || {}).unwrap(), 0.0);
    }
}
