//! `near_dup_distinct`: the first rows of a ranked query that are not similar to an earlier row.

use crate::collection::bit_strings;
use crate::collection::documents::{DocumentKind, set_of_document};
use crate::collection::exceptions::Exceptions;
use crate::collection::rows::{Piece, RowKind};
use crate::options;
use crate::pg::catalog::type_named;
use crate::pg::prelude::*;
use neardup::minhash::estimate_stored;
use neardup::parts::Parts;
use neardup::set::jaccard_at_least;
use neardup::shingle::Shingling;
use pgrx::prelude::*;

/// Maximum number of rows returned. Every row read is compared with all of them.
const MOST_RETURNED: i32 = 10_000;

/// Maximum number of rows read. The keys of the repeats of a row are returned as an array.
const MOST_READ: usize = 100_000_000;

/// Implements `near_dup_distinct(key, query, threshold, rows, k, unit, fold, exceptions, params)`: returns, in query
/// order, the first `rows` rows that are not similar to a row returned before. Every other row read is a repeat of the
/// returned row most similar to it, the earliest if several are equally similar. NULL and empty values are similar to
/// no row.
///
/// # Errors
/// `invalid_parameter_value` for arguments out of range or signatures made with different parameters,
/// `datatype_mismatch` for columns of other types.
#[pg_extern(sql = false)]
fn near_dup_distinct(call: Call) {
    let wanted = options::integer(&call, 3, "rows", 1, MOST_RETURNED) as usize;
    let shingling = options::shingling_arguments(&call, 4);
    let exceptions = Exceptions::of_call(&call, 7);
    let query = Query::open_for_first_rows(&call, 1, "query");
    let (key, value, measure) = check_columns(&query, &call, shingling);
    let mut keys = Keys::new(call.argument_type(0));
    let mut returned = Returned::new(measure, exceptions);
    let mut progress = Progress::about("reading", 0.0);
    let is_exhausted = query.for_each_while(&mut |row| {
        progress.step();
        let number = keys.len();
        if number == MOST_READ {
            too_large(
                &format!("{MOST_READ} rows of the query have too few that are not similar"),
                "Give the query a LIMIT.",
            );
        }
        keys.push(row.get(key));
        returned.take((number as u32, row.get(key)), row.get(value));
        returned.rows.len() < wanted
    });
    put(returned, &keys, is_exhausted, &call);
}

/// The rows to return, in order. Their values are stored back to back: allocating memory for one row at a time could
/// leave PostgreSQL too little to report that memory is exhausted.
struct Returned {
    measure: ValueMeasure,
    exceptions: Option<Exceptions>,
    /// Their places in the query, counted from 0.
    rows: Vec<u32>,
    /// The places of their keys in the exceptions.
    places: Vec<Option<u32>>,
    /// The values that are sets; empty for other values and NULL.
    sets: Parts<i64>,
    /// The values that are signatures or bit strings, as stored; empty for others.
    records: Parts<u8>,
    /// Pairs (number of a returned row, place of a row that repeats it).
    repeats: Vec<(u32, u32)>,
}

impl Returned {
    fn new(measure: ValueMeasure, exceptions: Option<Exceptions>) -> Self {
        Self {
            measure,
            exceptions,
            rows: Vec::new(),
            places: Vec::new(),
            sets: Parts::default(),
            records: Parts::default(),
            repeats: Vec::new(),
        }
    }

    /// Adds the next row of the query to the rows returned, or to the repeats of one.
    fn take(&mut self, (row, key): (u32, Option<pg_sys::Datum>), value: Option<pg_sys::Datum>) {
        let value = value.map(|datum| self.measure.read(datum));
        let exceptions = self.exceptions.as_ref();
        let place = exceptions.and_then(|exceptions| exceptions.place(key));
        let similar = value
            .as_ref()
            .and_then(|value| self.most_similar(place, value));
        if let Some(similar) = similar {
            return self.repeats.try_push((similar, row)).or_raise();
        }
        let added = match &value {
            Some(Value::Set(set)) => self.sets.items.try_extend_from_slice(set),
            Some(Value::Record(record)) => self.records.items.try_extend_from_slice(record),
            None => Ok(()),
        };
        added.or_raise();
        self.sets.end().or_raise();
        self.records.end().or_raise();
        self.rows.try_push(row).or_raise();
        self.places.try_push(place).or_raise();
    }

    /// Returns the number of the returned row most similar to `value`, the first if several are equally similar, or
    /// None if none is similar. `place` is the place of the value's key in the exceptions.
    fn most_similar(&self, place: Option<u32>, value: &Value) -> Option<u32> {
        let mut best: Option<(f64, u32)> = None;
        for number in 0..self.rows.len() {
            let pair = self.places[number].zip(place).zip(self.exceptions.as_ref());
            if pair.is_some_and(|((a, b), exceptions)| exceptions.contain(a, b)) {
                continue;
            }
            let similarity = match value {
                Value::Set(set) => self.measure.of_sets(self.sets.part(number), set),
                Value::Record(record) => self.measure.of_records(self.records.part(number), record),
            };
            if let Some(similarity) = similarity
                && best.is_none_or(|(most, _)| similarity > most)
            {
                best = Some((similarity, number as u32));
            }
        }
        best.map(|(_, number)| number)
    }
}

