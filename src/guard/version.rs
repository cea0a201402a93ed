//! A version of the row that is checked, as it is compared with other rows.

use crate::guard::columns::GuardColumns;
use crate::guard::row::get;
use crate::guard::table::Rule;
use crate::guard::verify::VersionDocument;
use crate::guard::window::Span;
use crate::index::kind::Bound;
use pgrx::pg_sys;
use std::fmt;

/// A version of the row, with the ball around its signature.
pub struct RowVersion<'a> {
    rule: &'a Rule,
    columns: &'a GuardColumns,
    slot: *mut pg_sys::TupleTableSlot,
    signature: pg_sys::Datum,
    pub ball: pg_sys::Datum,
    document: Option<VersionDocument>,
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
    /// Returns None for a version without a signature, and where a window is asked for, without a moment.
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
            let signature = get(slot, columns.signature)?;
            let span = match columns.window {
                Some(window) => window.around(slot)?,
                None => Span::ALWAYS,
            };
            let document = columns
                .document
                .map(|column| VersionDocument::new(get(slot, column), &rule.bound, signature));
            Some(Self {
                rule,
                columns,
                slot,
                signature,
                ball: rule.bound.ball(&rule.objects, signature),
                document,
                span,
            })
        }
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
        &mut self,
        columns: &GuardColumns,
        other: *mut pg_sys::TupleTableSlot,
    ) -> Option<Nearness> {
        let Rule { bound, objects, .. } = self.rule;
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
            let theirs = get(other, columns.signature)?;
            let is_near = pg_sys::get_opcode(objects.operator);
            let no_collation = pg_sys::InvalidOid;
            if pg_sys::OidFunctionCall2Coll(is_near, no_collation, theirs, self.ball).value() == 0 {
                return None;
            }
            if let (Some(ours), Some(column)) = (&mut self.document, columns.document) {
                return ours
                    .resemblance(get(other, column))
                    .map(Nearness::Similarity);
            }
            let distance = bound.distance(objects, self.signature, theirs);
            Some(match bound {
                Bound::Threshold(_) => Nearness::Similarity(1.0 - distance),
                Bound::Distance(_) => Nearness::DifferingBits(distance),
                Bound::Share(_) | Bound::Resemblance(..) => Nearness::Similarity(distance),
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
