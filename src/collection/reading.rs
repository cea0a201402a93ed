//! The rows that a query yields: keys, signatures, and documents where exact verification is asked for.

use crate::collection::documents::{DocumentKind, Documents, share_of_work_mem_bytes};
use crate::collection::outlines::{Outlines, Outlining, read_tokens};
use crate::collection::outlining::{OutlinedRow, SignedColumns, outline_rows};
use crate::collection::signing::{TakeSignedRow, Waiting, sign_rows};
use crate::collection::sweep::{read_stored, sweep};
use crate::minhash::datum::{StoredSignature, shingling};
use crate::minhash::sets::signature_of_set;
use crate::options;
use crate::pg::call::Call;
use crate::pg::catalog::type_named;
use crate::pg::error::{OrRaise, check_interrupts, invalid, too_large, wrong_type};
use crate::pg::names;
use crate::pg::progress::{Progress, notice};
use crate::pg::query::{CheckedColumn, Column, Query};
use crate::pg::settings::work_mem_bytes;
use crate::pg::spool::Records;
use crate::pg::text::Text;
use crate::pg::value::Keys;
use neardup::bands::plan::VerifiedPlan;
use neardup::candidates::{GroupSizes, Sides, TokenCounts};
use neardup::minhash::{Header, Signature, SignatureUnit, Signing};
use neardup::shingle::{Key, Shingling};
use pgrx::pg_sys;

/// The columns of a query.
enum DocumentColumns {
    Signed(SignedColumns),
    /// Key and document, which is to be signed.
    Unsigned(DocumentKind, [CheckedColumn; 2]),
}

impl DocumentColumns {
    /// Returns the kind of the documents; None without documents.
    fn kind(&self) -> Option<DocumentKind> {
        match self {
            Self::Signed(columns) => columns.document.map(|(kind, _)| kind),
            Self::Unsigned(kind, _) => Some(*kind),
        }
    }
}

/// Rows with a signature that is not empty, numbered from 0 in query order.
pub struct Collection {
    key_type: pg_sys::Oid,
    signature_type: pg_sys::Oid,
    /// The parameters by which documents without a signature are signed.
    signing: Option<Signing>,
    /// The similarity that pairs have to reach.
    pub threshold: f64,
    pub keys: Keys,
    /// Keys of rows whose signature is NULL or empty, or whose document is NULL.
    pub without: Keys,
    /// The signatures of all rows where there are no documents; otherwise of the rows that have no outline
    /// yet.
    pub signatures: Records,
    pub outlines: Option<Outlines>,
    pub documents: Option<Documents>,
    /// The parameters of all signatures.
    pub header: Option<Header>,
    /// Rows of the first query, where two are joined.
    pub first_side: Option<u32>,
    /// The tokens of these rows; None where their outlines are still to be made.
    first_tokens: Option<GroupSizes>,
}

impl Collection {
    /// Returns a collection with keys of the type of the call's first argument. The arguments from `first` on
    /// are the parameters by which documents are signed; where slots are NULL, the threshold decides.
    pub fn new(call: &Call, threshold: f64, first: usize) -> Self {
        let signature_type = type_named(call.schema(), c"minhash_signature");
        let slots = call.optional_argument(first + 3).map_or_else(
            || VerifiedPlan::slots(threshold),
            |slots| options::slots(slots.value() as i32),
        );
        let seed = call.argument(first + 4, "seed").value() as i64;
        Self {
            signing: Some(Signing {
                shingling: options::shingling_arguments(call, first),
                slots,
                key: Key::from_seed(seed),
            }),
            ..Self::of_types(call.argument_type(0), signature_type, threshold)
        }
    }

    /// Returns a collection of rows whose documents are signed, to be added one by one under numbers as
    /// keys.
    pub fn unsigned(
        kind: DocumentKind,
        shingling: Shingling,
        signature_type: pg_sys::Oid,
        threshold: f64,
    ) -> Self {
        Self {
            signing: Some(Signing {
                shingling,
                slots: VerifiedPlan::slots(threshold),
                ..Signing::default()
            }),
            documents: Some(Documents::new(kind)),
            ..Self::of_types(pg_sys::INT8OID, signature_type, threshold)
        }
    }

