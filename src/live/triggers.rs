//! Creates the triggers of a tracker, and checks whether they note every change.

use crate::live::tracker::{Tables, Tracker};
use crate::options::cut_texts;
use crate::pg::condition;
use crate::pg::encoding::utf8;
use crate::pg::prelude::*;
use std::ffi::CStr;

const ROW: u32 = pg_sys::TRIGGER_TYPE_ROW;
const UPDATE: u32 = pg_sys::TRIGGER_TYPE_UPDATE;
/// `pg_trigger.tgtype` of the row triggers AFTER INSERT OR DELETE and AFTER UPDATE.
const ROWS: u32 = ROW | pg_sys::TRIGGER_TYPE_INSERT | pg_sys::TRIGGER_TYPE_DELETE;
const UPDATES: u32 = ROW | UPDATE;

/// Creates the triggers on the tracked table and on the exceptions, with names derived from `name`.
pub fn create(connection: &Connection, tracker: &Tracker, name: &str) {
    let naming = condition::naming(&tracker.tables.all());
    let function = names::qualified(tracker.measure.schema, "near_dup_track");
    let create = |table: &str, suffix: &str, event: &str, when: &str, arguments: &str| {
        let trigger = names::identifier(&names::derived(name, suffix));
        // Logical replication fires only triggers that are enabled ALWAYS.
        connection.execute(&format!(
            "CREATE TRIGGER {trigger} AFTER {event} ON {table} FOR EACH ROW
                 WHEN ({naming}{when}) EXECUTE FUNCTION {function}({arguments});
             ALTER TABLE {table} ENABLE ALWAYS TRIGGER {trigger}"
        ));
    };
    let table = names::relation(tracker.relation);
    create(&table, "note_rows", "INSERT OR DELETE", "", "");
    let (kept, arguments) = (keeping(tracker), arguments(tracker));
    create(&table, "note_updates", "UPDATE", &kept, &arguments);
    if let Some(exceptions) = tracker.tables.exceptions {
        let table = names::relation(exceptions);
        create(&table, "note_exceptions", "INSERT OR DELETE", "", "");
        let keys = ["NEW.a".to_owned(), "NEW.b".to_owned()];
        let keys = format!(" AND {}", condition::keeping(&keys));
        create(&table, "note_exception_updates", "UPDATE", &keys, "");
    }
}

/// Returns the condition, beginning with AND, that contains the tracker's columns and expressions, so that a renamed
/// column is renamed in it too.
fn keeping(tracker: &Tracker) -> String {
    let columns = [&tracker.key, &tracker.value].into_iter();
    let columns = columns.chain(&tracker.scope);
    let keep = named_term(tracker).map(|term| &term.expression);
    let kept = columns.chain(keep).chain(&tracker.condition);
    let kept: Vec<String> = kept.map(|kept| kept.new_sql.clone()).collect();
    format!(" AND {}", condition::keeping(&kept))
}

/// Returns the arguments of the trigger for updates.
fn arguments(tracker: &Tracker) -> String {
    let fixed = [
        tracker.measure.bound.number().to_string(),
        tracker.scope.len().to_string(),
        u8::from(tracker.condition.is_some()).to_string(),
    ];
    let cut = tracker.measure.shingling().into_iter().flat_map(cut_texts);
    let direction = named_term(tracker).map(|term| term.direction().to_owned());
    let arguments = fixed.into_iter().chain(cut).chain(direction);
    let arguments: Vec<String> = arguments.map(|text| names::literal(&text)).collect();
    arguments.join(", ")
}

/// Returns the term of the order before the key, or None if the order is by key alone.
fn named_term(tracker: &Tracker) -> Option<&crate::live::order::Term> {
    let first = tracker.order.terms.first()?;
    let is_key = first.expression.sql == tracker.key.sql && first.direction().is_empty();
    (!is_key).then_some(first)
}

/// Returns the triggers of `table` that belong to the tracker with `tables`.
pub fn noting<'t>(
    note: pg_sys::Oid,
    table: &'t Relation,
    tables: &Tables,
) -> impl Iterator<Item = &'t pg_sys::Trigger> {
    let triggers = table.triggers().iter();
    let triggers = triggers.filter(move |trigger| trigger.tgfoid == note);
    triggers.filter(move |trigger| Tables::of(trigger).as_ref() == Some(tables))
}

