//! Implements `near_dup_protect`, which creates the triggers of a guard and immediately reports anything that would
//! make them fail, and `near_dup_unprotect`, which drops them.

use crate::guard::columns::GuardColumns;
use crate::guard::options::{GuardOptions, is_main};
use crate::guard::pair_table::{PairTable, create_notes};
use crate::guard::row_condition::RowCondition;
use crate::guard::table::Rule;
use crate::guard::window::{DAY, Span, microseconds};
use crate::options::cut_arguments;
use crate::pg::catalog::function_beside;
use crate::pg::condition;
use crate::pg::encoding::utf8;
use crate::pg::prelude::*;
use crate::pg::relation::root_of;
use crate::pg::rights::check_owner;
use crate::pg::statement::server_text;
use neardup::quoted;
use pgrx::prelude::*;
use std::ffi::CStr;
use std::iter::once;

/// Implements `near_dup_protect(relation, column_name, threshold, scope, trigger_name, within, by, k, unit, fold,
/// action, notes, most, key, condition, exceptions)`, which creates the triggers `near_dup_guard` on a table or on all
/// partitions of a table.
///
/// # Errors
/// The errors of CREATE TRIGGER, `object_not_in_prerequisite_state` for notes of a table without a key, and the errors
/// that the trigger would raise for every row.
#[pg_extern(sql = false)]
fn near_dup_protect(call: Call) {
    // SAFETY: the call is running; its arguments are of the declared types.
    unsafe {
        let relation = call.oid(0, "relation");
        let table = Relation::open_table(relation);
        let arguments = main_trigger_arguments(&call, &table);
        let condition = call.text(14);
        let condition = condition.map(|text| RowCondition::over_new(&table, &text));
        let texts: Vec<_> = arguments.iter().map(|text| server_text(text)).collect();
        let mut rule = Rule::new(&table, GuardOptions::parse(&texts), call.function());
        let columns = GuardColumns::of(&table, &rule.options);
        rule.options.exceptions = call.optional(15);
        if let Some(exceptions) = rule.options.exceptions {
            PairTable::exceptions(exceptions, &table, columns.key_type(&table));
        }
        if let Some((notes, key)) = rule.options.notes.as_mut().zip(columns.key) {
            check_owner(relation);
            let name = call.name(11);
            let name = name.unwrap_or_else(|| names::derived(&names::bare(relation), "near_dups"));
            notes.table = create_notes(&table, &name, key);
        }
        let name = create_triggers(&call, relation, &arguments, condition, &mut rule.options);
        let mut triggers = table.triggers().iter();
        let main = triggers.find(|own| CStr::from_ptr(own.tgname) == &*server_text(&name));
        rule.options = GuardOptions::from_trigger(main.expect("it has been created"), &table);
        rule.tables(root_of(relation), Span::ALWAYS, "near_dup_guard", 0);
    }
}

const ACTIONS: &str =
    "Valid actions are reject and note; notes names the table that action => 'note' creates.";

/// Returns the arguments of the main trigger.
///
/// # Errors
/// ERROR `invalid_parameter_value` for an unknown action, and for a name of notes if the guard rejects.
///
/// # Safety
/// `call` is a call to `near_dup_protect`.
unsafe fn main_trigger_arguments(call: &Call, table: &Relation) -> Vec<String> {
    let threshold: f64 = call.get(2, "threshold");
    call.argument(1, "column_name");
    let column = call.name(1).unwrap_or_default();
    let scope = call.names(3).into_iter();
    let scope: Vec<_> = scope.map(|name| names::identifier(&name)).collect();
    let by = call.optional_argument(6).map(|by| microseconds(by));
    if call.name(5).is_some() != by.is_some() {
        invalid(
            "near_dup_protect got only one of within and by",
            "Pass both: within is a column of dates or timestamps, and by is the length of the window.",
        );
    }
    // Independent of IntervalStyle.
    let by = by.map(|by| {
        let seconds = (by % DAY) as f64 / 1e6;
        format!("{} days {seconds} seconds", by / DAY)
    });
    call.argument(10, "action");
    let action = call.text(10).unwrap_or_default();
    let most = match &*action {
        "note" => Some(call.get::<i32>(12, "most").to_string()),
        "reject" if call.name(11).is_some() => {
            invalid("a guard that rejects rows has no notes", ACTIONS)
        }
        "reject" => None,
        _ => invalid(&format!("unknown action {}", quoted(&action)), ACTIONS),
    };
    let has_exceptions = call.optional_argument(15).is_some();
    let key_of_table = || names::column(table.oid(), table.only_key_column());
    let needs_key = most.is_some() || has_exceptions;
    let key = call.name(13);
    let key = key.or_else(|| needs_key.then(key_of_table).flatten());
    let named = [
        ("scope", (!scope.is_empty()).then(|| scope.join(","))),
        ("within", call.name(5)),
        ("by", by),
        ("key", key),
        ("most", most),
    ];
    let named = named.into_iter();
    let named = named.filter_map(|(name, value)| Some((name, value?)));
    let named = named.chain(cut_arguments(call, 7));
    let mut arguments = vec![column, threshold.to_string()];
    arguments.extend(named.map(|(name, value)| format!("{name}={value}")));
    arguments.extend(has_exceptions.then(|| "exceptions".to_owned()));
    arguments
}

