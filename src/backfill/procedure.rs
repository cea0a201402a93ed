//! The procedure, its arguments and what it reports.

use crate::backfill::batches::{Filled, FilledColumn, Rhythm, check_rights};
use crate::backfill::checks;
use crate::pg::call::Call;
use crate::pg::encoding::utf8;
use crate::pg::error::{invalid, tell};
use crate::pg::names;
use crate::pg::text::Text;
use crate::pg::transaction::{check_may_commit, commit, in_transaction};
use pgrx::prelude::*;
use std::ffi::CStr;
use std::time::Duration;

/// `near_dup_backfill(relation, target, expression, batch, pause, wait_for_replicas)` sets the column
/// `target`, where it is NULL, to the value of the expression, in the table and in all that inherit from
/// it. It commits each batch of rows, then pauses for as many seconds, and waits until all replicas have
/// replayed it.
///
/// # Errors
/// `active_sql_transaction` in a transaction block, `insufficient_privilege` without SELECT on the table and
/// UPDATE on the column, `undefined_column`, `generated_always` for a generated column,
/// `wrong_object_type` unless the relation is a table, `datatype_mismatch` for an expression of another
/// type, and any error of the expression.
#[pg_extern(sql = false)]
fn near_dup_backfill(fcinfo: pg_sys::FunctionCallInfo) {
    // SAFETY: the call is running; its arguments are of the declared types.
    let call = unsafe { Call::new(fcinfo) };
    check_may_commit(&call, "near_dup_backfill");
    let relation = pg_sys::Oid::from(call.argument(0, "relation").value() as u32);
    let column = column(&call);
    let rhythm = rhythm(&call);
    // The arguments were read in a transaction of the caller's isolation level.
    commit();
    let tables = in_transaction(|connection| checks::tables(connection, relation, &column));
    if rhythm.waits_for_replicas {
        check_rights();
    }
    let mut filled = Filled::default();
    for table in tables {
        filled.add(&column.fill(table, &rhythm));
    }
    report(&filled);
}

fn column(call: &Call) -> FilledColumn {
    // SAFETY: the arguments are a name and a text.
    unsafe {
        let target = CStr::from_ptr(call.argument(1, "target").cast_mut_ptr());
        let expression = Text::from_raw(call.argument(2, "expression"));
        FilledColumn {
            name: utf8(target),
            quoted: names::identifier(&utf8(target)),
            expression: String::from_utf8_lossy(&expression).into_owned(),
        }
    }
}

/// # Errors
/// ERROR `invalid_parameter_value` for values out of range.
fn rhythm(call: &Call) -> Rhythm {
    let batch = call.argument(3, "batch").value() as i64;
    if batch < 1 {
        invalid(
            &format!("batch must be at least 1, not {batch}"),
            "It is the number of rows that are committed together.",
        );
    }
    let seconds = f64::from_bits(call.argument(4, "pause").value() as u64);
    if !(0.0..=86_400.0).contains(&seconds) {
        invalid(
            &format!("pause must be between 0 and 86400, not {seconds}"),
            "It is in seconds.",
        );
    }
    Rhythm {
        batch,
        pause: Duration::from_secs_f64(seconds),
        waits_for_replicas: call.argument(5, "wait_for_replicas").value() != 0,
    }
}

fn report(filled: &Filled) {
    let done = format!("{} filled", counted(filled.rows));
    tell(PgLogLevel::NOTICE, &done, "");
    if filled.left > 0 {
        tell(
            PgLogLevel::WARNING,
            &format!("{} left to fill", counted(filled.left)),
            "Other transactions hold them, or triggers or policies keep them from being updated. Call near_dup_backfill again when those transactions have ended.",
        );
    }
}

fn counted(rows: i64) -> String {
    match rows {
        1 => String::from("1 row"),
        rows => format!("{rows} rows"),
    }
}

pgrx::extension_sql_file!("../../sql/backfill/backfill.sql", name = "backfill");
