//! The trigger function `near_dup_guard`: no near-duplicate gets in, whatever others insert at the
//! same time.
//!
//! It checks as PostgreSQL checks exclusion constraints: the row is in the table and in its index
//! already, and the index is searched for rows of any transaction. A match refuses the row. One that
//! is not decided yet is waited for, and the search begins anew. The index numbers its rows in the
//! order in which they enter it, and a search finds every row with a lower number: so of two rows of
//! undecided transactions it is the later that waits for the earlier, and two sessions that insert a
//! row each never wait for each other.

use crate::guard::columns::GuardColumns;
use crate::guard::options::GuardOptions;
use crate::guard::refusal::{self, Refusal};
use crate::guard::row::{FiredRow, Slot, Tid, get, is_current, is_of_same_command, tid};
use crate::guard::search::{Own, Pending, TableSearch};
use crate::guard::table::{Rule, SearchedTable, root_of};
use crate::guard::version::{Nearness, RowVersion};
use crate::pg::call::finfo;
use crate::pg::names;
use crate::pg::statement::server_text;
use pgrx::pg_sys;
use std::ffi::{CString, c_void};

/// A trigger with its table, columns and indexes, looked up once for each statement.
struct Guard {
    rule: Rule,
    /// Of the table that the trigger fired for.
    columns: GuardColumns,
    tables: Vec<SearchedTable>,
}

/// The outcome of a search.
enum Outcome {
    Clear,
    Undecided(Pending),
    /// There is a near-duplicate; the DETAIL of the message, if it may be told.
    Duplicate(Option<CString>),
}

/// Checks a row, and raises the ERROR that refuses it.
///
/// # Safety
/// PostgreSQL calls it.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn near_dup_guard(fcinfo: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    let mut refusal = Refusal::NONE;
    // SAFETY: passed on to the caller; this frame holds nothing that needs to be dropped when
    // the ERROR jumps over it.
    unsafe {
        check(fcinfo, &mut refusal);
        refusal::raise(&refusal);
    }
    pg_sys::Datum::null()
}

finfo!(pg_finfo_near_dup_guard);

/// Checks a row; a refusal is left to the caller, who has nothing to drop.
///
/// # Safety
/// `fcinfo` is that of the running call.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn check(fcinfo: pg_sys::FunctionCallInfo, refusal: *mut Refusal) {
    // SAFETY: vouched for by the caller; the guard in fn_extra is dropped with the statement.
    unsafe {
        let row = FiredRow::of_call(fcinfo);
        let trigger = (*(*fcinfo).context.cast::<pg_sys::TriggerData>()).tg_trigger;
        let function = (*fcinfo).flinfo;
        if (*function).fn_extra.is_null() {
            let options = GuardOptions::of_trigger(&*trigger, (*row.table).rd_id);
            let guard = Box::new(Guard::new(row.table, options, (*function).fn_oid));
            (*function).fn_extra = Box::into_raw(guard).cast();
            drop_with((*function).fn_mcxt, (*function).fn_extra);
        }
        let guard = &*(*function).fn_extra.cast::<Guard>();
        if let Outcome::Duplicate(detail) = guard.decide(&row) {
            *refusal = Refusal::new(row.table, trigger, detail.as_deref());
        }
    }
}

