//! Names and values as written in SQL, in UTF-8 whatever the database's encoding.

use crate::pg::catalog::cached;
use crate::pg::encoding::utf8;
use crate::pg::error::{raise, unsupported};
use crate::pg::settings::Settings;
use crate::pg::statement::server_text;
use pgrx::{PgList, PgSqlErrorCode, pg_sys};
use std::ffi::{CStr, CString, c_char};

/// Returns the C string `text` in UTF-8, or None for NULL.
///
/// # Safety
/// `text` is NUL-terminated or NULL.
unsafe fn string(text: *const c_char) -> Option<String> {
    (!text.is_null()).then(|| utf8(CStr::from_ptr(text)))
}

/// Returns `name` as written in SQL, quoted if necessary.
pub fn identifier(name: &str) -> String {
    let name = server_text(name);
    // SAFETY: returns the NUL-terminated string, or a new one.
    utf8(unsafe { CStr::from_ptr(pg_sys::quote_identifier(name.as_ptr())) })
}

/// Splits a comma-separated list of names in SQL syntax. Returns the names in the server's encoding, or None if the
/// syntax is wrong.
#[allow(clippy::disallowed_methods, reason = "one entry per name")]
pub fn listed(list: &CStr) -> Option<Vec<CString>> {
    let mut found = std::ptr::null_mut();
    // SAFETY: the function ends the names in a new copy of the list.
    unsafe {
        let copy = pg_sys::pstrdup(list.as_ptr());
        let is_list = pg_sys::SplitIdentifierString(copy, b',' as c_char, &mut found);
        let names = PgList::<c_char>::from_pg(found);
        let owned = names.iter_ptr().map(|name| CStr::from_ptr(name).to_owned());
        is_list.then(|| owned.collect())
    }
}

/// Returns `text` as an SQL literal.
pub fn literal(text: &str) -> String {
    let text = server_text(text);
    // SAFETY: returns a new NUL-terminated string.
    utf8(unsafe { CStr::from_ptr(pg_sys::quote_literal_cstr(text.as_ptr())) })
}

/// Returns the qualified name of an object in `schema`.
///
/// # Errors
/// ERROR `invalid_schema_name` if there is no such schema.
pub fn qualified(schema: pg_sys::Oid, name: &str) -> String {
    format!("{}.{}", identifier(&schema_name(schema)), identifier(name))
}

fn schema_name(schema: pg_sys::Oid) -> String {
    // SAFETY: the name of a schema that does not exist is NULL.
    unsafe { string(pg_sys::get_namespace_name(schema)) }.unwrap_or_else(|| {
        let code = PgSqlErrorCode::ERRCODE_INVALID_SCHEMA_NAME;
        missing(code, "schema", schema)
    })
}

/// Returns the unquoted name of a relation, or None if there is no such relation.
pub fn find_bare(relation: pg_sys::Oid) -> Option<String> {
    // SAFETY: the name of a relation that does not exist is NULL.
    unsafe { string(pg_sys::get_rel_name(relation)) }
}

/// Returns the unquoted name of a relation.
///
/// # Errors
/// ERROR `undefined_table` if there is no such relation.
pub fn bare(relation: pg_sys::Oid) -> String {
    find_bare(relation).unwrap_or_else(|| undefined_relation(relation))
}

/// Returns the qualified name of a relation.
///
/// # Errors
/// ERROR `undefined_table` if there is no such relation.
pub fn relation(relation: pg_sys::Oid) -> String {
    find_relation(relation).unwrap_or_else(|| undefined_relation(relation))
}

/// Returns the qualified name of a relation, or None if there is no such relation.
pub fn find_relation(relation: pg_sys::Oid) -> Option<String> {
    let name = find_bare(relation)?;
    // SAFETY: looks the relation up in the catalog.
    let schema = unsafe { pg_sys::get_rel_namespace(relation) };
    Some(qualified(schema, &name))
}

/// Returns the role that owns a relation, or None if there is no such relation.
pub fn owner(relation: pg_sys::Oid) -> Option<pg_sys::Oid> {
    let cache = pg_sys::SysCacheIdentifier::RELOID;
    // SAFETY: the column of the cache is an OID.
    unsafe { cached(cache, pg_sys::Anum_pg_class_relowner, [relation.into()]) }
}

/// Returns the unquoted name of a column of an open relation.
pub fn of_column(column: &pg_sys::FormData_pg_attribute) -> String {
    // SAFETY: the name is NUL-terminated.
    utf8(unsafe { CStr::from_ptr(column.attname.data.as_ptr()) })
}

/// Returns the unquoted name of a column, or None if the relation has no such column.
pub fn column(relation: pg_sys::Oid, number: i16) -> Option<String> {
    // SAFETY: the name of a column that does not exist is NULL.
    unsafe { string(pg_sys::get_attname(relation, number, true)) }
}

/// Returns the number of the column `name`, whose values triggers can read.
///
/// # Errors
/// ERROR `undefined_column` if there is no such column, `feature_not_supported` for a virtual generated column.
pub fn column_number(table: pg_sys::Oid, name: &CStr) -> i16 {
    // SAFETY: the name is NUL-terminated; the number of a column that does not exist is 0.
    let number = unsafe { pg_sys::get_attnum(table, name.as_ptr()) };
    if number <= 0 {
        let (relation, column) = (relation(table), identifier(&utf8(name)));
        raise(
            PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN,
            &format!("table {relation} has no column {column}"),
            "Name columns of the table.",
        );
    }
    check_stored(table, number);
    number
}

