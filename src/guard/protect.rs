//! `near_dup_protect`: creates the trigger, and reports at once everything that would make it fail.

use crate::guard::options::GuardOptions;
use crate::guard::table::{Rule, SearchedTable, indexes, root_of};
use crate::pg::arrays::names_in;
use crate::pg::call::Call;
use crate::pg::condition;
use crate::pg::error::tell;
use crate::pg::names;
use crate::pg::relation::Relation;
use crate::pg::statement::{Connection, server_text, utf8};
use pgrx::prelude::*;
use std::ffi::CString;

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
        let table = Relation::open_table(relation);
        let mut rule = Rule::new(table.as_ptr(), options(&arguments), function);
        create_trigger(&call, relation, &arguments, &mut rule.options);
        for table in rule.tables(root_of(table.as_ptr())) {
            report_order(&table, &rule);
        }
    }
}

/// Returns the arguments of the trigger.
///
/// # Safety
/// The call is one of `near_dup_protect`.
unsafe fn trigger_arguments(call: &Call) -> Vec<String> {
    // SAFETY: the arguments are of the declared types.
    unsafe {
        let threshold = f64::from_bits(call.argument(2, "threshold").value() as u64);
        let mut arguments = vec![
            names::name(call.argument(1, "signature_column")),
            threshold.to_string(),
        ];
        let scope = call.optional_argument(3).map(|array| names_in(array));
        if let Some(scope) = scope.filter(|scope| !scope.is_empty()) {
            let scope: Vec<String> = scope.iter().map(|name| utf8(name)).collect();
            arguments.push(format!("scope={}", scope.join(",")));
        }
        if let Some(column) = call.optional_argument(4) {
            arguments.push(format!("verify={}", names::name(column)));
        }
        arguments
    }
}

fn options(arguments: &[String]) -> GuardOptions {
    let arguments: Vec<CString> = arguments.iter().map(|text| server_text(text)).collect();
    GuardOptions::parse(&arguments.iter().map(CString::as_c_str).collect::<Vec<_>>())
}

/// Creates the trigger with the caller's rights. Its condition keeps the columns, whose names may
/// change.
///
/// # Safety
/// The call is one of `near_dup_protect`.
unsafe fn create_trigger(
    call: &Call,
    relation: pg_sys::Oid,
    arguments: &[String],
    options: &mut GuardOptions,
) {
    // SAFETY: the argument is a name.
    let trigger = call
        .optional_argument(5)
        .map(|name| unsafe { names::name(name) });
    let trigger = trigger.unwrap_or_else(|| names::derived(&names::bare(relation), "guard"));
    let columns = options.columns_mut();
    let columns = columns.map(|name| format!("NEW.{}", names::identifier(&utf8(name))));
    let arguments = arguments.iter().map(|argument| names::literal(argument));
    let connection = Connection::open();
    connection.execute(&format!(
        "CREATE TRIGGER {} AFTER INSERT OR UPDATE ON {} FOR EACH ROW WHEN {} EXECUTE FUNCTION {}({})",
        names::identifier(&trigger),
        names::relation(relation),
        condition::keeping(&columns.collect::<Vec<_>>()),
        names::qualified(call.schema(), "near_dup_guard"),
        arguments.collect::<Vec<_>>().join(", ")
    ));
    connection.close();
}

/// Says which unique indexes a new row enters after it has entered the guard's: of two sessions that
/// insert near-duplicates with the same key then each can wait for the other.
///
/// # Errors
/// ERROR `object_not_in_prerequisite_state` if the table has no usable index.
fn report_order(table: &SearchedTable, rule: &Rule) {
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
            let (first, later) = (names::relation(index), names::relation(later));
            tell(
                PgLogLevel::NOTICE,
                &format!(
                    "index {first} is filled before unique index {later}: sessions that insert near-duplicates with the same key at once may deadlock"
                ),
                &format!("REINDEX INDEX CONCURRENTLY {first};"),
            );
        }
    }
}

pgrx::extension_sql_file!(
    "../../sql/guard/protect.sql",
    name = "guard_protect",
    requires = [near_dup_protect, "guard"]
);
