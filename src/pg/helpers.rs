//! Threads that help with a job. They compute; only the leader calls PostgreSQL.

use crate::pg::error::{OrRaise, check_interrupts};
use crate::pg::settings::work_mem_bytes;
use helpers::{Limits, Line, Work};
use neardup::memory::Grow;
use neardup::parts::Parts;
use pgrx::pg_sys::panic::CaughtError;
use pgrx::{PgTryBuilder, pg_sys};
use std::mem;
use std::num::NonZeroUsize;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::available_parallelism;

/// Returns the size of a piece of work in bytes. Pieces for all helpers fit into work_mem, and handing one over is
/// cheap compared to its work.
pub fn piece_bytes() -> usize {
    (work_mem_bytes() / 8).min(1 << 16)
}

/// Works on pieces with as many helpers as the server allows a maintenance job, at most one per core. The pieces that
/// wait for a helper take up to work_mem.
///
/// `feed` puts pieces, each with a tag that stays in this thread. `take` gets tags and results in the same order,
/// whatever the number of helpers. An ERROR in `feed` or `take` ends the helpers.
pub fn in_order<P: Send, R: Send, T>(
    work: &Work<'_, P, R>,
    take: &mut dyn FnMut(T, R),
    feed: impl FnOnce(&mut Line<'_, '_, '_, P, R, T>),
) {
    // SAFETY: reads a setting of this backend.
    let allowed = unsafe { pg_sys::max_parallel_maintenance_workers } as usize;
    let limits = Limits {
        helpers: allowed.min(available_parallelism().map_or(1, NonZeroUsize::get)),
        bytes: work_mem_bytes(),
    };
    before_exit(|| helpers::in_order(limits, &mut check_interrupts, work, take, feed));
}

/// Works on pieces of records, as [`in_order`] does. `feed` puts each record as a tag, such as its number, and a
/// closure that appends its bytes. The result for a record takes about `made` bytes.
pub fn in_pieces<N: Send, R: Send>(
    made: usize,
    work: &Work<'_, (Vec<N>, Parts<u8>), R>,
    take: &mut dyn FnMut(R),
    feed: impl FnOnce(&mut PutRecord<'_, N>),
) {
    in_order(work, &mut |(), made| take(made), |line| {
        let (mut numbers, mut records) = (Vec::new(), Parts::default());
        let mut bytes = 0;
        feed(&mut |number, append| {
            append(&mut records.items);
            records.end().or_raise();
            numbers.try_push(number).or_raise();
            bytes = records.bytes() + (size_of::<N>() + made) * records.len();
            if bytes >= piece_bytes() {
                let piece = (mem::take(&mut numbers), mem::take(&mut records));
                line.put((), piece, mem::take(&mut bytes));
            }
        });
        line.put((), (numbers, records), bytes);
    });
}

/// Adds a record to the piece being filled, given its tag and a closure that appends its bytes.
pub type PutRecord<'a, N> = dyn FnMut(N, &mut dyn FnMut(&mut Vec<u8>)) + 'a;

/// Runs `work`. If a FATAL error, which unwinds nothing, ends the session in the meantime, a callback waits until no
/// helper is working. The callback is removed right after the work: PostgreSQL may have registered a callback of its
/// own before, which it can cancel only while that one is the latest.
fn before_exit<R>(work: impl FnOnce() -> R) -> R {
    let is_own = !IS_KEPT.load(Ordering::Relaxed);
    if is_own {
        // SAFETY: the callback lives as long as the library, which is never unloaded.
        unsafe { pg_sys::before_shmem_exit(Some(at_exit), pg_sys::Datum::null()) };
    }
    let done = PgTryBuilder::new(AssertUnwindSafe(work))
        .catch_others(|error| {
            let is_kept = is_own && !is_taken_back();
            match error {
                // The failed attempt to remove the callback has discarded PostgreSQL's report of the error.
                CaughtError::PostgresError(report) if is_kept => CaughtError::ErrorReport(report),
                error => error,
            }
            .rethrow()
        })
        .execute();
    if is_own {
        is_taken_back();
    }
    done
}

/// Set if the callback stays until the session ends.
static IS_KEPT: AtomicBool = AtomicBool::new(false);

/// Removes the callback. Returns false if it stays because the work registered a later one, as the first temporary
/// table of a session does.
fn is_taken_back() -> bool {
    let taken = PgTryBuilder::new(|| {
        // SAFETY: raises an ERROR, without any other effect, if the callback is not the latest.
        unsafe { pg_sys::cancel_before_shmem_exit(Some(at_exit), pg_sys::Datum::null()) };
        true
    });
    let is_taken = taken.catch_others(|_| false).execute();
    IS_KEPT.store(!is_taken, Ordering::Relaxed);
    is_taken
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn at_exit(_code: i32, _arg: pg_sys::Datum) {
    helpers::abandon();
}
