//! Pairs of rows compared with the help of other threads.

use crate::collection::documents::{read_set, share_of_work_mem_bytes};
use crate::pg::error::{OrRaise, or_out_of_memory};
use crate::pg::helpers::piece_bytes;
use helpers::Line;
use neardup::Result;
use neardup::memory::{Grow, with_room};
use neardup::minhash::estimate_stored;
use neardup::set::{intersection_size, jaccard_at_least, reaches};
use neardup::shingle::{Key, Shingling, shingle_hashes};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::mem::take;
use std::sync::{Arc, OnceLock};

/// Pairs compared in one piece, at most.
const PAIRS: usize = 1 << 12;

/// The kind of the records by which rows are compared.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    Signature,
    /// Sorted hashes, 8 bytes each.
    Set,
    Text(Shingling),
    /// Sorted hashes, as in a set: the measure is the share of the first set that the second contains.
    Contained,
}

/// A row that is compared with others.
#[derive(Default)]
pub struct Compared {
    record: Vec<u8>,
    /// The sorted hashes of its set, from the first comparison on.
    set: OnceLock<Vec<i64>>,
}

impl Compared {
    /// Returns how many bytes it takes, about; those of a set that is still to be computed are guessed.
    fn bytes(&self, kind: Kind) -> usize {
        let record = self.record.len();
        let guessed = match kind {
            Kind::Signature => 0,
            Kind::Set | Kind::Contained => record,
            Kind::Text(_) => 2 * record,
        };
        record + self.set.get().map_or(guessed, |set| size_of_val(&set[..]))
    }

    /// Returns the sorted hashes of its set. Two threads may compute them at once, so that none waits for
    /// another that ends.
    fn set(&self, kind: Kind, check: &mut dyn FnMut()) -> Result<&[i64]> {
        if let Some(set) = self.set.get() {
            return Ok(set);
        }
        let computed = match kind {
            Kind::Text(shingling) => {
                shingle_hashes(&self.record, &shingling, &Key::from_seed(0), check)?
            }
            _ => {
                let mut set = Vec::new();
                read_set(&self.record, &mut set)?;
                set
            }
        };
        Ok(self.set.get_or_init(|| computed))
    }

    /// Returns the similarity to another row; None below the threshold.
    ///
    /// # Errors
    /// Those of reading a stored signature; `OutOfMemory`.
    pub fn similarity(
        &self,
        other: &Self,
        kind: Kind,
        threshold: f64,
        check: &mut dyn FnMut(),
    ) -> Result<Option<f64>> {
        if let Kind::Signature = kind {
            let similarity = estimate_stored(&self.record, &other.record)?;
            return Ok((similarity >= threshold).then_some(similarity));
        }
        let (x, y) = (self.set(kind, check)?, other.set(kind, check)?);
        Ok(match kind {
            Kind::Contained => share_at_least(x, y, threshold, check),
            _ => jaccard_at_least(x, y, threshold, check),
        })
    }
}

/// Rows by their numbers.
type ByRow = HashMap<u32, Arc<Compared>, BuildHasherDefault<RowHasher>>;

/// Hashes row numbers, which nobody chooses, by a multiplication.
#[derive(Default)]
struct RowHasher(u64);

impl Hasher for RowHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32((*byte).into()));
    }

    fn write_u32(&mut self, row: u32) {
        let product = (self.0 ^ u64::from(row)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = product ^ product >> 32;
    }
}

/// Rows that were compared, kept for the pairs to come within a share of work_mem.
pub struct Kept {
    kind: Kind,
    rows: ByRow,
    /// Bytes that they take, about.
    bytes: usize,
}

