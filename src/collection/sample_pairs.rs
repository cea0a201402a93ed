//! `near_dup_sample_pairs`: a sample of pairs to label.

use crate::collection::batch::{entry, for_each_group};
use crate::collection::documents::{keyed_documents, share_of_work_mem_bytes};
use crate::options;
use crate::pg::partitions::Partitions;
use crate::pg::prelude::*;
use neardup::hash::split_mix;
use neardup::minhash::{Signature, Signing, estimate};
use neardup::set;
use neardup::shingle::{Key, Shingling, shingle_hashes};
use neardup::strata::{MAX_DRAWN, SampledPair, Strata};
use pgrx::prelude::*;
use std::collections::BinaryHeap;

/// Number of slots of the signatures that find pairs and assign them to strata.
const SLOTS: usize = 128;

/// Two rows are compared if they share at least one of their first `BANDS` slots. A pair of similarity 0.1 shares none
/// of them with a probability of 0.001.
const BANDS: usize = 64;

/// Implements `near_dup_sample_pairs(key, query, n, k, unit, fold, sample_rows, seed, params)`.
///
/// # Errors
/// `datatype_mismatch` for columns of other types, `invalid_parameter_value` for arguments out of
/// range.
#[pg_extern(sql = false)]
fn near_dup_sample_pairs(call: Call) {
    let wanted = options::integer(&call, 2, "n", 1, MAX_DRAWN as i32) as usize;
    let shingling = options::shingling_arguments(&call, 3);
    let most = options::integer(&call, 6, "sample_rows", 2, 1_000_000) as usize;
    let seed = call.get(7, "seed");
    let mut rows = SampledRows::read(&call, most, seed);
    rows.sign(&shingling);
    let pairs = rows.draw(Strata::new(wanted, seed));
    let pairs = rows.measure(pairs, &shingling);
    rows.put(&pairs, &call);
}

/// A random sample of the rows of a query, in random order.
struct SampledRows {
    keys: Keys,
    documents: Records,
    /// The numbers of the rows drawn, as places in `keys` and `documents`.
    drawn: Vec<u32>,
    /// The signatures of the rows drawn, in the order of `drawn`.
    signatures: Records,
}

impl SampledRows {
    /// Returns at most `most` rows drawn from a query that yields keys and documents.
    fn read(call: &Call, most: usize, seed: i64) -> Self {
        let query = Query::open(call, 1, "query");
        let key_type = call.argument_type(0);
        let [key, document] = keyed_documents(&query, key_type);
        let budget = share_of_work_mem_bytes();
        let (mut keys, mut documents) = (Keys::new(key_type), Records::new(budget));
        // The rows whose places in the query have the lowest hashes.
        let mut lowest = BinaryHeap::new();
        let (seed, mut place) = (Key::from_seed(seed).k0, 0u64);
        query.for_each("reading", &mut |row| {
            let (Some(key), Some(document)) = (row.get(key), row.get(document)) else {
                return;
            };
            place += 1;
            let hash = split_mix(seed ^ place);
            if lowest.len() == most {
                if lowest.peek().is_some_and(|(last, _)| *last < hash) {
                    return;
                }
                lowest.pop();
            }
            lowest.try_reserve(1).or_raise();
            lowest.push((hash, keys.len() as u32));
            keys.push(Some(key));
            // SAFETY: the column is of type text or one stored like it.
            documents.push(&unsafe { Text::from_raw(document) });
        });
        let drawn = lowest.into_sorted_vec().into_iter().map(|(_, row)| row);
        Self {
            keys,
            documents,
            drawn: collected(drawn).or_raise(),
            signatures: Records::new(budget),
        }
    }

    /// Signs the rows drawn, and drops rows without a shingle.
    fn sign(&mut self, shingling: &Shingling) {
        let signing = Signing {
            shingling: *shingling,
            slots: SLOTS,
            key: Key::from_seed(0),
        };
        let mut progress = Progress::begin("signing", self.drawn.len());
        let mut buffer = Vec::new();
        self.drawn.retain(|&row| {
            progress.step();
            let document = self.documents.read(row as usize, &mut buffer);
            let signature = signing.sign(document, &mut || progress.look()).or_raise();
            let is_empty = Signature::from_bytes(&signature).or_raise().header.empty;
            if !is_empty {
                self.signatures.push(&signature);
            }
            !is_empty
        });
    }

