//! A column of an open index.

use super::{HASH_FUNCTION, KIND_FUNCTION, Open};
use pgrx::pg_sys;

/// A column of an open index of the access method, counted from 1.
#[derive(Clone, Copy)]
pub struct Column {
    index: pg_sys::Relation,
    number: i16,
}

impl Column {
    /// # Safety
    /// The relation is an index of this access method, open as long as the value lives, and has
    /// such a column.
    pub unsafe fn new(index: pg_sys::Relation, number: i16) -> Self {
        Self { index, number }
    }

    pub fn number(&self) -> i16 {
        self.number
    }

    pub fn index(&self) -> pg_sys::Relation {
        self.index
    }

    fn place(&self) -> usize {
        self.number as usize - 1
    }

    /// Returns the parsed options of its operator class, or NULL.
    pub fn options(&self) -> *mut pg_sys::bytea {
        // SAFETY: the index is open and has the column.
        unsafe { *pg_sys::RelationGetIndexAttOptions(self.index, false).add(self.place()) }
    }

    pub fn collation(&self) -> pg_sys::Oid {
        // SAFETY: as above.
        unsafe { *(*self.index).rd_indcollation.add(self.place()) }
    }

    pub fn family(&self) -> pg_sys::Oid {
        // SAFETY: as above.
        unsafe { *(*self.index).rd_opfamily.add(self.place()) }
    }

    /// Returns whether its operator class has a support function.
    fn has(&self, function: u16) -> bool {
        // SAFETY: as above, and the access method has that many support functions.
        let found = unsafe { pg_sys::index_getprocid(self.index, self.number, function) };
        found != pg_sys::InvalidOid
    }

    /// Returns whether its class compares values: one with keys.
    pub fn is_compared(&self) -> bool {
        self.has(KIND_FUNCTION)
    }

    /// Returns whether its class is one of equality.
    pub fn is_scope(&self) -> bool {
        self.has(HASH_FUNCTION)
    }

    /// Returns what makes its class, which [`Self::is_compared`].
    pub fn open(&self) -> Open {
        // SAFETY: the class has the support function, and only functions of this library return an
        // address as `internal`.
        unsafe {
            let function = pg_sys::index_getprocinfo(self.index, self.number, KIND_FUNCTION);
            let no_argument = pg_sys::Datum::null();
            let open = pg_sys::FunctionCall1Coll(function, pg_sys::InvalidOid, no_argument);
            *open.cast_mut_ptr::<Open>()
        }
    }

    /// Returns a copy of its expression; None for a column of the table.
    pub fn expression(&self) -> Option<*mut pg_sys::Node> {
        // SAFETY: the index is open; its expressions are in the order of its columns.
        unsafe {
            let description = &*(*self.index).rd_index;
            let columns = description
                .indkey
                .values
                .as_slice(description.indnatts as usize);
            if columns[self.place()] != 0 {
                return None;
            }
            let before = columns[..self.place()].iter().filter(|&&n| n == 0).count();
            let expressions = pg_sys::RelationGetIndexExpressions(self.index);
            Some(pg_sys::list_nth(expressions, before as i32).cast())
        }
    }
}
