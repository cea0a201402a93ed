//! Rows that a statement wrote, and versions of rows as they are compared.

use crate::guard::columns::GuardColumns;
use crate::guard::pair_table::PairTable;
use crate::guard::table::Rule;
use crate::guard::window::Span;
use crate::index::ball::Ball;
use crate::index::bound::Bound;
use crate::pg::bits::Bits;
use crate::pg::prelude::*;
use crate::pg::slot::{Slot, Tid, get, is_heap_only, row_place};
use crate::pg::varlena::new_varlena;
use std::ffi::CString;
use std::fmt;

/// A row that a statement wrote, as its trigger saw it.
pub struct WrittenRow {
    pub root: pg_sys::Oid,
    pub table: pg_sys::Oid,
    pub trigger: pg_sys::Oid,
    /// The version that was written, None if the row was deleted.
    pub new: Option<Tid>,
    /// The version that was replaced or deleted, None if the row was inserted.
    pub old: Option<Tid>,
}

/// A table with a trigger that fired for rows.
pub struct Source {
    pub table: Relation,
    pub trigger: pg_sys::Oid,
    pub name: CString,
    pub columns: GuardColumns,
}

/// A row and the version that it replaced.
pub struct Row<'r> {
    pub source: &'r Source,
    /// The row's newest version. Triggers may have changed the row after its own trigger fired.
    pub slot: *mut pg_sys::TupleTableSlot,
    /// The version that an UPDATE replaced, if any.
    pub old: Option<*mut pg_sys::TupleTableSlot>,
    /// True if an index entry leads to a version with the values of the newest one.
    pub is_indexed: bool,
}

impl Source {
    /// Opens the notes table `oid`. It belongs to the table on which the trigger was created, because partitions may have
    /// other owners.
    pub fn notes(&self, oid: pg_sys::Oid) -> PairTable {
        let guarded = self.table.of_trigger(&self.name);
        let key = self.columns.key_type(&self.table);
        PairTable::notes(oid, &guarded, key, pg_sys::RowExclusiveLock)
    }

    /// Opens the exceptions table `oid`, as [`Self::notes`] does.
    pub fn exceptions(&self, oid: pg_sys::Oid) -> PairTable {
        let guarded = self.table.of_trigger(&self.name);
        PairTable::exceptions(oid, &guarded, self.columns.key_type(&self.table))
    }

    /// Calls `work` with `row`, as it is now. Returns its result, or None if the row no longer exists.
    ///
    /// # Safety
    /// The running statement wrote `row` to the table.
    pub unsafe fn with_row<R>(
        &self,
        row: &WrittenRow,
        work: impl FnOnce(&Row<'_>) -> R,
    ) -> Option<R> {
        let table = self.table.as_ptr();
        let written = self.version(row.new)?;
        let newest = Slot::new(table);
        newest.fetch_newest(table, row.new?).then(|| {
            let old = self.version(row.old);
            let [written, slot] = [&written, &newest].map(Slot::as_ptr);
            work(&Row {
                source: self,
                slot,
                old: old.as_ref().map(Slot::as_ptr),
                is_indexed: !is_heap_only(slot)
                    || !is_heap_only(written) && self.columns.are_same(written, slot),
            })
        })
    }

    /// Returns the row version at `tid`, visible or not, or None if it does not exist. The table cannot have been
    /// rewritten since the trigger fired: the statement has it open, or pending triggers forbid it.
    ///
    /// # Safety
    /// The same as for [`Self::with_row`].
    pub unsafe fn version(&self, tid: Option<Tid>) -> Option<Slot> {
        let (table, tid) = (self.table.as_ptr(), tid?);
        let slot = Slot::new(table);
        slot.fetch(table, tid).then_some(slot)
    }
}

/// A version of a row, with the ball around its value.
pub struct RowVersion<'a> {
    pub rule: &'a Rule,
    columns: &'a GuardColumns,
    slot: *mut pg_sys::TupleTableSlot,
    pub ball: pg_sys::Datum,
    /// The time span of rows that can be near this version.
    pub span: Span,
}

/// The similarity of two rows.
#[derive(Clone, Copy)]
pub struct Similarity {
    /// From 0 to 1; for bit strings, the share of equal bits.
    pub share: f64,
    differing_bits: Option<f64>,
}

impl<'a> RowVersion<'a> {
    /// Returns the version in `slot`, or None if no row can be near it: the value is NULL, the time of the window is
    /// NULL or infinite, or the condition is not satisfied.
    ///
    /// # Safety
    /// `slot` holds a row of a table with `columns`, and outlives the version.
    pub unsafe fn new(
        rule: &'a Rule,
        columns: &'a GuardColumns,
        slot: *mut pg_sys::TupleTableSlot,
    ) -> Option<Self> {
        let value = get(slot, columns.value).filter(|_| columns.counts(slot))?;
        let span = match columns.window {
            Some(window) => window.around(slot)?,
            None => Span::ALWAYS,
        };
        Some(Self {
            rule,
            columns,
            slot,
            ball: new_varlena(&rule.bound.ball(value).0),
            span,
        })
    }

    /// Returns whether `slot` holds the same version.
    ///
    /// # Safety
    /// `slot` holds a row of a table.
    pub unsafe fn is_in(&self, slot: *mut pg_sys::TupleTableSlot) -> bool {
        row_place(slot) == row_place(self.slot)
    }

    /// Returns the row's key, or None for NULL.
    pub fn key(&self) -> Option<pg_sys::Datum> {
        // SAFETY: the slot holds a row with the columns.
        unsafe { self.columns.key_of(self.slot) }
    }

    /// Returns the value of the scope column at `place`, or None for NULL.
    pub fn scope(&self, place: usize) -> Option<pg_sys::Datum> {
        // SAFETY: the slot holds a row with the columns.
        unsafe { get(self.slot, self.columns.scope[place].number) }
    }

    /// Returns the similarity of this version and the row in `other`, or None if they are not near: below the bound, in
    /// a different scope, outside the window, or not satisfying the condition.
    ///
    /// # Safety
    /// `other` holds a row of a table with `columns`.
    pub unsafe fn similarity(
        &self,
        columns: &GuardColumns,
        other: *mut pg_sys::TupleTableSlot,
    ) -> Option<Similarity> {
        // The columns of partitions have the types of their root's columns.
        if let Some(window) = columns.window
            && !window.is_in(other, self.span)
        {
            return None;
        }
        let scopes = self.columns.scope.iter().zip(&columns.scope);
        for (ours, theirs) in scopes {
            if !ours.same(get(self.slot, ours.number), get(other, theirs.number)) {
                return None;
            }
        }
        let theirs = get(other, columns.value).filter(|_| columns.counts(other))?;
        let measured = Ball::from_raw(self.ball).read().nearness(theirs)?;
        let differing_bits = matches!(self.rule.bound, Bound::Distance(_)).then_some(measured);
        Some(Similarity {
            share: differing_bits.map_or(measured, |bits| {
                1.0 - bits / Bits::from_raw(theirs).len().max(1) as f64
            }),
            differing_bits,
        })
    }
}

impl fmt::Display for Similarity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.differing_bits {
            // Rounded down: only equal documents are 1.00 similar.
            None => {
                let percent = (self.share * 100.0 + 1e-9).floor();
                write!(f, "is {:.2} similar to", percent / 100.0)
            }
            Some(1.0) => write!(f, "differs in 1 bit from"),
            Some(bits) => write!(f, "differs in {bits} bits from"),
        }
    }
}