    /// Returns a collection of rows with keys of a type, to be added one by one.
    pub fn of_types(key_type: pg_sys::Oid, signature_type: pg_sys::Oid, threshold: f64) -> Self {
        Self {
            key_type,
            signature_type,
            signing: None,
            threshold,
            keys: Keys::new(key_type),
            without: Keys::new(key_type),
            signatures: Records::of_width(0, 0),
            outlines: None,
            documents: None,
            header: None,
            first_side: None,
            first_tokens: None,
        }
    }

    pub fn rows(&self) -> u32 {
        self.keys.len() as u32
    }

    /// Ends the first of two queries that are joined. Rows of the second one are left out if they have too
    /// few tokens of the first one's rows to be similar to one.
    pub fn end_first_side(&mut self) {
        let rows = self.rows();
        self.first_side = Some(rows);
        let Some(Outlines { outlining, records }) = &mut self.outlines else {
            return;
        };
        let room = TOKEN_ROOM * rows as usize * outlining.tokens().len();
        let mut first_tokens = GroupSizes::new(room, work_mem_bytes() / 4).or_raise();
        let mut buffer = Vec::new();
        for row in 0..rows {
            check_interrupts();
            let tokens = records.read_part(row as usize, outlining.tokens(), &mut buffer);
            for (band, token) in read_tokens(tokens).enumerate() {
                first_tokens.add(GroupSizes::key(band, token), 2);
            }
        }
        self.first_tokens = Some(first_tokens);
    }

    /// Returns whether a row may be similar to one of the other side.
    fn may_join(&self, outlining: &Outlining, outline: &[u8]) -> bool {
        self.first_tokens.as_ref().is_none_or(|first_tokens| {
            let tokens = read_tokens(&outline[outlining.tokens()]).enumerate();
            let shared = tokens.filter(|(band, token)| first_tokens.count(*band, *token) > 1);
            shared.count() >= outlining.plan.needed
        })
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

    /// Returns k, unit, and fold of the documents; None where they are sets, or there are none.
    pub fn shingling(&self) -> Option<Shingling> {
        match self.documents.as_ref()?.kind {
            DocumentKind::Text => shingling(&self.header?),
            DocumentKind::TextSet | DocumentKind::HashSet => None,
        }
    }

    /// Reads all rows of a query: key, signature, and perhaps document; or key and document, which is
    /// signed.
    ///
    /// # Errors
    /// ERROR if its columns are others, or signatures were made with different parameters.
    pub fn read(&mut self, query: Query) {
        let columns = self.check_columns(&query.columns());
        announce(&query);
        let kind = columns.kind();
        if self.documents.is_none() && self.rows() == 0 {
            self.documents = kind.map(Documents::new);
        }
        if self.documents.as_ref().map(|documents| documents.kind) != kind {
            wrong_type(
                "the documents of the two queries differ in type",
                "Let both queries yield documents of the same type, or neither.",
            );
        }
        match columns {
            DocumentColumns::Signed(columns) => self.read_signed(query, columns),
            DocumentColumns::Unsigned(DocumentKind::Text, columns) => {
                self.read_unsigned(query, columns)
            }
            DocumentColumns::Unsigned(_, columns) => self.read_sets(query, columns),
        }
    }

    /// Reads rows with signatures.
    fn read_signed(&mut self, query: Query, columns: SignedColumns) {
        let (key_type, threshold) = (self.key_type, self.threshold);
        let has_documents = columns.document.is_some();
        let known = self.outlines.as_ref().map(|outlines| outlines.outlining);
        let outlining_of = |header: &Header| Outlining::new(header, threshold, has_documents);
        let mut take = |outlining: Option<&Outlining>, row: OutlinedRow<'_>| {
            let Some(outlining) = outlining.filter(|_| !row.outline.is_empty()) else {
                return self.without.push(row.key);
            };
            if !self.may_join(outlining, row.outline) {
                return;
            }
            if !has_documents {
                self.push_signature(row.signature);
            }
            self.push_outlined(row.key, (outlining, row.outline), row.document);
        };
        let how = (known, &outlining_of as _);
        outline_rows(query, key_type, columns, how, &mut take);
    }

