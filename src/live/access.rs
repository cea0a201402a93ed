//! Access to a tracker: the rights of a refresh, and its locks.

use crate::live::shape::Shape;
use crate::live::state;
use crate::live::tracker::{Tables, Tracker};
use crate::pg::checked::{Altered, CheckedTable, CreatedColumn, CreatedTable};
use crate::pg::error::{not_ready, unsupported};
use crate::pg::names;
use crate::pg::relation::{ColumnType, Relation};
use crate::pg::rights::OwnerRights;
use crate::pg::statement::Connection;
use pgrx::pg_sys;

/// Returns the rights of a table's owner, with the settings of a refresh.
///
/// # Errors
/// ERROR `feature_not_supported` where rows of the table are hidden.
pub fn rights_for(relation: pg_sys::Oid) -> OwnerRights {
    let table = Relation::open_table(relation);
    // SAFETY: the table is open.
    if unsafe { (*(*table.as_ptr()).rd_rel).relrowsecurity } {
        unsupported(
            &format!(
                "clusters would show rows that row-level security of table {} hides",
                names::relation(relation)
            ),
            "Copy keys and signatures by a trigger into a table of their own, track that one, and let a policy look up the rows: CREATE POLICY own_rows ON its_clusters AS RESTRICTIVE USING (EXISTS (SELECT FROM this_table WHERE id = key)).",
        );
    }
    let rights = OwnerRights::assume(table.owner());
    rights.keep_texts();
    // Plans that are made for few rows are disliked by their cost, not slow.
    rights.set(c"jit", c"off");
    rights
}

/// Checks that the tables of a tracker belong to the owner of the tracked table.
///
/// # Errors
/// ERROR `object_not_in_prerequisite_state`.
pub fn check_tables(tracked: pg_sys::Oid, tables: &Tables) {
    let others: Vec<_> = tables.of_others(tracked).map(names::relation).collect();
    let [other, ..] = &others[..] else {
        return;
    };
    let owner = names::role(Relation::open_table(tracked).owner());
    let commands = others
        .iter()
        .map(|other| format!("ALTER TABLE {other} OWNER TO {owner};"));
    not_ready(
        &format!("{other} has another owner than the table that near_dup_track tracks"),
        &format!(
            "Give all tables of the tracker the same owner: {}",
            commands.collect::<Vec<_>>().join(" ")
        ),
    );
}

/// Locks a tracker against other refreshes until the end of the transaction, its table and leaves first.
pub fn lock(connection: &Connection, tracker: &Tracker) {
    let table = names::relation(tracker.relation);
    let lock = format!("LOCK TABLE {table} IN ACCESS SHARE MODE");
    connection.prepare_kept(&lock, &[]).execute(&[]);
    let state = names::relation(tracker.tables.state);
    let lock = connection.prepare_kept(&format!("SELECT FROM {state} FOR UPDATE"), &[]);
    if lock.execute(&[]) == 0 {
        connection.execute(&format!(
            "INSERT INTO {state} (next_cluster, rows) VALUES (1, 0) ON CONFLICT DO NOTHING"
        ));
        lock.execute(&[]);
    }
}

/// The tables of a tracker, open and as they were created, and its open table.
pub struct OwnTables {
    _tracked: Relation,
    _own: [CheckedTable; 5],
}

impl OwnTables {
    /// # Errors
    /// ERROR `object_not_in_prerequisite_state` for a table that was altered.
    pub fn open(shape: &Shape) -> Self {
        let tables = shape.tracker.tables;
        let open = |table, columns: &[CreatedColumn], key: &[i16]| {
            let opened = open_own(&shape.tracker, table, columns, key);
            opened.unwrap_or_else(|altered| altered.raise(&altered_hint(tables.clusters)))
        };
        let key = |name, is_not_null| CreatedColumn::new(name, shape.key.held, is_not_null);
        let clusters = [
            key("key", true),
            plain("cluster", pg_sys::INT8OID, true),
            key("canonical", true),
            plain("similarity", pg_sys::FLOAT8OID, false),
        ];
        let log = [
            plain("number", pg_sys::INT8OID, true),
            plain("at", pg_sys::TIMESTAMPTZOID, true),
            plain("event", pg_sys::TEXTOID, true),
            plain("from_cluster", pg_sys::INT8OID, false),
            plain("to_cluster", pg_sys::INT8OID, false),
            key("key", false),
            plain("similarity", pg_sys::FLOAT8OID, false),
            key("replaced", false),
        ];
        let kept = shape.tracker.measure.kept_oid();
        let mut canonical = Vec::from([
            key("key", true),
            plain("cluster", pg_sys::INT8OID, true),
            plain("kept", kept, true),
        ]);
        let scope = (1..).zip(&shape.scope);
        canonical.extend(scope.map(|(number, column)| {
            CreatedColumn::new(&format!("scope{number}"), column.type_, false)
        }));
        let terms = (1..).zip(&shape.order.terms);
        canonical.extend(terms.map(|(number, term)| {
            CreatedColumn::new(&format!("order{number}"), term.type_, false)
        }));
        Self {
            _tracked: Relation::open_table(shape.tracker.relation),
            _own: [
                open(tables.clusters, &clusters, &[1]),
                open(tables.log, &log, &[1]),
                open(tables.canonical, &canonical, &[1]),
                open(tables.queue, &[key("key", false)], &[]),
                open(tables.state, &state::columns(), &[1]),
            ],
        }
    }
}

fn plain(name: &str, type_: pg_sys::Oid, is_not_null: bool) -> CreatedColumn {
    CreatedColumn::new(name, ColumnType::plain(type_), is_not_null)
}

/// Opens a table of a tracker for the changes of a refresh.
pub fn open_own(
    tracker: &Tracker,
    table: pg_sys::Oid,
    columns: &[CreatedColumn],
    key: &[i16],
) -> Result<CheckedTable, Altered> {
    let tracked = Relation::open_table(tracker.relation);
    let created = CreatedTable {
        owner: tracked.owner(),
        persistence: tracked.persistence(),
        columns,
        key,
    };
    CheckedTable::open(table, &created, pg_sys::AccessShareLock)
}

/// Returns the hint of an error about a table of the tracker with these clusters.
pub fn altered_hint(clusters: pg_sys::Oid) -> String {
    let clusters = names::literal(&names::find_relation(clusters).unwrap_or_default());
    format!(
        "Undo the change, or make the tracker anew: SELECT near_dup_untrack({clusters}); then near_dup_track."
    )
}
