//! Transactions that a procedure begins and ends by itself.

use crate::pg::call::Call;
use crate::pg::error::{check_interrupts, raise};
use crate::pg::settings::set_for_transaction;
use crate::pg::statement::Connection;
use pgrx::{PgSqlErrorCode, pg_sys};
use std::time::{Duration, Instant};

/// # Errors
/// ERROR `active_sql_transaction` unless the procedure may end the transaction in which it is called.
pub fn check_may_commit(call: &Call, procedure: &str) {
    // SAFETY: PostgreSQL passes the context of a CALL, whose tag tells its type.
    let may_commit = unsafe {
        let context = (*call.fcinfo()).context;
        !context.is_null()
            && (*context).type_ == pg_sys::NodeTag::T_CallContext
            && !(*context.cast::<pg_sys::CallContext>()).atomic
    };
    if !may_commit {
        raise(
            PgSqlErrorCode::ERRCODE_ACTIVE_SQL_TRANSACTION,
            &format!("{procedure} cannot run inside a transaction block"),
            "It commits what it has done: CALL it outside BEGIN and COMMIT, functions, and procedures that are SECURITY DEFINER or have SET.",
        );
    }
}

/// Commits the transaction of a procedure that may.
pub fn commit() {
    Connection::open_nonatomic().commit();
}

/// Does some work in a transaction at READ COMMITTED, and commits it. The transaction before has to
/// be new.
pub fn in_transaction<T>(work: impl FnOnce(&Connection) -> T) -> T {
    let connection = Connection::open_nonatomic();
    set_for_transaction(c"transaction_isolation", c"read committed");
    let result = work(&connection);
    connection.commit();
    result
}

/// Waits; a cancel ends it.
pub fn sleep(duration: Duration) {
    let until = Instant::now() + duration;
    loop {
        check_interrupts();
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        let events = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
        let milliseconds = left.as_millis().clamp(1, i32::MAX as u128);
        // SAFETY: the latch is this backend's own.
        unsafe {
            pg_sys::WaitLatch(
                pg_sys::MyLatch,
                events as i32,
                milliseconds as _,
                pg_sys::PG_WAIT_EXTENSION,
            );
            pg_sys::ResetLatch(pg_sys::MyLatch);
        }
    }
}
