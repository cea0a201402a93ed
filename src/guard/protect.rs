//! `near_dup_protect`: creates the triggers, and reports at once everything that would make them fail.

use crate::guard::columns::{GuardColumns, only_key_column};
use crate::guard::exceptions::{Exceptions, REMOVING};
use crate::guard::notes_table;
use crate::guard::options::{GuardOptions, Notes};
use crate::guard::row_condition::RowCondition;
use crate::guard::table::{Rule, root_of};
use crate::guard::window::{DAY, Span, microseconds};
use crate::options::cut_arguments;
use crate::pg::arrays::names_in;
use crate::pg::call::Call;
use crate::pg::condition;
use crate::pg::encoding::{in_utf8, utf8};
use crate::pg::error::invalid;
use crate::pg::names;
use crate::pg::relation::Relation;
use crate::pg::rights::check_owner;
use crate::pg::statement::{Connection, server_text};
use crate::pg::text::Text;
use crate::pg::varlena::Varlena;
use neardup::quoted;
use pgrx::prelude::*;
use std::ffi::CString;

/// Implements `near_dup_protect(relation, column_name, threshold, scope, trigger_name, within, by, k, unit, fold,
/// action, notes, most, key, condition, exceptions)`, which creates the triggers `near_dup_guard` on a table or on all
/// partitions of a table.
///
/// # Errors
/// The errors of CREATE TRIGGER, `object_not_in_prerequisite_state` for notes of a table without a key, and the errors
/// that the trigger would raise for every row.
#[pg_extern(sql = false)]
fn near_dup_protect(fcinfo: pg_sys::FunctionCallInfo) {
    // SAFETY: the call is running; its arguments are of the declared types.
    unsafe {
        let call = Call::new(fcinfo);
        let relation = call.oid(0, "relation");
        let table = Relation::open_table(relation);
        let exceptions = call.optional_argument(15);
        let exceptions = exceptions.map(|table| pg_sys::Oid::from(table.value() as u32));
        let mut arguments = trigger_arguments(&call, &table);
        let condition = call.optional_argument(14);
        let condition = condition.map(|text| in_utf8(&Varlena::detoast(text)));
        let condition = condition.map(|text| RowCondition::over_new(&table, &text));
        let mut rule = Rule::new(&table, options(&arguments), call.function());
        let columns = GuardColumns::of(&table, &rule.options);
        if let Some(exceptions) = exceptions {
            Exceptions::open(exceptions, &table, &columns);
        }
        rule.options.exceptions = exceptions;
        if let Some((notes, key)) = rule.options.notes.as_mut().zip(columns.key) {
            check_owner(relation);
            let name = call.optional_argument(11).map(|name| names::name(name));
            let name = name.unwrap_or_else(|| names::derived(&names::bare(relation), "near_dups"));
            notes.table = notes_table::create(&table, &name, key);
        }
        drop(table);
        arguments
            .iter_mut()
            .for_each(|argument| *argument = names::literal(argument));
        let arguments = arguments.join(", ");
        let trigger = create_triggers(&call, relation, &arguments, condition, &mut rule.options);
        let table = Relation::open_table(relation);
        let triggers = table.triggers().iter().find(|own| own.tgoid == trigger);
        rule.options = GuardOptions::from_trigger(triggers.expect("it has been created"), &table);
        rule.tables(root_of(relation), Span::ALWAYS, "near_dup_guard", 0);
    }
}

/// Returns the arguments of the trigger.
///
/// # Safety
/// The call is one of `near_dup_protect`.
unsafe fn trigger_arguments(call: &Call, table: &Relation) -> Vec<String> {
    // The arguments are of the declared types.
    let name = |number| call.optional_argument(number).map(|name| names::name(name));
    let threshold = f64::from_bits(call.argument(2, "threshold").value() as u64);
    let column = names::name(call.argument(1, "column_name"));
    let scope = call.optional_argument(3).map(|array| names_in(array));
    let scope = scope.unwrap_or_default().into_iter();
    let scope = scope
        .map(|name| names::identifier(&name))
        .collect::<Vec<_>>()
        .join(",");
    let by = call.optional_argument(6).map(|by| microseconds(by));
    // Independent of IntervalStyle.
    let by = by.map(|by| {
        let seconds = (by % DAY) as f64 / 1e6;
        format!("{} days {seconds} seconds", by / DAY)
    });
    let most = requested_notes(call).map(|notes| notes.most.to_string());
    let has_exceptions = call.optional_argument(15).is_some();
    let key_of_table = || names::column(table.oid(), only_key_column(table));
    let needs_key = most.is_some() || has_exceptions;
    let key = name(13).or_else(|| needs_key.then(key_of_table).flatten());
    let named = [
        ("scope", Some(scope).filter(|scope| !scope.is_empty())),
        ("within", name(5)),
        ("by", by),
        ("key", key),
        ("most", most),
    ];
    let named = named
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    let named = named.chain(cut_arguments(call, 7));
    let mut arguments = vec![column, threshold.to_string()];
    arguments.extend(named.map(|(name, value)| format!("{name}={value}")));
    arguments.extend(has_exceptions.then(|| "exceptions".to_owned()));
    arguments
}

