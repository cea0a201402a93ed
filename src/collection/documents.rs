//! The documents of a collection, in row order.

use crate::pg::arrays::{bigint_elements, text_elements};
use crate::pg::catalog::is_text;
use crate::pg::prelude::*;
use crate::pg::stored_texts;
use neardup::set::sort_distinct;
use neardup::shingle::{Key, Shingling, shingle_hashes};

/// Returns how many bytes each record store of a collection keeps in memory. Signatures, documents and sets share one
/// work_mem; the sort that runs at the same time has its own.
pub fn share_of_work_mem_bytes() -> usize {
    work_mem_bytes() / 3
}

/// The kind of the documents in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentKind {
    Text,
    /// A set of shingles, stored as the sorted hashes of its elements.
    TextSet,
    /// A set of hashes, stored sorted.
    HashSet,
}

/// Returns the key and document columns of a query.
///
/// # Errors
/// ERROR `datatype_mismatch` for columns of other types.
pub fn keyed_documents(query: &Query, key_type: pg_sys::Oid) -> [CheckedColumn; 2] {
    let [key, document] = query.exactly("Select two columns: the key and the document (text).");
    let key = key.of_type(key_type, "first", "key");
    [key, document.of_documents("second")]
}

impl DocumentKind {
    /// Returns the kind of documents of `type_`, which is not a domain, or None for other types.
    pub fn of_type(type_: pg_sys::Oid) -> Option<Self> {
        match type_ {
            pg_sys::TEXTARRAYOID => Some(Self::TextSet),
            pg_sys::INT8ARRAYOID => Some(Self::HashSet),
            type_ => is_text(type_).then_some(Self::Text),
        }
    }

    /// Appends the record of a document to `record`.
    ///
    /// # Safety
    /// `datum` is a non-null datum of a type of this kind.
    pub unsafe fn push_record(self, datum: pg_sys::Datum, record: &mut Vec<u8>) {
        let hash = |element: &[u8]| Key::from_seed(0).element_hash(element) as i64;
        // SAFETY: guaranteed by the caller.
        let mut set = unsafe {
            match self {
                Self::Text => return stored_texts::push_record(datum, record),
                Self::TextSet => text_elements(datum, &hash),
                Self::HashSet => bigint_elements(datum),
            }
        };
        sort_distinct(&mut set, &mut check_interrupts);
        let bytes = set_record(&set).or_raise();
        record.try_extend_from_slice(&bytes).or_raise();
    }
}

/// Returns the record of a set of sorted elements.
///
/// # Errors
/// `OutOfMemory`.
pub fn set_record(set: &[i64]) -> Result<Vec<u8>> {
    collected(set.iter().flat_map(|element| element.to_le_bytes()))
}

/// Returns the sorted set of a document, given its record. With `shingling`, the document is a text, and the set holds
/// the hashes of its shingles.
///
/// # Errors
/// `OutOfMemory`.
pub fn set_of_document(
    document: &[u8],
    shingling: Option<Shingling>,
    check: &mut dyn FnMut(),
) -> Result<Vec<i64>> {
    match shingling {
        Some(shingling) => shingle_hashes(document, &shingling, &Key::from_seed(0), check),
        None => {
            let (elements, _) = document.as_chunks();
            collected(elements.iter().map(|bytes| i64::from_le_bytes(*bytes)))
        }
    }
}

/// Returns a closure that appends the record with a given number to a list. If the records hold texts, the closure
/// appends the text in UTF-8.
pub fn record_reader(
    records: &mut Records,
    kind: Option<DocumentKind>,
) -> impl FnMut(u32, &mut Vec<u8>) {
    let mut buffer = Vec::new();
    move |number, list| match kind {
        Some(DocumentKind::Text) => {
            stored_texts::read(records, number as usize, &mut buffer, list);
        }
        _ => {
            let stored = records.read(number as usize, &mut buffer);
            list.try_extend_from_slice(stored).or_raise();
        }
    }
}