/// Returns the trigger for updates among the triggers of [`noting`], or None if it was dropped. Its condition contains
/// the tracker's columns.
///
/// # Errors
/// ERROR `object_not_in_prerequisite_state` if there are two: another role may have the privilege TRIGGER on the table.
pub fn for_updates<'t>(
    note: pg_sys::Oid,
    table: &'t Relation,
    tables: &Tables,
) -> Option<&'t pg_sys::Trigger> {
    let mut updates = noting(note, table, tables);
    let mut next = || updates.find(|trigger| trigger.tgtype as u32 & UPDATE != 0);
    let (first, second) = (next()?, next());
    if let Some(second) = second {
        // SAFETY: the names are the triggers'.
        let [first, second] = [first, second]
            .map(|trigger| names::identifier(&utf8(unsafe { CStr::from_ptr(trigger.tgname) })));
        not_ready(
            &format!(
                "triggers {first} and {second} of table {} note updates for the same clusters",
                names::relation(table.oid())
            ),
            "Drop the trigger that near_dup_track did not create.",
        );
    }
    Some(first)
}

/// Returns a description of the tables that hold the tracked rows and the exceptions, with their files and triggers. If
/// an earlier refresh got the same description, every change since then was noted. Returns None if changes may remain
/// unnoted, or may have remained so since the transaction began.
pub fn noted(connection: &Connection, tracker: &Tracker) -> Option<String> {
    let (mut all, mut triggers) = (Vec::new(), Vec::new());
    let mut tables: Vec<_> = tracker.tables.exceptions.into_iter().collect();
    tables.push(tracker.relation);
    let unlogged = pg_sys::RELPERSISTENCE_UNLOGGED;
    let is_logged = Relation::open_table(tracker.relation).persistence() != unlogged;
    while let Some(table) = tables.pop() {
        let table = Relation::open_table(table);
        all.push(table.oid());
        let own: Vec<_> = noting(tracker.note, &table, &tracker.tables).collect();
        triggers.extend(own.iter().map(|trigger| trigger.tgoid));
        if table.kind() == pg_sys::RELKIND_PARTITIONED_TABLE {
            tables.extend(table.partitions());
        } else if is_logged && table.persistence() == unlogged
            || table.has_children()
            || !notes_all(&table, &own)
        {
            // A crash empties an unlogged partition, and not the tracker's logged tables.
            return None;
        }
    }
    let arguments = [all.into_datum(), triggers.into_datum()];
    let statement = connection.prepare_kept(NOTED, &[pg_sys::OIDARRAYOID; 2]);
    let mut noted = None;
    statement.run(&arguments, &mut |row| noted = row.name(1));
    noted
}

/// Lists the tables `$1` with their files, and the triggers `$2` on them with the versions of their rows in the catalog:
/// a transaction may alter a trigger more than once.
const NOTED: &str = "SELECT pg_catalog.string_agg(pg_catalog.concat_ws(' ', c.oid, c.relfilenode, t.triggers), ', ' ORDER BY c.oid)
    FROM pg_catalog.pg_class c CROSS JOIN LATERAL (
        SELECT pg_catalog.string_agg(pg_catalog.concat_ws(' ', t.oid, t.xmin, t.ctid), ' ' ORDER BY t.oid) AS triggers
        FROM pg_catalog.pg_trigger t
        WHERE t.tgrelid OPERATOR(pg_catalog.=) c.oid AND t.oid OPERATOR(pg_catalog.=) ANY ($2)) t
    WHERE c.oid OPERATOR(pg_catalog.=) ANY ($1)";

/// Returns whether a tracker's `own` triggers of `table`, which has no partitions, are as created and note every change
/// of its rows.
fn notes_all(table: &Relation, own: &[&pg_sys::Trigger]) -> bool {
    let has_trigger = |(kind, conditions): (u32, usize)| {
        own.iter().any(|trigger| {
            // SAFETY: the condition is the trigger's.
            let found = unsafe { condition::conjuncts(trigger.tgqual) }.len();
            // Logical replication fires no other triggers.
            trigger.tgenabled as u8 == pg_sys::TRIGGER_FIRES_ALWAYS
                && trigger.tgtype as u32 == kind
                && trigger.tgnattr == 0
                && found == conditions
        })
    };
    // TRUNCATE empties a file that the transaction created, instead of making a new one.
    table.kind() == pg_sys::RELKIND_RELATION
        && !table.has_new_file()
        && [(ROWS, 1), (UPDATES, 2)].into_iter().all(has_trigger)
}
