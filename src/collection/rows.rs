//! Pieces of a query's rows. Helper threads outline one piece while the next is read.

use crate::collection::documents::{DocumentKind, set_of_document, set_record};
use crate::collection::outlines::{Outlining, push_digest};
use crate::minhash::datum::{StoredSignature, shingling};
use crate::minhash::sets::signature_of_set;
use crate::pg::bits::Bits;
use crate::pg::prelude::*;
use crate::pg::query::Column;
use crate::pg::stored_texts;
use neardup::minhash::{Header, Signature, Signing};
use neardup::parts::Parts;
use neardup::shingle::Shingling;
use neardup::text::Unit;

/// The kind of a row's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowKind {
    Bits,
    /// A signature. If it comes with a document of the given kind, the document is compared instead.
    Signature(Option<DocumentKind>),
    /// A document to be signed.
    Document(DocumentKind),
    /// A document whose set is compared by containment.
    Contained(DocumentKind),
}

impl RowKind {
    /// Returns the kind of a column's values and the checked column, or None if no kind has the column's type.
    pub fn of_column(
        column: &Column,
        signature_type: pg_sys::Oid,
    ) -> Option<(Self, CheckedColumn)> {
        column.kind(|type_| match type_ {
            pg_sys::BITOID | pg_sys::VARBITOID => Some(Self::Bits),
            type_ if type_ == signature_type => Some(Self::Signature(None)),
            type_ => DocumentKind::of_type(type_).map(Self::Document),
        })
    }

    /// Returns the kind of the documents by which rows are compared, or None if rows are not compared by documents.
    pub fn documents(self) -> Option<DocumentKind> {
        match self {
            Self::Signature(kind) => kind,
            Self::Document(kind) => Some(kind),
            Self::Bits | Self::Contained(_) => None,
        }
    }
}

/// Rows that one thread outlines together. A row that cannot be compared has neither value nor document.
#[derive(Default)]
pub struct Piece {
    /// Bit strings, signatures, sets, or texts from which sets are made. For documents to be signed, the texts that
    /// their records do not hold.
    pub values: Parts<u8>,
    /// The records of documents.
    pub documents: Parts<u8>,
}

impl Piece {
    /// Returns the size of the piece in bytes.
    pub fn bytes(&self) -> usize {
        self.values.bytes() + self.documents.bytes()
    }

    /// Adds a row.
    ///
    /// # Safety
    /// `value` and `document` are of the types of `kind`.
    pub unsafe fn push(
        &mut self,
        kind: RowKind,
        value: Option<pg_sys::Datum>,
        document: Option<pg_sys::Datum>,
    ) {
        let (values, documents) = (&mut self.values.items, &mut self.documents.items);
        // SAFETY: guaranteed by the caller; the row outlives the borrows.
        unsafe {
            match (kind, value, document) {
                (_, None, _) | (RowKind::Signature(Some(_)), _, None) => {}
                (RowKind::Bits, Some(bits), _) => {
                    let bits = Bits::from_raw(bits);
                    values.try_extend_from_slice(bits.stored()).or_raise();
                }
                (RowKind::Signature(kind), Some(signature), document) => {
                    let stored = StoredSignature::from_raw(signature);
                    values.try_extend_from_slice(stored.bytes()).or_raise();
                    if let (Some(kind), Some(document)) = (kind, document) {
                        kind.push_record(document, documents);
                    }
                }
                (RowKind::Document(DocumentKind::Text), Some(text), _) => {
                    stored_texts::push_record_and_text(text, documents, values);
                }
                (RowKind::Document(kind), Some(set), _) => kind.push_record(set, documents),
                (RowKind::Contained(DocumentKind::Text), Some(text), _) => {
                    let text = Text::from_raw(text);
                    values.try_extend_from_slice(&text).or_raise();
                }
                (RowKind::Contained(kind), Some(set), _) => kind.push_record(set, values),
            }
        }
        self.values.end().or_raise();
        self.documents.end().or_raise();
    }

