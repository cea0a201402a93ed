//! The rows that a query yields: keys, signatures, and documents where exact verification is asked for.

use crate::minhash::datum::StoredSignature;
use crate::pg::arrays::{bigint_elements, text_elements};
use crate::pg::call::Call;
use crate::pg::catalog::{is_text, type_named};
use crate::pg::error::{OrRaise, raise};
use crate::pg::progress::Progress;
use crate::pg::query::{CheckedColumn, Column, Query, Row, work_mem_bytes};
use crate::pg::spool::Records;
use crate::pg::text::Text;
use crate::pg::value::Keys;
use neardup::candidates::Sides;
use neardup::memory::collected;
use neardup::minhash::{Header, Signature, SignatureUnit};
use neardup::shingle::Key;
use pgrx::{PgSqlErrorCode, pg_sys};

/// Returns how many bytes each record store of a collection keeps in memory: signatures, documents
/// and their sets have one work_mem together, and the sort beside them another.
pub fn share_of_work_mem_bytes() -> usize {
    work_mem_bytes() / 3
}

/// The form in which the third column gives a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentKind {
    Text,
    /// A set of shingles, stored as the sorted hashes of its elements.
    TextSet,
    /// A set of hashes, stored sorted.
    HashSet,
}

/// The documents that signatures stand for, in order of the rows.
pub struct Documents {
    pub kind: DocumentKind,
    pub records: Records,
}

/// The columns of a query.
struct Columns {
    key: CheckedColumn,
    signature: CheckedColumn,
    document: Option<(DocumentKind, CheckedColumn)>,
}

/// Rows with a signature that is not empty, numbered from 0 in query order.
pub struct Collection {
    key_type: pg_sys::Oid,
    signature_type: pg_sys::Oid,
    pub keys: Keys,
    /// Keys of rows whose signature is NULL or empty, or whose document is NULL.
    pub without: Keys,
    pub signatures: Records,
    pub documents: Option<Documents>,
    /// Of all signatures.
    pub header: Option<Header>,
    /// Rows of the first query, where two are joined.
    pub first_side: Option<u32>,
}

impl Collection {
    /// Returns a collection with keys of the type of the call's first argument.
    pub fn new(call: &Call) -> Self {
        let signature_type = type_named(call.schema(), c"minhash_signature");
        Self::of_types(call.argument_type(0), signature_type)
    }

    /// Returns a collection of rows with the text of their documents, to be added one by one under
    /// numbers as keys.
    pub fn with_texts(signature_type: pg_sys::Oid) -> Self {
        Self {
            documents: Some(Documents {
                kind: DocumentKind::Text,
                records: Records::new(share_of_work_mem_bytes()),
            }),
            ..Self::of_types(pg_sys::INT8OID, signature_type)
        }
    }

    fn of_types(key_type: pg_sys::Oid, signature_type: pg_sys::Oid) -> Self {
        Self {
            key_type,
            signature_type,
            keys: Keys::new(key_type),
            without: Keys::new(key_type),
            signatures: Records::new(share_of_work_mem_bytes()),
            documents: None,
            header: None,
            first_side: None,
        }
    }

    pub fn rows(&self) -> u32 {
        self.keys.len() as u32
    }

    /// Returns the side of a join on which a row is; both if there are no two.
    pub fn sides(&self, row: u32) -> Sides {
        match self.first_side {
            Some(first) => Sides {
                a: row < first,
                b: row >= first,
            },
            None => Sides::BOTH,
        }
    }

    /// Reads all rows of a query: key, signature, and perhaps document.
    ///
    /// # Errors
    /// ERROR if its columns are others, or signatures were made with different parameters.
    pub fn read(&mut self, query: pg_sys::Datum) {
        let query = Query::open(query);
        let columns = self.check_columns(&query.columns());
        let kind = columns.document.map(|(kind, _)| kind);
        if self.documents.is_none() && self.rows() == 0 {
            self.documents = kind.map(|kind| Documents {
                kind,
                records: Records::new(share_of_work_mem_bytes()),
            });
        }
        if self.documents.as_ref().map(|documents| documents.kind) != kind {
            raise(
                PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
                "the third columns of the two queries differ",
                "Let both queries yield documents of the same type, or neither.",
            );
        }
        let mut progress = Progress::begin("reading", None);
        query.for_each(&mut |row| {
            progress.step();
            self.add(row, &columns);
        });
    }