/// Creates the main trigger, which checks rows, with the caller's rights, and returns its name. The trigger's condition
/// contains the columns, the condition for rows, and the tables of notes and exceptions, so that the trigger follows
/// renames. Also creates triggers that help it: one announces before an INSERT that the transaction will pass. With
/// notes, others remove the notes of deleted rows and of excepted pairs.
///
/// # Safety
/// `call` is a call to `near_dup_protect`.
unsafe fn create_triggers(
    call: &Call,
    relation: pg_sys::Oid,
    arguments: &[String],
    condition: Option<String>,
    options: &mut GuardOptions,
) -> String {
    let main = call.name(4);
    let main = main.unwrap_or_else(|| names::derived(&names::bare(relation), "guard"));
    let notes = options.notes.map(|notes| notes.table);
    let named: Vec<_> = notes.into_iter().chain(options.exceptions).collect();
    let columns = options.columns_mut();
    let columns = columns.map(|name| format!("NEW.{}", names::identifier(&utf8(name))));
    let kept = condition::keeping(&columns.chain(condition).collect::<Vec<_>>());
    let when = match named.is_empty() {
        true => kept,
        false => format!("{} AND {kept}", condition::naming(&named)),
    };
    let literals: Vec<_> = arguments.iter().map(|text| names::literal(text)).collect();
    let arguments = &*literals.join(", ");
    let table = names::relation(relation);
    let before = names::derived(&main, "before");
    // It is still there if only the main trigger was dropped.
    let announces = |own: &GuardTrigger| own.name == before && !own.is_main && own.named.is_empty();
    let guard = function_beside(call.function(), c"near_dup_guard", &[]);
    let has_before = guard_triggers(relation, guard).iter().any(announces);
    let is_taken = |table: pg_sys::Oid, name: &str| {
        let found = pg_sys::get_trigger_oid(table, server_text(name).as_ptr(), true);
        found != pg_sys::InvalidOid
    };
    let function = names::qualified(call.schema(), "near_dup_guard");
    let connection = Connection::open();
    let create = |on: pg_sys::Oid, name: &str, event: &str, arguments: &str| {
        let replaces = has_before && name == before;
        if !replaces && is_taken(on, name) {
            let (table, name) = (names::relation(on), quoted(name));
            raise(
                PgSqlErrorCode::ERRCODE_DUPLICATE_OBJECT,
                &format!("table {table} already has a trigger named {name}"),
                "Drop the guard with near_dup_unprotect first, or choose another trigger_name.",
            );
        }
        let or_replace = if replaces { " OR REPLACE" } else { "" };
        let name = names::identifier(name);
        connection.execute(&format!(
            "CREATE{or_replace} TRIGGER {name} {event} EXECUTE FUNCTION {function}({arguments})"
        ));
    };
    let help = |suffix: &str, event: &str, arguments: &str| {
        create(relation, &names::derived(&main, suffix), event, arguments);
    };
    let each_row = format!("AFTER INSERT OR UPDATE ON {table} FOR EACH ROW WHEN ({when})");
    create(relation, &main, &each_row, arguments);
    if let Some(notes) = notes {
        let when = condition::naming(&[notes]);
        let each_row = format!("AFTER DELETE ON {table} FOR EACH ROW WHEN ({when})");
        help("delete", &each_row, arguments);
        let truncated = format!("AFTER TRUNCATE ON {table} WHEN ({when})");
        help("truncate", &truncated, arguments);
        if let Some(exceptions) = options.exceptions {
            let table = names::relation(exceptions);
            let when = condition::naming(&[notes, relation]);
            let each_row = format!("AFTER INSERT OR UPDATE ON {table} FOR EACH ROW WHEN ({when})");
            // Guards of other tables may share the exceptions.
            let numbers = once(String::new()).chain((2..).map(|number: u32| number.to_string()));
            let mut all = numbers.map(|n| names::derived(&main, &format!("exceptions{n}")));
            let free = all.find(|name| !is_taken(exceptions, name));
            let name = free.expect("a table has fewer triggers");
            create(exceptions, &name, &each_row, "'exceptions'");
        }
    }
    let each_row = format!("BEFORE INSERT ON {table} FOR EACH ROW");
    help("before", &each_row, "");
    connection.close();
    main
}

