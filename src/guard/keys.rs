//! Primary keys of rows, and the columns of other tables that hold them: of the type of the key's only column, or of
//! a row type.

use crate::guard::row::{get, have_same_bits};
use crate::pg::relation::{ColumnType, Relation};
use crate::pg::value::Layout;
use pgrx::pg_sys;

/// A column of a primary key.
#[derive(Clone, Copy)]
pub struct KeyColumn {
    pub number: i16,
    layout: Layout,
}

impl KeyColumn {
    pub fn new(table: &Relation, number: i16) -> Self {
        let layout = Layout::of(ColumnType::of(table.oid(), number).type_);
        Self { number, layout }
    }
}

/// Returns the key of a row as a column of type `held` holds it.
///
/// # Safety
/// The slot holds a row of a table with that key, and `held` is of its type.
pub unsafe fn key_of(
    columns: &[KeyColumn],
    held: pg_sys::Oid,
    slot: *mut pg_sys::TupleTableSlot,
) -> pg_sys::Datum {
    let value = |column: &KeyColumn| {
        // SAFETY: vouched for by the caller; the columns of a primary key are not NULL.
        unsafe { get(slot, column.number) }.expect("keys are not NULL")
    };
    if let [column] = columns {
        return value(column);
    }
    let mut values: Vec<_> = columns.iter().map(value).collect();
    let mut nulls: Vec<_> = values.iter().map(|_| false).collect();
    // SAFETY: the row type has columns of these types.
    unsafe {
        let descriptor = pg_sys::lookup_rowtype_tupdesc_copy(held, -1);
        let row = pg_sys::heap_form_tuple(descriptor, values.as_mut_ptr(), nulls.as_mut_ptr());
        pg_sys::HeapTupleHeaderGetDatum((*row).t_data)
    }
}

/// Returns whether two rows have keys of the same bits.
///
/// # Safety
/// The slots hold rows of a table with that key.
pub unsafe fn have_same_key(
    columns: &[KeyColumn],
    a: *mut pg_sys::TupleTableSlot,
    b: *mut pg_sys::TupleTableSlot,
) -> bool {
    columns.iter().all(|column| {
        // SAFETY: vouched for by the caller; the values are of the column's type.
        unsafe {
            let [a, b] = [a, b].map(|slot| get(slot, column.number));
            have_same_bits(a, b, column.layout)
        }
    })
}

/// Returns whether the first column of a table holds keys of another table, whose primary key has
/// these columns: of their type, or of a row type with columns of their types.
pub fn holds_keys(keys: &Relation, table: &Relation, columns: &[i16]) -> bool {
    let type_of = |column: &i16| ColumnType::of(table.oid(), *column).type_;
    let held = ColumnType::of(keys.oid(), 1).type_;
    if let [column] = columns {
        return type_of(column) == held;
    }
    // SAFETY: looks into the catalog, and returns InvalidOid for what is not there.
    let field = |row, number| unsafe { pg_sys::get_atttype(row, number) };
    // SAFETY: as above.
    let row = unsafe { pg_sys::get_typ_typrelid(held) };
    let mut numbers = (1..).zip(columns);
    row != pg_sys::InvalidOid
        && field(row, columns.len() as i16 + 1) == pg_sys::InvalidOid
        && numbers.all(|(number, column)| field(row, number) == type_of(column))
}
