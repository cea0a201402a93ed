//! The trigger function `near_dup_guard`. The rows that it fires for pass together, when their statement ends.
//!
//! Hooks in the executor and in COPY see the end of a statement. Rows wait for it in the frame of the innermost
//! statement in progress, if that began in the same subtransaction, so that no row waits longer than its statement or
//! its subtransaction lasts. Until then the table cannot be rewritten, because the statement has it open. If no hook
//! sees the end, each row passes in its own trigger. These are the rows of the COPY or of the foreign key's cascade that
//! loads the library, rows that logical replication applies, and rows of a deferrable trigger, which may fire at the end
//! of the transaction or in SET CONSTRAINTS, within a statement that does not have the table open.

use crate::guard::columns::GuardColumns;
use crate::guard::locks::{PassState, announce, pass_one_by_one};
use crate::guard::options::{guard_of_helper, is_main, protocol_violation};
use crate::guard::pair_table::{PairTable, remove_note, removes_notes};
use crate::guard::passing::pass;
use crate::guard::row::WrittenRow;
use crate::pg::call::{finfo, trigger_data};
use crate::pg::prelude::*;
use crate::pg::relation::{root_of, triggers};
use crate::pg::slot::tid;
use pgrx::pg_sys::panic::pgrx_extern_c_guard;
use std::cell::RefCell;
use std::ffi::{c_char, c_void};
use std::ptr::null_mut;

/// A statement in progress.
struct Frame {
    subtransaction: pg_sys::SubTransactionId,
    /// The statement's rows, in the order in which triggers fired.
    written: Vec<WrittenRow>,
}

thread_local! {
    /// The statements in progress, innermost last. Only the leader's thread uses them.
    static FRAMES: RefCell<Vec<Frame>> = const { RefCell::new(Vec::new()) };
}

static mut PREVIOUS_FINISH: pg_sys::ExecutorFinish_hook_type = None;
static mut PREVIOUS_UTILITY: pg_sys::ProcessUtility_hook_type = None;

/// Installs the hooks; called once when a session loads the library.
pub fn install() {
    // SAFETY: called while the library is loaded, before any helper starts.
    unsafe {
        PREVIOUS_FINISH = pg_sys::ExecutorFinish_hook;
        pg_sys::ExecutorFinish_hook = Some(finish);
        PREVIOUS_UTILITY = pg_sys::ProcessUtility_hook;
        pg_sys::ProcessUtility_hook = Some(utility);
        pg_sys::RegisterXactCallback(Some(at_transaction_end), null_mut());
        pg_sys::RegisterSubXactCallback(Some(at_subtransaction_end), null_mut());
    }
}

unsafe extern "C-unwind" {
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
    fn ThrowErrorData(error: *mut pg_sys::ErrorData);
}

/// Fires the last triggers of a query, then lets its rows pass.
unsafe extern "C-unwind" fn finish(query: *mut pg_sys::QueryDesc) {
    let frames = begin();
    // Passes on PostgreSQL's own call; nothing here needs to be dropped.
    PREVIOUS_FINISH.unwrap_or(standard_ExecutorFinish)(query);
    end(frames);
}

/// Runs a utility statement, then lets its rows pass if it is a COPY. Other utility statements write rows through
/// queries, whose end [`finish`] sees.
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
    // Passes on PostgreSQL's own call; nothing here needs to be dropped.
    let is_copy = (*(*statement).utilityStmt).type_ == pg_sys::NodeTag::T_CopyStmt;
    let frames = is_copy.then(begin);
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
    if let Some(frames) = frames {
        end(frames);
    }
}

/// Begins a statement. Returns the number of statements in progress before it.
fn begin() -> usize {
    // SAFETY: reads a variable of the backend.
    let subtransaction = unsafe { pg_sys::GetCurrentSubTransactionId() };
    FRAMES.with_borrow_mut(|frames| {
        let number = frames.len();
        let written = Vec::new();
        let frame = Frame {
            subtransaction,
            written,
        };
        frames.try_push(frame).or_raise();
        number
    })
}