    /// Returns the header of the first signature that is not empty, or None if there is none.
    pub fn first_header(&self) -> Option<Header> {
        let stored = self.values.iter().filter(|stored| !stored.is_empty());
        let mut headers = stored.map(|stored| Signature::from_bytes(stored).or_raise().header);
        headers.find(|header| !header.empty)
    }

    /// Returns the rows with their outlines, which are empty for rows that cannot be compared. Runs in any thread. For
    /// signatures, `outlining` is None only if all signatures so far were empty.
    ///
    /// # Errors
    /// `Corrupt` for damaged signatures, `Incomparable` for signatures made with different parameters, `OutOfMemory`.
    pub fn outline(
        mut self,
        kind: RowKind,
        signing: &Signing,
        outlining: Option<&Outlining>,
        check: &mut dyn FnMut(),
    ) -> Result<(Self, Parts<u8>)> {
        if let RowKind::Contained(DocumentKind::Text) = kind {
            self.values = self.values.each(|text, record| {
                let set = set_of_document(text, Some(signing.shingling), check)?;
                record.try_extend_from_slice(&set_record(&set)?)
            })?;
        }
        let mut documents = self.documents.iter();
        let outlines = self.values.each(|value, outline| {
            let document = documents.next().unwrap_or_default();
            match (kind, outlining) {
                (RowKind::Document(kind), Some(outlining)) => {
                    let signature = sign(kind, value, document, signing, check)?;
                    outlining.push(&signature, outline)
                }
                (RowKind::Signature(kind), Some(outlining)) if !value.is_empty() => {
                    let cut = shingling(&outlining.header);
                    let has_no_set = |kind| has_no_set(kind, document, cut, check);
                    match kind.map_or(Ok(false), has_no_set)? {
                        true => Ok(()),
                        false => outlining.push(value, outline),
                    }
                }
                (RowKind::Bits | RowKind::Contained(_), _) if !value.is_empty() => {
                    push_digest(value, outline)
                }
                _ => Ok(()),
            }
        })?;
        drop(documents);
        Ok((self, outlines))
    }
}

/// Signs a document. Its text is in `record` or, if the record does not hold it, in `text`.
fn sign(
    kind: DocumentKind,
    text: &[u8],
    record: &[u8],
    signing: &Signing,
    check: &mut dyn FnMut(),
) -> Result<Vec<u8>> {
    if kind == DocumentKind::Text {
        return signing.sign(stored_texts::plain(record).unwrap_or(text), check);
    }
    let (elements, _) = record.as_chunks::<{ size_of::<i64>() }>();
    let hashes = elements
        .iter()
        .map(|element| signing.key.element_hash(element));
    signature_of_set(hashes, signing.slots, &signing.key, check)
}

/// Bytes at the start of a text that are first searched for a unit.
const START: usize = 64;

/// Returns whether the set of a document, given its record, is empty. Returns false for a text that the record does not
/// hold, because reading it would take longer than the search for pairs.
fn has_no_set(
    kind: DocumentKind,
    record: &[u8],
    shingling: Option<Shingling>,
    check: &mut dyn FnMut(),
) -> Result<bool> {
    let (DocumentKind::Text, Some(shingling)) = (kind, shingling) else {
        return Ok(record.is_empty());
    };
    let Some(text) = stored_texts::plain(record) else {
        return Ok(false);
    };
    // The start of another word can be a stop word.
    let end = usize::from(shingling.unit != Unit::Stop) * text.len().min(START);
    let start = text[..end].utf8_chunks().next();
    let start = start.map_or(&[][..], |start| start.valid().as_bytes());
    let mut set_of = |text| set_of_document(text, Some(shingling), check);
    Ok(set_of(start)?.is_empty() && set_of(text)?.is_empty())
}

/// The kind of the records by which rows are compared.
#[derive(Debug, Clone, Copy)]
pub enum RecordKind {
    Signature,
    /// Bit strings of one length, as they are stored.
    Bits,
    /// Sorted hashes, 8 bytes each.
    Set,
    Text(Shingling),
    /// Sorted hashes as in `Set`, compared by the containment of the first set in the second.
    Contained,
}
