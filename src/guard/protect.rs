//! `near_dup_protect`: creates the trigger, and says at once what would be in its way.

use crate::guard::options::Options;
use crate::guard::table::{Rule, Table, indexes, root_of};
use crate::pg::arrays::names_in;
use crate::pg::call::Call;
use crate::pg::catalog::relation_name;
use crate::pg::error::{raise, tell};
use crate::pg::relation::Relation;
use pgrx::prelude::*;
use std::ffi::{CStr, CString};

/// Implements `near_dup_protect(relation, signature_column, threshold, scope, verify,
/// trigger_name)`, which creates a trigger `near_dup_guard` on a table, or on all partitions of
/// one.
///
/// # Errors
/// Those of CREATE TRIGGER, and those that the trigger would raise for every row: for columns that
/// are not there, of the wrong type, or without an index.
#[pg_extern(sql = false)]
fn near_dup_protect(fcinfo: pg_sys::FunctionCallInfo) {
    // SAFETY: the call is running; its arguments are of the declared types.
    unsafe {
        let call = Call::new(fcinfo);
        let relation = pg_sys::Oid::from(call.argument(0, "relation").value() as u32);
        let function = (*(*fcinfo).flinfo).fn_oid;
        let arguments = trigger_arguments(&call);
        create_trigger(&statement(&call, relation, &arguments));
        let table = Relation::open_table(relation);
        let arguments: Vec<&CStr> = arguments.iter().map(CString::as_c_str).collect();
        let rule = Rule::new(table.as_ptr(), Options::parse(&arguments), function);
        for table in rule.tables(root_of(table.as_ptr())) {
            report_order(&table, &rule);
        }
    }
}

/// Returns the arguments of the trigger.
///
/// # Safety
/// The call is one of `near_dup_protect`.
unsafe fn trigger_arguments(call: &Call) -> Vec<CString> {
    // SAFETY: the arguments are of the declared types; names are NUL-terminated.
    unsafe {
        let name = |datum: pg_sys::Datum| CStr::from_ptr(datum.cast_mut_ptr()).to_bytes();
        let threshold = f64::from_bits(call.argument(2, "threshold").value() as u64);
        let mut arguments = vec![
            name(call.argument(1, "signature_column")).to_vec(),
            threshold.to_string().into_bytes(),
        ];
        let scope = call.optional_argument(3).map(|array| names_in(array));
        if let Some(scope) = scope.filter(|scope| !scope.is_empty()) {
            let scope: Vec<&[u8]> = scope.iter().map(|name| name.to_bytes()).collect();
            arguments.push([&b"scope="[..], &scope.join(&b',')].concat());
        }
        if let Some(column) = call.optional_argument(4) {
            arguments.push([b"verify=", name(column)].concat());
        }
        let arguments = arguments.into_iter().map(CString::new);
        arguments.flatten().collect()
    }
}

/// Returns the statement that creates the trigger, in the encoding of the database.
///
/// # Safety
/// The call is one of `near_dup_protect`.
unsafe fn statement(call: &Call, relation: pg_sys::Oid, arguments: &[CString]) -> CString {
    // SAFETY: the arguments are of the declared types; all strings are NUL-terminated, and those
    // that the functions return new ones.
    unsafe {
        let table = pg_sys::get_rel_name(relation);
        if table.is_null() {
            raise(
                PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE,
                &format!("relation with OID {} does not exist", relation.to_u32()),
                "",
            );
        }
        let trigger = match call.optional_argument(5) {
            Some(name) => name.cast_mut_ptr(),
            None => pg_sys::makeObjectName(table, std::ptr::null(), c"guard".as_ptr()),
        };
        let qualified = |schema: pg_sys::Oid, name| {
            let schema = pg_sys::get_namespace_name(schema);
            CStr::from_ptr(pg_sys::quote_qualified_identifier(schema, name)).to_bytes()
        };
        let literal = |argument: &CString| {
            CStr::from_ptr(pg_sys::quote_literal_cstr(argument.as_ptr())).to_bytes()
        };
        let arguments: Vec<&[u8]> = arguments.iter().map(literal).collect();
        let parts = [
            b"CREATE TRIGGER ",
            CStr::from_ptr(pg_sys::quote_identifier(trigger)).to_bytes(),
            b" AFTER INSERT OR UPDATE ON ",
            qualified(pg_sys::get_rel_namespace(relation), table),
            b" FOR EACH ROW EXECUTE FUNCTION ",
            qualified(call.schema(), c"near_dup_guard".as_ptr()),
            b"(",
            &arguments.join(&b", "[..]),
            b")",
        ];
        CString::new(parts.concat()).expect("parts of a statement have no NUL")
    }
}

/// Runs the statement with the caller's rights.
fn create_trigger(statement: &CStr) {
    // SAFETY: after an ERROR the connection ends with the transaction.
    unsafe {
        pg_sys::SPI_connect();
        pg_sys::SPI_execute(statement.as_ptr(), false, 0);
        pg_sys::SPI_finish();
    }
}

/// Says which unique indexes a new row enters after it has entered the guard's: of two sessions that
/// insert near-duplicates with the same key then each can wait for the other.
///
/// # Errors
/// ERROR `object_not_in_prerequisite_state` if the table has no usable index.
fn report_order(table: &Table, rule: &Rule) {
    let index = table.index(rule).oid;
    let relation = Relation::open_table(table.oid);
    // SAFETY: the table is open.
    let order = unsafe { indexes(relation.as_ptr()) };
    for &later in order.iter().skip_while(|&&oid| oid != index).skip(1) {
        let opened = Relation::open_index(later);
        // SAFETY: the index is open.
        let is_unique = unsafe {
            let form = (*opened.as_ptr()).rd_index;
            (*form).indisunique || (*form).indisexclusion
        };
        if is_unique {
            let name = |oid| relation_name(oid).unwrap_or_default();
            tell(
                PgLogLevel::NOTICE,
                &format!(
                    "index {} is filled before unique index {}: sessions that insert near-duplicates with the same key at once may deadlock",
                    name(index),
                    name(later)
                ),
                &format!("REINDEX INDEX CONCURRENTLY {};", name(index)),
            );
        }
    }
}

pgrx::extension_sql_file!(
    "../../sql/guard/protect.sql",
    name = "guard_protect",
    requires = [near_dup_protect, "guard"]
);
