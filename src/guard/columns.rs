//! The columns of a table that a guard reads: numbers differ from partition to partition, and so may
//! the keys.

use crate::guard::options::{Action, Options};
use crate::index::kind::Kind;
use crate::pg::catalog::{is_text, quoted_identifier, relation_name};
use crate::pg::error::raise;
use crate::pg::relation::{Relation, column_type};
use crate::pg::value::copy_value;
use pgrx::{PgSqlErrorCode, pg_sys};
use std::ffi::{CStr, CString};

/// A column that decides whether two rows count as one: equal, or both NULL.
#[derive(Debug, Clone, Copy)]
pub struct EqualColumn {
    pub number: i16,
    equality: *mut pg_sys::TypeCacheEntry,
    collation: pg_sys::Oid,
}

impl EqualColumn {
    /// # Safety
    /// The table is open, and has that column.
    unsafe fn new(table: pg_sys::Relation, number: i16) -> Self {
        // SAFETY: vouched for by the caller; cache entries are never freed.
        unsafe {
            let (column_type, collation) = column_type(table, number);
            let wanted = pg_sys::TYPECACHE_EQ_OPR_FINFO as i32;
            let equality = pg_sys::lookup_type_cache(column_type, wanted);
            if (*equality).eq_opr_finfo.fn_oid == pg_sys::InvalidOid {
                raise(
                    PgSqlErrorCode::ERRCODE_UNDEFINED_FUNCTION,
                    "near_dup_guard cannot compare a scope column whose type has no equality",
                    "Use columns of types with a default B-tree or hash operator class.",
                );
            }
            Self {
                number,
                equality,
                collation,
            }
        }
    }

    /// Returns a copy in the current memory context.
    ///
    /// # Safety
    /// The value is of the column's type.
    pub unsafe fn copy(&self, value: pg_sys::Datum) -> pg_sys::Datum {
        // SAFETY: vouched for by the caller; cache entries are never freed.
        unsafe { copy_value(value, (*self.equality).typbyval, (*self.equality).typlen) }
    }

    /// # Safety
    /// Both values are of the column's type.
    pub unsafe fn same(&self, a: Option<pg_sys::Datum>, b: Option<pg_sys::Datum>) -> bool {
        match (a, b) {
            // SAFETY: vouched for by the caller.
            (Some(a), Some(b)) => unsafe {
                let function = &mut (*self.equality).eq_opr_finfo;
                pg_sys::FunctionCall2Coll(function, self.collation, a, b).value() != 0
            },
            (None, None) => true,
            _ => false,
        }
    }
}

/// The primary key of a table.
pub struct Key {
    pub columns: Vec<EqualColumn>,
    pub index: pg_sys::Oid,
    /// Whether it is that of the root of the partitions, so that its values are unique among the rows
    /// of all.
    pub is_of_root: bool,
}

/// The columns that a guard reads.
pub struct Columns {
    pub signature: i16,
    pub document: Option<i16>,
    pub into: Option<i16>,
    pub scope: Vec<EqualColumn>,
    /// None for a table without a primary key.
    pub key: Option<Key>,
}

/// The names of the columns of the root's primary key; none if it has no key.
pub struct RootKey(Vec<CString>);

impl RootKey {
    /// # Safety
    /// The root is open.
    pub unsafe fn of(root: pg_sys::Relation) -> Self {
        // SAFETY: vouched for by the caller.
        unsafe { Self(key_names(root, &key_columns(primary_key(root)))) }
    }
}

impl Columns {
    /// # Errors
    /// ERROR `undefined_column`, and `feature_not_supported` for a generated column: its value is
    /// computed after the trigger.
    ///
    /// # Safety
    /// The table is open.
    pub unsafe fn of(table: pg_sys::Relation, options: &Options, root_key: &RootKey) -> Self {
        // SAFETY: vouched for by the caller.
        unsafe {
            let read = |name: &CString, option: &str| {
                let number = column_number(table, name);
                refuse_generated(table, number, option);
                number
            };
            let scope = options.scope.iter().map(|name| read(name, "scope="));
            Self {
                signature: column_number(table, &options.column),
                document: options.verify.as_ref().map(|name| read(name, "verify=")),
                into: options.into.as_ref().map(|name| read(name, "into=")),
                scope: scope
                    .map(|number| EqualColumn::new(table, number))
                    .collect(),
                key: Key::of(table, root_key),
            }
        }
    }