fn put(mut returned: Returned, keys: &Keys, is_exhausted: bool, call: &Call) {
    returned.repeats.sort_unstable();
    let mut repeats = &returned.repeats[..];
    let mut rows = call.rows();
    for (number, row) in (0..).zip(returned.rows) {
        check_interrupts();
        let of_row;
        (of_row, repeats) = repeats.split_at(repeats.partition_point(|(of, _)| *of <= number));
        let of_repeats = Some(array(of_row, keys, call.argument_type(0)));
        // SAFETY: no other key is read before the values are put.
        let key = unsafe { keys.get(row) };
        let row_values = [
            key,
            (i64::from(row) + 1).into_datum(),
            (of_row.len() as i64).into_datum(),
            of_repeats,
            is_exhausted.into_datum(),
        ];
        rows.put_and_free(row_values, &[of_repeats]);
    }
}

/// Builds the array of the keys of `repeats`.
fn array(repeats: &[(u32, u32)], keys: &Keys, key_type: pg_sys::Oid) -> pg_sys::Datum {
    // SAFETY: the keys are of that type, and copied into the array; its elements are freed with it.
    unsafe {
        let memory = pg_sys::CurrentMemoryContext;
        let mut array = pg_sys::initArrayResult(key_type, memory, true);
        for (_, row) in repeats {
            let key = keys.get(*row);
            let (value, is_null) = (key.unwrap_or(pg_sys::Datum::null()), key.is_none());
            array = pg_sys::accumArrayResult(array, value, is_null, key_type, memory);
        }
        pg_sys::makeArrayResult(array, memory)
    }
}

/// The measure by which the values of a query are compared.
struct ValueMeasure {
    kind: RowKind,
    /// How texts are cut into shingles.
    shingling: Shingling,
    /// Minimum similarity or, for bit strings, maximum Hamming distance.
    bound: f64,
}

/// A value in the form used for comparisons.
enum Value {
    /// Sorted hashes; of a text, the hashes of its shingles.
    Set(Vec<i64>),
    /// A signature or a bit string, as stored.
    Record(Vec<u8>),
}

impl ValueMeasure {
    /// Reads a datum of the kind's type.
    fn read(&self, datum: pg_sys::Datum) -> Value {
        let mut piece = Piece::default();
        piece.push(self.kind, Some(datum), None);
        let record = piece.into_values();
        match self.kind {
            RowKind::Document(kind) | RowKind::Contained(kind) => {
                let shingling = (kind == DocumentKind::Text).then_some(self.shingling);
                let set = set_of_document(&record, shingling, &mut check_interrupts);
                Value::Set(set.or_raise())
            }
            RowKind::Signature(_) | RowKind::Bits => Value::Record(record),
        }
    }

    /// Returns the similarity of two sets, or None if it is not within the bound.
    fn of_sets(&self, a: &[i64], b: &[i64]) -> Option<f64> {
        jaccard_at_least(a, b, self.bound, &mut check_interrupts)
    }

    /// Returns the similarity of two signatures, or the negated distance of two bit strings. Returns None if it is not
    /// within the bound, or if `a` is empty because its row is NULL.
    fn of_records(&self, a: &[u8], b: &[u8]) -> Option<f64> {
        if a.is_empty() {
            return None;
        }
        if let RowKind::Bits = self.kind {
            let distance = f64::from(bit_strings::compare(a, b)?.0);
            return (distance <= self.bound).then_some(-distance);
        }
        let similarity = estimate_stored(a, b).or_raise();
        (similarity >= self.bound).then_some(similarity)
    }
}

/// Returns the columns of the key and of the value, and the measure of values.
///
/// # Errors
/// ERROR `datatype_mismatch` for columns of other types, `invalid_parameter_value` for a threshold out of range.
fn check_columns(
    query: &Query,
    call: &Call,
    shingling: Shingling,
) -> (CheckedColumn, CheckedColumn, ValueMeasure) {
    let [key, value] = query.exactly(VALID);
    let key = key.of_type(call.argument_type(0), "first", "key");
    let signature_type = type_named(call.schema(), c"minhash_signature");
    let found = RowKind::of_column(&value, signature_type);
    let (kind, value) = found.unwrap_or_else(|| value.reject("second", VALID));
    let kind = match kind {
        // Only the set is needed, not the record of a document that is also signed.
        RowKind::Document(kind) => RowKind::Contained(kind),
        kind => kind,
    };
    let bound = match kind {
        RowKind::Bits => options::distance_argument(call, 2).into(),
        _ => options::threshold_argument(call, 2),
    };
    let measure = ValueMeasure {
        kind,
        shingling,
        bound,
    };
    (key, value, measure)
}

const VALID: &str = "Select the key and the value to compare: a document (text), a signature (minhash_signature), a bit string, or a set (text[] or bigint[]).";

pgrx::extension_sql_file!("../../sql/collection/distinct.sql", name = "distinct");
