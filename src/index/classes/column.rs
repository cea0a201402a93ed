//! A column of an open index.

use super::{EQUAL, HASH_FUNCTION, PREDICATE_FUNCTION};
use crate::pg::relation::ColumnType;
use pgrx::{pg_sys, varlena_to_byte_slice};

/// A column of an open index of the access method. Columns are numbered from 1.
pub struct IndexColumn {
    pub(super) index: pg_sys::Relation,
    pub(super) number: i16,
}

impl IndexColumn {
    /// # Safety
    /// `index` is an index of this access method, has a column `number`, and stays open while the value lives.
    pub unsafe fn new(index: pg_sys::Relation, number: i16) -> Self {
        Self { index, number }
    }

    fn place(&self) -> usize {
        self.number as usize - 1
    }

    /// Returns the parsed options of the column's operator class, or NULL.
    pub(super) fn options(&self) -> *mut pg_sys::bytea {
        // SAFETY: the index is open and has the column.
        unsafe { *pg_sys::RelationGetIndexAttOptions(self.index, false).add(self.place()) }
    }

    /// Returns whether this column and `other` make the same keys from the same values.
    pub fn is_like(&self, other: &Self) -> bool {
        let [a, b] = [self, other].map(|column| {
            let options = column.options();
            // SAFETY: a varlena that lives as long as the index is open.
            (!options.is_null()).then(|| unsafe { varlena_to_byte_slice(options) })
        });
        a == b
            && self.family() == other.family()
            && self.type_and_collation() == other.type_and_collation()
    }

    /// Returns the column's type and collation.
    fn type_and_collation(&self) -> (pg_sys::Oid, pg_sys::Oid) {
        // SAFETY: the index is open.
        let type_ = ColumnType::of(unsafe { (*self.index).rd_id }, self.number);
        (type_.type_, type_.collation)
    }

    fn family(&self) -> pg_sys::Oid {
        // SAFETY: as above.
        unsafe { *(*self.index).rd_opfamily.add(self.place()) }
    }

    /// Returns whether the column's class compares values, and therefore has keys.
    pub fn is_compared(&self) -> bool {
        // SAFETY: as above, and the access method has that many support functions.
        let found = unsafe { pg_sys::index_getprocid(self.index, self.number, PREDICATE_FUNCTION) };
        found != pg_sys::InvalidOid
    }

    /// Returns whether the column's class has the equality operator of the column's type.
    pub fn is_scope(&self) -> bool {
        let (type_, _) = self.type_and_collation();
        let wanted = pg_sys::TYPECACHE_EQ_OPR as i32;
        // SAFETY: cache entries are never freed.
        unsafe {
            let equality = (*pg_sys::lookup_type_cache(type_, wanted)).eq_opr;
            pg_sys::get_op_opfamily_strategy(equality, self.family()) == i32::from(EQUAL)
        }
    }

    /// Tells PostgreSQL the type of a scope column. The values of a violated constraint are printed by the type of the
    /// operator class, but `anyelement` cannot be printed.
    pub fn declare_type(&self) {
        let (type_, _) = self.type_and_collation();
        // SAFETY: the cached entry of an open index has a type for each column. Only this session sees the change, and
        // the family has the operators of this type.
        unsafe { *(*self.index).rd_opcintype.add(self.place()) = type_ };
    }

    /// Returns the hash of `value` for comparison with the column. `given` is the type of `value`, or None for the
    /// column's own type. Returns None if values of this type do not hash like the column's.
    ///
    /// # Safety
    /// The column is a scope column, and `value` is of that type.
    pub unsafe fn hash(&self, value: pg_sys::Datum, given: Option<pg_sys::Oid>) -> Option<u64> {
        let (own, collation) = self.type_and_collation();
        let no_salt = pg_sys::Datum::from(0i64);
        let wanted = pg_sys::TYPECACHE_HASH_OPFAMILY | pg_sys::TYPECACHE_HASH_EXTENDED_PROC_FINFO;
        // Cache entries are never freed; their functions take values of the type, and a salt.
        let hashing = |type_| pg_sys::lookup_type_cache(type_, wanted as i32);
        let own_hashing = hashing(own);
        let hashing = given.map_or(own_hashing, hashing);
        if (*hashing).hash_opf != (*own_hashing).hash_opf {
            return None;
        }
        let function = &raw mut (*hashing).hash_extended_proc_finfo;
        let hash = if (*function).fn_oid != pg_sys::InvalidOid {
            pg_sys::FunctionCall2Coll(function, collation, value, no_salt)
        } else {
            let type_ = pg_sys::getBaseType(given.unwrap_or(own));
            let number = HASH_FUNCTION as i16;
            let function = pg_sys::get_opfamily_proc(self.family(), type_, type_, number);
            pg_sys::OidFunctionCall2Coll(function, collation, value, no_salt)
        };
        Some(hash.value() as u64)
    }

    /// Returns a copy of the column's expression, or None for a column of the table.
    pub fn expression(&self) -> Option<*mut pg_sys::Node> {
        // SAFETY: the index is open; its expressions are in the order of its columns.
        unsafe {
            let description = &*(*self.index).rd_index;
            let count = description.indnatts as usize;
            let columns = description.indkey.values.as_slice(count);
            if columns[self.place()] != 0 {
                return None;
            }
            let before = columns[..self.place()].iter().filter(|&&n| n == 0).count();
            let expressions = pg_sys::RelationGetIndexExpressions(self.index);
            Some(pg_sys::list_nth(expressions, before as i32).cast())
        }
    }
}
