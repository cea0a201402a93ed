//! The row that a guard's trigger fired for, and its signature where that is generated.

use crate::guard::lookup::Found;
use crate::pg::error::raise;
use pgrx::{PgSqlErrorCode, pg_sys};

/// The row that a trigger fired for.
#[derive(Clone, Copy)]
pub struct Row {
    pub table: pg_sys::Relation,
    pub slot: *mut pg_sys::TupleTableSlot,
    pub tuple: pg_sys::HeapTuple,
    /// The version that an UPDATE replaces.
    pub old: Option<(*mut pg_sys::TupleTableSlot, pg_sys::HeapTuple)>,
}

impl Row {
    /// # Errors
    /// ERROR unless called as a BEFORE INSERT OR UPDATE trigger for each row.
    pub unsafe fn of_call(fcinfo: pg_sys::FunctionCallInfo) -> Self {
        // SAFETY: vouched for by the caller; a trigger's context is its data.
        unsafe {
            let data = (*fcinfo).context.cast::<pg_sys::TriggerData>();
            let event = match data.as_ref() {
                Some(data) if data.type_ == pg_sys::NodeTag::T_TriggerData => data.tg_event,
                _ => not_so("near_dup_guard was not called as a trigger"),
            };
            let timing = pg_sys::TRIGGER_EVENT_TIMINGMASK | pg_sys::TRIGGER_EVENT_ROW;
            if event & timing != pg_sys::TRIGGER_EVENT_BEFORE | pg_sys::TRIGGER_EVENT_ROW {
                not_so("near_dup_guard was not fired before each row");
            }
            let data = &*data;
            match event & pg_sys::TRIGGER_EVENT_OPMASK {
                pg_sys::TRIGGER_EVENT_INSERT => Self {
                    table: data.tg_relation,
                    slot: data.tg_trigslot,
                    tuple: data.tg_trigtuple,
                    old: None,
                },
                pg_sys::TRIGGER_EVENT_UPDATE => Self {
                    table: data.tg_relation,
                    slot: data.tg_newslot,
                    tuple: data.tg_newtuple,
                    old: Some((data.tg_trigslot, data.tg_trigtuple)),
                },
                _ => not_so("near_dup_guard was fired by another event than INSERT or UPDATE"),
            }
        }
    }

    pub fn get(&self, column: i16) -> Option<pg_sys::Datum> {
        // SAFETY: the slot holds the row, which has that column.
        unsafe { get(self.slot, column) }
    }

    pub fn old(&self, column: i16) -> Option<pg_sys::Datum> {
        // SAFETY: as above.
        self.old.and_then(|(slot, _)| unsafe { get(slot, column) })
    }

    /// Returns whether a row found is the version that is being replaced.
    pub fn replaces(&self, found: &Found, table: pg_sys::Oid) -> bool {
        self.old.is_some_and(|(_, tuple)| {
            // SAFETY: tuple, slot and table are valid for the call.
            unsafe {
                let place = &(*tuple).t_self;
                (*self.table).rd_id == table
                    && pgrx::itemptr::item_pointer_get_both(*place)
                        == pgrx::itemptr::item_pointer_get_both((*found.slot).tts_tid)
            }
        })
    }
}

fn not_so(message: &str) -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
        message,
        "Use it as CREATE TRIGGER ... BEFORE INSERT OR UPDATE ON ... FOR EACH ROW EXECUTE FUNCTION near_dup_guard('sig', '0.8', 'reject').",
    )
}

/// # Safety
/// The slot holds a row with that column.
pub unsafe fn get(slot: *mut pg_sys::TupleTableSlot, column: i16) -> Option<pg_sys::Datum> {
    let mut is_null = false;
    // SAFETY: vouched for by the caller.
    let value = unsafe { pg_sys::slot_getattr(slot, i32::from(column), &mut is_null) };
    (!is_null).then_some(value)
}

/// A stored generated signature, which a BEFORE trigger has to evaluate itself.
pub struct Generated {
    state: *mut pg_sys::ExprState,
    context: *mut pg_sys::ExprContext,
}

impl Generated {
    /// Returns None if the column is not generated.
    ///
    /// # Safety
    /// The table is open, and has that column.
    pub unsafe fn of(
        table: pg_sys::Relation,
        column: i16,
        statement: pg_sys::MemoryContext,
    ) -> Option<Self> {
        // SAFETY: vouched for by the caller; all is allocated in the statement's memory.
        unsafe {
            if pg_sys::get_attgenerated((*table).rd_id, column) == 0 {
                return None;
            }
            let current = pg_sys::MemoryContextSwitchTo(statement);
            let expression = pg_sys::build_column_default(table, i32::from(column));
            let expression = pg_sys::expression_planner(expression.cast());
            let generated = Self {
                state: pg_sys::ExecInitExpr(expression, std::ptr::null_mut()),
                context: pg_sys::CreateStandaloneExprContext(),
            };
            pg_sys::MemoryContextSwitchTo(current);
            Some(generated)
        }
    }

    /// Returns the value, which lives until the next one is evaluated.
    ///
    /// # Safety
    /// The slot holds a row of the table.
    pub unsafe fn evaluate(&self, slot: *mut pg_sys::TupleTableSlot) -> Option<pg_sys::Datum> {
        let mut is_null = false;
        // SAFETY: vouched for by the caller.
        let value = unsafe {
            pg_sys::MemoryContextReset((*self.context).ecxt_per_tuple_memory);
            (*self.context).ecxt_scantuple = slot;
            pg_sys::ExecEvalExprSwitchContext(self.state, self.context, &mut is_null)
        };
        (!is_null).then_some(value)
    }
}
