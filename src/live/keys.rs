//! The columns of tables that hold keys of a tracked table.

use crate::pg::relation::{Relation, column_type};
use pgrx::pg_sys;

/// Returns whether the first column of a table holds keys of another table, whose primary key has
/// these columns: of their type, or of a row type with columns of their types.
pub fn holds_keys(keys: &Relation, table: &Relation, columns: &[i16]) -> bool {
    // SAFETY: the tables are open and have these columns.
    unsafe {
        let type_of = |column: &i16| column_type(table.as_ptr(), *column).0;
        let (held, _) = column_type(keys.as_ptr(), 1);
        if let [column] = columns {
            return type_of(column) == held;
        }
        let row = pg_sys::get_typ_typrelid(held);
        if row == pg_sys::InvalidOid {
            return false;
        }
        let behind_last = columns.len() as i16 + 1;
        let mut numbers = (1..).zip(columns);
        pg_sys::get_atttype(row, behind_last) == pg_sys::InvalidOid
            && numbers.all(|(number, column)| pg_sys::get_atttype(row, number) == type_of(column))
    }
}
