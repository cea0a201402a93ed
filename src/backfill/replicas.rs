//! Waiting for replicas.

use crate::pg::error::raise;
use crate::pg::progress::Progress;
use crate::pg::transaction::{in_transaction, sleep};
use pgrx::{PgSqlErrorCode, pg_sys};
use std::time::Duration;

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
pub fn wait(progress: &mut Progress) {
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
        || in_transaction(|connection| connection.prepare(&behind, &[]).run(&[], &mut |_| {})) > 0;
    while is_behind() {
        progress.look();
        sleep(PAUSE);
    }
}
