//! Trackers that are refreshed when a transaction commits.

use crate::live::refresh::refresh;
use crate::live::tracker::{Tracker, check_call, note_function};
use crate::pg::call::finfo;
use crate::pg::statement::Connection;
use pgrx::pg_sys;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Once;

thread_local! {
    /// The trackers that the transaction has touched, by their tables of clusters, and the subtransaction that has
    /// refreshed each since; a backend has one thread that runs statements.
    static TOUCHED: RefCell<BTreeMap<u32, Option<pg_sys::SubTransactionId>>> =
        const { RefCell::new(BTreeMap::new()) };
}

/// Remembers the tracker with a table of clusters until the transaction ends.
pub fn remember(clusters: pg_sys::Oid) {
    static REGISTERED: Once = Once::new();
    // SAFETY: the callbacks live as long as the library.
    REGISTERED.call_once(|| unsafe {
        pg_sys::RegisterXactCallback(Some(forget), std::ptr::null_mut());
        pg_sys::RegisterSubXactCallback(Some(take_back), std::ptr::null_mut());
    });
    TOUCHED.with_borrow_mut(|touched| touched.insert(clusters.to_u32(), None));
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn forget(_event: pg_sys::XactEvent::Type, _argument: *mut c_void) {
    TOUCHED.with_borrow_mut(BTreeMap::clear);
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
            for refreshed_in in touched.values_mut() {
                *refreshed_in = refreshed_in.filter(|within| *within < ended);
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
    if TOUCHED.with_borrow(BTreeMap::is_empty) {
        // SAFETY: vouched for by the caller.
        unsafe { check_call(fcinfo) };
    }
    // SAFETY: the call is running.
    refresh_touched(unsafe { (*(*fcinfo).flinfo).fn_oid });
    pg_sys::Datum::null()
}

/// Refreshes the trackers that the transaction has touched and not refreshed since, unless they have ended.
/// They are locked in one order, so that two transactions do not wait for each other. `function` is one of the
/// extension's.
pub fn refresh_touched(function: pg_sys::Oid) {
    // SAFETY: reads a variable of the backend.
    let now = unsafe { pg_sys::GetCurrentSubTransactionId() };
    let mut clusters = Vec::new();
    TOUCHED.with_borrow_mut(|touched| {
        for (table, refreshed_in) in touched.iter_mut().filter(|(_, within)| within.is_none()) {
            *refreshed_in = Some(now);
            clusters.push(pg_sys::Oid::from(*table));
        }
    });
    if clusters.is_empty() {
        return;
    }
    let note = note_function(function);
    let connection = Connection::open();
    let trackers = clusters.into_iter();
    let trackers = trackers.filter_map(|table| Tracker::of_clusters(note, &connection, table));
    let trackers: Vec<Tracker> = trackers.collect();
    connection.close();
    for tracker in trackers {
        refresh(tracker, false);
    }
}

finfo!(pg_finfo_near_dup_refresh_at_commit);
