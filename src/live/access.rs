//! Access to a tracker: the rights of a refresh, and its tables.

use crate::live::state;
use crate::live::tracker::Tracker;
use crate::pg::checked::{Altered, CheckedTable, CreatedColumn, CreatedTable};
use crate::pg::error::unsupported;
use crate::pg::names;
use crate::pg::relation::{ColumnType, Relation};
use crate::pg::rights::OwnerRights;
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

/// The tables of a tracker, open and as they were created, and its open table.
pub struct OwnTables {
    _tracked: Relation,
    _tables: Vec<CheckedTable>,
}

impl OwnTables {
    pub fn open(tracker: &Tracker) -> Result<Self, Altered> {
        let tables = &tracker.tables;
        let key = |name, is_not_null| CreatedColumn::new(name, tracker.key.type_, is_not_null);
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
        let mut opened = Vec::from([
            Self::open_state(tracker)?,
            open(tracker, tables.clusters, &clusters, &[1])?,
            open(tracker, tables.log, &log, &[1])?,
            open(
                tracker,
                tables.canonical,
                &Self::canonical_columns(tracker),
                &[1],
            )?,
            open(tracker, tables.queue, &[key("key", false)], &[])?,
        ]);
        if let Some(exceptions) = tables.exceptions {
            opened.push(open_exceptions(tracker, exceptions)?);
        }
        Ok(Self {
            _tracked: Relation::open_table(tracker.relation),
            _tables: opened,
        })
    }

    /// Returns the columns of the table of canonical rows.
    pub fn canonical_columns(tracker: &Tracker) -> Vec<CreatedColumn> {
        let mut canonical = Vec::from([
            CreatedColumn::new("key", tracker.key.type_, true),
            plain("cluster", pg_sys::INT8OID, true),
            plain("kept", tracker.measure.kept_oid(), true),
        ]);
        let optional = |name: &str, number, type_| {
            CreatedColumn::new(&format!("{name}{number}"), type_, false)
        };
        let scope = (1..).zip(&tracker.scope);
        canonical.extend(scope.map(|(number, column)| optional("scope", number, column.type_)));
        let terms = (1..).zip(&tracker.order.terms);
        canonical
            .extend(terms.map(|(number, term)| optional("order", number, term.expression.type_)));
        canonical
    }

    /// # Errors
    /// ERROR `object_not_in_prerequisite_state` for a table that was altered.
    pub fn open_for_refresh(tracker: &Tracker) -> Self {
        let hint = || altered_hint(tracker.tables.clusters);
        Self::open(tracker).unwrap_or_else(|altered| altered.raise(&hint()))
    }

    /// Opens the table of the state alone.
    pub fn open_state(tracker: &Tracker) -> Result<CheckedTable, Altered> {
        open(tracker, tracker.tables.state, &state::columns(), &[1])
    }
}

fn plain(name: &str, type_: pg_sys::Oid, is_not_null: bool) -> CreatedColumn {
    CreatedColumn::new(name, ColumnType::plain(type_), is_not_null)
}

fn open(
    tracker: &Tracker,
    table: pg_sys::Oid,
    columns: &[CreatedColumn],
    key: &[i16],
) -> Result<CheckedTable, Altered> {
    let created = CreatedTable {
        owner: tracker.owner,
        persistence: Relation::open_table(tracker.relation).persistence(),
        columns,
        key: Some(key),
    };
    CheckedTable::open(table, &created, pg_sys::AccessShareLock)
}

/// Opens a user's table of exceptions, which has columns `a` and `b` of the type of keys, and may have others.
pub fn open_exceptions(tracker: &Tracker, table: pg_sys::Oid) -> Result<CheckedTable, Altered> {
    let columns = ["a", "b"].map(|name| CreatedColumn::new(name, tracker.key.type_, false));
    let created = CreatedTable {
        owner: tracker.owner,
        persistence: Relation::open_table(tracker.relation).persistence(),
        columns: &columns,
        key: None,
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
