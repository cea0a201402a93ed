//! The columns of a table that a guard reads. Their numbers can differ between partitions.

use crate::guard::options::GuardOptions;
use crate::guard::row_condition::PreparedCondition;
use crate::guard::window::Window;
use crate::pg::names::column_number;
use crate::pg::prelude::*;
use crate::pg::relation::ColumnType;
use crate::pg::slot::{as_text, get, have_same_bits};
use std::ffi::{CStr, CString};

/// A scope column. Rows are in one scope if their values are equal or both NULL.
pub struct ScopeColumn {
    pub number: i16,
    equality: *mut pg_sys::TypeCacheEntry,
    collation: pg_sys::Oid,
}

impl ScopeColumn {
    /// Returns scope column `number` of `table`.
    ///
    /// # Errors
    /// ERROR `undefined_function` for a type without equality.
    fn new(table: &Relation, number: i16) -> Self {
        let column = ColumnType::of(table.oid(), number);
        let wanted = (pg_sys::TYPECACHE_EQ_OPR | pg_sys::TYPECACHE_EQ_OPR_FINFO) as i32;
        // SAFETY: cache entries are never freed.
        let equality = unsafe { pg_sys::lookup_type_cache(column.type_, wanted) };
        // SAFETY: as above.
        if unsafe { (*equality).eq_opr_finfo.fn_oid } == pg_sys::InvalidOid {
            raise(
                PgSqlErrorCode::ERRCODE_UNDEFINED_FUNCTION,
                "a scope column cannot be compared: its type has no equality",
                "Use columns of types with a default B-tree or hash operator class.",
            );
        }
        Self {
            number,
            equality,
            collation: column.collation,
        }
    }

    /// Returns whether the column at `place` in `index` compares values as this scope column does.
    ///
    /// # Safety
    /// The index is open, and has that column, counted from 0.
    pub unsafe fn is_compared_by(&self, index: pg_sys::Relation, place: usize) -> bool {
        // Cache entries are never freed.
        let family = *(*index).rd_opfamily.add(place);
        pg_sys::op_in_opfamily((*self.equality).eq_opr, family)
            && *(*index).rd_indcollation.add(place) == self.collation
    }

    /// Returns whether `a` and `b` are equal, or both NULL.
    ///
    /// # Safety
    /// Both values are of the column's type.
    pub unsafe fn same(&self, a: Option<pg_sys::Datum>, b: Option<pg_sys::Datum>) -> bool {
        match (a, b) {
            (Some(a), Some(b)) => {
                let function = &mut (*self.equality).eq_opr_finfo;
                pg_sys::FunctionCall2Coll(function, self.collation, a, b).value() != 0
            }
            (None, None) => true,
            _ => false,
        }
    }
}

/// The columns that a guard reads.
pub struct GuardColumns {
    /// The column that is compared.
    pub value: i16,
    pub scope: Vec<ScopeColumn>,
    pub window: Option<Window>,
    condition: Option<PreparedCondition>,
    /// The column whose values identify rows in notes and exceptions.
    pub key: Option<i16>,
    /// Index and columns of the primary key, which identifies rows in messages. None without a primary key.
    primary_key: Option<(pg_sys::Oid, Vec<i16>)>,
}

impl GuardColumns {
    /// Returns the columns of `table` that `options` name.
    ///
    /// # Errors
    /// The errors of [`column_number`], [`ScopeColumn::new`] and [`Window::new`].
    pub fn of(table: &Relation, options: &GuardOptions) -> Self {
        let number = |name: &CString| column_number(table.oid(), name);
        let scope = options.scope.iter().map(number);
        let scope = scope.map(|number| ScopeColumn::new(table, number));
        Self {
            value: number(&options.column),
            scope: scope.collect(),
            window: Self::window(table, options),
            condition: options.condition.map(|condition| condition.prepare(table)),
            key: options.key.as_ref().map(number),
            primary_key: table.primary_key(),
        }
    }