/// Checks that triggers can read column `number` of `table`.
///
/// # Errors
/// ERROR `feature_not_supported` for a virtual generated column.
pub fn check_stored(table: pg_sys::Oid, number: i16) {
    /// In `pg_attribute.attgenerated`, since PostgreSQL 18.
    const VIRTUAL: u8 = b'v';
    // SAFETY: the column exists.
    if unsafe { pg_sys::get_attgenerated(table, number) } as u8 == VIRTUAL {
        let (relation, column) = (relation(table), column(table, number).unwrap_or_default());
        let column = identifier(&column);
        unsupported(
            &format!("triggers cannot read virtual generated column {column} of table {relation}"),
            "Use columns that are stored.",
        );
    }
}

/// Returns the name of a type.
pub fn type_(type_: pg_sys::Oid) -> String {
    format_type(type_, -1, 0)
}

/// Returns the qualified name of a type with its modifier.
pub fn type_of(type_: pg_sys::Oid, modifier: i32) -> String {
    let flags = pg_sys::FORMAT_TYPE_TYPEMOD_GIVEN | pg_sys::FORMAT_TYPE_FORCE_QUALIFY;
    format_type(type_, modifier, flags)
}

fn format_type(type_: pg_sys::Oid, modifier: i32, flags: u32) -> String {
    let flags = (flags | pg_sys::FORMAT_TYPE_ALLOW_INVALID) as u16;
    // SAFETY: returns a new NUL-terminated string for any OID.
    utf8(unsafe { CStr::from_ptr(pg_sys::format_type_extended(type_, modifier, flags)) })
}

/// Returns ` COLLATE` and the qualified name of a collation, or an empty string if there is none.
pub fn collate(collation: pg_sys::Oid) -> String {
    // SAFETY: the name of a collation that does not exist is NULL.
    let Some(name) = (unsafe { string(pg_sys::get_collation_name(collation)) }) else {
        return String::new();
    };
    let cache = pg_sys::SysCacheIdentifier::COLLOID;
    let column = pg_sys::Anum_pg_collation_collnamespace;
    // SAFETY: the column of the cache is an OID.
    let schema = unsafe { cached(cache, column, [collation.into()]) }.unwrap_or_default();
    format!(" COLLATE {}", qualified(schema, &name))
}

/// Returns an operator with its schema, as written in expressions: `OPERATOR(schema.name)`.
///
/// # Errors
/// ERROR `undefined_function` if there is no such operator.
pub fn operator(operator: pg_sys::Oid) -> String {
    // SAFETY: the name of an operator that does not exist is NULL.
    unsafe {
        let name = string(pg_sys::get_opname(operator)).unwrap_or_else(|| {
            let code = PgSqlErrorCode::ERRCODE_UNDEFINED_FUNCTION;
            missing(code, "operator", operator)
        });
        let cache = pg_sys::SysCacheIdentifier::OPEROID;
        let column = pg_sys::Anum_pg_operator_oprnamespace;
        let schema = cached(cache, column, [operator.into()]).unwrap_or_default();
        format!("OPERATOR({}.{name})", identifier(&schema_name(schema)))
    }
}

/// Returns the equality operator of a type as [`operator`] does, or None if it has none.
pub fn equality(type_: pg_sys::Oid) -> Option<String> {
    // SAFETY: cache entries are never freed.
    let found =
        unsafe { (*pg_sys::lookup_type_cache(type_, pg_sys::TYPECACHE_EQ_OPR as i32)).eq_opr };
    (found != pg_sys::InvalidOid).then(|| operator(found))
}

/// Deparses an expression over a row of `table`. Columns have the prefix `alias` if `is_prefixed`. The text means the
/// same under every `search_path`.
///
/// # Safety
/// The expression refers to that table only.
pub unsafe fn expression(
    expression: *mut pg_sys::Node,
    table: pg_sys::Oid,
    alias: &CStr,
    is_prefixed: bool,
) -> String {
    let context = pg_sys::deparse_context_for(alias.as_ptr(), table);
    let settings = Settings::begin();
    if (*expression).type_ != pg_sys::NodeTag::T_Var {
        settings.set(c"search_path", c"pg_catalog");
    }
    let text = pg_sys::deparse_expression(expression, context, is_prefixed, false);
    settings.restore();
    utf8(CStr::from_ptr(text))
}

/// Returns a name for an object of a table: `table` and `suffix`, shortened to fit.
pub fn derived(table: &str, suffix: &str) -> String {
    let (table, suffix) = (server_text(table), server_text(suffix));
    // SAFETY: returns a new NUL-terminated string.
    utf8(unsafe {
        let name = pg_sys::makeObjectName(table.as_ptr(), suffix.as_ptr(), std::ptr::null());
        CStr::from_ptr(name)
    })
}

/// Raises ERROR `undefined_table` for a relation that does not exist.
pub fn undefined_relation(relation: pg_sys::Oid) -> ! {
    let code = PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE;
    missing(code, "relation", relation)
}

fn missing(code: PgSqlErrorCode, kind: &str, object: pg_sys::Oid) -> ! {
    let message = format!("{kind} with OID {} does not exist", object.to_u32());
    raise(code, &message, "")
}