/// A trigger of a guard.
struct GuardTrigger {
    name: String,
    is_main: bool,
    /// The tables that the trigger's condition names. If the guard has notes, their table comes first.
    named: Vec<pg_sys::Oid>,
}

/// Implements `near_dup_unprotect(relation, trigger_name)`: drops the triggers of one or all guards of a table.
///
/// # Errors
/// ERROR `undefined_object` if there is no such guard, and the errors of DROP TRIGGER.
#[pg_extern(sql = false)]
fn near_dup_unprotect(call: Call) {
    let (relation, name) = (call.oid(0, "relation"), call.name(1));
    let function = function_beside(call.function(), c"near_dup_guard", &[]);
    let all = guard_triggers(relation, function);
    let is_chosen = |trigger: &GuardTrigger| name.as_ref().is_none_or(|name| *name == trigger.name);
    let mains = all.iter().filter(|trigger| trigger.is_main);
    let (chosen, others): (Vec<_>, Vec<_>) = mains.partition(|trigger| is_chosen(trigger));
    if all.is_empty() || name.is_some() && chosen.is_empty() {
        missing(relation, name.as_deref(), &others);
    }
    let goes = |trigger: &&GuardTrigger| match (trigger.is_main, &trigger.named[..]) {
        (true, _) => is_chosen(trigger),
        // The trigger removes the notes of deleted rows.
        (false, [notes]) => !others.iter().any(|main| main.named.first() == Some(notes)),
        // It announces that the transaction will pass. It is dropped with its own guard or with the last one.
        (false, []) => {
            let is_derived =
                |main: &&GuardTrigger| trigger.name == names::derived(&main.name, "before");
            others.is_empty() || chosen.iter().any(is_derived)
        }
        // This table holds the exceptions of another guarded table, for which the trigger works.
        (false, _) => false,
    };
    let connection = Connection::open();
    let drop = |trigger: &GuardTrigger, table| {
        let (name, table) = (names::identifier(&trigger.name), names::relation(table));
        connection.execute(&format!("DROP TRIGGER {name} ON {table}"));
    };
    for trigger in all.iter().filter(goes) {
        drop(trigger, relation);
        if let [notes, exceptions] = trigger.named[..] {
            for other in guard_triggers(exceptions, function) {
                if !other.is_main && other.named == [notes, relation] {
                    drop(&other, exceptions);
                }
            }
        }
    }
    connection.close();
}

/// Returns the triggers of `relation` that call `function`.
fn guard_triggers(relation: pg_sys::Oid, function: Option<pg_sys::Oid>) -> Vec<GuardTrigger> {
    let table = Relation::open_table(relation);
    let own = table.triggers().iter();
    let own = own.filter(|trigger| Some(trigger.tgfoid) == function);
    // SAFETY: the triggers are the table's; nothing here looks into the catalog.
    let describe = |trigger: &pg_sys::Trigger| unsafe {
        GuardTrigger {
            name: utf8(CStr::from_ptr(trigger.tgname)),
            is_main: is_main(trigger),
            named: condition::named(trigger.tgqual),
        }
    };
    own.map(describe).collect()
}

/// Raises `undefined_object` with a HINT that lists the guards of the table.
fn missing(relation: pg_sys::Oid, name: Option<&str>, guards: &[&GuardTrigger]) -> ! {
    let table = names::relation(relation);
    let name = name.map(quoted).unwrap_or_default();
    let names: Vec<&str> = guards.iter().map(|trigger| &*trigger.name).collect();
    let hint = match names.is_empty() {
        true => String::new(),
        false => format!("Its guards are {}.", names.join(", ")),
    };
    raise(
        PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT,
        format!("table {table} has no guard {name}").trim_end(),
        &hint,
    )
}

pgrx::extension_sql_file!("../../sql/guard/protect.sql", name = "guard_protect");

pgrx::extension_sql_file!("../../sql/guard/unprotect.sql", name = "guard_unprotect");
