//! Trackers that are refreshed when a transaction commits.

use crate::live::access::{lock, rights_for};
use crate::live::refresh::refresh;
use crate::live::tracker::{Tracker, check_call};
use crate::pg::call::finfo;
use crate::pg::statement::Connection;
use pgrx::pg_sys;
use std::cell::RefCell;
use std::ffi::c_void;
use std::sync::Once;

/// A tracker of a table that the transaction has changed.
struct Touched {
    tracker: Tracker,
    /// The subtransaction that has refreshed it since.
    refreshed_in: Option<pg_sys::SubTransactionId>,
}

thread_local! {
    /// The trackers that the transaction has touched; a backend has one thread that runs statements.
    static TOUCHED: RefCell<Vec<Touched>> = const { RefCell::new(Vec::new()) };
}

/// Remembers a tracker until the transaction ends.
pub fn remember(tracker: &Tracker) {
    static REGISTERED: Once = Once::new();
    // SAFETY: the callbacks live as long as the library.
    REGISTERED.call_once(|| unsafe {
        pg_sys::RegisterXactCallback(Some(forget), std::ptr::null_mut());
        pg_sys::RegisterSubXactCallback(Some(take_back), std::ptr::null_mut());
    });
    TOUCHED.with_borrow_mut(|touched| {
        let mut known = touched.iter_mut();
        match known.find(|known| known.tracker.tables == tracker.tables) {
            Some(known) => known.refreshed_in = None,
            None => touched.push(Touched {
                tracker: tracker.clone(),
                refreshed_in: None,
            }),
        }
    });
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn forget(_event: pg_sys::XactEvent::Type, _argument: *mut c_void) {
    TOUCHED.with_borrow_mut(Vec::clear);
}

/// Forgets the refreshes of a subtransaction that is rolled back.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn take_back(
    event: pg_sys::SubXactEvent::Type,
    ended: pg_sys::SubTransactionId,
    _parent: pg_sys::SubTransactionId,
    _argument: *mut c_void,
) {
    if event == pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB {
        // Subtransactions within it began after it.
        TOUCHED.with_borrow_mut(|touched| {
            for known in touched {
                known.refreshed_in = known.refreshed_in.filter(|within| *within < ended);
            }
        });
    }
}

/// Refreshes the trackers that a transaction has touched, before it commits.
///
/// # Safety
/// PostgreSQL calls it.
#[unsafe(no_mangle)]
#[pgrx::pg_guard]
pub unsafe extern "C-unwind" fn near_dup_refresh_at_commit(
    fcinfo: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    // A trigger is called for every row, and the first call refreshes all.
    if TOUCHED.with_borrow(Vec::is_empty) {
        // SAFETY: vouched for by the caller.
        unsafe { check_call(fcinfo) };
    }
    refresh_touched();
    pg_sys::Datum::null()
}

/// Refreshes the trackers that the transaction has touched and not refreshed since. They are locked in
/// one order, so that two transactions do not wait for each other.
pub fn refresh_touched() {
    // SAFETY: reads a variable of the backend.
    let now = unsafe { pg_sys::GetCurrentSubTransactionId() };
    let mut touched: Vec<Tracker> = TOUCHED.with_borrow_mut(|touched| {
        let changed = touched
            .iter_mut()
            .filter(|known| known.refreshed_in.is_none());
        changed
            .map(|known| {
                known.refreshed_in = Some(now);
                known.tracker.clone()
            })
            .collect()
    });
    touched.sort_unstable_by_key(|tracker| tracker.tables.clusters.to_u32());
    for tracker in &touched {
        let rights = rights_for(tracker.relation);
        let connection = Connection::open();
        lock(&connection, tracker);
        connection.close();
        rights.resign();
    }
    for tracker in touched {
        refresh(tracker, false);
    }
}

finfo!(pg_finfo_near_dup_refresh_at_commit);
