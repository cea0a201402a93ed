//! Documents signed by helpers while the next rows are read.

use crate::collection::documents::share_of_work_mem_bytes;
use crate::collection::outlines::Outlining;
use crate::collection::sweep::{Piece, read_in_pieces};
use crate::pg::error::OrRaise;
use crate::pg::helpers::{in_order, piece_bytes};
use crate::pg::parts::Parts;
use crate::pg::query::{CheckedColumn, Query, QueryRow};
use crate::pg::stored_texts;
use crate::pg::value::Keys;
use neardup::Result;
use neardup::memory::Grow;
use neardup::minhash::Signing;
use pgrx::pg_sys;

/// Takes the key of a row, the outline of its signature, and the record of its document.
pub type TakeSignedRow<'a> = &'a mut dyn FnMut(Option<pg_sys::Datum>, &[u8], &[u8]);

/// Reads all rows of a query for key, of type `key_type`, and document, a text, and signs the
/// documents. One that is NULL is signed as an empty one, and the outline of an empty one is empty.
/// The rows come in the order of the query.
pub fn sign_rows(
    query: Query,
    key_type: pg_sys::Oid,
    [key, document]: [CheckedColumn; 2],
    (signing, outlining): (&Signing, &Outlining),
    take: TakeSignedRow<'_>,
) {
    let work = |piece: RowsToSign, check: &mut dyn FnMut()| piece.sign(signing, outlining, check);
    let mut push = |row: &QueryRow<'_>, piece: &mut RowsToSign| {
        piece.push(row.get(document));
        true
    };
    let mut take = |keys: Keys, signed: Signed| signed.hand_on(&keys, take);
    let rows = (query, key, key_type);
    read_in_pieces("reading and signing", rows, &mut push, &work, &mut take);
}

/// Rows under numbers as keys that come one by one, whose documents wait to be signed by helpers.
pub struct Waiting {
    keys: Keys,
    documents: RowsToSign,
    full: Vec<(Keys, RowsToSign)>,
    /// Bytes of the full pieces.
    bytes: usize,
}

impl Waiting {
    pub fn new() -> Self {
        Self {
            keys: Keys::new(pg_sys::INT8OID),
            documents: RowsToSign::default(),
            full: Vec::new(),
            bytes: 0,
        }
    }

    /// Adds a row with a document of a type that has been checked, and returns whether it is time to sign.
    pub fn push(&mut self, key: Option<pg_sys::Datum>, document: Option<pg_sys::Datum>) -> bool {
        self.keys.push(key);
        self.documents.push(document);
        if self.documents.bytes() >= piece_bytes() {
            self.end_piece();
        }
        self.bytes >= share_of_work_mem_bytes()
    }

    fn end_piece(&mut self) {
        let keys = std::mem::replace(&mut self.keys, Keys::new(pg_sys::INT8OID));
        let documents = std::mem::take(&mut self.documents);
        self.bytes += documents.bytes();
        self.full.try_push((keys, documents)).or_raise();
    }

    /// Signs the documents of all rows, and hands on the rows as [`sign_rows`] does.
    pub fn sign(&mut self, (signing, outlining): (&Signing, &Outlining), take: TakeSignedRow<'_>) {
        self.end_piece();
        self.bytes = 0;
        let work =
            |piece: RowsToSign, check: &mut dyn FnMut()| piece.sign(signing, outlining, check);
        let mut take = |keys: Keys, signed: Result<Signed>| signed.or_raise().hand_on(&keys, take);
        in_order(&work, &mut take, |line| {
            for (keys, piece) in self.full.drain(..) {
                let bytes = piece.bytes();
                line.put(keys, piece, bytes);
            }
        });
    }
}

/// Documents to be signed.
struct RowsToSign {
    records: Parts<u8>,
    /// The texts of records that do not hold them as they are.
    texts: Parts<u8>,
}

/// Documents with the outlines of their signatures.
struct Signed {
    records: Parts<u8>,
    outlines: Parts<u8>,
}

impl Default for RowsToSign {
    fn default() -> Self {
        // Most pieces end within one short document more than they are to have.
        Self {
            records: Parts::with_room(piece_bytes() + piece_bytes() / 8).or_raise(),
            texts: Parts::default(),
        }
    }
}

impl Piece for RowsToSign {
    fn bytes(&self) -> usize {
        self.records.items.len() + self.texts.items.len()
    }
}

impl RowsToSign {
    /// Adds a document, of a type that has been checked.
    fn push(&mut self, document: Option<pg_sys::Datum>) {
        if let Some(document) = document {
            let (record, text) = (&mut self.records.items, &mut self.texts.items);
            // SAFETY: vouched for by the caller.
            unsafe { stored_texts::push_record_and_text(document, record, text) };
        }
        self.records.end().or_raise();
        self.texts.end().or_raise();
    }

    fn sign(
        self,
        signing: &Signing,
        outlining: &Outlining,
        check: &mut dyn FnMut(),
    ) -> Result<Signed> {
        let mut records = self.records.iter();
        let outlines = self.texts.each(|text, outline| {
            let record = records.next().expect("a record for every text");
            let text = stored_texts::plain(record).unwrap_or(text);
            outlining.push(&signing.sign(text, check)?, outline)
        })?;
        drop(records);
        Ok(Signed {
            records: self.records,
            outlines,
        })
    }
}

impl Signed {
    fn hand_on(self, keys: &Keys, take: TakeSignedRow<'_>) {
        let rows = (0..).zip(self.outlines.iter()).zip(self.records.iter());
        for ((number, outline), record) in rows {
            take(keys.get(number), outline, record);
        }
    }
}