    /// Returns pairs drawn from the pairs of rows that share a slot and the pairs of consecutive rows.
    fn draw(&mut self, mut strata: Strata) -> Vec<SampledPair> {
        let rows = self.signatures.len();
        let mut entries = Partitions::new(BANDS * rows);
        let mut buffer = Vec::new();
        for row in over("sorting slots", 0..rows) {
            let signature = self.signatures.read(row, &mut buffer);
            let slots = Signature::from_bytes(signature).or_raise().slots();
            for (band, slot) in (0u64..).zip(slots).take(BANDS) {
                let key = split_mix(band << 32 | u64::from(slot)) as u32;
                entries.push([entry(key, row as u32)]);
            }
        }
        let mut buffers = [Vec::new(), Vec::new()];
        let mut offer = |a: u32, b: u32, of_group: usize| {
            check_interrupts();
            for (row, bytes) in [a, b].into_iter().zip(&mut buffers) {
                bytes.clear();
                let signature = self.signatures.read(row as usize, &mut buffer);
                bytes.try_extend_from_slice(signature).or_raise();
            }
            let [x, y] = [0, 1].map(|end| Signature::from_bytes(&buffers[end]).or_raise());
            let similarity = estimate(&x, &y).or_raise();
            let slots = x.slots().zip(y.slots()).take(BANDS);
            let shared = slots.filter(|(x, y)| x == y).count();
            // A group offers only its pairs of neighbors, and a pair is in one group for each slot that it
            // shares.
            let counted = (shared > 0).then(|| of_group as f64 / 2.0 / shared as f64);
            strata.offer(a, b, similarity, counted);
        };
        for row in 1..rows as u32 {
            offer(row - 1, row, 0);
        }
        for_each_group(entries, "comparing", &mut |group| {
            for pair in group.windows(2) {
                offer(pair[0] as u32, pair[1] as u32, group.len());
            }
        });
        strata
            .draw(rows as f64 * (rows as f64 - 1.0) / 2.0)
            .or_raise()
    }

    /// Returns the pairs with their exact similarities, the most similar first.
    fn measure(&mut self, mut pairs: Vec<SampledPair>, shingling: &Shingling) -> Vec<SampledPair> {
        let mut progress = Progress::begin("comparing documents", pairs.len());
        let (mut buffer, hash_key) = (Vec::new(), Key::from_seed(0));
        for pair in &mut pairs {
            progress.step();
            let sets = [pair.a, pair.b].map(|number| {
                let row = self.drawn[number as usize] as usize;
                let document = self.documents.read(row, &mut buffer);
                let look = &mut || progress.look();
                shingle_hashes(document, shingling, &hash_key, look).or_raise()
            });
            pair.similarity = set::jaccard(&sets[0], &sets[1], &mut || progress.look());
        }
        pairs.sort_unstable_by(|x, y| {
            let by_similarity = y.similarity.total_cmp(&x.similarity);
            by_similarity.then((x.a, x.b).cmp(&(y.a, y.b)))
        });
        pairs
    }

    fn put(&mut self, pairs: &[SampledPair], call: &Call) {
        let mut rows = call.rows();
        let mut buffer = Vec::new();
        for pair in over("listing pairs", pairs.iter()) {
            let ends = [pair.a, pair.b].map(|number| self.drawn[number as usize]);
            let [a, b] = ends.map(|row| text(self.documents.read(row as usize, &mut buffer)));
            // SAFETY: no other key is read before these two are put.
            let [key_a, key_b] = ends.map(|row| unsafe { self.keys.get(row) });
            let [similarity, weight] = [pair.similarity, pair.weight].map(IntoDatum::into_datum);
            rows.put_and_free([key_a, key_b, similarity, weight, a, b], &[a, b]);
        }
    }
}

/// Returns a new text datum of UTF-8 bytes.
fn text(bytes: &[u8]) -> Option<pg_sys::Datum> {
    NewText(copied(bytes).or_raise()).into_datum()
}

pgrx::extension_sql_file!(
    "../../sql/collection/sample_pairs.sql",
    name = "sample_pairs"
);
