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
use neardup::set::{jaccard_at_least, sort};
use neardup::shingle::Shingling;
use pgrx::prelude::*;

/// Maximum number of rows returned. Every row read is compared with all returned rows.
const MOST_RETURNED: i32 = 10_000;

/// Maximum number of rows read. The keys of the repeats of a row are returned as an array.
const MOST_READ: usize = 10_000_000;

/// Implements `near_dup_distinct(key, query, threshold, rows, k, unit, fold, exceptions, params)`: returns, in query
/// order, the first `rows` rows that are not similar to a row returned before. Every other row read is a repeat of the
/// returned row most similar to it, the earliest if two or more are equally similar. NULL and empty values are similar
/// to no row.
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
    /// The places in the query of the rows to return, counted from 0.
    rows: Vec<u32>,
    /// The places in the exceptions of these rows' keys. None if no exception has the key.
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

    /// Adds the next row of the query to the rows returned, or to the repeats of a returned row.
    fn take(&mut self, (row, key): (u32, Option<pg_sys::Datum>), value: Option<pg_sys::Datum>) {
        let value = value.map_or_else(Value::default, |datum| self.measure.read(datum));
        let exceptions = self.exceptions.as_ref();
        let place = exceptions.and_then(|exceptions| exceptions.place(key));
        if let Some(similar) = self.most_similar(place, &value) {
            return self.repeats.try_push((similar, row)).or_raise();
        }
        (self.sets.items.try_extend_from_slice(&value.set)).or_raise();
        self.sets.end().or_raise();
        (self.records.items.try_extend_from_slice(&value.record)).or_raise();
        self.records.end().or_raise();
        self.rows.try_push(row).or_raise();
        self.places.try_push(place).or_raise();
    }

    /// Returns the number of the returned row most similar to `value`, the first if two or more are equally similar, or
    /// None if none is similar. `place` is the place of the value's key in the exceptions.
    fn most_similar(&self, place: Option<u32>, value: &Value) -> Option<u32> {
        let mut best: Option<(f64, u32)> = None;
        for number in 0..self.rows.len() {
            let pair = self.places[number].zip(place).zip(self.exceptions.as_ref());
            if pair.is_some_and(|((a, b), exceptions)| exceptions.contain(a, b)) {
                continue;
            }
            let (set, record) = (self.sets.part(number), self.records.part(number));
            if let Some(similarity) = self.measure.similarity(set, record, value)
                && best.is_none_or(|(most, _)| similarity > most)
            {
                best = Some((similarity, number as u32));
            }
        }
        best.map(|(_, number)| number)
    }
}

fn put(mut returned: Returned, keys: &Keys, is_exhausted: bool, call: &Call) {
    sort(&mut returned.repeats, &mut check_interrupts);
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
    /// Minimum similarity or, for bit strings, the negated maximum Hamming distance.
    least: f64,
}

/// A value, converted for comparisons.
#[derive(Default)]
struct Value {
    /// The sorted hashes of a set, or of a text's shingles. Empty for other values.
    set: Vec<i64>,
    /// A signature or a bit string, as stored. Empty for other values.
    record: Vec<u8>,
}

impl ValueMeasure {
    /// Reads a datum of the kind's type.
    fn read(&self, datum: pg_sys::Datum) -> Value {
        let mut piece = Piece::default();
        // SAFETY: the datum is from the column that `check_columns` checked.
        unsafe { piece.push(self.kind, Some(datum), None) };
        let (mut set, mut record) = (Vec::new(), piece.values.items);
        if let RowKind::Document(kind) | RowKind::Contained(kind) = self.kind {
            let shingling = (kind == DocumentKind::Text).then_some(self.shingling);
            set = set_of_document(&record, shingling, &mut check_interrupts).or_raise();
            record.clear();
        }
        Value { set, record }
    }

    /// Returns the similarity of a value, given as `set` and `record`, to `other`, or the negated distance of bit
    /// strings. Returns None below the minimum, if a value is NULL, or if bit strings differ in length.
    fn similarity(&self, set: &[i64], record: &[u8], other: &Value) -> Option<f64> {
        let similarity = match self.kind {
            RowKind::Document(_) | RowKind::Contained(_) => {
                return jaccard_at_least(set, &other.set, self.least, &mut check_interrupts);
            }
            _ if record.is_empty() || other.record.is_empty() => return None,
            RowKind::Bits => -f64::from(bit_strings::compare(record, &other.record)?.0),
            RowKind::Signature(_) => estimate_stored(record, &other.record).or_raise(),
        };
        (similarity >= self.least).then_some(similarity)
    }
}

/// Returns the columns of the key and of the value, and the measure by which values are compared.
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
    let least = match kind {
        RowKind::Bits => -f64::from(options::distance_argument(call, 2)),
        _ => options::threshold_argument(call, 2),
    };
    let measure = ValueMeasure {
        kind,
        shingling,
        least,
    };
    (key, value, measure)
}

const VALID: &str = "Select the key and the value to compare: a document (text), a signature (minhash_signature), a bit string, or a set (text[] or bigint[]).";

pgrx::extension_sql_file!("../../sql/collection/distinct.sql", name = "distinct");