    /// Returns whether the row in `slot` satisfies the guard's condition.
    ///
    /// # Safety
    /// The slot holds a row of the table.
    pub unsafe fn counts(&self, slot: *mut pg_sys::TupleTableSlot) -> bool {
        let condition = self.condition.as_ref();
        condition.is_none_or(|condition| condition.holds(slot))
    }

    /// Returns whether `old` and `new` have the same bits in all columns that a guard reads, and both or neither
    /// satisfy the condition. Compares values, not TOAST pointers: an UPDATE that sets an equal document stores it
    /// again.
    ///
    /// # Safety
    /// The slots hold rows of the table.
    pub unsafe fn are_same(
        &self,
        old: *mut pg_sys::TupleTableSlot,
        new: *mut pg_sys::TupleTableSlot,
    ) -> bool {
        let scope = self.scope.iter().map(|column| column.number);
        let window = self.window.map(|window| window.number);
        let mut columns = scope.chain(window).chain(self.key).chain([self.value]);
        self.counts(old) == self.counts(new)
            && columns.all(|column| have_same_bits(old, new, &[column]))
    }

    /// Returns the window that `within` and `by` in `options` describe, or None without them.
    ///
    /// # Errors
    /// The errors of [`column_number`], and `datatype_mismatch` unless the column is of type date, timestamp or
    /// timestamptz.
    pub fn window(table: &Relation, options: &GuardOptions) -> Option<Window> {
        let (name, most) = options.within.as_ref().zip(options.by)?;
        Some(Window::new(table, column_number(table.oid(), name), most))
    }

    /// Returns the primary key of a row in the format of PostgreSQL's messages, `(id)=(1)`. Returns None if there is no
    /// primary key, or if the role may not read it.
    ///
    /// # Safety
    /// The slot holds a row of the table.
    pub unsafe fn primary_key(&self, slot: *mut pg_sys::TupleTableSlot) -> Option<CString> {
        let (index, columns) = self.primary_key.as_ref()?;
        // `BuildIndexValueDescription` checks the privileges.
        let value = |column: &i16| get(slot, *column).expect("keys are not NULL");
        let mut values: Vec<_> = columns.iter().map(value).collect();
        let mut nulls = vec![false; values.len()];
        let index = Relation::open_index(*index);
        let text = pg_sys::BuildIndexValueDescription(
            index.as_ptr(),
            values.as_mut_ptr(),
            nulls.as_mut_ptr(),
        );
        (!text.is_null()).then(|| CStr::from_ptr(text).to_owned())
    }

    /// Returns a row's key as text, for programs: the guard's key or, if it has none, the only column of the primary
    /// key. Returns None for a key that is NULL or does not belong to the primary key, or if there is no primary key.
    ///
    /// # Safety
    /// The slot holds a row of the table.
    pub unsafe fn key_value(&self, slot: *mut pg_sys::TupleTableSlot) -> Option<CString> {
        let (_, columns) = self.primary_key.as_ref()?;
        let key = match columns[..] {
            [column] => self.key.unwrap_or(column),
            _ => self.key?,
        };
        let value = get(slot, key).filter(|_| columns.contains(&key))?;
        let type_ = pg_sys::SPI_gettypeid((*slot).tts_tupleDescriptor, key.into());
        Some(as_text(type_, value).to_owned())
    }

    /// Returns the type of the key. A guard with notes or exceptions has a key.
    pub fn key_type(&self, table: &Relation) -> ColumnType {
        ColumnType::of(table.oid(), self.key.expect("the guard has a key"))
    }

    /// Returns the value that identifies a row in notes and exceptions. Returns None if it is NULL, or if the guard has
    /// no key.
    ///
    /// # Safety
    /// The slot holds a row of the table.
    pub unsafe fn key_of(&self, slot: *mut pg_sys::TupleTableSlot) -> Option<pg_sys::Datum> {
        get(slot, self.key?)
    }
}
