//! The state that a tracker keeps from one refresh to the next.

use crate::live::tracker::Tracker;
use crate::pg::names;
use crate::pg::statement::{Connection, Snapshot};
use pgrx::{IntoDatum, pg_sys};

/// The row of the table of state.
#[derive(Debug, Clone, Copy)]
pub struct State {
    /// The lowest number that no cluster has had.
    pub next_cluster: i64,
    /// The number of rows of the table that were there.
    pub rows: i64,
    /// The leaves of the table are those of the last refresh, and their files too.
    pub has_same_files: bool,
}

/// Returns the statement that makes the table.
pub fn definition(table: &str, persistence: &str) -> String {
    format!(
        "CREATE {persistence} TABLE {table} (
            singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
            next_cluster bigint NOT NULL, rows bigint NOT NULL, leaves oid[], files oid[],
            refreshed_at timestamptz, seconds double precision, changed bigint)"
    )
}

/// The table and its leaves, and the files that they are in.
const FILES: &str = "SELECT pg_catalog.array_agg(t.relid ORDER BY t.relid) AS leaves,
        pg_catalog.array_agg(pg_catalog.pg_relation_filenode(t.relid) ORDER BY t.relid) AS files
    FROM (SELECT p.relid::pg_catalog.oid FROM pg_catalog.pg_partition_tree($1) p WHERE p.isleaf
          UNION SELECT $1::pg_catalog.oid) t";

impl State {
    /// Locks the tracker against other refreshes until the end of the transaction.
    pub fn lock(connection: &Connection, tracker: &Tracker) {
        let table = names::relation(tracker.tables.state);
        let lock = connection.prepare(&format!("SELECT FROM {table} FOR UPDATE"), &[]);
        if lock.run(None, &[], &mut |_| {}) == 0 {
            connection.execute(&format!(
                "INSERT INTO {table} (next_cluster, rows) VALUES (1, 0) ON CONFLICT DO NOTHING"
            ));
            lock.run(None, &[], &mut |_| {});
        }
    }

    /// Returns the state of a locked tracker.
    pub fn read(connection: &Connection, tracker: &Tracker, snapshot: &Snapshot) -> Self {
        let sql = format!(
            "SELECT s.next_cluster, s.rows,
                 s.leaves OPERATOR(pg_catalog.=) f.leaves AND s.files OPERATOR(pg_catalog.=) f.files
             FROM {} s, ({FILES}) f",
            names::relation(tracker.tables.state)
        );
        let mut state = Self {
            next_cluster: 1,
            rows: 0,
            has_same_files: false,
        };
        let read = connection.prepare(&sql, &[pg_sys::REGCLASSOID]);
        read.run(
            Some(snapshot),
            &[tracker.relation.into_datum()],
            &mut |row| {
                state = Self {
                    next_cluster: row.get(1).unwrap_or(1),
                    rows: row.get(2).unwrap_or(0),
                    has_same_files: row.get(3).unwrap_or(false),
                };
            },
        );
        state
    }

    /// Writes the state after a refresh that took so long and looked at so many rows.
    pub fn write(
        &self,
        connection: &Connection,
        tracker: &Tracker,
        snapshot: &Snapshot,
        seconds: f64,
        changed: i64,
    ) {
        let sql = format!(
            "UPDATE {} s SET next_cluster = $2, rows = $3, seconds = $4, changed = $5,
                 refreshed_at = pg_catalog.clock_timestamp(),
                 leaves = CASE WHEN $6 THEN f.leaves END, files = CASE WHEN $6 THEN f.files END
             FROM ({FILES}) f",
            names::relation(tracker.tables.state)
        );
        let types = [
            pg_sys::REGCLASSOID,
            pg_sys::INT8OID,
            pg_sys::INT8OID,
            pg_sys::FLOAT8OID,
            pg_sys::INT8OID,
            pg_sys::BOOLOID,
        ];
        // Rows read of new files may be older than they are.
        let are_read = self.has_same_files || !Snapshot::is_of_transaction();
        let arguments = [
            tracker.relation.into_datum(),
            self.next_cluster.into_datum(),
            self.rows.into_datum(),
            seconds.into_datum(),
            changed.into_datum(),
            are_read.into_datum(),
        ];
        connection
            .prepare(&sql, &types)
            .run(Some(snapshot), &arguments, &mut |_| {});
    }
}
