//! Documents signed by helpers while the next rows are read.

use crate::collection::documents::DocumentKind;
use crate::pg::error::OrRaise;
use crate::pg::helpers::{in_order, piece_bytes};
use crate::pg::parts::Parts;
use crate::pg::progress::Progress;
use crate::pg::query::{CheckedColumn, Query};
use crate::pg::text::Text;
use crate::pg::value::Keys;
use neardup::Result;
use neardup::memory::Grow;
use neardup::minhash::Signing;
use pgrx::pg_sys;

/// Takes the key of a row, its signature, and the record of its document.
pub type TakeRow<'a> = &'a mut dyn FnMut(Option<pg_sys::Datum>, &[u8], &[u8]);

/// Reads all rows of a query for key, of type `key_type`, and document, a text, and signs the
/// documents. One that is NULL is signed as an empty one. The rows come in the order of the query.
pub fn sign_rows(
    query: Query,
    key_type: pg_sys::Oid,
    [key, document]: [CheckedColumn; 2],
    signing: &Signing,
    take: TakeRow<'_>,
) {
    let work = |texts: Parts<u8>, check: &mut dyn FnMut()| {
        texts.each(|text, signature| signature.try_extend_from_slice(&signing.sign(text, check)?))
    };
    let mut take =
        |rows: Rows, signatures: Result<Parts<u8>>| rows.hand_on(&signatures.or_raise(), take);
    let mut progress = Progress::begin("reading and signing", None);
    in_order(&work, &mut take, |line| {
        let (mut rows, mut texts) = (Rows::new(key_type), Parts::default());
        query.for_each(&mut |row| {
            progress.step();
            rows.push(row.get(key), row.get(document), &mut texts);
            let bytes = rows.records.items.len() + texts.items.len();
            if bytes >= piece_bytes() {
                let rows = std::mem::replace(&mut rows, Rows::new(key_type));
                line.put(rows, std::mem::take(&mut texts), bytes);
            }
        });
        let bytes = rows.records.items.len() + texts.items.len();
        line.put(rows, texts, bytes);
    });
}

/// Rows whose documents are being signed.
struct Rows {
    keys: Keys,
    /// Of the documents.
    records: Parts<u8>,
}

impl Rows {
    fn new(key_type: pg_sys::Oid) -> Self {
        Self {
            keys: Keys::new(key_type),
            records: Parts::default(),
        }
    }

    /// Adds a row, of values whose types have been checked, and its text to `texts`.
    fn push(
        &mut self,
        key: Option<pg_sys::Datum>,
        document: Option<pg_sys::Datum>,
        texts: &mut Parts<u8>,
    ) {
        self.keys.push(key);
        if let Some(document) = document {
            // SAFETY: vouched for by the caller.
            unsafe {
                let text = Text::from_raw(document);
                texts.items.try_extend_from_slice(&text).or_raise();
                DocumentKind::Text.push_record(document, &mut self.records.items);
            }
        }
        texts.end().or_raise();
        self.records.end().or_raise();
    }

    fn hand_on(self, signatures: &Parts<u8>, take: TakeRow<'_>) {
        let rows = (0..).zip(signatures.iter()).zip(self.records.iter());
        for ((number, signature), record) in rows {
            take(self.keys.get(number), signature, record);
        }
    }
}
