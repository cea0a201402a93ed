//! The batches: the rows of a table in the order of their places.

use crate::pg::error::raise;
use crate::pg::names;
use crate::pg::progress::Progress;
use crate::pg::relation::Relation;
use crate::pg::settings::Settings;
use crate::pg::statement::Connection;
use crate::pg::transaction::{in_transaction, sleep};
use pgrx::{PgSqlErrorCode, pg_sys};
use std::time::Duration;

/// Passes that find rows to fill, but all of them locked, before the rest is left.
const TRIES: u32 = 5;

/// Between two such passes.
const WAIT: Duration = Duration::from_secs(1);

/// The column to fill.
pub struct FilledColumn {
    pub name: String,
    /// The name as SQL writes it.
    pub quoted: String,
    pub expression: String,
}

/// The size of batches, and the pause between them.
pub struct Rhythm {
    /// In rows.
    pub batch: i64,
    pub pause: Duration,
    pub waits_for_replicas: bool,
}

/// Rows filled, and rows seen that are still to fill.
#[derive(Default)]
pub struct Filled {
    pub rows: i64,
    pub left: i64,
}

impl Filled {
    pub fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.left += other.left;
    }
}

/// Returns a place before the rows of a page, written as `ctid`.
pub fn before_page(page: u32) -> String {
    format!("({page},0)")
}

impl FilledColumn {
    /// Fills the column in a table, pass after pass until one finds nothing to fill: rows that are
    /// updated meanwhile move to other places.
    pub fn fill(&self, table: pg_sys::Oid, rhythm: &Rhythm) -> Filled {
        let mut filled = Filled::default();
        let mut tries = 0;
        loop {
            let pass = self.pass(table, rhythm);
            filled.rows += pass.rows;
            tries = if pass.rows > 0 { 0 } else { tries + 1 };
            if pass.rows == 0 && (pass.left == 0 || tries == TRIES) {
                filled.left = pass.left;
                return filled;
            }
            if pass.rows == 0 {
                sleep(WAIT);
            }
        }
    }

    /// Goes once over the pages that a table has now.
    fn pass(&self, table: pg_sys::Oid, rhythm: &Rhythm) -> Filled {
        let pages = in_transaction(|_| {
            let open = Relation::try_open_table(table);
            open.map_or(0, |table| table.blocks())
        });
        let mut progress = Progress::begin("filling", Some(pages as usize));
        let (mut last, end) = (before_page(0), before_page(pages));
        let mut pass = Filled::default();
        loop {
            let step = in_transaction(|connection| {
                let _open = Relation::try_open_table(table)?;
                let name = names::relation(table);
                let (found, upto) = self.next(connection, &name, [&last, &end], rhythm.batch)?;
                let statement = connection.prepare(&self.batch(&name, &last, &upto), &[]);
                let (mut rows, mut empty) = (0, 0);
                statement.run(&[], &mut |row| {
                    rows = row.get(1).unwrap_or(0);
                    empty = row.get(2).unwrap_or(0);
                });
                let left = (found - rows - empty).max(0);
                Some((Filled { rows, left }, upto))
            });
            let Some((step, upto)) = step else {
                return pass;
            };
            last = upto;
            pass.add(&step);
            let page = last.trim_start_matches('(').split(',').next();
            progress.reach(page.and_then(|page| page.parse().ok()).unwrap_or(0));
            if step.rows > 0 {
                if rhythm.waits_for_replicas {
                    wait_for_replicas(&mut progress);
                }
                sleep(rhythm.pause);
            }
        }
    }

