//! Trackers that are refreshed when a transaction commits.

use crate::live::access::{lock, rights_for};
use crate::live::refresh::refresh;
use crate::live::tracker::Tracker;
use crate::live::trigger;
use crate::pg::call::finfo;
use crate::pg::statement::Connection;
use pgrx::pg_sys;
use std::cell::RefCell;
use std::ffi::c_void;
use std::sync::Once;

thread_local! {
    /// The trackers that the transaction has touched; a backend has one thread that runs statements.
    static TOUCHED: RefCell<Vec<Tracker>> = const { RefCell::new(Vec::new()) };
}

/// Remembers a tracker until the transaction ends.
pub fn remember(tracker: &Tracker) {
    static REGISTERED: Once = Once::new();
    // SAFETY: the callback lives as long as the library.
    REGISTERED.call_once(|| unsafe {
        pg_sys::RegisterXactCallback(Some(forget), std::ptr::null_mut());
    });
    TOUCHED.with_borrow_mut(|touched| {
        if !touched.iter().any(|known| known.tables == tracker.tables) {
            touched.push(tracker.clone());
        }
    });
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn forget(_event: pg_sys::XactEvent::Type, _argument: *mut c_void) {
    TOUCHED.with_borrow_mut(Vec::clear);
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
        unsafe { trigger::check(fcinfo) };
    }
    refresh_touched();
    pg_sys::Datum::null()
}

/// Refreshes all trackers that the transaction has touched, once. They are locked in one order, so that
/// two transactions do not wait for each other.
pub fn refresh_touched() {
    let mut touched = TOUCHED.take();
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
