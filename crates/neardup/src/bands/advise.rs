//! Forecast of the cost and the candidates of an index of band keys, from a sample of its rows.

use super::Bands;
use super::tail::shared_keys;
use crate::Result;
use crate::memory::{Grow, filled};

/// A band is crowded if more rows of the table share it.
pub const CROWDED: f64 = 1000.0;

/// Sampled rows that are looked up to count candidates. Their mean is within a tenth of the mean of all rows if the
/// standard deviation of lookups is at most their mean.
const LOOKUPS: usize = 500;

/// Bytes of a row in the row table, including its part of the headers of the table's pages.
const ROW_BYTES: f64 = 8.03;

/// Bits of a key in the index.
const KEY_BITS: u32 = 32;

/// Bits of a posting in addition to those of the difference between its key and the previous one, and of its row
/// number: both take more than their logarithms, and blocks and pages have heads.
const SPARE_BITS: f64 = 4.4;

/// Returns the estimated bytes of an index for a row with `bands` keys. In a segment of n rows a posting holds a
/// difference of keys, of which there are b n in a range of 2^32, and a row number below n: together about 32 -
/// log2(b) bits, whatever n is.
pub fn bytes_per_row(bands: usize) -> f64 {
    let bands = bands as f64;
    let bits = f64::from(KEY_BITS) - bands.log2() + SPARE_BITS;
    ROW_BYTES + bands * bits / 8.0
}

/// The band hashes of sampled rows, sorted by hash.
pub struct Sample {
    entries: Vec<(u64, u32)>,
    rows: u32,
    scale: f64,
}

impl Sample {
    /// Returns a sample of rows. `hashes` yields the band hashes of each row; the table has `table_rows` rows.
    ///
    /// # Errors
    /// `OutOfMemory`: takes 16 bytes for each band of each row.
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

    /// Returns the share of the rows whose lookup must read a crowded list. A lookup reads all its lists but the
    /// `intact` - 1 longest.
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

    /// Returns the mean number of other rows that a lookup of a row finds before rechecking them: rows that share
    /// `intact` of its bands, and rows whose keys are equal by chance.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn candidates(&self, bands: &Bands, intact: usize, check: &mut dyn FnMut()) -> Result<f64> {
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
        // Without the row itself.
        let others = found as f64 / lookups.max(1) as f64 - 1.0;
        let rows = self.scale * f64::from(self.rows);
        Ok(others.max(0.0) * self.scale + rows * by_chance(bands.bands, intact))
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
fn by_chance(bands: usize, intact: usize) -> f64 {
    let hit = 0.5f64.powi(KEY_BITS as i32);
    shared_keys(bands, hit).skip(intact).sum()
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
        for (bands, measured) in [(30, 126.0), (15, 69.0)] {
            let ratio = bytes_per_row(bands) / measured;
            assert!((0.95..1.05).contains(&ratio), "{ratio}");
        }
    }

    #[test]
    fn chance_of_one_and_of_all() {
        assert!((by_chance(30, 1) * 2f64.powi(32) - 30.0).abs() < 1e-6);
        assert!((by_chance(2, 2) * 2f64.powi(64) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn candidates_and_crowds_of_a_table_that_is_its_own_sample() {
        // Rows in groups of four that share all 30 bands; one band of every row is shared by all rows.
        let row =
            |row: u64| (0..30).map(move |band| if band == 0 { 0 } else { row / 4 * 100 + band });
        let sample = Sample::new((0..2000).map(row), 2000.0).unwrap();
        let candidates = sample.candidates(&BANDS, 5, &mut || {}).unwrap();
        assert!((candidates - 3.0).abs() < 0.01, "{candidates}");
        assert_eq!(sample.crowded(1).unwrap(), 1.0);
        assert_eq!(sample.crowded(2).unwrap(), 0.0);
    }

    #[test]
    fn an_empty_table() {
        let sample = Sample::new(std::iter::empty::<Vec<u64>>(), 0.0).unwrap();
        assert_eq!(sample.crowded(1).unwrap(), 0.0);
        assert_eq!(sample.candidates(&BANDS, 5, &mut || {}).unwrap(), 0.0);
    }
}