impl Kept {
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            rows: ByRow::default(),
            bytes: 0,
        }
    }

    /// Returns a row, and how many bytes were read for it; `read` appends its record.
    pub fn row(
        &mut self,
        row: u32,
        read: &mut dyn FnMut(u32, &mut Vec<u8>),
    ) -> (Arc<Compared>, usize) {
        if let Some(compared) = self.rows.get(&row) {
            return (compared.clone(), 0);
        }
        if self.bytes > share_of_work_mem_bytes() {
            self.drop_half();
        }
        let mut compared = Compared::default();
        read(row, &mut compared.record);
        let (bytes, compared) = (compared.record.len(), Arc::new(compared));
        self.bytes += compared.bytes(self.kind);
        or_out_of_memory(self.rows.try_reserve(1));
        self.rows.insert(row, compared.clone());
        (compared, bytes)
    }

    /// Drops every other row: whether all are asked for in turn or one after the other many times, most
    /// of those that will be asked for again soon are there.
    fn drop_half(&mut self) {
        let (mut stays, kind) = (false, self.kind);
        self.bytes = 0;
        self.rows.retain(|_, compared| {
            stays = !stays;
            if stays {
                self.bytes += compared.bytes(kind);
            }
            stays
        });
    }
}

/// Pairs to be compared in one piece.
#[derive(Default)]
pub struct Piece {
    pairs: Vec<[Arc<Compared>; 2]>,
}

/// A line of pairs to be compared, with their numbers.
pub type CompareLine<'a, 'scope, 'env, R> = Line<'a, 'scope, 'env, Piece, R, Vec<(u32, u32)>>;

/// Collects pairs until they make a piece of work.
pub struct Collecting {
    kept: Kept,
    piece: Piece,
    pairs: Vec<(u32, u32)>,
    /// Bytes read for the piece.
    bytes: usize,
}

impl Collecting {
    pub fn new(kind: Kind) -> Self {
        Self {
            kept: Kept::new(kind),
            piece: Piece::default(),
            pairs: Vec::new(),
            bytes: 0,
        }
    }

    /// Adds a pair of items, whose first rows are given; `read` appends the record of a row.
    pub fn push(
        &mut self,
        pair: (u32, u32),
        rows: [u32; 2],
        read: &mut dyn FnMut(u32, &mut Vec<u8>),
    ) {
        let rows = rows.map(|row| {
            let (compared, bytes) = self.kept.row(row, read);
            self.bytes += bytes;
            compared
        });
        self.piece.pairs.try_push(rows).or_raise();
        self.pairs.try_push(pair).or_raise();
    }

    /// Puts the pairs into a line where they make a piece of work.
    pub fn put_if_full<R: Send>(&mut self, line: &mut CompareLine<'_, '_, '_, R>) {
        if self.bytes >= piece_bytes() || self.pairs.len() >= PAIRS {
            self.put(line);
        }
    }

    /// Puts the pairs into a line.
    pub fn put<R: Send>(&mut self, line: &mut CompareLine<'_, '_, '_, R>) {
        line.put(
            take(&mut self.pairs),
            take(&mut self.piece),
            take(&mut self.bytes),
        );
    }
}

impl Piece {
    /// Returns the similarities of the pairs, in any thread; None below the threshold.
    ///
    /// # Errors
    /// Those of reading a stored signature; `OutOfMemory`.
    pub fn compare(
        self,
        kind: Kind,
        threshold: f64,
        check: &mut dyn FnMut(),
    ) -> Result<Vec<Option<f64>>> {
        let mut similarities = with_room(self.pairs.len())?;
        for [x, y] in &self.pairs {
            check();
            similarities.try_push(x.similarity(y, kind, threshold, check)?)?;
        }
        Ok(similarities)
    }
}

/// Returns the share of a set that another contains; None below `threshold`.
fn share_at_least(
    part: &[i64],
    whole: &[i64],
    threshold: f64,
    check: &mut dyn FnMut(),
) -> Option<f64> {
    let shared = intersection_size(part, whole, check);
    reaches(shared, part.len(), threshold).then(|| shared as f64 / part.len() as f64)
}
