//! Log pages: the keys of the newest rows, appended row by row and scanned as a whole.
//!
//! Payload, little-endian: `rows u16 | bytes used u16 | for each row: number of keys u16, keys u32...`. A row's number
//! follows from its place. Keys are stored in the order given.

use super::Damaged;
use crate::kernels::active;
use crate::memory::{collected, filled};

const HEADER: usize = 4;

/// Number of bytes of a row in addition to its keys.
const ROW: usize = 2;
const KEY: usize = 4;

/// Writes an empty log to the front of a payload and returns the bytes used.
pub fn init(payload: &mut [u8]) -> usize {
    payload[..HEADER].copy_from_slice(&[0, 0, HEADER as u8, 0]);
    HEADER
}

/// Returns the number of bytes that a row of `keys` keys takes.
pub fn row_len(keys: usize) -> usize {
    ROW + keys * KEY
}

/// Returns whether a row of `keys` keys fits on an empty page of `capacity` bytes (at most 65535).
pub fn fits_empty(capacity: usize, keys: usize) -> bool {
    keys <= capacity.saturating_sub(HEADER + ROW) / KEY
}

/// Appends a row with `keys`. Returns the number of bytes used afterwards, or `None` if the page is full.
///
/// # Errors
/// The errors of [`Log::parse`].
pub fn append(payload: &mut [u8], keys: &[u32]) -> Result<Option<usize>, Damaged> {
    let log = Log::parse(payload)?;
    let (rows, used) = (log.rows, HEADER + log.bytes.len());
    let end = used + ROW + keys.len() * KEY;
    let (Ok(end_bytes), Ok(count)) = (u16::try_from(end), u16::try_from(keys.len())) else {
        return Ok(None);
    };
    let Some(place) = payload.get_mut(used..end) else {
        return Ok(None);
    };
    place[..ROW].copy_from_slice(&count.to_le_bytes());
    for (place, key) in place[ROW..].as_chunks_mut::<KEY>().0.iter_mut().zip(keys) {
        *place = key.to_le_bytes();
    }
    payload[..2].copy_from_slice(&(rows + 1).to_le_bytes());
    payload[2..4].copy_from_slice(&end_bytes.to_le_bytes());
    Ok(Some(end))
}

/// The rows of a log page.
#[derive(Clone, Copy)]
pub struct Log<'a> {
    pub rows: u16,
    bytes: &'a [u8],
}

impl<'a> Log<'a> {
    /// Reads the header of a log page.
    ///
    /// # Errors
    /// `Damaged` if the payload is shorter than the bytes used, or these are too few for the number of rows. The rows
    /// are checked by [`Self::iter`].
    pub fn parse(payload: &'a [u8]) -> Result<Self, Damaged> {
        let parsed = || {
            let &[r0, r1, u0, u1, ..] = payload else {
                return None;
            };
            let used = usize::from(u16::from_le_bytes([u0, u1]));
            Some(Self {
                rows: u16::from_le_bytes([r0, r1]),
                bytes: payload.get(HEADER..used)?,
            })
        };
        let log = parsed().ok_or(Damaged("log page shorter than its rows"))?;
        if usize::from(log.rows) * ROW > log.bytes.len() {
            return Err(Damaged("log page of more rows than it has room for"));
        }
        Ok(log)
    }

    /// Returns the number of bytes of the payload in use.
    pub fn used(&self) -> usize {
        HEADER + self.bytes.len()
    }

    /// Returns the keys of each row, as stored. An error, if there is one, is the last item.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Result<LogRow<'a>, Damaged>> + use<'a> {
        let (mut left, mut bytes) = (self.rows, self.bytes);
        std::iter::from_fn(move || {
            if left == 0 {
                let rest = std::mem::take(&mut bytes);
                let damaged = Damaged("log page with bytes after its last row");
                return (!rest.is_empty()).then_some(Err(damaged));
            }
            let row = bytes.split_first_chunk::<ROW>().and_then(|(count, rest)| {
                rest.split_at_checked(usize::from(u16::from_le_bytes(*count)) * KEY)
            });
            let damaged = Damaged("row of a log page that is cut off");
            (left, bytes) = row.map_or((0, &[][..]), |(_, rest)| (left - 1, rest));
            Some(row.map(|(keys, _)| LogRow(keys)).ok_or(damaged))
        })
    }
}