/// Ends the statement that began when `frames` statements were in progress. Lets its rows pass, and raises the ERROR if
/// one is rejected.
///
/// # Safety
/// A transaction is running. No caller has anything to drop, because an ERROR jumps over it.
unsafe fn end(frames: usize) {
    let has_rows = FRAMES.with_borrow_mut(|all| {
        all.truncate(frames + 1);
        let ended = all.pop_if(|frame| frame.written.is_empty());
        ended.is_none() && all.len() > frames
    });
    if has_rows {
        pass_or_raise();
    }
}

/// Lets the rows of the innermost statement pass, and raises the ERROR if one is rejected.
///
/// # Safety
/// The same as for [`end`].
unsafe fn pass_or_raise() {
    // Nothing is left to be dropped when the rejection is raised.
    let rejection = pgrx_extern_c_guard(|| {
        let ended = FRAMES.with_borrow_mut(Vec::pop);
        // After an ERROR the snapshot is popped with the transaction.
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        let rejection = ended.and_then(|frame| pass(&frame.written));
        pg_sys::PopActiveSnapshot();
        rejection
    });
    if let Some(mut rejection) = rejection {
        ThrowErrorData(&mut rejection);
    }
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn at_transaction_end(
    _event: pg_sys::XactEvent::Type,
    _argument: *mut c_void,
) {
    // No trigger fires after the first of these events.
    FRAMES.with_borrow_mut(Vec::clear);
}

/// Forgets the statements of a subtransaction that is rolled back.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn at_subtransaction_end(
    event: pg_sys::SubXactEvent::Type,
    ended: pg_sys::SubTransactionId,
    _parent: pg_sys::SubTransactionId,
    _argument: *mut c_void,
) {
    if event == pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB {
        // Subtransactions of the ended one have higher numbers.
        FRAMES.with_borrow_mut(|frames| frames.retain(|frame| frame.subtransaction < ended));
    }
}

/// Implements `near_dup_guard(column, threshold [, scope=column,...] [, ...])`.
///
/// # Errors
/// ERROR `e_r_i_e_trigger_protocol_violated` unless called as a trigger AFTER INSERT, UPDATE or DELETE FOR EACH ROW,
/// BEFORE INSERT FOR EACH ROW without arguments, or AFTER TRUNCATE.
///
/// # Safety
/// PostgreSQL calls it.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn near_dup_guard(fcinfo: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    let (result, has_to_pass) = pgrx_extern_c_guard(|| fire(fcinfo));
    if has_to_pass {
        pass_or_raise();
    }
    result
}

finfo!(pg_finfo_near_dup_guard);

