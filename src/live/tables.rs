//! The tables of a tracker. The same descriptions are used to create the tables and to check them when they are opened.

use crate::guard::pair_table::{created, open_exceptions};
use crate::live::tracker::{Tables, Tracker, TrackerTable};
use crate::pg::checked::{Altered, CheckedTable, CreatedColumn};
use crate::pg::prelude::*;
use crate::pg::relation::ColumnType;
use crate::pg::statement::server_text;

/// Returns the suffix and the columns of each of the tracker's own tables, in the order of [`TrackerTable`].
fn descriptions(tracker: &Tracker) -> [(&'static str, Vec<CreatedColumn>); 5] {
    let key = |name, is_not_null| CreatedColumn::new(name, tracker.key.type_, is_not_null);
    let column = |name: &str, type_, is_not_null| {
        CreatedColumn::new(name, ColumnType::plain(type_), is_not_null)
    };
    let wanted = |name, type_| column(name, type_, true);
    let optional = |name, type_| column(name, type_, false);
    let mut canonical = vec![
        key("key", true),
        wanted("cluster", pg_sys::INT8OID),
        wanted("kept", tracker.measure.kept_type()),
    ];
    let scope = (1..).zip(&tracker.scope);
    let scope = scope.map(|(number, column)| (format!("scope{number}"), column.type_));
    let order = (1..).zip(&tracker.order.terms);
    let order = order.map(|(number, term)| (format!("order{number}"), term.expression.type_));
    let others = scope.chain(order);
    canonical.extend(others.map(|(name, type_)| CreatedColumn::new(&name, type_, false)));
    let clusters = vec![
        key("key", true),
        wanted("cluster", pg_sys::INT8OID),
        key("canonical", true),
        optional("similarity", pg_sys::FLOAT8OID),
    ];
    let log = vec![
        wanted("number", pg_sys::INT8OID),
        wanted("at", pg_sys::TIMESTAMPTZOID),
        wanted("event", pg_sys::TEXTOID),
        optional("from_cluster", pg_sys::INT8OID),
        optional("to_cluster", pg_sys::INT8OID),
        key("key", false),
        optional("similarity", pg_sys::FLOAT8OID),
        key("replaced", false),
    ];
    let state = vec![
        wanted("singleton", pg_sys::BOOLOID),
        // The tracked table. Copies of its triggers on other tables do not count.
        wanted("relation", pg_sys::REGCLASSOID),
        wanted("next_cluster", pg_sys::INT8OID),
        wanted("rows", pg_sys::INT8OID),
        optional("noted", pg_sys::TEXTOID),
        optional("anew", pg_sys::FLOAT8OID),
        optional("refreshed_at", pg_sys::TIMESTAMPTZOID),
        optional("seconds", pg_sys::FLOAT8OID),
        optional("changed", pg_sys::INT8OID),
    ];
    [
        ("", clusters),
        ("log", log),
        ("canonical", canonical),
        ("queue", vec![key("key", false)]),
        ("state", state),
    ]
}

/// Returns the columns of the primary key of the table with suffix `name`: the first column, or none for the queue.
fn key_of(name: &str) -> Option<&'static [i16]> {
    Some(if name == "queue" { &[] } else { &[1] })
}

/// Creates the tables of a tracker in the schema of the tracked table. `clusters` is the bare name of the clusters
/// table.
///
/// # Errors
/// ERROR `duplicate_table` if a relation has one of these names.
pub fn create(connection: &Connection, tracker: &mut Tracker, clusters: &str) {
    let tracked = Relation::open_table(tracker.relation);
    let schema = tracked.schema();
    let own = descriptions(tracker).map(|(name, columns)| {
        let bare = match name {
            "" => clusters.to_owned(),
            name => names::derived(clusters, name),
        };
        // SAFETY: the name is NUL-terminated.
        let other = unsafe { pg_sys::get_relname_relid(server_text(&bare).as_ptr(), schema) };
        if other != pg_sys::InvalidOid {
            let other = names::relation(other);
            raise(
                PgSqlErrorCode::ERRCODE_DUPLICATE_TABLE,
                &format!("near_dup_track cannot create {other}, which already exists"),
                &format!(
                    "If it remains from a table that was tracked before: DROP TABLE {other}; if a tracker uses it, call near_dup_untrack first. Or choose another name for the clusters: clusters => 'other_clusters'."
                ),
            );
        }
        created(&tracked, &columns, key_of(name)).create(connection, schema, &bare)
    });
    let [clusters, log, _, queue, state] = own.map(names::relation);
    // A published queue needs a replica identity for DELETE.
    connection.execute(&format!(
        "CREATE INDEX ON {clusters} (cluster);
         CREATE INDEX ON {clusters} (canonical);
         ALTER TABLE {log} ALTER number ADD GENERATED ALWAYS AS IDENTITY;
         ALTER TABLE {queue} REPLICA IDENTITY FULL;
         ALTER TABLE {state} ADD CHECK (singleton)"
    ));
    tracker.tables.own = own;
}

/// The open tables of a tracker, the state table first, checked to be unaltered, and its open tracked table.
pub struct OpenTables {
    _tracked: Relation,
    tables: Vec<CheckedTable>,
}

impl OpenTables {
    pub fn open(tracker: &Tracker) -> Result<Self, Altered> {
        let tracked = Relation::open_table(tracker.relation);
        let opened = open_each(tracker, &tracked);
        let exceptions = tracker.tables.exceptions.into_iter();
        let exceptions =
            exceptions.map(|table| open_exceptions(table, &tracked, tracker.key.type_));
        Ok(Self {
            tables: opened.chain(exceptions).collect::<Result<_, _>>()?,
            _tracked: tracked,
        })
    }

    /// Opens the tables, as [`Self::open`] does.
    ///
    /// # Errors
    /// ERROR `object_not_in_prerequisite_state` if a table was altered; `object_in_use` in a trigger that a refresh of
    /// the same tracker fires: that refresh has read the rows already, and has not written its state.
    pub fn open_for_refresh(tracker: &Tracker) -> Self {
        let opened = Self::open(tracker);
        let opened = opened.unwrap_or_else(|altered| altered.raise(&altered_hint(&tracker.tables)));
        let state = opened.tables[0].relation().as_ptr();
        // SAFETY: the table is open, once in each refresh.
        unsafe { pg_sys::CheckTableNotInUse(state, c"near_dup_refresh".as_ptr()) };
        opened
    }
}

/// Opens only the state table.
pub fn open_state(tracker: &Tracker) -> Result<CheckedTable, Altered> {
    let tracked = Relation::open_table(tracker.relation);
    open_each(tracker, &tracked).next().expect("it has tables")
}

/// Returns an iterator that opens the tracker's own tables as it advances, the state table first.
fn open_each(
    tracker: &Tracker,
    tracked: &Relation,
) -> impl Iterator<Item = Result<CheckedTable, Altered>> {
    let tables = tracker.tables.own.into_iter().zip(descriptions(tracker));
    tables.rev().map(|(table, (name, columns))| {
        let created = created(tracked, &columns, key_of(name));
        let opened = CheckedTable::open(table, &created, pg_sys::AccessShareLock);
        opened.and_then(CheckedTable::unconstrained)
    })
}

/// Returns the hint for errors about an altered table of a tracker.
pub fn altered_hint(tables: &Tables) -> String {
    let clusters = names::find_relation(tables.get(TrackerTable::Clusters)).unwrap_or_default();
    let clusters = names::literal(&clusters);
    format!(
        "Undo the change, or create the tracker again: SELECT near_dup_untrack({clusters}); then near_dup_track."
    )
}
