//! Pairs of rows compared with the help of other threads.

use crate::collection::documents::read_set;
use crate::collection::verify::resemblance_at_least;
use crate::pg::error::{OrRaise, or_out_of_memory};
use crate::pg::helpers::piece_bytes;
use crate::pg::parts::Parts;
use helpers::Line;
use neardup::Result;
use neardup::memory::{Grow, with_room};
use neardup::minhash::{Signature, estimate};
use neardup::set::{intersection_size, reaches};
use neardup::shingle::{Key, Shingling, shingle_hashes};
use std::collections::HashMap;
use std::mem::take;

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

/// Pairs to be compared in one piece.
#[derive(Default)]
pub struct Piece {
    records: Parts<u8>,
    /// The numbers of the two records of each pair.
    pairs: Vec<[u32; 2]>,
}

/// A line of pairs to be compared, with their numbers.
pub type CompareLine<'a, 'scope, 'env, R> = Line<'a, 'scope, 'env, Piece, R, Vec<(u32, u32)>>;

/// Collects pairs until they make a piece of work.
#[derive(Default)]
pub struct Collecting {
    piece: Piece,
    /// The record of each row.
    records: HashMap<u32, u32>,
    pairs: Vec<(u32, u32)>,
}

impl Collecting {
    /// Adds a pair of items, whose first rows are given; `read` appends the record of a row.
    pub fn push(
        &mut self,
        pair: (u32, u32),
        rows: [u32; 2],
        read: &mut dyn FnMut(u32, &mut Vec<u8>),
    ) {
        let records = rows.map(|row| self.record(row, read));
        self.piece.pairs.try_push(records).or_raise();
        self.pairs.try_push(pair).or_raise();
    }

    fn record(&mut self, row: u32, read: &mut dyn FnMut(u32, &mut Vec<u8>)) -> u32 {
        if let Some(record) = self.records.get(&row) {
            return *record;
        }
        let record = self.piece.records.len() as u32;
        read(row, &mut self.piece.records.items);
        self.piece.records.end().or_raise();
        or_out_of_memory(self.records.try_reserve(1));
        self.records.insert(row, record);
        record
    }

    fn bytes(&self) -> usize {
        self.piece.records.items.len()
    }

    /// Puts the pairs into a line where they make a piece of work.
    pub fn put_if_full<R: Send>(&mut self, line: &mut CompareLine<'_, '_, '_, R>) {
        if self.bytes() >= piece_bytes() || self.pairs.len() >= PAIRS {
            self.put(line);
        }
    }

    /// Puts the pairs into a line.
    pub fn put<R: Send>(&mut self, line: &mut CompareLine<'_, '_, '_, R>) {
        let bytes = self.bytes();
        self.records.clear();
        line.put(take(&mut self.pairs), take(&mut self.piece), bytes);
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
        if let Kind::Signature = kind {
            let mut signatures = with_room(self.records.len())?;
            for record in self.records.iter() {
                signatures.try_push(Signature::from_bytes(record)?)?;
            }
            return self.each(|x, y| {
                check();
                let similarity = estimate(&signatures[x], &signatures[y])?;
                Ok((similarity >= threshold).then_some(similarity))
            });
        }
        let mut sets = with_room(self.records.len())?;
        for record in self.records.iter() {
            sets.try_push(set(record, kind, check)?)?;
        }
        if let Kind::Contained = kind {
            return self.each(|x, y| Ok(share_at_least(&sets[x], &sets[y], threshold, check)));
        }
        self.each(|x, y| Ok(resemblance_at_least(&sets[x], &sets[y], threshold, check)))
    }

    fn each(
        &self,
        mut similarity: impl FnMut(usize, usize) -> Result<Option<f64>>,
    ) -> Result<Vec<Option<f64>>> {
        let mut similarities = with_room(self.pairs.len())?;
        for [x, y] in &self.pairs {
            similarities.try_push(similarity(*x as usize, *y as usize)?)?;
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

/// Returns the sorted hashes of a record.
fn set(record: &[u8], kind: Kind, check: &mut dyn FnMut()) -> Result<Vec<i64>> {
    if let Kind::Text(shingling) = kind {
        return shingle_hashes(record, &shingling, &Key::from_seed(0), check);
    }
    let mut set = Vec::new();
    read_set(record, &mut set)?;
    Ok(set)
}
