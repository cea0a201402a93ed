//! Reads the rows of a table with their keys, to build or to check an index. Helpers sign documents while the next rows
//! are read.

use crate::index::classes::{DocumentClass, OF_DOCUMENTS, RowKeys, ValueParameters};
use crate::pg::helpers::in_pieces;
use crate::pg::prelude::*;
use neardup::bands::{RowSize, Scope};
use neardup::parts::Parts;
use std::ffi::c_void;

/// A function that takes the place of a row, the parameters of the row's value, its keys, and its size.
pub type TakeKeys<'a> =
    &'a mut dyn FnMut(pg_sys::ItemPointerData, Option<ValueParameters>, &mut [u32], RowSize);

/// A function that takes the place of a row, its values, and which of them are NULL, with one element per column of the
/// index.
type TakeValues<'a> = dyn FnMut(pg_sys::ItemPointerData, &[pg_sys::Datum], &[bool]) + 'a;

/// A scan of a table for one of its indexes.
pub struct TableScan {
    pub table: pg_sys::Relation,
    pub index: pg_sys::Relation,
    pub info: *mut pg_sys::IndexInfo,
    /// The scan to use, or NULL to begin one, as for a build.
    pub scan: pg_sys::TableScanDesc,
}

/// Approximate length of the keys of a document, in bytes.
const KEYS_LEN: usize = 1 << 9;

/// A row whose document is being signed.
struct SignedRow {
    tid: pg_sys::ItemPointerData,
    parameters: Option<ValueParameters>,
    scope: Option<Scope>,
}

impl TableScan {
    /// Calls `take` for all rows in the order of the scan, which does not depend on the number of helpers. Returns the
    /// number of rows.
    ///
    /// # Safety
    /// The relations are open, and the scan, if not NULL, is one of the table.
    pub unsafe fn for_each(&self, row_keys: &RowKeys, take: TakeKeys<'_>) -> f64 {
        if let Some(class) = row_keys.documents() {
            return self.for_each_signed(row_keys, class, take);
        }
        let mut keys = Vec::new();
        // The values belong to a row.
        self.read(row_keys, &mut |tid, values, is_null| {
            keys.clear();
            let (parameters, size) = row_keys.keys(values, is_null, &mut keys);
            take(tid, parameters, &mut keys, size);
        })
    }

    /// # Safety
    /// The same as for [`Self::for_each`].
    unsafe fn for_each_signed(
        &self,
        row_keys: &RowKeys,
        class: DocumentClass,
        take_row: TakeKeys<'_>,
    ) -> f64 {
        let work = |(rows, documents): (Vec<SignedRow>, Parts<u8>), check: &mut dyn FnMut()| {
            let signed = documents.each(|doc, sizes_and_keys| {
                let (keys, size) = class.keys.of_document(doc, check)?;
                sizes_and_keys.try_push(size.0)?;
                sizes_and_keys.try_extend_from_slice(&keys)
            });
            Ok((rows, signed?))
        };
        let mut take_signed = |signed: Result<(Vec<SignedRow>, Parts<u32>)>| {
            let (rows, mut signed) = signed.or_raise();
            for (number, row) in rows.iter().enumerate() {
                let Some((size, keys)) = signed.part_mut(number).split_first_mut() else {
                    continue;
                };
                if let Some(scope) = row.scope {
                    row_keys.within(scope, keys);
                }
                take_row(row.tid, row.parameters, keys, RowSize(*size));
            }
        };
        let mut count = 0.0;
        in_pieces(KEYS_LEN, &work, &mut take_signed, |put| {
            count = self.read(row_keys, &mut |tid, values, is_null| {
                let value = row_keys.compared(values, is_null);
                // SAFETY: the values belong to a row.
                let scope = unsafe { row_keys.scope_of(values, is_null) };
                let row = SignedRow {
                    tid,
                    parameters: value.map(|_| OF_DOCUMENTS),
                    scope,
                };
                put(row, &mut |documents| {
                    // A row with NULL in a scope column has no keys, like an empty document.
                    if let Some(value) = value.filter(|_| scope.is_some()) {
                        // SAFETY: a value of the class's type.
                        let doc = unsafe { Text::from_raw(value) };
                        documents.try_extend_from_slice(&doc).or_raise();
                    }
                });
            });
        });
        count
    }

    /// # Safety
    /// The same as for [`Self::for_each`].
    unsafe fn read(&self, row_keys: &RowKeys, take: &mut TakeValues<'_>) -> f64 {
        let mut state = (row_keys, take);
        let shows_progress = self.scan.is_null();
        // The callback gets its own state.
        pg_sys::table_index_build_scan(
            self.table,
            self.index,
            self.info,
            true,
            shows_progress,
            Some(take_values),
            (&raw mut state).cast(),
            self.scan,
        )
    }
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn take_values(
    _index: pg_sys::Relation,
    tid: pg_sys::ItemPointer,
    values: *mut pg_sys::Datum,
    is_null: *mut bool,
    _alive: bool,
    state: *mut c_void,
) {
    // The table scan calls this with a row's values and the state that it was given.
    let (row_keys, take) = &mut *state.cast::<(&RowKeys, &mut TakeValues<'_>)>();
    let (values, is_null) = row_keys.row(values, is_null);
    take(*tid, values, is_null);
}
