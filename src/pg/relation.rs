//! Open tables and indexes.

use pgrx::pg_sys;

/// An open relation, closed with its lock kept to the end of the transaction.
pub struct Relation(pg_sys::Relation);

impl Relation {
    pub fn open_table(oid: pg_sys::Oid) -> Self {
        // SAFETY: raises an ERROR if there is no such relation.
        Self(unsafe { pg_sys::table_open(oid, pg_sys::AccessShareLock as i32) })
    }

    pub fn open_index(oid: pg_sys::Oid) -> Self {
        // SAFETY: raises an ERROR if there is no such index.
        Self(unsafe { pg_sys::index_open(oid, pg_sys::AccessShareLock as i32) })
    }

    pub fn as_ptr(&self) -> pg_sys::Relation {
        self.0
    }

    /// Returns the kind of relation, as in `pg_class.relkind`.
    pub fn kind(&self) -> u8 {
        // SAFETY: the relation is open.
        unsafe { (*(*self.0).rd_rel).relkind as u8 }
    }
}

impl Drop for Relation {
    fn drop(&mut self) {
        // After an ERROR it is closed with the resource owner.
        if !std::thread::panicking() {
            // SAFETY: the relation is open; the lock is released with the transaction.
            unsafe { pg_sys::relation_close(self.0, pg_sys::NoLock as i32) };
        }
    }
}

/// Returns type and collation of a column.
///
/// # Safety
/// The table is open, and has that column.
pub unsafe fn column_type(table: pg_sys::Relation, number: i16) -> (pg_sys::Oid, pg_sys::Oid) {
    let (mut column_type, mut modifier, mut collation) = Default::default();
    // SAFETY: vouched for by the caller.
    unsafe {
        let table = (*table).rd_id;
        pg_sys::get_atttypetypmodcoll(
            table,
            number,
            &mut column_type,
            &mut modifier,
            &mut collation,
        );
    }
    (column_type, collation)
}