const ACTIONS: &str =
    "Valid actions are reject and note; notes names the table that action => 'note' makes.";

/// Returns the notes that a call asks for, without their table, or None if it asks for rejections.
///
/// # Errors
/// ERROR `invalid_parameter_value` for an unknown action, and for notes of a guard that rejects.
///
/// # Safety
/// The call is one of `near_dup_protect`.
unsafe fn requested_notes(call: &Call) -> Option<Notes> {
    // The arguments are of the declared types.
    let action = Text::from_raw(call.argument(10, "action"));
    let action = action.name();
    let most = call.argument(12, "most").value() as i32;
    let has_notes = call.optional_argument(11).is_some();
    match &*action {
        "note" => Some(Notes::none_yet(most)),
        "reject" if has_notes => invalid("a guard that rejects rows has no notes", ACTIONS),
        "reject" => None,
        _ => invalid(&format!("unknown action {}", quoted(&action)), ACTIONS),
    }
}

fn options(arguments: &[String]) -> GuardOptions {
    let arguments: Vec<CString> = arguments.iter().map(|text| server_text(text)).collect();
    GuardOptions::parse(&arguments.iter().map(CString::as_c_str).collect::<Vec<_>>())
}

/// Creates the trigger that checks rows, with the caller's rights, and returns it. Its condition contains the columns,
/// the condition for rows and the table of notes, so that it follows renames. Also creates the triggers that help it:
/// one announces before an INSERT that the transaction will pass; with notes, others remove notes of rows that are
/// deleted or excepted.
///
/// # Safety
/// The call is one of `near_dup_protect`.
unsafe fn create_triggers(
    call: &Call,
    relation: pg_sys::Oid,
    arguments: &str,
    condition: Option<String>,
    options: &mut GuardOptions,
) -> pg_sys::Oid {
    let main = call.optional_argument(4);
    // The argument is a name.
    let main = main.map(|name| names::name(name));
    let main = main.unwrap_or_else(|| names::derived(&names::bare(relation), "guard"));
    let columns = options.columns_mut();
    let columns = columns.map(|name| format!("NEW.{}", names::identifier(&utf8(name))));
    let kept = condition::keeping(&columns.chain(condition).collect::<Vec<_>>());
    let notes = options.notes.map(|notes| notes.table);
    let tables: Vec<_> = notes.into_iter().chain(options.exceptions).collect();
    let named = match tables.is_empty() {
        true => String::new(),
        false => condition::naming(&tables) + " AND ",
    };
    let table = names::relation(relation);
    let function = names::qualified(call.schema(), "near_dup_guard");
    let connection = Connection::open();
    let create = |create: &str, name: &str, event: &str, arguments: &str| {
        let name = names::identifier(name);
        connection.execute(&format!(
            "{create} TRIGGER {name} {event} EXECUTE FUNCTION {function}({arguments})"
        ));
    };
    let help = |suffix: &str, event: &str, arguments: &str| {
        let name = names::derived(&main, suffix);
        create("CREATE OR REPLACE", &name, event, arguments);
    };
    let after = |events: &str, table: &str, unit: &str, condition: &str| {
        format!("AFTER {events} ON {table} FOR EACH {unit} WHEN ({condition})")
    };
    let event = after("INSERT OR UPDATE", &table, "ROW", &format!("{named}{kept}"));
    create("CREATE", &main, &event, arguments);
    if let Some(notes) = notes {
        let named = condition::naming(&[notes]);
        help("delete", &after("DELETE", &table, "ROW", &named), arguments);
        help(
            "truncate",
            &after("TRUNCATE", &table, "STATEMENT", &named),
            arguments,
        );
        if let Some(exceptions) = options.exceptions {
            let named = condition::naming(&[notes, relation]);
            let exceptions = names::relation(exceptions);
            let event = after("INSERT OR UPDATE", &exceptions, "ROW", &named);
            help("exceptions", &event, &names::literal(&utf8(REMOVING)));
        }
    }
    help(
        "before",
        &format!("BEFORE INSERT ON {table} FOR EACH ROW"),
        "",
    );
    connection.close();
    // The trigger has been created; the name is NUL-terminated.
    pg_sys::get_trigger_oid(relation, server_text(&main).as_ptr(), false)
}

pgrx::extension_sql_file!("../../sql/guard/protect.sql", name = "guard_protect");
