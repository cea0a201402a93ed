//! Pairs of rows compared with the help of other threads.

use crate::collection::reading::Collection;
use crate::collection::verify::{Material, Similarity, resemblance_at_least};
use crate::pg::error::{OrRaise, or_out_of_memory};
use crate::pg::helpers::piece_bytes;
use neardup::Result;
use neardup::memory::{Grow, with_room};
use neardup::minhash::{Signature, estimate};
use neardup::shingle::{Key, Shingling, shingle_hashes};
use std::collections::HashMap;
use std::mem::take;

/// Pairs compared in one piece, at most.
const PAIRS: usize = 1 << 10;

/// Pairs to be compared in one piece.
#[derive(Default)]
pub struct Batch {
    materials: Vec<Material>,
    /// Places of their materials.
    places: Vec<[u32; 2]>,
    bytes: usize,
}

/// The rows of a batch, which stay where rows are known.
#[derive(Default)]
pub struct Rows {
    rows: Vec<u32>,
    /// Of each row.
    places: HashMap<u32, u32>,
    pub pairs: Vec<(u32, u32)>,
}

/// A batch after its comparison.
pub struct Compared {
    /// Sets computed, and the places of their rows.
    sets: Vec<(u32, Vec<i64>)>,
    /// Of each pair; None below the threshold.
    pub similarities: Vec<Option<f64>>,
}

/// Collects pairs until they make a batch.
#[derive(Default)]
pub struct Collecting {
    batch: Batch,
    rows: Rows,
}

impl Collecting {
    /// Adds a pair of items, whose first rows are given.
    pub fn push(
        &mut self,
        pair: (u32, u32),
        rows: [u32; 2],
        similarity: &mut dyn Similarity,
        collection: &mut Collection,
    ) {
        let places = rows.map(|row| self.place(row, similarity, collection));
        self.batch.places.try_push(places).or_raise();
        self.rows.pairs.try_push(pair).or_raise();
    }

    fn place(
        &mut self,
        row: u32,
        similarity: &mut dyn Similarity,
        collection: &mut Collection,
    ) -> u32 {
        if let Some(place) = self.rows.places.get(&row) {
            return *place;
        }
        let place = self.rows.rows.len() as u32;
        let material = similarity.material(collection, row);
        self.batch.bytes += material.bytes();
        self.batch.materials.try_push(material).or_raise();
        self.rows.rows.try_push(row).or_raise();
        or_out_of_memory(self.rows.places.try_reserve(1));
        self.rows.places.insert(row, place);
        place
    }

    pub fn is_full(&self) -> bool {
        self.batch.bytes >= piece_bytes() || self.rows.pairs.len() >= PAIRS
    }

    /// Returns the batch with its rows and its bytes, and begins a new one.
    pub fn take(&mut self) -> (Rows, Batch, usize) {
        let bytes = self.batch.bytes;
        (take(&mut self.rows), take(&mut self.batch), bytes)
    }
}

impl Rows {
    /// Keeps the sets that a comparison has computed.
    pub fn keep_sets(&self, compared: &Compared, similarity: &mut dyn Similarity) {
        for (place, set) in &compared.sets {
            similarity.keep(self.rows[*place as usize], set);
        }
    }
}

impl Material {
    fn bytes(&self) -> usize {
        match self {
            Self::Signature(bytes) | Self::Text(bytes) => bytes.len(),
            Self::Set(set) => size_of_val(set.as_slice()),
        }
    }

    fn set(&self) -> Option<&[i64]> {
        match self {
            Self::Set(set) => Some(set),
            Self::Signature(_) | Self::Text(_) => None,
        }
    }
}

impl Batch {
    /// Compares the pairs, in any thread.
    ///
    /// # Errors
    /// Those of reading a stored signature; `OutOfMemory`.
    pub fn compare(
        mut self,
        shingling: Option<Shingling>,
        threshold: f64,
        check: &mut dyn FnMut(),
    ) -> Result<Compared> {
        let computed = self.compute_sets(shingling, check)?;
        let mut similarities = with_room(self.places.len())?;
        for [x, y] in &self.places {
            let [x, y] = [x, y].map(|place| &self.materials[*place as usize]);
            similarities.try_push(similarity(x, y, threshold, check)?)?;
        }
        let mut sets = with_room(computed.len())?;
        for place in computed {
            if let Material::Set(set) = &mut self.materials[place as usize] {
                sets.try_push((place, take(set)))?;
            }
        }
        Ok(Compared { sets, similarities })
    }

    /// Replaces texts by their sets, and returns their places.
    fn compute_sets(
        &mut self,
        shingling: Option<Shingling>,
        check: &mut dyn FnMut(),
    ) -> Result<Vec<u32>> {
        let mut computed = Vec::new();
        for (place, material) in (0..).zip(&mut self.materials) {
            if let (Material::Text(text), Some(shingling)) = (&*material, &shingling) {
                let set = shingle_hashes(text, shingling, &Key::from_seed(0), check)?;
                *material = Material::Set(set);
                computed.try_push(place)?;
            }
        }
        Ok(computed)
    }
}

fn similarity(
    x: &Material,
    y: &Material,
    threshold: f64,
    check: &mut dyn FnMut(),
) -> Result<Option<f64>> {
    if let (Material::Signature(x), Material::Signature(y)) = (x, y) {
        let similarity = estimate(&Signature::from_bytes(x)?, &Signature::from_bytes(y)?)?;
        return Ok((similarity >= threshold).then_some(similarity));
    }
    let (x, y) = x.set().zip(y.set()).expect("both are sets");
    Ok(resemblance_at_least(x, y, threshold, check))
}
