//! Stored signatures outlined by helpers while the next rows are read.

use crate::collection::documents::DocumentKind;
use crate::collection::outlines::Outlining;
use crate::collection::sweep::{Piece, read_in_pieces};
use crate::minhash::datum::StoredSignature;
use crate::pg::error::OrRaise;
use crate::pg::parts::Parts;
use crate::pg::query::{CheckedColumn, Query, QueryRow};
use crate::pg::value::Keys;
use neardup::Result;
use neardup::memory::Grow;
use neardup::minhash::{Header, Signature};
use pgrx::pg_sys;
use std::sync::OnceLock;

/// The columns of a query for rows with a signature.
#[derive(Debug, Clone, Copy)]
pub struct SignedColumns {
    pub key: CheckedColumn,
    pub signature: CheckedColumn,
    pub document: Option<(DocumentKind, CheckedColumn)>,
}

/// A row with the outline of its signature, which is empty where that is NULL or of an empty
/// document, or the document is NULL.
pub struct OutlinedRow<'a> {
    pub key: Option<pg_sys::Datum>,
    pub outline: &'a [u8],
    pub signature: &'a [u8],
    /// The record of the document.
    pub document: &'a [u8],
}

/// Takes a row, and the parameters of all outlines; None as long as all are empty.
pub type TakeOutlinedRow<'a> = &'a mut dyn FnMut(Option<&Outlining>, OutlinedRow<'_>);

/// Returns how to outline signatures with a header.
pub type OutliningOf<'a> = &'a dyn Fn(&Header) -> Outlining;

/// Reads all rows of a query for key, of type `key_type`, signature and perhaps document, in the
/// order of the query. Where the parameters of outlines are not `known`, `outlining_of` returns those for
/// the first header.
///
/// # Errors
/// ERROR if a signature is damaged, or was made with other parameters than the first.
pub fn outline_rows(
    query: Query,
    key_type: pg_sys::Oid,
    columns: SignedColumns,
    (known, outlining_of): (Option<Outlining>, OutliningOf<'_>),
    take: TakeOutlinedRow<'_>,
) {
    let outlining = known.map_or_else(OnceLock::new, OnceLock::from);
    let work = |piece: RowsToOutline, _: &mut dyn FnMut()| piece.outline(outlining.get());
    let mut push = |row: &QueryRow<'_>, piece: &mut RowsToOutline| {
        piece.push(row, &columns);
        if outlining.get().is_none()
            && let Some(header) = piece.last_header()
        {
            outlining.get_or_init(|| outlining_of(&header));
        }
        true
    };
    let mut take = |keys: Keys, outlined: Outlined| outlined.hand_on(outlining.get(), &keys, take);
    let rows = (query, columns.key, key_type);
    read_in_pieces("reading", rows, &mut push, &work, &mut take);
}

/// Rows whose signatures are to be outlined; one without signature or document has neither.
#[derive(Default)]
struct RowsToOutline {
    signatures: Parts<u8>,
    documents: Parts<u8>,
}

/// Rows with the outlines of their signatures.
struct Outlined {
    rows: RowsToOutline,
    outlines: Parts<u8>,
}

impl Piece for RowsToOutline {
    fn bytes(&self) -> usize {
        self.signatures.items.len()
            + self.documents.items.len()
            + size_of::<usize>() * self.signatures.len()
    }
}

impl RowsToOutline {
    /// Adds a row, of columns that have been checked.
    fn push(&mut self, row: &QueryRow<'_>, columns: &SignedColumns) {
        let (signatures, documents) = (&mut self.signatures, &mut self.documents);
        let document = columns
            .document
            .map(|(kind, column)| (kind, row.get(column)));
        // SAFETY: the columns' types have been checked; the row outlives the borrow.
        unsafe {
            match (row.get(columns.signature), document) {
                (None, _) | (_, Some((_, None))) => {}
                (Some(signature), document) => {
                    let stored = StoredSignature::from_raw(signature);
                    let stored = signatures.items.try_extend_from_slice(stored.bytes());
                    stored.or_raise();
                    if let Some((kind, Some(document))) = document {
                        kind.push_record(document, &mut documents.items);
                    }
                }
            }
        }
        signatures.end().or_raise();
        documents.end().or_raise();
    }

    /// Returns the header of the last row's signature, unless it is empty.
    fn last_header(&self) -> Option<Header> {
        let stored = self.signatures.last().filter(|stored| !stored.is_empty())?;
        let header = Signature::from_bytes(stored).or_raise().header;
        (!header.empty).then_some(header)
    }

    /// Outlines the signatures, in any thread. All are empty as long as no parameters are known.
    fn outline(self, outlining: Option<&Outlining>) -> Result<Outlined> {
        let outlines = self.signatures.each(|stored, outline| match outlining {
            Some(outlining) if !stored.is_empty() => outlining.push(stored, outline),
            _ => Ok(()),
        })?;
        Ok(Outlined {
            rows: self,
            outlines,
        })
    }
}

impl Outlined {
    fn hand_on(&self, outlining: Option<&Outlining>, keys: &Keys, take: TakeOutlinedRow<'_>) {
        let rows = self.rows.signatures.iter().zip(self.rows.documents.iter());
        for ((number, outline), (signature, document)) in (0..).zip(self.outlines.iter()).zip(rows)
        {
            let key = keys.get(number);
            let row = OutlinedRow {
                key,
                outline,
                signature,
                document,
            };
            take(outlining, row);
        }
    }
}
