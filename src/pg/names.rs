//! Names and values as SQL writes them, in UTF-8 whatever the database's encoding.

use crate::pg::statement::{server_text, utf8};
use pgrx::pg_sys;
use std::ffi::CStr;

/// Returns a name as SQL writes it.
pub fn identifier(name: &str) -> String {
    let name = server_text(name);
    // SAFETY: returns the NUL-terminated string, or a new one.
    utf8(unsafe { CStr::from_ptr(pg_sys::quote_identifier(name.as_ptr())) })
}

/// Returns a text as SQL writes it.
pub fn literal(text: &str) -> String {
    let text = server_text(text);
    // SAFETY: returns a new NUL-terminated string.
    utf8(unsafe { CStr::from_ptr(pg_sys::quote_literal_cstr(text.as_ptr())) })
}

/// Returns the name of an object of a schema, with that of the schema.
pub fn qualified(schema: pg_sys::Oid, name: &str) -> String {
    // SAFETY: the schema exists, so its name is NUL-terminated.
    let schema = utf8(unsafe { CStr::from_ptr(pg_sys::get_namespace_name(schema)) });
    format!("{}.{}", identifier(&schema), identifier(name))
}

/// Returns the bare name of a relation that exists.
pub fn bare(relation: pg_sys::Oid) -> String {
    // SAFETY: the relation exists, so its name is NUL-terminated.
    utf8(unsafe { CStr::from_ptr(pg_sys::get_rel_name(relation)) })
}

/// Returns the name of a relation that exists, with that of its schema.
pub fn relation(relation: pg_sys::Oid) -> String {
    // SAFETY: looks the relation up in the catalog.
    let schema = unsafe { pg_sys::get_rel_namespace(relation) };
    qualified(schema, &bare(relation))
}

/// Returns the name of a type with its modifier, with that of its schema.
pub fn type_of(type_: pg_sys::Oid, modifier: i32) -> String {
    let flags = pg_sys::FORMAT_TYPE_TYPEMOD_GIVEN | pg_sys::FORMAT_TYPE_FORCE_QUALIFY;
    // SAFETY: returns a new NUL-terminated string for any type.
    utf8(unsafe {
        CStr::from_ptr(pg_sys::format_type_extended(
            type_,
            modifier,
            flags as pg_sys::bits16,
        ))
    })
}

/// Returns ` COLLATE` and the name of a collation; nothing for none.
pub fn collate(collation: pg_sys::Oid) -> String {
    if collation == pg_sys::InvalidOid {
        return String::new();
    }
    // SAFETY: returns a new NUL-terminated string.
    let name = utf8(unsafe { CStr::from_ptr(pg_sys::generate_collation_name(collation)) });
    format!(" COLLATE {name}")
}

/// Returns an operator with its schema, as an expression writes it.
pub fn operator(operator: pg_sys::Oid) -> String {
    // SAFETY: the operator exists, so its name is NUL-terminated.
    unsafe {
        let schema = pg_sys::GetSysCacheOid(
            pg_sys::SysCacheIdentifier::OPEROID as i32,
            pg_sys::Anum_pg_operator_oprnamespace as i16,
            operator.into(),
            pg_sys::Datum::null(),
            pg_sys::Datum::null(),
            pg_sys::Datum::null(),
        );
        let schema = utf8(CStr::from_ptr(pg_sys::get_namespace_name(schema)));
        let name = utf8(CStr::from_ptr(pg_sys::get_opname(operator)));
        format!("OPERATOR({}.{name})", identifier(&schema))
    }
}

/// Returns the operator that tells whether two values of a type are equal.
pub fn equality(type_: pg_sys::Oid) -> String {
    // SAFETY: cache entries are never freed; a column of a key has a type with equality.
    let found =
        unsafe { (*pg_sys::lookup_type_cache(type_, pg_sys::TYPECACHE_EQ_OPR as i32)).eq_opr };
    operator(found)
}

/// Returns a name for an object of a table: both names, shortened to fit.
pub fn derived(table: &str, suffix: &str) -> String {
    let (table, suffix) = (server_text(table), server_text(suffix));
    // SAFETY: returns a new NUL-terminated string.
    utf8(unsafe {
        let name = pg_sys::makeObjectName(table.as_ptr(), suffix.as_ptr(), std::ptr::null());
        CStr::from_ptr(name)
    })
}
