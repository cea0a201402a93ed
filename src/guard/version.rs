//! A version of the row that is checked, as it is compared with other rows.

use crate::guard::columns::GuardColumns;
use crate::guard::row::get;
use crate::guard::table::{Rule, SearchedTable};
use crate::guard::verify::VersionDocument;
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
}

/// How near two rows are, as a message says it.
#[derive(Clone, Copy)]
pub enum Nearness {
    Similarity(f64),
    DifferingBits(f64),
}

impl<'a> RowVersion<'a> {
    /// Returns None for a version without a signature.
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
            })
        }
    }

    /// Returns the value of a scope column; None for NULL.
    pub fn scope(&self, place: usize) -> Option<pg_sys::Datum> {
        // SAFETY: the slot holds a row with the columns.
        unsafe { get(self.slot, self.columns.scope[place].number) }
    }

    /// Returns how near another row is; None beyond the bound, and in another scope.
    ///
    /// # Safety
    /// The other slot holds a row of that table.
    pub unsafe fn nearness(
        &mut self,
        table: &SearchedTable,
        other: *mut pg_sys::TupleTableSlot,
    ) -> Option<Nearness> {
        let Rule { bound, objects, .. } = self.rule;
        // SAFETY: vouched for by the caller. Partitions have the same columns as their root, of the
        // same types.
        unsafe {
            let scopes = self.columns.scope.iter().zip(&table.columns.scope);
            for (ours, theirs) in scopes {
                if !ours.same(get(self.slot, ours.number), get(other, theirs.number)) {
                    return None;
                }
            }
            let theirs = get(other, table.columns.signature)?;
            let is_near = pg_sys::get_opcode(objects.operator);
            let no_collation = pg_sys::InvalidOid;
            if pg_sys::OidFunctionCall2Coll(is_near, no_collation, theirs, self.ball).value() == 0 {
                return None;
            }
            if let (Some(ours), Some(column)) = (&mut self.document, table.columns.document) {
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