    fn check_columns(&self, columns: &[Column]) -> Columns {
        let (key, signature, document) = match columns {
            [key, signature] => (key, signature, None),
            [key, signature, document] => (key, signature, Some(document)),
            _ => wrong_columns(&format!("the query yields {} columns", columns.len())),
        };
        Columns {
            key: key.of_type(self.key_type, "first", "key"),
            signature: signature.of_type(self.signature_type, "second", "signature"),
            document: document.map(document_column),
        }
    }

    fn add(&mut self, row: &Row<'_>, columns: &Columns) {
        let document = columns.document.and_then(|(_, column)| row.get(column));
        self.push(row.get(columns.key), row.get(columns.signature), document);
    }

    /// Adds a row, of values whose types have been checked.
    pub fn push(
        &mut self,
        key: Option<pg_sys::Datum>,
        signature: Option<pg_sys::Datum>,
        document: Option<pg_sys::Datum>,
    ) {
        let Some(datum) = signature else {
            return self.without.push(key);
        };
        // SAFETY: vouched for by the caller; the row outlives the borrow.
        let stored = unsafe { StoredSignature::from_raw(datum) };
        let signature = stored.read();
        if signature.header.empty {
            return self.without.push(key);
        }
        self.check_header(&signature);
        if let Some(documents) = &mut self.documents {
            let Some(document) = document else {
                return self.without.push(key);
            };
            push_document(documents, document);
        }
        self.signatures.push(stored.bytes());
        self.keys.push(key);
        if self.keys.len() >= u32::MAX as usize {
            raise(
                PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                "the query yields more than 4 294 967 294 rows",
                "",
            );
        }
    }

    fn check_header(&mut self, signature: &Signature<'_>) {
        match self.header {
            Some(header) => header.check_comparable(&signature.header).or_raise(),
            None => self.header = Some(signature.header),
        }
        if self.documents.as_ref().map(|d| d.kind) == Some(DocumentKind::Text)
            && !matches!(
                signature.header.unit,
                SignatureUnit::Word | SignatureUnit::Char | SignatureUnit::Stop
            )
        {
            raise(
                PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
                "signatures of sets cannot be verified by the text of documents",
                "Let the third column of the query be the set itself, as text[] or bigint[].",
            );
        }
    }
}

fn document_column(column: &Column) -> (DocumentKind, CheckedColumn) {
    let text = || Some((DocumentKind::Text, column.if_base_type(is_text)?));
    let text_set = || Some((DocumentKind::TextSet, column.if_type(pg_sys::TEXTARRAYOID)?));
    let hash_set = || Some((DocumentKind::HashSet, column.if_type(pg_sys::INT8ARRAYOID)?));
    text()
        .or_else(text_set)
        .or_else(hash_set)
        .unwrap_or_else(|| {
            wrong_columns(&format!(
                "the third column of the query is of type {}",
                column.type_name()
            ))
        })
}

fn wrong_columns(message: &str) -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
        message,
        "Valid are the key, the signature (minhash_signature), and for exact verification the document (text, or its shingles as text[] or bigint[]).",
    )
}

fn push_document(documents: &mut Documents, datum: pg_sys::Datum) {
    match documents.kind {
        // SAFETY: the column's type has been checked.
        DocumentKind::Text => documents.records.push(&unsafe { Text::from_raw(datum) }),
        DocumentKind::TextSet => {
            let hash = |element: &[u8]| Key::from_seed(0).element_hash(element) as i64;
            push_set(documents, text_elements(datum, &hash));
        }
        DocumentKind::HashSet => push_set(documents, bigint_elements(datum)),
    }
}

fn push_set(documents: &mut Documents, mut set: Vec<i64>) {
    set.sort_unstable();
    set.dedup();
    let bytes = collected(set.iter().flat_map(|hash| hash.to_le_bytes())).or_raise();
    documents.records.push(&bytes);
}
