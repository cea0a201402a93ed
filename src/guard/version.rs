//! A version of the row that is checked, as it is compared with other rows.

use crate::guard::columns::GuardColumns;
use crate::guard::row::get;
use crate::guard::table::Rule;
use crate::guard::window::Span;
use crate::index::ball::Ball;
use crate::index::kind::Bound;
use pgrx::pg_sys;
use std::fmt;

/// A version of the row, with the ball around its value.
pub struct RowVersion<'a> {
    rule: &'a Rule,
    columns: &'a GuardColumns,
    slot: *mut pg_sys::TupleTableSlot,
    pub ball: pg_sys::Datum,
    /// The moments of rows that count.
    pub span: Span,
}

/// How near two rows are, as a message says it.
#[derive(Clone, Copy)]
pub enum Nearness {
    Similarity(f64),
    DifferingBits(f64),
}

impl<'a> RowVersion<'a> {
    /// Returns None for a version without a value, and where a window is asked for, without a moment.
    ///
    /// # Safety
    /// The slot holds a row of a table with these columns, and outlives the version.
    pub unsafe fn new(
        rule: &'a Rule,
        columns: &'a GuardColumns,
        slot: *mut pg_sys::TupleTableSlot,
    ) -> Option<Self> {
        // SAFETY: vouched for by the caller; the columns are of the rule's types.
        unsafe {
            let value = get(slot, columns.value)?;
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
    }

    /// Returns the strategy of the operator that finds what is in the ball.
    pub fn strategy(&self) -> u16 {
        self.rule.kind.operator(0).1
    }

    /// Returns the value of a scope column; None for NULL.
    pub fn scope(&self, place: usize) -> Option<pg_sys::Datum> {
        // SAFETY: the slot holds a row with the columns.
        unsafe { get(self.slot, self.columns.scope[place].number) }
    }

    /// Returns how near another row is; None beyond the bound, and in another scope or
    /// another time.
    ///
    /// # Safety
    /// The other slot holds a row of a table with those columns.
    pub unsafe fn nearness(
        &self,
        columns: &GuardColumns,
        other: *mut pg_sys::TupleTableSlot,
    ) -> Option<Nearness> {
        // SAFETY: vouched for by the caller. Partitions have the same columns as their root, of the
        // same types.
        unsafe {
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
            let theirs = get(other, columns.value)?;
            let nearness = Ball::from_raw(self.ball).read().nearness(theirs)?;
            Some(match self.rule.bound {
                Bound::Distance(_) => Nearness::DifferingBits(nearness),
                _ => Nearness::Similarity(nearness),
            })
        }
    }
}

impl fmt::Display for Nearness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Rounded down: only the same documents are 1.00 similar.
            Self::Similarity(similarity) => {
                let percent = (similarity * 100.0 + 1e-9).floor();
                write!(f, "is {:.2} similar to", percent / 100.0)
            }
            Self::DifferingBits(1.0) => write!(f, "differs in 1 bit from"),
            Self::DifferingBits(bits) => write!(f, "differs in {bits} bits from"),
        }
    }
}
