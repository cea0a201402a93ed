//! Rows that wait for their statement to pass, which happens when a statement or a transaction ends.
//!
//! A row belongs to the innermost statement in progress when its trigger fires, which has a frame of
//! [`finish`] or [`utility`] on the stack. Two kinds of rows have none: rows that logical replication
//! applies, and rows of the COPY that loads the library. The former pass when the transaction ends,
//! the latter before the session's next command, too.

use crate::guard::passing::pass;
use crate::guard::refusal::{self, Refusal};
use crate::guard::row::Place;
use crate::pg::error::or_out_of_memory;
use pgrx::pg_sys;
use std::cell::RefCell;
use std::ffi::{c_char, c_void};
use std::sync::Once;

thread_local! {
    /// In the order in which triggers fired; a backend has one thread that runs statements.
    static PLACES: RefCell<Vec<Place>> = const { RefCell::new(Vec::new()) };
}

static mut PREVIOUS_FINISH: pg_sys::ExecutorFinish_hook_type = None;
static mut PREVIOUS_UTILITY: pg_sys::ProcessUtility_hook_type = None;

/// Installs the hooks; called once when a session loads the library.
pub fn install() {
    // SAFETY: a backend has one thread.
    unsafe {
        PREVIOUS_FINISH = pg_sys::ExecutorFinish_hook;
        pg_sys::ExecutorFinish_hook = Some(finish);
        PREVIOUS_UTILITY = pg_sys::ProcessUtility_hook;
        pg_sys::ProcessUtility_hook = Some(utility);
    }
}

/// Notes a row, which passes with its statement.
pub fn note(place: Place) {
    static REGISTERED: Once = Once::new();
    // SAFETY: the callbacks live as long as the library.
    REGISTERED.call_once(|| unsafe {
        pg_sys::RegisterXactCallback(Some(at_transaction_end), std::ptr::null_mut());
        pg_sys::RegisterSubXactCallback(Some(at_subtransaction_end), std::ptr::null_mut());
    });
    PLACES.with_borrow_mut(|places| {
        or_out_of_memory(places.try_reserve(1));
        places.push(place);
    });
}

fn noted() -> usize {
    PLACES.with_borrow(Vec::len)
}

unsafe extern "C-unwind" {
    // The callbacks of pgrx report an ERROR anew, without its constraint and its table.
    fn standard_ExecutorFinish(query: *mut pg_sys::QueryDesc);
    fn standard_ProcessUtility(
        statement: *mut pg_sys::PlannedStmt,
        text: *const c_char,
        is_read_only: bool,
        context: pg_sys::ProcessUtilityContext::Type,
        parameters: pg_sys::ParamListInfo,
        environment: *mut pg_sys::QueryEnvironment,
        receiver: *mut pg_sys::DestReceiver,
        completion: *mut pg_sys::QueryCompletion,
    );
}

/// Fires a query's last triggers; then its rows pass.
unsafe extern "C-unwind" fn finish(query: *mut pg_sys::QueryDesc) {
    let before = noted();
    // SAFETY: PostgreSQL's own call, handed on; nothing here needs to be dropped.
    unsafe {
        PREVIOUS_FINISH.unwrap_or(standard_ExecutorFinish)(query);
        pass_since(before, (*query).snapshot);
    }
}

/// Runs a command; then the rows pass that it has written by itself, as COPY does.
unsafe extern "C-unwind" fn utility(
    statement: *mut pg_sys::PlannedStmt,
    text: *const c_char,
    is_read_only: bool,
    context: pg_sys::ProcessUtilityContext::Type,
    parameters: pg_sys::ParamListInfo,
    environment: *mut pg_sys::QueryEnvironment,
    receiver: *mut pg_sys::DestReceiver,
    completion: *mut pg_sys::QueryCompletion,
) {
    // SAFETY: PostgreSQL's own call, handed on; nothing here needs to be dropped.
    unsafe {
        let is_first = context == pg_sys::ProcessUtilityContext::PROCESS_UTILITY_TOPLEVEL;
        let ends = (*(*statement).utilityStmt).type_ == pg_sys::NodeTag::T_TransactionStmt;
        if is_first && !ends {
            pass_since(0, std::ptr::null_mut());
        }
        let before = noted();
        PREVIOUS_UTILITY.unwrap_or(standard_ProcessUtility)(
            statement,
            text,
            is_read_only,
            context,
            parameters,
            environment,
            receiver,
            completion,
        );
        pass_since(before, std::ptr::null_mut());
    }
}

unsafe extern "C-unwind" fn at_transaction_end(
    event: pg_sys::XactEvent::Type,
    _argument: *mut c_void,
) {
    match event {
        pg_sys::XactEvent::XACT_EVENT_PRE_COMMIT | pg_sys::XactEvent::XACT_EVENT_PRE_PREPARE => {
            // SAFETY: the transaction is running; nothing here needs to be dropped.
            unsafe { pass_since(0, std::ptr::null_mut()) };
        }
        _ => PLACES.with_borrow_mut(Vec::clear),
    }
}

/// Forgets the rows of a subtransaction that is rolled back.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn at_subtransaction_end(
    event: pg_sys::SubXactEvent::Type,
    ended: pg_sys::SubTransactionId,
    _parent: pg_sys::SubTransactionId,
    _argument: *mut c_void,
) {
    if event == pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB {
        // Subtransactions within it began after it.
        PLACES.with_borrow_mut(|places| places.retain(|place| place.subtransaction < ended));
    }
}

/// Lets the rows pass that were noted after the first `before` rows, and raises the ERROR that refuses one.
///
/// # Safety
/// A transaction is running. No frame up to PostgreSQL's has anything to be dropped.
unsafe fn pass_since(before: usize, snapshot: pg_sys::Snapshot) {
    if noted() > before {
        let mut refusal = Refusal::NONE;
        // SAFETY: vouched for by the caller.
        unsafe {
            pass_noted(before, snapshot, &mut refusal);
            refusal::raise(&refusal);
        }
    }
}

/// Lets the rows pass; a refusal is left to the caller, who has nothing to drop.
///
/// # Safety
/// A transaction is running, and the snapshot is a valid one or NULL.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn pass_noted(
    before: usize,
    snapshot: pg_sys::Snapshot,
    refusal: *mut Refusal,
) {
    let mut places = Vec::new();
    PLACES.with_borrow_mut(|noted| {
        or_out_of_memory(places.try_reserve_exact(noted.len() - before));
        places.extend(noted.drain(before..));
    });
    // SAFETY: vouched for by the caller; after an ERROR the snapshot goes with the transaction.
    unsafe {
        pg_sys::PushActiveSnapshot(match snapshot.is_null() {
            true => pg_sys::GetTransactionSnapshot(),
            false => snapshot,
        });
        if let Some(refused) = pass(&places) {
            *refusal = refused;
        }
        pg_sys::PopActiveSnapshot();
    }
}
