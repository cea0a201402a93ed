//! The state that a tracker keeps from one refresh to the next.

use crate::live::leaves::{LeafTable, Unnoted};
use crate::live::tracker::Tracker;
use crate::pg::checked::CreatedColumn;
use crate::pg::names;
use crate::pg::relation::ColumnType;
use crate::pg::statement::{Connection, Snapshot};
use pgrx::{IntoDatum, pg_sys};
use std::time::Instant;

/// The row of the table of state.
#[derive(Debug)]
pub struct State {
    /// The lowest number that no cluster has had.
    pub next_cluster: i64,
    /// The number of rows of the table that were there.
    pub rows: i64,
    /// The leaves that have been read.
    pub leaves: Vec<LeafTable>,
}

/// The columns of the table.
pub const COLUMNS: &str = "singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    next_cluster bigint NOT NULL, rows bigint NOT NULL,
    leaves oid[], files oid[], triggers oid[], refreshed_at timestamptz, seconds double precision, changed bigint";

/// Returns the columns of the table.
pub fn columns() -> Vec<CreatedColumn> {
    let columns = [
        ("singleton", pg_sys::BOOLOID, true),
        ("next_cluster", pg_sys::INT8OID, true),
        ("rows", pg_sys::INT8OID, true),
        ("leaves", pg_sys::OIDARRAYOID, false),
        ("files", pg_sys::OIDARRAYOID, false),
        ("triggers", pg_sys::OIDARRAYOID, false),
        ("refreshed_at", pg_sys::TIMESTAMPTZOID, false),
        ("seconds", pg_sys::FLOAT8OID, false),
        ("changed", pg_sys::INT8OID, false),
    ];
    let columns = columns.map(|(name, type_, is_not_null)| {
        CreatedColumn::new(name, ColumnType::plain(type_), is_not_null)
    });
    columns.into()
}

impl State {
    /// Returns the state of a locked tracker at the beginning of a refresh that reads these leaves, with the
    /// changes since the last refresh that no trigger has noted.
    pub fn begin(
        connection: &Connection,
        tracker: &Tracker,
        leaves: Vec<LeafTable>,
    ) -> (Self, Unnoted) {
        let sql = format!(
            "SELECT s.next_cluster, s.rows, l.leaf, l.file, l.trigger
             FROM {} s LEFT JOIN LATERAL ROWS FROM (pg_catalog.unnest(s.leaves),
                 pg_catalog.unnest(s.files), pg_catalog.unnest(s.triggers)) l (leaf, file, trigger) ON true",
            names::relation(tracker.tables.state)
        );
        let mut state = Self {
            next_cluster: 1,
            rows: 0,
            leaves: Vec::new(),
        };
        connection.prepare_kept(&sql, &[]).run(&[], &mut |row| {
            state.next_cluster = row.get(1).unwrap_or(1);
            state.rows = row.get(2).unwrap_or(0);
            state.leaves.extend(row.get(3).map(|table| LeafTable {
                table,
                file: row.get(4).unwrap_or(pg_sys::InvalidOid),
                trigger: row.get(5).unwrap_or(pg_sys::InvalidOid),
            }));
        });
        let unnoted = Unnoted::since(&state.leaves, &leaves);
        match Snapshot::is_of_transaction() {
            // Rows read of new ones may be older than they are.
            true => state.leaves.retain(|leaf| leaves.contains(leaf)),
            false => state.leaves = leaves,
        }
        (state, unnoted)
    }

    /// Writes the state at the end of a refresh, which has looked at `changed` rows.
    pub fn write(
        &self,
        connection: &Connection,
        tracker: &Tracker,
        started: Instant,
        changed: i64,
    ) {
        let sql = format!(
            "UPDATE {} SET next_cluster = $1, rows = $2, seconds = $3, changed = $4,
                 refreshed_at = pg_catalog.clock_timestamp(), leaves = $5, files = $6, triggers = $7",
            names::relation(tracker.tables.state)
        );
        let types = [
            pg_sys::INT8OID,
            pg_sys::INT8OID,
            pg_sys::FLOAT8OID,
            pg_sys::INT8OID,
            pg_sys::OIDARRAYOID,
            pg_sys::OIDARRAYOID,
            pg_sys::OIDARRAYOID,
        ];
        let of_leaves = |value: fn(&LeafTable) -> pg_sys::Oid| {
            let values: Vec<_> = self.leaves.iter().map(value).collect();
            values.into_datum()
        };
        let arguments = [
            self.next_cluster.into_datum(),
            self.rows.into_datum(),
            started.elapsed().as_secs_f64().into_datum(),
            changed.into_datum(),
            of_leaves(|leaf| leaf.table),
            of_leaves(|leaf| leaf.file),
            of_leaves(|leaf| leaf.trigger),
        ];
        connection.prepare_kept(&sql, &types).execute(&arguments);
    }
}
