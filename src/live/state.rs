//! The state that a tracker keeps from one refresh to the next.

use crate::live::tracker::{Tracker, TrackerTable};
use crate::pg::prelude::*;
use std::time::Instant;

/// The row of the state table.
pub struct State {
    /// The number of the next new cluster.
    pub next_cluster: i64,
    /// The number of rows at the last refresh.
    pub rows: i64,
    /// The result of [`noted`](super::triggers::noted); None if the next refresh recomputes all clusters.
    pub noted: Option<String>,
    /// Seconds per row of the last recomputation.
    pub rebuild_seconds_per_row: Option<f64>,
}

impl State {
    /// Locks `tracker` against other refreshes until the end of the transaction, and returns its state. Inserts the
    /// state's row if it is missing.
    pub fn lock(connection: &Connection, tracker: &Tracker) -> Self {
        let table = tracker.table(TrackerTable::State);
        let sql =
            format!("SELECT s.next_cluster, s.rows, s.noted, s.anew FROM {table} s FOR UPDATE");
        let mut state = None;
        connection.prepare_kept(&sql, &[]).run(&[], &mut |row| {
            state = Some(Self {
                next_cluster: row.get(1).unwrap_or(1),
                rows: row.get(2).unwrap_or(0),
                noted: row.name(3),
                rebuild_seconds_per_row: row.get(4),
            });
        });
        state.unwrap_or_else(|| {
            let insert = format!(
                "INSERT INTO {table} (singleton, relation, next_cluster, rows)
                 SELECT true, $1, coalesce(max(c.cluster), 0) + 1, count(*) FROM {} c ON CONFLICT DO NOTHING",
                tracker.table(TrackerTable::Clusters)
            );
            let insert = connection.prepare(&insert, &[pg_sys::REGCLASSOID]);
            insert.execute(&[tracker.relation.into_datum()]);
            Self::lock(connection, tracker)
        })
    }

    /// Writes the state at the end of a refresh that examined `changed` rows.
    pub fn write(
        &self,
        connection: &Connection,
        tracker: &Tracker,
        started: Instant,
        changed: i64,
    ) {
        let sql = format!(
            "UPDATE {} SET relation = $1, next_cluster = $2, rows = $3, noted = $4, anew = $5,
                 seconds = $6, changed = $7, refreshed_at = pg_catalog.clock_timestamp()",
            tracker.table(TrackerTable::State)
        );
        let seconds = started.elapsed().as_secs_f64();
        let values = [
            (pg_sys::REGCLASSOID, tracker.relation.into_datum()),
            (pg_sys::INT8OID, self.next_cluster.into_datum()),
            (pg_sys::INT8OID, self.rows.into_datum()),
            (pg_sys::TEXTOID, self.noted.clone().into_datum()),
            (pg_sys::FLOAT8OID, self.rebuild_seconds_per_row.into_datum()),
            (pg_sys::FLOAT8OID, seconds.into_datum()),
            (pg_sys::INT8OID, changed.into_datum()),
        ];
        let statement = connection.prepare_kept(&sql, &values.map(|value| value.0));
        statement.execute(&values.map(|value| value.1));
    }
}