    /// Reads rows without signatures, and signs their documents.
    fn read_unsigned(&mut self, query: Query, columns: [CheckedColumn; 2]) {
        let key_type = self.key_type;
        self.push_signed(|how, take| sign_rows(query, key_type, columns, how, take));
    }

    /// Adds the rows that wait, and signs their documents.
    pub fn push_waiting(&mut self, waiting: &mut Waiting) {
        self.push_signed(|how, take| waiting.sign(how, take));
    }

    /// Adds the rows whose documents `sign` signs.
    fn push_signed(&mut self, sign: impl FnOnce((&Signing, &Outlining), TakeSignedRow<'_>)) {
        let signing = self.signing.clone();
        let signing = signing.expect("a job that signs has the arguments for it");
        let outlining = Outlining::new(&signing.header(), self.threshold, true);
        let mut take = |key, outline: &[u8], record: &[u8]| match outline {
            [] => self.without.push(key),
            outline if self.may_join(&outlining, outline) => {
                self.push_outlined(key, (&outlining, outline), record);
            }
            _ => {}
        };
        sign((&signing, &outlining), &mut take);
    }

    /// Reads rows of sets, and signs them.
    fn read_sets(&mut self, query: Query, [key, set]: [CheckedColumn; 2]) {
        query.for_each("reading and signing", &mut |row| {
            self.push_unsigned(row.get(key), row.get(set));
        });
    }

    /// Adds a row without a signature, and signs its document, of a type that has been checked.
    pub fn push_unsigned(&mut self, key: Option<pg_sys::Datum>, document: Option<pg_sys::Datum>) {
        let (Some(datum), Some(documents)) = (document, &self.documents) else {
            return self.without.push(key);
        };
        let kind = documents.kind;
        let signing = self.signing.as_ref();
        let signing = signing.expect("a job that signs has the arguments for it");
        let mut record = Vec::new();
        // SAFETY: vouched for by the caller; the row outlives the borrow.
        unsafe { kind.push_record(datum, &mut record) };
        let signature = match kind {
            DocumentKind::Text => {
                // SAFETY: as above.
                let text = unsafe { Text::from_raw(datum) };
                signing.sign(&text, &mut check_interrupts).or_raise()
            }
            DocumentKind::TextSet | DocumentKind::HashSet => {
                let (elements, _) = record.as_chunks::<{ size_of::<i64>() }>();
                let hashes = elements
                    .iter()
                    .map(|element| signing.key.element_hash(element));
                signature_of_set(hashes, signing.slots, &signing.key).0
            }
        };
        self.push_record(key, &signature, &record);
    }

    /// Adds a row whose signature has been outlined.
    fn push_outlined(
        &mut self,
        key: Option<pg_sys::Datum>,
        (outlining, outline): (&Outlining, &[u8]),
        document: &[u8],
    ) {
        self.check_header(&outlining.header);
        self.outlines
            .get_or_insert_with(|| Outlines::new(*outlining))
            .push(outline);
        self.push_row(key, document);
    }

    fn check_columns(&self, columns: &[Column]) -> DocumentColumns {
        let (key, second, third) = match columns {
            [key, second] => (key, second, None),
            [key, second, third] => (key, second, Some(third)),
            _ => self.wrong_columns(&format!("the query yields {} columns", columns.len())),
        };
        let key = key.of_type(self.key_type, "first", "key");
        if let (None, Some((kind, document))) = (third, DocumentKind::of_column(second)) {
            return DocumentColumns::Unsigned(kind, [key, document]);
        }
        let Some(signature) = second.if_type(self.signature_type) else {
            second.refuse("second", &self.valid_columns());
        };
        DocumentColumns::Signed(SignedColumns {
            key,
            signature,
            document: third.map(|document| self.document_column(document)),
        })
    }

    fn document_column(&self, column: &Column) -> (DocumentKind, CheckedColumn) {
        let refuse = || column.refuse("third", &self.valid_columns());
        DocumentKind::of_column(column).unwrap_or_else(refuse)
    }

    fn wrong_columns(&self, message: &str) -> ! {
        wrong_type(message, &self.valid_columns())
    }

    /// Returns the columns that a query can have, as the hint of an error.
    fn valid_columns(&self) -> String {
        format!(
            "Valid are the key and the value to compare: a document (text), a set (text[] or bigint[]), a signature ({}), \
             or, but for near_dup_join, a bit string; behind a signature perhaps the document or the set, which is compared then.",
            names::type_(self.signature_type)
        )
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
        let Some(documents) = &self.documents else {
            return self.push_record(key, stored.bytes(), &[]);
        };
        let mut record = Vec::new();
        match document {
            // SAFETY: the column's type has been checked.
            Some(document) => unsafe { documents.kind.push_record(document, &mut record) },
            None => return self.without.push(key),
        }
        self.push_record(key, stored.bytes(), &record);
    }

    /// Adds a row, of a stored signature and the record of its document.
    fn push_record(&mut self, key: Option<pg_sys::Datum>, stored: &[u8], document: &[u8]) {
        let signature = Signature::from_bytes(stored).or_raise();
        if signature.header.empty {
            return self.without.push(key);
        }
        self.check_header(&signature.header);
        self.push_signature(stored);
        self.push_row(key, document);
    }

    /// Adds a signature of the same form as all others.
    fn push_signature(&mut self, stored: &[u8]) {
        if self.signatures.len() == 0 {
            self.signatures = Records::of_width(stored.len(), share_of_work_mem_bytes());
        }
        self.signatures.push(stored);
    }

    fn push_row(&mut self, key: Option<pg_sys::Datum>, document: &[u8]) {
        if let Some(documents) = &mut self.documents {
            documents.push(document);
        }
        self.keys.push(key);
        if self.keys.len() >= u32::MAX as usize {
            too_large("the query yields more than 4 294 967 294 rows", "");
        }
    }

    /// Makes the outlines of rows that were added one by one, and drops the signatures of rows with
    /// documents.
    pub fn outline_signatures(&mut self) {
        let (Some(header), None) = (self.header, &self.outlines) else {
            return;
        };
        let has_documents = self.documents.is_some();
        let outlining = Outlining::new(&header, self.threshold, has_documents);
        let mut outlines = Outlines::new(outlining);
        let signatures = self.signatures.len();
        sweep(
            &mut Progress::begin("reading signatures", Some(signatures)),
            0..signatures as u32,
            &mut read_stored(&mut self.signatures),
            &|stored, outline, _| outlining.push(stored, outline),
            &mut |_, outline| outlines.push(outline),
        );
        self.outlines = Some(outlines);
        if has_documents {
            self.signatures = Records::of_width(0, 0);
        }
    }

    fn check_header(&mut self, of_row: &Header) {
        match self.header {
            Some(header) => header.check_comparable(of_row).or_raise(),
            None => self.header = Some(*of_row),
        }
        if self.documents.as_ref().map(|d| d.kind) == Some(DocumentKind::Text)
            && !matches!(
                of_row.unit,
                SignatureUnit::Word | SignatureUnit::Char | SignatureUnit::Stop
            )
        {
            invalid(
                "signatures of sets cannot be verified by the text of documents",
                "Let the third column of the query be the set itself, as text[] or bigint[].",
            );
        }
    }
}

/// Times the bytes of a token for which the filter of tokens has room: one in 200 of other tokens passes.
const TOKEN_ROOM: usize = 2;

/// Bytes that a row takes besides work_mem, about: its key and numbers, and if it may have partners, a few
/// bits of its bands or slots.
const HELD_BYTES: f64 = 60.0;

/// Bytes that a row takes in temporary files besides its columns, about: its signature, and the keys of
/// its bands.
const FILED_BYTES: f64 = 700.0;

/// Reports the planner's estimate of the rows, and of the memory and temporary files that they take.
fn announce(query: &Query) {
    let (rows, width) = query.estimate();
    let work_mem = work_mem_bytes() as f64;
    let memory = rows * HELD_BYTES + 2.0 * work_mem;
    let files = (rows * (width as f64 + FILED_BYTES) - work_mem).max(0.0);
    notice(&format!(
        "expecting {rows:.0} rows, up to {:.0} MB of memory and {:.0} MB of temporary files",
        memory / 1e6,
        files / 1e6
    ));
}
