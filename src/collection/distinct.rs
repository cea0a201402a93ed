//! `near_dup_distinct`: the first rows of a ranked query that are not similar to one before them.

use crate::collection::documents::{DocumentKind, read_set};
use crate::minhash::datum::StoredSignature;
use crate::options;
use crate::pg::bits::Bits;
use crate::pg::call::Call;
use crate::pg::catalog::type_named;
use crate::pg::error::{OrRaise, check_interrupts, raise};
use crate::pg::progress::Progress;
use crate::pg::query::{CheckedColumn, Column, Query};
use crate::pg::text::Text;
use crate::pg::value::Keys;
use crate::text::measures::shingle_set;
use neardup::hamming;
use neardup::memory::{Grow, copied};
use neardup::minhash::estimate_stored;
use neardup::set::jaccard_at_least;
use neardup::shingle::Shingling;
use pgrx::prelude::*;

/// The most rows returned: each row read is compared with all of them.
const MOST_RETURNED: i32 = 10_000;

/// The most rows read: the keys of repeats are arrays.
const MOST_READ: usize = 100_000_000;

/// Implements `near_dup_distinct(key, query, threshold, rows, k, unit, fold, params)`: in the order of the
/// query, every row that is not similar to one returned before, until there are `rows` of them. Every
/// other row read is a repeat of the most similar one, of several the earliest. NULL and empty values are
/// similar to nothing.
///
/// # Errors
/// `invalid_parameter_value` for arguments out of range or signatures made with different parameters,
/// `datatype_mismatch` for columns of other types.
#[pg_extern(sql = false)]
fn near_dup_distinct(fcinfo: pg_sys::FunctionCallInfo) {
    // SAFETY: the call is running; the arguments are declared with these types.
    let (call, unit, fold) = unsafe {
        let call = Call::new(fcinfo);
        let [unit, fold] =
            [(5, "unit"), (6, "fold")].map(|(i, name)| Text::from_raw(call.argument(i, name)));
        (call, unit, fold)
    };
    let integer = |number, name| call.argument(number, name).value() as i32;
    let wanted = options::within("rows", integer(3, "rows"), 1, MOST_RETURNED) as usize;
    let shingling = options::shingling(integer(4, "k"), &unit, &fold);
    let query = Query::open_for_first_rows(&call, 1, "query");
    let (key, value, measure) = check_columns(&query.columns(), &call, shingling);
    let mut keys = Keys::new(call.argument_type(0));
    let mut returned: Vec<Returned> = Vec::new();
    let mut progress = Progress::begin("reading", None);
    let is_exhausted = query.for_each_while(&mut |row| {
        progress.step();
        let number = keys.len();
        if number == MOST_READ {
            raise(
                PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                &format!("{MOST_READ} rows of the query have too few that are not similar"),
                "Give the query a LIMIT.",
            );
        }
        keys.push(row.get(key));
        let value = row.get(value).map(|datum| measure.read(datum));
        let similar = value
            .as_ref()
            .and_then(|value| measure.most_similar(&mut returned, value));
        match similar {
            Some(similar) => similar.repeats.try_push(number as u32).or_raise(),
            None => returned
                .try_push(Returned::new(number as u32, value))
                .or_raise(),
        }
        returned.len() < wanted
    });
    put(&returned, &keys, is_exhausted, &call);
}

/// A row that is returned.
struct Returned {
    /// Its place in the query, from 0.
    row: u32,
    value: Option<Value>,
    /// The rows that were read after it and are similar.
    repeats: Vec<u32>,
}

impl Returned {
    fn new(row: u32, value: Option<Value>) -> Self {
        let repeats = Vec::new();
        Self {
            row,
            value,
            repeats,
        }
    }
}

fn put(returned: &[Returned], keys: &Keys, is_exhausted: bool, call: &Call) {
    let mut rows = call.rows();
    for Returned { row, repeats, .. } in returned {
        check_interrupts();
        let of_repeats = array(repeats, keys, call.argument_type(0));
        rows.put([
            keys.get(*row),
            (i64::from(*row) + 1).into_datum(),
            (repeats.len() as i64).into_datum(),
            Some(of_repeats),
            is_exhausted.into_datum(),
        ]);
    }
}

/// Returns the array of the keys of some rows.
fn array(rows: &[u32], keys: &Keys, key_type: pg_sys::Oid) -> pg_sys::Datum {
    // SAFETY: the keys are of that type, and copied into the array.
    unsafe {
        let memory = pg_sys::CurrentMemoryContext;
        let mut array = pg_sys::initArrayResult(key_type, memory, false);
        for row in rows {
            let key = keys.get(*row);
            let (value, is_null) = (key.unwrap_or(pg_sys::Datum::null()), key.is_none());
            array = pg_sys::accumArrayResult(array, value, is_null, key_type, memory);
        }
        pg_sys::makeArrayResult(array, memory)
    }
}