/// The keys of a row in the log, as stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogRow<'a>(&'a [u8]);

impl LogRow<'_> {
    pub fn len(&self) -> usize {
        self.0.len() / KEY
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn keys(&self) -> impl Iterator<Item = u32> {
        let (keys, _) = self.0.as_chunks();
        keys.iter().map(|key| u32::from_le_bytes(*key))
    }
}

/// The keys of a query, prepared for comparison with the keys of many rows.
pub enum LogQuery {
    /// Keys of bands, which match only at the same place.
    Places(Vec<u8>),
    /// Keys of a set, in any order.
    Set(KeySet),
}

impl LogQuery {
    /// Returns a query whose keys must match at the same place, such as keys of bands.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn places(keys: &[u32]) -> crate::Result<Self> {
        collected(keys.iter().flat_map(|key| key.to_le_bytes())).map(Self::Places)
    }

    /// Returns a query whose keys may match at any place.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn set(keys: &[u32]) -> crate::Result<Self> {
        KeySet::new(keys).map(Self::Set)
    }

    /// Returns the number of the query's keys that `row` has, or a higher number. A number below `least` may be
    /// returned as 0, which is faster.
    ///
    /// If keys must match at the same place, a row with a different number of keys shares none.
    #[inline]
    pub fn shared(&self, row: LogRow, least: u32) -> u32 {
        match self {
            Self::Places(keys) if keys.len() == row.0.len() => {
                active().count_equal(keys, row.0, row.len(), u32::BITS) as u32
            }
            Self::Places(_) => 0,
            Self::Set(keys) => keys.shared(row, least),
        }
    }
}

/// Keys with their frequencies, and a bit table that excludes most other keys early.
pub struct KeySet {
    sorted: Vec<(u32, u32)>,
    total: u32,
    /// The highest frequency.
    most: u32,
    bits: Vec<u64>,
    shift: u32,
}

impl KeySet {
    /// Number of bits of the table per key.
    const BITS_PER_KEY: usize = 16;

    fn new(keys: &[u32]) -> crate::Result<Self> {
        let mut sorted = collected(keys.iter().map(|key| (*key, 1)))?;
        sorted.sort_unstable();
        sorted.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 += u32::from(same);
            same
        });
        let wanted = keys.len().saturating_mul(Self::BITS_PER_KEY).max(64);
        let log2 = wanted.next_power_of_two().ilog2().min(24);
        let most = sorted.iter().map(|key| key.1).max();
        let mut set = Self {
            most: most.unwrap_or(0),
            sorted,
            total: keys.len() as u32,
            bits: filled(0, 1 << (log2 - 6))?,
            shift: u32::BITS - log2,
        };
        for i in 0..set.sorted.len() {
            let (word, bit) = set.place(set.sorted[i].0);
            set.bits[word] |= 1 << bit;
        }
        Ok(set)
    }

    /// Returns the word and bit of `key` in the table. Multiplies the key, because keys may not be well mixed.
    #[inline]
    fn place(&self, key: u32) -> (usize, u32) {
        let place = key.wrapping_mul(0x9E37_79B1) >> self.shift;
        ((place / 64) as usize, place % 64)
    }

    fn shared(&self, row: LogRow, least: u32) -> u32 {
        let mut shared = 0u32;
        let most = u64::from(self.most);
        // The row is out when the keys that it lacks use this up: at 0.8 after a fifth of its keys, if it shares none.
        let Some(mut spare) = (row.len() as u64 * most).checked_sub(u64::from(least)) else {
            return 0;
        };
        for key in row.keys() {
            let (word, bit) = self.place(key);
            if self.bits[word] >> bit & 1 == 1
                && let Ok(at) = self.sorted.binary_search_by_key(&key, |(key, _)| *key)
            {
                shared = shared.saturating_add(self.sorted[at].1);
            } else if let Some(left) = spare.checked_sub(most) {
                spare = left;
            } else {
                return 0;
            }
        }
        shared.min(self.total)
    }
}
