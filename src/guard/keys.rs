//! Primary keys of rows, and the columns of other tables that hold them: of the type of the key's only column, or of
//! a row type.

use crate::guard::slot::get;
use crate::pg::names;
use crate::pg::relation::{ColumnType, Relation};
use crate::pg::statement::Connection;
use pgrx::pg_sys;

/// Returns the definition of a column that holds keys of a table, whose primary key has these columns. For a key of
/// several columns this makes the row type of that name.
pub fn define_keys(
    connection: &Connection,
    table: pg_sys::Oid,
    columns: &[i16],
    name: &str,
) -> String {
    let definition = |&column: &i16| ColumnType::of(table, column).definition();
    if let [column] = columns {
        return definition(column);
    }
    let fields = columns.iter().map(|column| {
        let name = names::column(table, *column).unwrap_or_default();
        format!("{} {}", names::identifier(&name), definition(column))
    });
    let fields = fields.collect::<Vec<_>>().join(", ");
    connection.execute(&format!("CREATE TYPE {name} AS ({fields})"));
    name.to_owned()
}

/// Returns the key of a row as a column of type `held` holds it.
///
/// # Safety
/// The slot holds a row of a table with that key, and `held` is of its type.
pub unsafe fn key_of(
    columns: &[i16],
    held: pg_sys::Oid,
    slot: *mut pg_sys::TupleTableSlot,
) -> pg_sys::Datum {
    let value = |&column: &i16| {
        // SAFETY: vouched for by the caller; the columns of a primary key are not NULL.
        unsafe { get(slot, column) }.expect("keys are not NULL")
    };
    if let [column] = columns {
        return value(column);
    }
    let mut values: Vec<_> = columns.iter().map(value).collect();
    let mut nulls = vec![false; values.len()];
    // SAFETY: the row type has columns of these types.
    unsafe {
        let descriptor = pg_sys::lookup_rowtype_tupdesc_copy(held, -1);
        let row = pg_sys::heap_form_tuple(descriptor, values.as_mut_ptr(), nulls.as_mut_ptr());
        pg_sys::HeapTupleHeaderGetDatum((*row).t_data)
    }
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