    /// Returns how many rows the next batch has at most, and the place of the last of them; None if
    /// there is none left before the end.
    fn next(
        &self,
        connection: &Connection,
        table: &str,
        [last, end]: [&str; 2],
        batch: i64,
    ) -> Option<(i64, String)> {
        // In the order of places, whatever other ways there are to find them.
        let settings = Settings::begin();
        for way in [
            c"enable_seqscan",
            c"enable_indexscan",
            c"enable_indexonlyscan",
            c"enable_bitmapscan",
        ] {
            settings.set(way, c"off");
        }
        let query = format!(
            "SELECT pg_catalog.count(*), pg_catalog.max(s.place)::pg_catalog.text FROM (
                 SELECT ctid AS place FROM ONLY {table}
                 WHERE {range} AND {target} IS NULL LIMIT {batch}) s",
            range = range(last, ("<", end)),
            target = self.quoted,
        );
        let (mut found, mut upto) = (0, None);
        connection.prepare(&query, &[]).run(&[], &mut |row| {
            found = row.get(1).unwrap_or(0);
            upto = row.name(2);
        });
        settings.restore();
        Some((found, upto?))
    }

    /// Returns the statement that fills the rows behind `last`, up to `upto`, but those that somebody has
    /// locked, and returns how many it has filled, and how many have no value. Of a row that was changed since the statement began the new version is locked, which the
    /// update does not see: it is left as it is.
    pub fn batch(&self, table: &str, last: &str, upto: &str) -> String {
        format!(
            "WITH made AS MATERIALIZED (
                 SELECT ctid AS place, (\n{expression}\n) AS value FROM ONLY {table}
                 WHERE {range} AND {target} IS NULL FOR NO KEY UPDATE SKIP LOCKED),
             filled AS (
                 UPDATE ONLY {table} AS t SET {target} = made.value FROM made
                 WHERE t.ctid OPERATOR(pg_catalog.=) made.place AND made.value IS DISTINCT FROM NULL
                 RETURNING 1)
             SELECT (SELECT pg_catalog.count(*) FROM filled),
                    (SELECT pg_catalog.count(*) OPERATOR(pg_catalog.-) pg_catalog.count(value) FROM made)",
            expression = self.expression,
            range = range(last, ("<=", upto)),
            target = self.quoted,
        )
    }
}

/// Returns the condition that a row is behind a place, and before or at another.
fn range(last: &str, (operator, upto): (&str, &str)) -> String {
    format!(
        "ctid OPERATOR(pg_catalog.>) '{last}'::pg_catalog.tid
             AND ctid OPERATOR(pg_catalog.{operator}) '{upto}'::pg_catalog.tid"
    )
}

/// Between two looks at the replicas.
const PAUSE: Duration = Duration::from_millis(100);

/// # Errors
/// ERROR `insufficient_privilege` unless the caller sees how far replicas are.
pub fn check_rights() {
    let needed = pg_sys::Oid::from(pg_sys::ROLE_PG_READ_ALL_STATS);
    // SAFETY: looks roles up in the catalog.
    if !unsafe { pg_sys::has_privs_of_role(pg_sys::GetUserId(), needed) } {
        raise(
            PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
            "permission denied to see how far replicas are",
            "Waiting for replicas needs the rights of role pg_read_all_stats.",
        );
    }
}

/// Waits until every replica that is connected has replayed the last commit of this session.
fn wait_for_replicas(progress: &mut Progress) {
    // What is written by now may end before it, where synchronous_commit is off.
    // SAFETY: reads the backend's own state.
    let end = unsafe { pg_sys::XactLastCommitEnd };
    let written = format!("{:X}/{:X}", end >> 32, end as u32);
    let behind = format!(
        "SELECT 1 FROM pg_catalog.pg_stat_replication
         WHERE state OPERATOR(pg_catalog.=) ANY ('{{streaming,catchup}}'::pg_catalog.text[])
             AND replay_lsn OPERATOR(pg_catalog.<) '{written}'::pg_catalog.pg_lsn LIMIT 1"
    );
    let is_behind =
        || in_transaction(|connection| connection.prepare(&behind, &[]).execute(&[])) > 0;
    while is_behind() {
        progress.look();
        sleep(PAUSE);
    }
}
