//! A version of a row, as it is compared with other rows.

use crate::guard::columns::GuardColumns;
use crate::guard::slot::{get, row_place};
use crate::guard::table::Rule;
use crate::guard::window::Span;
use crate::index::ball::Ball;
use crate::index::kind::Bound;
use crate::pg::bits::Bits;
use pgrx::pg_sys;
use std::fmt;

/// A version of a row, with the ball around its value.
pub struct RowVersion<'a> {
    pub rule: &'a Rule,
    columns: &'a GuardColumns,
    slot: *mut pg_sys::TupleTableSlot,
    pub ball: pg_sys::Datum,
    /// The time span of rows that can be near it.
    pub span: Span,
}

/// The similarity of two rows.
#[derive(Clone, Copy)]
pub enum Similarity {
    Share(f64),
    /// Differing bits, and the length in bits.
    DifferingBits(f64, usize),
}

impl<'a> RowVersion<'a> {
    /// Returns the version, or None if no row can be near it: the value or the time of the window is NULL, or the
    /// condition is not satisfied.
    ///
    /// # Safety
    /// The slot holds a row of a table with these columns, and outlives the version.
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
            ball: rule.bound.ball(value),
            span,
        })
    }

    /// Returns whether a slot holds the same version.
    ///
    /// # Safety
    /// The slot holds a row of a table.
    pub unsafe fn is_in(&self, slot: *mut pg_sys::TupleTableSlot) -> bool {
        row_place(slot) == row_place(self.slot)
    }

    /// Returns the columns and the slot of the row.
    pub fn row(&self) -> (&GuardColumns, *mut pg_sys::TupleTableSlot) {
        (self.columns, self.slot)
    }

    /// Returns the value of a scope column, or None for NULL.
    pub fn scope(&self, place: usize) -> Option<pg_sys::Datum> {
        // SAFETY: the slot holds a row with the columns.
        unsafe { get(self.slot, self.columns.scope[place].number) }
    }

    /// Returns the similarity of another row, or None if it is not near: below the bound, in a different scope, outside
    /// the window, or not satisfying the condition.
    ///
    /// # Safety
    /// The other slot holds a row of a table with those columns.
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
        Some(match self.rule.bound {
            Bound::Distance(_) => Similarity::DifferingBits(measured, Bits::from_raw(theirs).len()),
            _ => Similarity::Share(measured),
        })
    }
}

impl Similarity {
    /// Returns the similarity from 0 to 1; for bit strings, the share of equal bits.
    pub fn share(self) -> f64 {
        match self {
            Self::Share(share) => share,
            Self::DifferingBits(bits, of) => 1.0 - bits / of.max(1) as f64,
        }
    }
}

impl fmt::Display for Similarity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Rounded down: only equal documents are 1.00 similar.
            Self::Share(share) => {
                let percent = (share * 100.0 + 1e-9).floor();
                write!(f, "is {:.2} similar to", percent / 100.0)
            }
            Self::DifferingBits(1.0, _) => write!(f, "differs in 1 bit from"),
            Self::DifferingBits(bits, _) => write!(f, "differs in {bits} bits from"),
        }
    }
}