    /// # Errors
    /// ERROR `datatype_mismatch` for columns that do not fit the options.
    ///
    /// # Safety
    /// The table is open, and has these columns.
    pub unsafe fn check_types(&self, table: pg_sys::Relation, options: &Options, kind: Kind) {
        let mismatch = |message: &str, hint: &str| {
            raise(PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH, message, hint);
        };
        // SAFETY: vouched for by the caller.
        unsafe {
            if options.action == Action::Mark {
                let of = |number| column_type(table, number).0;
                let keys = self.key.iter().flat_map(|key| &key.columns);
                if !keys.map(|key| of(key.number)).eq(self.into.map(of)) {
                    mismatch(
                        "near_dup_guard: the column for the mark does not fit the primary key",
                        "'mark' needs a primary key of one column, in each partition too, and a column of the same type for into=.",
                    );
                }
            }
            if let Some(document) = self.document {
                let document_type = pg_sys::getBaseType(column_type(table, document).0);
                if !is_text(document_type) || kind != Kind::Minhash {
                    mismatch(
                        "near_dup_guard cannot verify by that column",
                        "verify= names a column of type text, beside a column of type minhash_signature.",
                    );
                }
            }
        }
    }
}

impl Key {
    /// # Safety
    /// The table is open.
    unsafe fn of(table: pg_sys::Relation, root_key: &RootKey) -> Option<Self> {
        // SAFETY: vouched for by the caller.
        unsafe {
            let index = primary_key(table);
            let numbers = key_columns(index);
            if numbers.is_empty() {
                return None;
            }
            for &number in &numbers {
                refuse_generated(table, number, "the primary key");
            }
            Some(Self {
                is_of_root: key_names(table, &numbers) == root_key.0,
                columns: numbers
                    .into_iter()
                    .map(|number| EqualColumn::new(table, number))
                    .collect(),
                index,
            })
        }
    }
}

/// # Safety
/// The table is open.
unsafe fn column_number(table: pg_sys::Relation, name: &CStr) -> i16 {
    // SAFETY: vouched for by the caller.
    let number = unsafe { pg_sys::get_attnum((*table).rd_id, name.as_ptr()) };
    if number <= 0 {
        raise(
            PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN,
            &format!(
                "near_dup_guard: there is no column {}",
                neardup::quoted(&name.to_string_lossy())
            ),
            "Name a column of the table in the arguments of the trigger.",
        );
    }
    number
}

/// # Safety
/// The table is open, and has that column.
unsafe fn refuse_generated(table: pg_sys::Relation, number: i16, read_for: &str) {
    // SAFETY: vouched for by the caller; the name of a column is NUL-terminated.
    unsafe {
        let table = (*table).rd_id;
        if pg_sys::get_attgenerated(table, number) == 0 {
            return;
        }
        let column = CStr::from_ptr(pg_sys::get_attname(table, number, false));
        raise(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            &format!(
                "near_dup_guard cannot use generated column {} of table {} for {read_for}",
                quoted_identifier(column),
                relation_name(table).unwrap_or_default()
            ),
            "Its value is computed after the trigger; use columns that are not generated.",
        );
    }
}

/// # Safety
/// The table is open.
unsafe fn primary_key(table: pg_sys::Relation) -> pg_sys::Oid {
    // SAFETY: vouched for by the caller; listing the indexes fills in the primary key's.
    unsafe {
        pg_sys::list_free(pg_sys::RelationGetIndexList(table));
        (*table).rd_pkindex
    }
}

fn key_columns(index: pg_sys::Oid) -> Vec<i16> {
    if index == pg_sys::InvalidOid {
        return Vec::new();
    }
    let index = Relation::open_index(index);
    // SAFETY: the index is open; a primary key has no expressions.
    unsafe {
        let form = (*index.as_ptr()).rd_index;
        let numbers = (*form).indkey.values.as_slice((*form).indnatts as usize);
        numbers[..(*form).indnkeyatts as usize].to_vec()
    }
}

/// # Safety
/// The table is open, and has these columns.
unsafe fn key_names(table: pg_sys::Relation, numbers: &[i16]) -> Vec<CString> {
    // SAFETY: vouched for by the caller; names are NUL-terminated.
    let name = |&number: &i16| unsafe {
        CStr::from_ptr(pg_sys::get_attname((*table).rd_id, number, false)).to_owned()
    };
    numbers.iter().map(name).collect()
}