/// Handles a call to the trigger function. The row waits for the end of its statement, or passes as a statement of its
/// own if no hook sees the end. Returns the trigger's result, and whether the row has to pass now.
///
/// # Safety
/// The same as for [`near_dup_guard`].
unsafe fn fire(fcinfo: pg_sys::FunctionCallInfo) -> (pg_sys::Datum, bool) {
    const BEFORE_ROW: u32 = pg_sys::TRIGGER_EVENT_BEFORE | pg_sys::TRIGGER_EVENT_ROW;
    const AFTER_ROW: u32 = pg_sys::TRIGGER_EVENT_AFTER | pg_sys::TRIGGER_EVENT_ROW;
    const AFTER_STATEMENT: u32 = pg_sys::TRIGGER_EVENT_AFTER;
    let done = (pg_sys::Datum::null(), false);
    // A table is open while its triggers run.
    let data = trigger_data(fcinfo)
        .unwrap_or_else(|| protocol_violation("near_dup_guard was not called as a trigger"));
    let (table, trigger) = (data.tg_relation, &*data.tg_trigger);
    let timing = data.tg_event & (pg_sys::TRIGGER_EVENT_TIMINGMASK | pg_sys::TRIGGER_EVENT_ROW);
    if timing & pg_sys::TRIGGER_EVENT_ROW != 0 && removes_notes(trigger) {
        remove_note(data);
        return done;
    }
    let root = root(fcinfo, table);
    let old = || Some(tid(data.tg_trigslot));
    let [new, old] = match (timing, data.tg_event & pg_sys::TRIGGER_EVENT_OPMASK) {
        (BEFORE_ROW, pg_sys::TRIGGER_EVENT_INSERT) if trigger.tgnargs == 0 => {
            let is_main = |main: &pg_sys::Trigger| {
                main.tgfoid == trigger.tgfoid && is_main(main) && fires(main)
            };
            if triggers((*table).trigdesc).iter().any(is_main) {
                announce(root, PassState::WillPass);
            }
            return (data.tg_trigtuple.into(), false);
        }
        (AFTER_ROW, pg_sys::TRIGGER_EVENT_INSERT) => [old(), None],
        (AFTER_ROW, pg_sys::TRIGGER_EVENT_UPDATE) => [Some(tid(data.tg_newslot)), old()],
        (AFTER_ROW, pg_sys::TRIGGER_EVENT_DELETE) => [None, old()],
        (AFTER_STATEMENT, pg_sys::TRIGGER_EVENT_TRUNCATE) => {
            let table = Relation::open_table((*table).rd_id);
            if let Some(options) = guard_of_helper(&table, trigger)
                && let Some(notes) = &options.notes
            {
                let key = GuardColumns::of(&table, &options).key_type(&table);
                PairTable::notes(notes.table, &table, key, pg_sys::RowExclusiveLock).empty();
            }
            return done;
        }
        _ => protocol_violation("near_dup_guard was not fired after each row"),
    };
    let row = WrittenRow {
        root,
        table: (*table).rd_id,
        trigger: trigger.tgoid,
        new,
        old,
    };
    let has_to_pass = await_end(row, trigger.tgdeferrable);
    (pg_sys::Datum::null(), has_to_pass)
}

/// Returns whether `trigger` fires in this session.
fn fires(trigger: &pg_sys::Trigger) -> bool {
    // SAFETY: a variable of the backend.
    let role = unsafe { pg_sys::SessionReplicationRole } as u32;
    let is_replica = role == pg_sys::SESSION_REPLICATION_ROLE_REPLICA;
    match trigger.tgenabled as u8 {
        b'A' => true,
        b'O' => !is_replica,
        b'R' => is_replica,
        _ => false,
    }
}

/// Adds `row` to the frame of its statement, or to a new frame if there is none or the trigger `is_deferrable`.
/// Returns whether the frame is new.
fn await_end(row: WrittenRow, is_deferrable: bool) -> bool {
    // SAFETY: reads a variable of the backend.
    let now = unsafe { pg_sys::GetCurrentSubTransactionId() };
    let is_alone = FRAMES.with_borrow(|frames| {
        let innermost = frames.last();
        is_deferrable || innermost.is_none_or(|frame| frame.subtransaction != now)
    });
    if is_alone {
        begin();
        // SAFETY: reads a variable of the backend.
        if !unsafe { pg_sys::IsLogicalWorker() } {
            pass_one_by_one(row.root);
        }
    }
    if row.new.is_some() {
        announce(row.root, PassState::WillPass);
    }
    FRAMES.with_borrow_mut(|frames| {
        let innermost = frames.last_mut().expect("one has begun");
        innermost.written.try_push(row).or_raise();
    });
    is_alone
}

/// Returns the root of `table`, looked up once per statement.
///
/// # Safety
/// `fcinfo` is that of the running call of a trigger on `table`.
unsafe fn root(fcinfo: pg_sys::FunctionCallInfo, table: pg_sys::Relation) -> pg_sys::Oid {
    // Each trigger of a statement has its own `flinfo`.
    let kept = &mut (*(*fcinfo).flinfo).fn_extra;
    if kept.is_null() {
        *kept = std::ptr::without_provenance_mut(root_of((*table).rd_id).to_u32() as usize);
    }
    pg_sys::Oid::from(kept.addr() as u32)
}

pgrx::extension_sql_file!("../../sql/guard/trigger.sql", name = "guard");
