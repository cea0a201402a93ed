//! The trigger function `near_dup_guard`, and the rows that it notes, which wait for their statement to pass: that
//! happens when a statement or a transaction ends.
//!
//! A row belongs to the innermost statement in progress when its trigger fires, which has a frame of
//! [`finish`] or [`utility`] on the stack. Two kinds of rows have none: rows that logical replication
//! applies, and rows of the COPY that loads the library. The former pass when the transaction ends,
//! the latter before the session's next command, too.

use crate::guard::locks::{Standing, say};
use crate::guard::notes_table::NotesTable;
use crate::guard::options::GuardOptions;
use crate::guard::passing::pass;
use crate::guard::rejection::{self, Rejection};
use crate::guard::row::{Place, not_so};
use crate::guard::slot::{Tid, tid};
use crate::guard::table::root_of;
use crate::pg::call::{finfo, trigger_data};
use crate::pg::error::OrRaise;
use crate::pg::relation::Relation;
use neardup::memory::{Grow, collected};
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

/// Notes a row, which passes with its statement, by the versions of it from now on and before.
///
/// # Safety
/// The data belong to the running call; the running transaction has written the row.
unsafe fn note(data: &pg_sys::TriggerData, root: pg_sys::Oid, new: Option<Tid>, old: Option<Tid>) {
    static REGISTERED: Once = Once::new();
    // SAFETY: the callbacks live as long as the library.
    REGISTERED.call_once(|| unsafe {
        pg_sys::RegisterXactCallback(Some(at_transaction_end), std::ptr::null_mut());
        pg_sys::RegisterSubXactCallback(Some(at_subtransaction_end), std::ptr::null_mut());
    });
    // SAFETY: vouched for by the caller.
    let place = unsafe {
        Place {
            root,
            table: (*data.tg_relation).rd_id,
            file: (*(*data.tg_relation).rd_rel).relfilenode,
            trigger: (*data.tg_trigger).tgoid,
            new,
            old,
            subtransaction: pg_sys::GetCurrentSubTransactionId(),
        }
    };
    PLACES.with_borrow_mut(|places| places.try_push(place).or_raise());
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

/// Lets the rows pass that were noted after the first `before` rows, and raises the ERROR that rejects one.
///
/// # Safety
/// A transaction is running. No frame up to PostgreSQL's has anything to be dropped.
unsafe fn pass_since(before: usize, snapshot: pg_sys::Snapshot) {
    if noted() > before {
        let mut rejection = None;
        // SAFETY: vouched for by the caller.
        unsafe {
            pass_noted(before, snapshot, &mut rejection);
            if let Some(rejection) = &rejection {
                rejection::raise(rejection);
            }
        }
    }
}

/// Lets the rows pass; a rejection is left to the caller, who has nothing to drop.
///
/// # Safety
/// A transaction is running, and the snapshot is a valid one or NULL.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn pass_noted(
    before: usize,
    snapshot: pg_sys::Snapshot,
    rejection: *mut Option<Rejection>,
) {
    let places = PLACES.with_borrow_mut(|noted| collected(noted.drain(before..)).or_raise());
    // SAFETY: vouched for by the caller; after an ERROR the snapshot goes with the transaction.
    unsafe {
        pg_sys::PushActiveSnapshot(match snapshot.is_null() {
            true => pg_sys::GetTransactionSnapshot(),
            false => snapshot,
        });
        *rejection = pass(&places);
        pg_sys::PopActiveSnapshot();
    }
}

/// Implements `near_dup_guard(column, threshold [, scope=column,...] [, ...])`.
///
/// # Errors
/// ERROR unless called as a trigger for each row, AFTER INSERT, UPDATE or DELETE, or BEFORE INSERT without
/// arguments, or AFTER TRUNCATE.
///
/// # Safety
/// PostgreSQL calls it.
#[unsafe(no_mangle)]
#[pgrx::pg_guard]
pub unsafe extern "C-unwind" fn near_dup_guard(fcinfo: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    const BEFORE_ROW: u32 = pg_sys::TRIGGER_EVENT_BEFORE | pg_sys::TRIGGER_EVENT_ROW;
    const AFTER_ROW: u32 = pg_sys::TRIGGER_EVENT_AFTER | pg_sys::TRIGGER_EVENT_ROW;
    const AFTER_STATEMENT: u32 = pg_sys::TRIGGER_EVENT_AFTER;
    // SAFETY: vouched for by the caller; a table is open while its triggers run.
    unsafe {
        let data = trigger_data(fcinfo)
            .unwrap_or_else(|| not_so("near_dup_guard was not called as a trigger"));
        let root = root(fcinfo, data.tg_relation);
        let old = || Some(tid(data.tg_trigslot));
        let timing = pg_sys::TRIGGER_EVENT_TIMINGMASK | pg_sys::TRIGGER_EVENT_ROW;
        let operation = data.tg_event & pg_sys::TRIGGER_EVENT_OPMASK;
        match (data.tg_event & timing, operation) {
            (BEFORE_ROW, pg_sys::TRIGGER_EVENT_INSERT) if (*data.tg_trigger).tgnargs == 0 => {
                say(root, Standing::WillPass);
                return data.tg_trigtuple.into();
            }
            (AFTER_ROW, pg_sys::TRIGGER_EVENT_INSERT) => note(data, root, old(), None),
            (AFTER_ROW, pg_sys::TRIGGER_EVENT_UPDATE) => {
                note(data, root, Some(tid(data.tg_newslot)), old());
            }
            (AFTER_ROW, pg_sys::TRIGGER_EVENT_DELETE) => note(data, root, None, old()),
            (AFTER_STATEMENT, pg_sys::TRIGGER_EVENT_TRUNCATE) => remove_notes(data),
            _ => not_so("near_dup_guard was not fired after each row"),
        }
        pg_sys::Datum::null()
    }
}

finfo!(pg_finfo_near_dup_guard);

/// Removes all notes of a guard whose table was emptied.
///
/// # Safety
/// The data belong to the running call.
unsafe fn remove_notes(data: &pg_sys::TriggerData) {
    // SAFETY: vouched for by the caller; a table is open while its triggers run.
    let (table, options) = unsafe {
        let table = Relation::open_table((*data.tg_relation).rd_id);
        let options = GuardOptions::of_trigger(&*data.tg_trigger, table.oid());
        (table, options)
    };
    if let Some(notes) = options.notes {
        let notes = NotesTable::open(notes.table);
        notes.check(&table);
        notes.empty();
    }
}

/// Returns the root of the trigger's table, looked up once for each statement.
///
/// # Safety
/// `fcinfo` is that of the running call, as a trigger of that table.
unsafe fn root(fcinfo: pg_sys::FunctionCallInfo, table: pg_sys::Relation) -> pg_sys::Oid {
    // SAFETY: vouched for by the caller; a statement has a function of its own for each trigger.
    unsafe {
        let kept = &mut (*(*fcinfo).flinfo).fn_extra;
        if kept.is_null() {
            *kept = std::ptr::without_provenance_mut(root_of((*table).rd_id).to_u32() as usize);
        }
        pg_sys::Oid::from(kept.addr() as u32)
    }
}

pgrx::extension_sql_file!("../../sql/guard/trigger.sql", name = "guard");
