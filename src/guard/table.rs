//! The tables that a guard looks into, with their columns and indexes.

use crate::guard::options::Options;
use crate::index::kind::{Bound, Method, Objects};
use crate::pg::error::raise;
use crate::pg::relation::{Relation, column_type};
use crate::pg::value::copy_value;
use pgrx::{PgList, PgSqlErrorCode, pg_sys};
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
    /// The descriptor is valid, and has that column.
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

/// A table that is looked into: the guarded one, or a partition beside it.
pub struct Table {
    pub oid: pg_sys::Oid,
    pub columns: Columns,
    /// The index, and the column of it that holds the signature; None where the table has no
    /// usable one.
    pub index: Option<(pg_sys::Oid, i16)>,
}

/// Numbers of the columns that a guard reads.
pub struct Columns {
    pub signature: i16,
    pub document: Option<i16>,
    pub into: Option<i16>,
    pub scope: Vec<EqualColumn>,
    pub key: Vec<EqualColumn>,
    /// The index of the primary key.
    pub key_index: pg_sys::Oid,
}

impl Columns {
    /// # Errors
    /// ERROR `undefined_column`.
    ///
    /// # Safety
    /// The table is open.
    pub unsafe fn of(table: pg_sys::Relation, options: &Options) -> Self {
        // SAFETY: vouched for by the caller.
        unsafe {
            let number = |name: &CString| column_number(table, name);
            let scope = options.scope.iter().map(number);
            let key_index = primary_key(table);
            Self {
                signature: number(&options.column),
                document: options.verify.as_ref().map(number),
                into: options.into.as_ref().map(number),
                scope: scope
                    .map(|number| EqualColumn::new(table, number))
                    .collect(),
                key: key_columns(key_index)
                    .into_iter()
                    .map(|number| EqualColumn::new(table, number))
                    .collect(),
                key_index,
            }
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

/// Returns the root of the partitions that a table belongs to; itself if it is no partition.
///
/// # Safety
/// The table is open.
pub unsafe fn root_of(table: pg_sys::Relation) -> pg_sys::Oid {
    // SAFETY: vouched for by the caller; the function takes one regclass.
    unsafe {
        if !(*(*table).rd_rel).relispartition {
            return (*table).rd_id;
        }
        let function = pg_sys::Oid::from(pg_sys::F_PG_PARTITION_ROOT);
        let datum =
            pg_sys::OidFunctionCall1Coll(function, pg_sys::InvalidOid, (*table).rd_id.into());
        pg_sys::Oid::from(datum.value() as u32)
    }
}

/// Appends the tables with rows under a root.
pub fn tables_under(
    root: pg_sys::Oid,
    options: &Options,
    bound: &Bound,
    objects: &Objects,
    tables: &mut Vec<Table>,
) {
    let relation = Relation::open_table(root);
    if relation.kind() == pg_sys::RELKIND_PARTITIONED_TABLE {
        // SAFETY: the relation is open; the array has that many elements.
        let partitions = unsafe {
            let parts = pg_sys::RelationGetPartitionDesc(relation.as_ptr(), true);
            std::slice::from_raw_parts((*parts).oids, (*parts).nparts as usize).to_vec()
        };
        for partition in partitions {
            tables_under(partition, options, bound, objects, tables);
        }
    } else if relation.kind() == pg_sys::RELKIND_RELATION {
        // SAFETY: the relation is open.
        unsafe {
            let columns = Columns::of(relation.as_ptr(), options);
            tables.push(Table {
                oid: root,
                index: usable_index(relation.as_ptr(), columns.signature, bound, objects),
                columns,
            });
        }
    }
}

/// Returns an index of our operator class that finds everything within the bound.
///
/// # Errors
/// ERROR if the only one collects new rows in a pending list, which every lookup would scan.
///
/// # Safety
/// The table is open.
unsafe fn usable_index(
    table: pg_sys::Relation,
    signature: i16,
    bound: &Bound,
    objects: &Objects,
) -> Option<(pg_sys::Oid, i16)> {
    // SAFETY: vouched for by the caller.
    let indexes = unsafe { PgList::<pg_sys::Oid>::from_pg(pg_sys::RelationGetIndexList(table)) };
    let mut collecting = None;
    for oid in indexes.iter_oid() {
        let index = Relation::open_index(oid);
        // SAFETY: the index is open.
        unsafe {
            let Some((column, method)) = column_served(index.as_ptr(), signature, bound, objects)
            else {
                continue;
            };
            if method != Method::Gin || !collects(index.as_ptr()) {
                return Some((oid, column));
            }
            collecting = Some(oid);
        }
    }
    if let Some(oid) = collecting {
        // SAFETY: the index exists.
        let name = unsafe { CStr::from_ptr(pg_sys::get_rel_name(oid)) }.to_string_lossy();
        raise(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            &format!("near_dup_guard needs index \"{name}\" without a pending list"),
            &format!(
                "ALTER INDEX {name} SET (fastupdate = off); then VACUUM the table once to empty the list."
            ),
        );
    }
    None
}

/// # Safety
/// The index is open.
unsafe fn column_served(
    index: pg_sys::Relation,
    signature: i16,
    bound: &Bound,
    objects: &Objects,
) -> Option<(i16, Method)> {
    // SAFETY: vouched for by the caller.
    unsafe {
        let form = (*index).rd_index;
        let columns = (*form).indkey.values.as_slice((*form).indnatts as usize);
        let place = columns.iter().position(|&column| column == signature)?;
        let family = *(*index).rd_opfamily.add(place);
        let operator =
            pg_sys::get_opfamily_member(family, objects.value_type, objects.ball_type, 1);
        let partial = !pg_sys::RelationGetIndexPredicate(index).is_null();
        if operator == pg_sys::InvalidOid || partial || !(*form).indisvalid || !(*form).indisready {
            return None;
        }
        let options = *pg_sys::RelationGetIndexAttOptions(index, false).add(place);
        let method = bound.kind().method(family, objects.value_type)?;
        let is_served = bound.is_served(method, options, None);
        is_served.then_some((place as i16 + 1, method))
    }
}

/// Returns whether the index is GIN with `fastupdate`, its default.
///
/// # Safety
/// The index is open, and a GIN index.
unsafe fn collects(index: pg_sys::Relation) -> bool {
    /// The beginning of GIN's storage parameters.
    #[repr(C)]
    struct GinOptions {
        varlena_header: i32,
        fast_update: bool,
    }
    // SAFETY: vouched for by the caller; without parameters there are no options.
    unsafe {
        let options = (*index).rd_options.cast::<GinOptions>();
        options.is_null() || (*options).fast_update
    }
}

/// Raises the error of a table without a usable index.
pub fn no_index(table: pg_sys::Oid, options: &Options, bound: &Bound) -> ! {
    // SAFETY: the table exists; each call gives a new NUL-terminated string.
    let name = unsafe {
        let name = CStr::from_ptr(pg_sys::get_rel_name(table));
        CStr::from_ptr(pg_sys::quote_identifier(name.as_ptr())).to_string_lossy()
    };
    // SAFETY: as above.
    let column = unsafe { CStr::from_ptr(pg_sys::quote_identifier(options.column.as_ptr())) };
    raise(
        PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        &format!(
            "near_dup_guard needs an index on column {} of table {name}",
            column.to_string_lossy()
        ),
        &format!(
            "CREATE INDEX ON {name} USING gin ({} {}) WITH (fastupdate = off);",
            column.to_string_lossy(),
            bound.operator_class()
        ),
    )
}