/// How the values of a query are compared.
struct Measure {
    kind: ValueKind,
    /// The lowest similarity; of bit strings the greatest Hamming distance.
    bound: f64,
}

#[derive(Debug, Clone, Copy)]
enum ValueKind {
    Text(Shingling),
    Set(DocumentKind),
    Signature,
    Bits,
}

/// A value in the form in which it is compared.
enum Value {
    /// Sorted hashes: of a text, those of its shingles.
    Set(Vec<i64>),
    Signature(Vec<u8>),
    /// Their number, and the bytes.
    Bits(usize, Vec<u8>),
}

impl Measure {
    /// Returns the value of a datum, which is of the kind's type.
    fn read(&self, datum: pg_sys::Datum) -> Value {
        // SAFETY: the column's type has been checked; the row outlives the borrow.
        unsafe {
            match self.kind {
                ValueKind::Text(shingling) => {
                    Value::Set(shingle_set(&Text::from_raw(datum), &shingling))
                }
                ValueKind::Set(kind) => {
                    let (mut record, mut set) = (Vec::new(), Vec::new());
                    kind.push_record(datum, &mut record);
                    read_set(&record, &mut set).or_raise();
                    Value::Set(set)
                }
                ValueKind::Signature => {
                    let signature = StoredSignature::from_raw(datum);
                    Value::Signature(copied(signature.bytes()).or_raise())
                }
                ValueKind::Bits => {
                    let bits = Bits::from_raw(datum);
                    Value::Bits(bits.len(), copied(bits.bytes()).or_raise())
                }
            }
        }
    }

    /// Returns the row that is most similar to a value, of several the first; None if none is similar.
    fn most_similar<'a>(
        &self,
        returned: &'a mut [Returned],
        value: &Value,
    ) -> Option<&'a mut Returned> {
        let mut best: Option<(f64, &mut Returned)> = None;
        for row in returned {
            let earlier = row.value.as_ref();
            if let Some(similarity) = earlier.and_then(|earlier| self.similarity(earlier, value))
                && best.as_ref().is_none_or(|(most, _)| similarity > *most)
            {
                best = Some((similarity, row));
            }
        }
        best.map(|(_, row)| row)
    }

    /// Returns the similarity of two values, of bit strings the distance with a minus; None if it is not
    /// within the bound.
    fn similarity(&self, a: &Value, b: &Value) -> Option<f64> {
        match (a, b) {
            (Value::Set(a), Value::Set(b)) => {
                jaccard_at_least(a, b, self.bound, &mut check_interrupts)
            }
            (Value::Signature(a), Value::Signature(b)) => {
                let similarity = estimate_stored(a, b).or_raise();
                (similarity >= self.bound).then_some(similarity)
            }
            (Value::Bits(a_length, a), Value::Bits(b_length, b)) if a_length == b_length => {
                let distance = f64::from(hamming::distance(a, b));
                (distance <= self.bound).then_some(-distance)
            }
            _ => None,
        }
    }
}

/// Returns the columns of the key and of the value, and how values are compared.
///
/// # Errors
/// ERROR `datatype_mismatch` for other columns, `invalid_parameter_value` for a threshold out of range.
fn check_columns(
    columns: &[Column],
    call: &Call,
    shingling: Shingling,
) -> (CheckedColumn, CheckedColumn, Measure) {
    let [key, value] = columns else {
        wrong_columns(&format!("the query yields {} columns", columns.len()));
    };
    let key = key.of_type(call.argument_type(0), "first", "key");
    let is_bits = |base_type| [pg_sys::BITOID, pg_sys::VARBITOID].contains(&base_type);
    if let Some(value) = value.if_base_type(is_bits) {
        let (kind, bound) = (ValueKind::Bits, options::distance_argument(call, 2).into());
        return (key, value, Measure { kind, bound });
    }
    let signature = value.if_type(type_named(call.schema(), c"minhash_signature"));
    let (kind, value) = match (signature, DocumentKind::of_column(value)) {
        (Some(value), _) => (ValueKind::Signature, value),
        (_, Some((DocumentKind::Text, value))) => (ValueKind::Text(shingling), value),
        (_, Some((kind, value))) => (ValueKind::Set(kind), value),
        _ => wrong_columns(&format!(
            "the second column of the query is of type {}",
            value.type_name()
        )),
    };
    let bound = options::threshold_argument(call, 2);
    (key, value, Measure { kind, bound })
}

fn wrong_columns(message: &str) -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
        message,
        "Valid are the key and the value to compare: a document (text), a signature (minhash_signature), a bit string, or a set (text[] or bigint[]).",
    )
}

pgrx::extension_sql_file!(
    "../../sql/collection/distinct.sql",
    name = "distinct",
    requires = []
);
