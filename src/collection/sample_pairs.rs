//! `near_dup_sample_pairs`: pairs worth a label.

use crate::collection::calibrate::undefined;
use crate::collection::documents::share_of_work_mem_bytes;
use crate::collection::verify::HeldRecord;
use crate::options;
use crate::pg::call::Call;
use crate::pg::catalog::{quoted_identifier, relation_name};
use crate::pg::error::{OrRaise, raise};
use crate::pg::progress::Progress;
use crate::pg::query::Query;
use crate::pg::relation::Relation;
use crate::pg::sort::RowSort;
use crate::pg::spool::Records;
use crate::pg::text::{NewText, Text};
use neardup::calibrate::{MAX_DRAWN, Pair, Strata};
use neardup::hash::split_mix;
use neardup::memory::copied;
use neardup::minhash::{Signature, Signing, estimate};
use neardup::set;
use neardup::shingle::{Key, Shingling, shingle_hashes};
use pgrx::prelude::*;
use std::ffi::CStr;

/// Slots of the signatures by which pairs are found and assigned to strata.
const SLOTS: usize = 128;

/// Slots of which two rows share one to be compared. A pair of similarity 0.1 shares none of them
/// once in a thousand times.
const BANDS: usize = 64;

/// Implements `near_dup_sample_pairs(relation, document_column, n, k, unit, fold, sample_rows,
/// seed)`.
///
/// # Errors
/// `object_not_in_prerequisite_state` for a table without a primary key, `invalid_parameter_value`
/// for arguments out of range.
#[pg_extern(sql = false)]
fn near_dup_sample_pairs(fcinfo: pg_sys::FunctionCallInfo) {
    // SAFETY: the call is running; the arguments are declared with these types.
    let (call, unit, fold) = unsafe {
        let call = Call::new(fcinfo);
        let [unit, fold] =
            [(4, "unit"), (5, "fold")].map(|(i, name)| Text::from_raw(call.argument(i, name)));
        (call, unit, fold)
    };
    let integer = |number, name| call.argument(number, name).value() as i32;
    let wanted = options::within("n", integer(2, "n"), 1, MAX_DRAWN as i32) as usize;
    let shingling = options::shingling(integer(3, "k"), &unit, &fold);
    let most = options::within("sample_rows", integer(6, "sample_rows"), 2, 1_000_000);
    let seed = call.argument(7, "seed").value() as i64;
    let mut rows = SampledRows::read(&query(&call, most, seed), &shingling);
    let pairs = rows.draw(Strata::new(wanted, seed));
    rows.put(&pairs, &shingling, &call);
}

/// Returns a query for keys and documents, in an order that depends on key and seed alone.
fn query(call: &Call, most: i32, seed: i64) -> String {
    let relation = pg_sys::Oid::from(call.argument(0, "relation").value() as u32);
    let table = relation_name(relation).unwrap_or_else(|| undefined(relation));
    let column = call.argument(1, "document_column");
    // SAFETY: a name is NUL-terminated.
    let document = quoted_identifier(unsafe { CStr::from_ptr(column.cast_mut_ptr()) });
    let columns = Relation::open_table(relation).primary_key_columns();
    let key = match columns.as_slice() {
        [] => raise(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            &format!("table {table} has no primary key"),
            "Add a primary key: pairs are named by it.",
        ),
        [column] => column.to_string(),
        columns => format!("ROW({})", columns.join(", ")),
    };
    format!(
        "SELECT key, document FROM (SELECT ({key})::pg_catalog.text COLLATE pg_catalog.\"C\" AS key, \
         ({document})::pg_catalog.text AS document FROM {table} WHERE ({document}) IS NOT NULL) rows \
         ORDER BY pg_catalog.hashtextextended(key, {seed}), key LIMIT {most}"
    )
}

/// Rows in random order, those without a shingle left out.
struct SampledRows {
    keys: Records,
    documents: Records,
    signatures: Records,
}

