//! A version of the row that is checked, as it is compared with other rows.

use crate::guard::columns::GuardColumns;
use crate::guard::slot::get;
use crate::guard::table::Rule;
use crate::guard::window::Span;
use crate::index::ball::Ball;
use crate::index::kind::Bound;
use crate::pg::bits::Bits;
use pgrx::pg_sys;
use std::fmt;

/// A version of the row, with the ball around its value.
pub struct RowVersion<'a> {
    pub rule: &'a Rule,
    columns: &'a GuardColumns,
    slot: *mut pg_sys::TupleTableSlot,
    pub ball: pg_sys::Datum,
    /// The moments of rows that count.
    pub span: Span,
}

/// How similar two rows are.
#[derive(Clone, Copy)]
pub enum Similarity {
    Share(f64),
    /// The number of bits that differ, and of all bits.
    DifferingBits(f64, usize),
}

impl<'a> RowVersion<'a> {
    /// Returns the version; None if it does not count, has no value, or no moment where there is a window.
    ///
    /// # Safety
    /// The slot holds a row of a table with these columns, and outlives the version.
    pub unsafe fn new(
        rule: &'a Rule,
        columns: &'a GuardColumns,
        slot: *mut pg_sys::TupleTableSlot,
    ) -> Option<Self> {
        // The columns are of the rule's types.
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

    /// Returns the columns, and the slot that holds the row.
    pub fn row(&self) -> (&GuardColumns, *mut pg_sys::TupleTableSlot) {
        (self.columns, self.slot)
    }

    /// Returns the value of a scope column; None for NULL.
    pub fn scope(&self, place: usize) -> Option<pg_sys::Datum> {
        // SAFETY: the slot holds a row with the columns.
        unsafe { get(self.slot, self.columns.scope[place].number) }
    }

    /// Returns how similar another row is; None beyond the bound, in another scope, outside of the window, or if it
    /// does not count.
    ///
    /// # Safety
    /// The other slot holds a row of a table with those columns.
    pub unsafe fn similarity(
        &self,
        columns: &GuardColumns,
        other: *mut pg_sys::TupleTableSlot,
    ) -> Option<Similarity> {
        // Partitions have the same columns as their root, of the same types.
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
    /// Returns the similarity as a share, of bit strings that of equal bits.
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
