//! Finds the extension's own objects in the schema of one of its functions, wherever that is. Reads the catalog caches,
//! so that neither search_path nor privileges on the schema matter while a query is planned.

use pgrx::pg_sys;
use std::ffi::CStr;

/// Returns support function `number` of the operator family `family` for values of `column_type`, or None if there is
/// none.
pub fn support_function(
    family: pg_sys::Oid,
    column_type: pg_sys::Oid,
    number: i16,
) -> Option<pg_sys::Oid> {
    let column = column_type.into();
    let keys = [family.into(), column, column, number.into()];
    let cache = pg_sys::SysCacheIdentifier::AMPROCNUM;
    // SAFETY: the cache has keys of these types.
    unsafe { cached(cache, pg_sys::Anum_pg_amproc_amproc, keys) }
}

/// Returns the function `name` with argument `types` in the schema of `function`, or None if there is none.
pub fn function_beside(
    function: pg_sys::Oid,
    name: &CStr,
    types: &[pg_sys::Oid],
) -> Option<pg_sys::Oid> {
    let cache = pg_sys::SysCacheIdentifier::PROCNAMEARGSNSP;
    // SAFETY: the cache has keys of these types.
    unsafe {
        let types = pg_sys::buildoidvector(types.as_ptr(), types.len() as i32).into();
        let schema = pg_sys::get_func_namespace(function).into();
        let keys = [name.as_ptr().into(), types, schema];
        cached(cache, pg_sys::Anum_pg_proc_oid, keys)
    }
}

/// Returns the operator `name` with these operand types in the schema of `function`, or None if there is none.
pub fn operator_beside(
    function: pg_sys::Oid,
    name: &CStr,
    [left, right]: [pg_sys::Oid; 2],
) -> Option<pg_sys::Oid> {
    let cache = pg_sys::SysCacheIdentifier::OPERNAMENSP;
    // SAFETY: the cache has keys of these types.
    unsafe {
        let schema = pg_sys::get_func_namespace(function).into();
        let keys = [name.as_ptr().into(), left.into(), right.into(), schema];
        cached(cache, pg_sys::Anum_pg_operator_oid, keys)
    }
}

/// Returns the type `name` in `schema`, or InvalidOid, which no value has, if there is none.
pub fn type_named(schema: pg_sys::Oid, name: &CStr) -> pg_sys::Oid {
    let keys = [name.as_ptr().into(), schema.into()];
    let cache = pg_sys::SysCacheIdentifier::TYPENAMENSP;
    // SAFETY: the cache has keys of these types.
    unsafe { cached(cache, pg_sys::Anum_pg_type_oid, keys) }.unwrap_or(pg_sys::InvalidOid)
}

/// Returns whether values of a type are stored like text: `text`, `varchar` and `char(n)`, but not domains over them.
pub fn is_text(type_: pg_sys::Oid) -> bool {
    matches!(
        type_,
        pg_sys::TEXTOID | pg_sys::VARCHAROID | pg_sys::BPCHAROID
    )
}

/// A function of this library, with the signature that PostgreSQL calls.
pub type CFunction = unsafe extern "C-unwind" fn(pg_sys::FunctionCallInfo) -> pg_sys::Datum;

/// Returns whether `function` is `wrapper`, whatever its name and schema.
pub fn is_function(function: pg_sys::Oid, wrapper: CFunction) -> bool {
    is_at(&address_of(function), wrapper)
}

/// Returns the address of a function, or None if PostgreSQL does not call it by address.
pub fn address_of(function: pg_sys::Oid) -> pg_sys::PGFunction {
    let mut info = pg_sys::FmgrInfo::default();
    // SAFETY: raises an ERROR if there is no such function.
    unsafe { pg_sys::fmgr_info(function, &mut info) };
    info.fn_addr
}

/// Returns whether `address` is the address of `wrapper`.
pub fn is_at(address: &pg_sys::PGFunction, wrapper: CFunction) -> bool {
    address.is_some_and(|address| std::ptr::fn_addr_eq(address, wrapper))
}

/// Returns whether `function` has this `name` and is `wrapper`. Compares the name first, since looking up the address
/// loads the function's library.
pub fn is_named_function(function: pg_sys::Oid, name: &CStr, wrapper: CFunction) -> bool {
    // SAFETY: looks a function up in the catalog; its name is NUL-terminated.
    let is_named = unsafe {
        let found = pg_sys::get_func_name(function);
        !found.is_null() && CStr::from_ptr(found) == name
    };
    is_named && is_function(function, wrapper)
}

/// Returns a column of type oid from the row with `keys` in a catalog cache, or None if there is no such row.
///
/// # Safety
/// The cache has that column, and its keys are of these types.
pub unsafe fn cached<const N: usize>(
    cache: pg_sys::SysCacheIdentifier::Type,
    column: u32,
    keys: [pg_sys::Datum; N],
) -> Option<pg_sys::Oid> {
    let key = |number| keys.get(number).copied().unwrap_or(pg_sys::Datum::null());
    let (cache, column) = (cache as i32, column as i16);
    let found = pg_sys::GetSysCacheOid(cache, column, key(0), key(1), key(2), key(3));
    (found != pg_sys::InvalidOid).then_some(found)
}

/// Makes `object` depend on `other`, so that dropping `other` drops `object`. Each is a catalog and an OID.
pub fn depend(object: (pg_sys::Oid, pg_sys::Oid), other: (pg_sys::Oid, pg_sys::Oid)) {
    let address = |(class, object)| pg_sys::ObjectAddress {
        classId: class,
        objectId: object,
        objectSubId: 0,
    };
    let behavior = pg_sys::DependencyType::DEPENDENCY_AUTO;
    // SAFETY: the objects exist. A dependency that is already recorded is replaced.
    unsafe {
        pg_sys::deleteDependencyRecordsForSpecific(
            object.0,
            object.1,
            behavior as std::ffi::c_char,
            other.0,
            other.1,
        );
        pg_sys::recordDependencyOn(&address(object), &address(other), behavior);
    }
}