impl SampledRows {
    fn read(query: &str, shingling: &Shingling) -> Self {
        let query = Query::open(query.into_datum().expect("text is not NULL"));
        let columns = query.columns();
        let [key, document] = [(0, "first", "key"), (1, "second", "document")]
            .map(|(i, position, what)| columns[i].of_type(pg_sys::TEXTOID, position, what));
        let budget = share_of_work_mem_bytes();
        let mut rows = Self {
            keys: Records::new(budget),
            documents: Records::new(budget),
            signatures: Records::new(budget),
        };
        let signing = Signing {
            shingling: *shingling,
            slots: SLOTS,
            key: Key::from_seed(0),
        };
        let mut progress = Progress::begin("reading", None);
        query.for_each(&mut |row| {
            progress.step();
            let (Some(key), Some(document)) = (row.get(key), row.get(document)) else {
                return;
            };
            // SAFETY: both columns are of type text.
            let [key, document] = [key, document].map(|datum| unsafe { Text::from_raw(datum) });
            let signature = signing.sign(&document, &mut || progress.look()).or_raise();
            if !Signature::from_bytes(&signature).or_raise().header.empty {
                rows.keys.push(&key);
                rows.documents.push(&document);
                rows.signatures.push(&signature);
            }
        });
        rows
    }

    /// Draws from the pairs of rows that share a slot and of those that follow each other.
    fn draw(&mut self, mut strata: Strata) -> Vec<Pair> {
        let rows = self.signatures.len();
        let mut sort = RowSort::begin();
        let mut buffer = Vec::new();
        let mut progress = Progress::begin("sorting slots", Some(rows));
        for row in 0..rows {
            progress.step();
            let signature = self.signatures.read(row, &mut buffer);
            let slots = Signature::from_bytes(signature).or_raise().slots();
            for (band, slot) in (0u64..).zip(slots).take(BANDS) {
                sort.put(split_mix(band << 32 | u64::from(slot)) as u32, row as u32);
            }
        }
        let mut held = HeldRecord::default();
        let mut progress = Progress::begin("comparing", None);
        let mut offer = |a: u32, b: u32| {
            progress.step();
            let (x, y) = held.load(&mut self.signatures, a, b);
            let [x, y] = [x, y].map(|bytes| Signature::from_bytes(bytes).or_raise());
            strata.offer(a, b, estimate(&x, &y).or_raise());
        };
        for row in 1..rows as u32 {
            offer(row - 1, row);
        }
        sort.for_each_group(&mut |_, group| {
            for pair in group.windows(2) {
                offer(pair[0], pair[1]);
            }
        });
        strata.draw().or_raise()
    }

    fn put(&mut self, pairs: &[Pair], shingling: &Shingling, call: &Call) {
        let mut rows = call.rows();
        let mut progress = Progress::begin("listing pairs", Some(pairs.len()));
        let (mut buffer, hash_key) = (Vec::new(), Key::from_seed(0));
        for pair in pairs {
            progress.step();
            let ends = [pair.a as usize, pair.b as usize];
            let keys = ends.map(|row| text(self.keys.read(row, &mut buffer)));
            let mut sets = ends.map(|row| {
                let document = self.documents.read(row, &mut buffer);
                let hashes = shingle_hashes(document, shingling, &hash_key, &mut || {
                    progress.look();
                });
                (hashes.or_raise(), text(document))
            });
            let similarity = set::jaccard(&sets[0].0, &sets[1].0, &mut || progress.look());
            let documents = sets.each_mut().map(|set| set.1.take());
            rows.put([
                keys[0],
                keys[1],
                similarity.into_datum(),
                documents[0],
                documents[1],
            ]);
            for datum in keys.into_iter().chain(documents).flatten() {
                // SAFETY: the row has a copy.
                unsafe { pg_sys::pfree(datum.cast_mut_ptr()) };
            }
        }
    }
}

/// Returns a new text from UTF-8.
fn text(bytes: &[u8]) -> Option<pg_sys::Datum> {
    NewText(copied(bytes).or_raise()).into_datum()
}
