//! A column of an open index.

use super::constraint::KeyClass;
use super::{ComparedClass, EQUAL, HASH_FUNCTION, PREDICATE_FUNCTION};
use crate::index::constraint_key::near_dup_key_near_wrapper;
use crate::index::kind::Kind;
use crate::pg::catalog::is_at;
use crate::pg::relation::ColumnType;
use pgrx::{pg_sys, varlena_to_byte_slice};

/// A column of an open index of the access method, counted from 1.
#[derive(Clone, Copy)]
pub struct IndexColumn {
    index: pg_sys::Relation,
    number: i16,
}

impl IndexColumn {
    /// # Safety
    /// The relation is an index of this access method, open as long as the value lives, and has
    /// such a column.
    pub unsafe fn new(index: pg_sys::Relation, number: i16) -> Self {
        Self { index, number }
    }

    fn place(&self) -> usize {
        self.number as usize - 1
    }

    /// Returns the class of a column that compares values; None for options out of range, and for a class that
    /// is none of ours.
    pub fn class(&self) -> Option<Box<dyn ComparedClass>> {
        let predicate = self.predicate().fn_addr;
        if is_at(&predicate, near_dup_key_near_wrapper) {
            return Some(Box::new(KeyClass::of(self)?));
        }
        // SAFETY: the options are of the class that has the predicate.
        unsafe { Kind::of_address(&predicate)?.class(self.options()) }
    }

    /// Returns the parsed options of its operator class, or NULL.
    fn options(&self) -> *mut pg_sys::bytea {
        // SAFETY: the index is open and has the column.
        unsafe { *pg_sys::RelationGetIndexAttOptions(self.index, false).add(self.place()) }
    }

    /// Returns whether another column makes the same keys of the same values.
    pub fn is_like(&self, other: &Self) -> bool {
        let [a, b] = [self, other].map(|column| {
            let options = column.options();
            // SAFETY: a value of variable length, which lives as long as the index is open.
            (!options.is_null()).then(|| unsafe { varlena_to_byte_slice(options) })
        });
        a == b
            && self.family() == other.family()
            && self.type_and_collation() == other.type_and_collation()
    }

    /// Returns its type and its collation.
    fn type_and_collation(&self) -> (pg_sys::Oid, pg_sys::Oid) {
        // SAFETY: the index is open.
        let type_ = ColumnType::of(unsafe { (*self.index).rd_id }, self.number);
        (type_.type_, type_.collation)
    }

    fn family(&self) -> pg_sys::Oid {
        // SAFETY: as above.
        unsafe { *(*self.index).rd_opfamily.add(self.place()) }
    }

    /// Returns whether its class compares values: one with keys.
    pub fn is_compared(&self) -> bool {
        // SAFETY: as above, and the access method has that many support functions.
        let found = unsafe { pg_sys::index_getprocid(self.index, self.number, PREDICATE_FUNCTION) };
        found != pg_sys::InvalidOid
    }

    /// Returns whether its class has the equality of its type.
    pub fn is_scope(&self) -> bool {
        let (type_, _) = self.type_and_collation();
        let wanted = pg_sys::TYPECACHE_EQ_OPR as i32;
        // SAFETY: cache entries are never freed.
        unsafe {
            let equality = (*pg_sys::lookup_type_cache(type_, wanted)).eq_opr;
            pg_sys::get_op_opfamily_strategy(equality, self.family()) == i32::from(EQUAL)
        }
    }

    /// Tells PostgreSQL the type of a column of a scope. It prints the values of a violated constraint by
    /// the class's type, and cannot print any element.
    pub fn declare_type(&self) {
        let (type_, _) = self.type_and_collation();
        // SAFETY: the cached entry of an open index has a type for each column; for one session alone, and
        // the family has the operators of this type.
        unsafe { *(*self.index).rd_opcintype.add(self.place()) = type_ };
    }

    /// Returns the support function that tells its class, if it [`Self::is_compared`].
    pub fn predicate(&self) -> pg_sys::FmgrInfo {
        // SAFETY: the class has the support function.
        unsafe { *pg_sys::index_getprocinfo(self.index, self.number, PREDICATE_FUNCTION) }
    }

    /// Returns the hash of a value to compare with the column, of its own type where none is given; None
    /// for a value of a type whose values do not hash as the column's do.
    ///
    /// # Safety
    /// The column is one of a scope, and the value is of that type.
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