/// Drops the guard when the statement's memory is freed.
///
/// # Safety
/// `guard` is a boxed guard in the statement of that context.
unsafe fn drop_with(context: pg_sys::MemoryContext, guard: *mut c_void) {
    // SAFETY: the callback lives in the context that calls it.
    unsafe {
        let size = size_of::<pg_sys::MemoryContextCallback>();
        let callback = pg_sys::MemoryContextAlloc(context, size);
        let callback = callback.cast::<pg_sys::MemoryContextCallback>();
        (*callback).func = Some(at_statement_end);
        (*callback).arg = guard;
        pg_sys::MemoryContextRegisterResetCallback(context, callback);
    }
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn at_statement_end(guard: *mut c_void) {
    // SAFETY: registered with a boxed guard, once.
    drop(unsafe { Box::from_raw(guard.cast::<Guard>()) });
}

impl Guard {
    /// # Errors
    /// ERROR for options that do not fit the table.
    ///
    /// # Safety
    /// The table is open, and the function is `near_dup_guard`.
    unsafe fn new(table: pg_sys::Relation, options: GuardOptions, function: pg_sys::Oid) -> Self {
        // SAFETY: vouched for by the caller.
        unsafe {
            let rule = Rule::new(table, options, function);
            Self {
                columns: GuardColumns::of(table, &rule.options),
                tables: rule.tables(root_of(table)),
                rule,
            }
        }
    }

    /// Decides about a row as it is now: another trigger may have changed it since it was inserted, or
    /// another statement, where the check is deferred.
    ///
    /// # Safety
    /// The row is that of the running call.
    unsafe fn decide(&self, row: &FiredRow) -> Outcome {
        // SAFETY: vouched for by the caller.
        unsafe {
            if is_current(row.table, row.slot) {
                return self.decide_about(row);
            }
            let newest = Slot::new(row.table);
            if !newest.fetch_newest(row.table, tid(row.slot)) {
                return Outcome::Clear;
            }
            self.decide_about(&FiredRow {
                slot: newest.as_ptr(),
                ..*row
            })
        }
    }

    /// Searches until the answer is certain.
    ///
    /// # Safety
    /// The row is that of the running call, in its newest version.
    unsafe fn decide_about(&self, row: &FiredRow) -> Outcome {
        // SAFETY: vouched for by the caller.
        unsafe {
            // Nobody has to look again: a search that does not find the old version, dead by now,
            // goes on to the new one.
            if row
                .old
                .is_some_and(|old| self.reads_the_same(old, row.slot))
            {
                return Outcome::Clear;
            }
            let Some(mut new) = RowVersion::new(&self.rule, &self.columns, row.slot) else {
                return Outcome::Clear;
            };
            let mut old = row
                .old
                .and_then(|slot| RowVersion::new(&self.rule, &self.columns, slot));
            loop {
                match self.search(row, &mut new, old.as_mut()) {
                    Outcome::Undecided(pending) => pending.wait(row.table),
                    outcome => return outcome,
                }
            }
        }
    }

    /// Returns whether two versions have the same values, byte for byte, in all columns that the
    /// guard reads.
    ///
    /// # Safety
    /// The slots hold rows of the table that the trigger fired for.
    unsafe fn reads_the_same(
        &self,
        old: *mut pg_sys::TupleTableSlot,
        new: *mut pg_sys::TupleTableSlot,
    ) -> bool {
        let GuardColumns {
            signature,
            document,
            scope,
            ..
        } = &self.columns;
        // SAFETY: vouched for by the caller; signatures and documents are of variable length.
        unsafe {
            let same = |column: &i16| match (get(old, *column), get(new, *column)) {
                (Some(old), Some(new)) => stored_bytes(old) == stored_bytes(new),
                (old, new) => old.is_none() && new.is_none(),
            };
            same(signature)
                && document.as_ref().is_none_or(same)
                && scope
                    .iter()
                    .all(|column| column.same(get(old, column.number), get(new, column.number)))
        }
    }

    /// Looks through all tables for a row that the new version is near to and the old one was not.
    ///
    /// # Safety
    /// As for [`Self::decide_about`]; the versions are the row's.
    unsafe fn search(
        &self,
        row: &FiredRow,
        new: &mut RowVersion<'_>,
        mut old: Option<&mut RowVersion<'_>>,
    ) -> Outcome {
        let mut undecided = None;
        // A near-duplicate that the same statement writes is rolled back with the row: it is named
        // only where there is no other.
        let mut companion = None;
        for table in &self.tables {
            let mut familiar = None;
            let mut duplicate = None;
            // SAFETY: vouched for by the caller.
            unsafe {
                let search = TableSearch::new(table, &self.rule, new);
                let own = ((*row.table).rd_id == table.oid).then(|| Own {
                    tid: tid(row.slot),
                    is_ordered: table.index(&self.rule).is_settled,
                });
                search.for_each_live(own, &mut |found, pending| {
                    let Some(nearness) = new.nearness(table, found) else {
                        return true;
                    };
                    if let Some(old) = old.as_deref_mut()
                        && familiar
                            .get_or_insert_with(|| self.near_before(table, old))
                            .contains(&tid(found))
                    {
                        return true;
                    }
                    if pending.is_some() {
                        undecided = undecided.or(pending);
                        return true;
                    }
                    if is_of_same_command(row.slot, found) {
                        companion.get_or_insert_with(|| {
                            self.describe(
                                row,
                                table,
                                found,
                                nearness,
                                ", which the same statement writes",
                            )
                        });
                        return true;
                    }
                    duplicate = Some(self.describe(row, table, found, nearness, ""));
                    false
                });
            }
            if let Some(detail) = duplicate {
                return Outcome::Duplicate(detail);
            }
        }
        match companion {
            Some(detail) => Outcome::Duplicate(detail),
            None => undecided.map_or(Outcome::Clear, Outcome::Undecided),
        }
    }

    /// Returns where the rows are that the old version was near to when the statement began.
    ///
    /// # Safety
    /// The version is one of the row that is checked, and the table one of the guard's.
    unsafe fn near_before(&self, table: &SearchedTable, old: &mut RowVersion<'_>) -> Vec<Tid> {
        let mut tids = Vec::new();
        // SAFETY: vouched for by the caller; a trigger is called with an active snapshot.
        unsafe {
            let search = TableSearch::new(table, &self.rule, old);
            let newest = Slot::new(search.table());
            search.for_each_seen(pg_sys::GetActiveSnapshot(), &mut |found| {
                if old.nearness(table, found).is_some()
                    && newest.fetch_newest(search.table(), tid(found))
                {
                    tids.push(tid(newest.as_ptr()));
                }
            });
        }
        tids
    }

    /// Says which row is near to which, how near, and the `origin` of the one found; None if the role
    /// may not see it.
    ///
    /// # Safety
    /// `found` holds a row of the table.
    unsafe fn describe(
        &self,
        row: &FiredRow,
        table: &SearchedTable,
        found: *mut pg_sys::TupleTableSlot,
        nearness: Nearness,
        origin: &str,
    ) -> Option<CString> {
        if table.hides_rows() {
            return None;
        }
        // SAFETY: vouched for by the caller; the trigger's row is one of its table.
        unsafe {
            let theirs = table.columns.key(found)?;
            let ours = self.columns.key(row.slot);
            let mut detail = match &ours {
                Some(key) => [&b"Row "[..], key.as_bytes()].concat(),
                None => b"The row".to_vec(),
            };
            detail.extend_from_slice(format!(" {nearness} row ").as_bytes());
            detail.extend_from_slice(theirs.as_bytes());
            if (*row.table).rd_id != table.oid {
                let table = server_text(&names::relation(table.oid));
                detail.extend_from_slice(b" of table ");
                detail.extend_from_slice(table.to_bytes());
            }
            detail.extend_from_slice(origin.as_bytes());
            detail.push(b'.');
            CString::new(detail).ok()
        }
    }
}

/// Returns a value's bytes as they are stored, compressed or only a pointer.
///
/// # Safety
/// The datum is of variable length, and outlives the result.
unsafe fn stored_bytes<'d>(datum: pg_sys::Datum) -> &'d [u8] {
    let start = datum.cast_mut_ptr::<pg_sys::varlena>();
    // SAFETY: vouched for by the caller.
    unsafe { std::slice::from_raw_parts(start.cast(), pgrx::varlena::varsize_any(start)) }
}

pgrx::extension_sql_file!(
    "../../sql/guard/trigger.sql",
    name = "guard",
    requires = ["ball"]
);
