//! Reads the rows of a query, and keeps the parts that the search for pairs needs.

use crate::collection::documents::{
    DocumentKind, record_reader, set_of_document, share_of_work_mem_bytes,
};
use crate::collection::exceptions::{ExceptedRows, Exceptions};
use crate::collection::outlines::{Outlining, read_tokens};
use crate::collection::rows::{Piece, RecordKind, RowKind};
use crate::collection::sweep::sweep;
use crate::index::bound::Bound;
use crate::minhash::datum::shingling;
use crate::options;
use crate::pg::catalog::type_named;
use crate::pg::helpers::{in_order, piece_bytes};
use crate::pg::prelude::*;
use crate::pg::progress::notice;
use crate::pg::query::{Column, wrong_columns};
use neardup::bands::plan::VerifiedPlan;
use neardup::candidates::{GroupSizes, Sides};
use neardup::minhash::{Header, SignatureUnit, Signing};
use neardup::parts::Parts;
use neardup::shingle::{Key, Shingling};
use std::rc::Rc;
use std::sync::OnceLock;

/// The measure by which pairs are compared with the threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairMeasure {
    /// Symmetric: the resemblance of documents or, without documents, of signatures; the Hamming distance of bit
    /// strings.
    Resemblance,
    /// Containment of the first document in the second.
    Containment,
}

/// Rows that can be compared, numbered from 0 in query order.
pub struct Collection {
    key_type: pg_sys::Oid,
    signature_type: pg_sys::Oid,
    pub measure: PairMeasure,
    /// How documents are cut into shingles and signed.
    signing: Signing,
    /// Minimum similarity of a pair.
    pub threshold: f64,
    /// Maximum distance of two similar bit strings. None if bit strings are rejected.
    pub distance: Option<u32>,
    /// The kind of the rows read last.
    kind: Option<RowKind>,
    pub keys: Keys,
    /// Keys of rows that are similar to no row, because their value or document is NULL or empty.
    pub without: Keys,
    /// The documents, signatures, bit strings or sets by which rows are compared.
    pub records: Records,
    /// The outlines of all rows. The outline of a bit string, or of a set for containment, is only a digest.
    pub outlines: Records,
    /// The parameters of the outlines of signatures.
    pub outlining: Option<Outlining>,
    /// Rows added by `push` that have not been outlined yet.
    waiting: Vec<(Keys, Piece)>,
    /// The pairs of rows that count as not similar.
    pub exceptions: ExceptedRows,
    /// The number of rows of the first query in a join.
    pub first_side: Option<u32>,
    /// Counts of the tokens of the first query's rows.
    first_tokens: Option<GroupSizes>,
}

/// Appends values made from a set, the first argument, to a list, the second. Runs in any thread.
pub type MakeOfSet<'a, U> = dyn Fn(&[i64], &mut Vec<U>) -> Result<()> + Sync + 'a;

/// The columns of the key and the value, and the column of the document, if there is one.
type Columns = (CheckedColumn, CheckedColumn, Option<CheckedColumn>);

impl Collection {
    /// Returns an empty collection that rejects bit strings. Its keys have the type of the call's first argument. The
    /// arguments starting with number `first` are k, unit, fold, slots and seed. If slots is NULL, it is
    /// `default_slots(threshold)`.
    pub fn of_call(
        call: &Call,
        measure: PairMeasure,
        threshold: f64,
        first: usize,
        default_slots: fn(f64) -> usize,
    ) -> Self {
        let slots = call.optional(first + 3);
        let seed = call.get(first + 4, "seed");
        let signing = Signing {
            shingling: options::shingling_arguments(call, first),
            slots: slots.map_or_else(|| default_slots(threshold), options::slots),
            key: Key::from_seed(seed),
        };
        let signature_type = type_named(call.schema(), c"minhash_signature");
        Self {
            measure,
            ..Self::new(call.argument_type(0), signature_type, threshold, signing)
        }
    }

    /// Returns a collection with the rows of the query in the call's second argument. The third argument is the
    /// threshold or, for bit strings, the distance. The arguments starting with number `first` are the same as in
    /// [`Self::of_call`].
    ///
    /// # Errors
    /// The errors of [`Self::read`], and `invalid_parameter_value` for a threshold out of range.
    pub fn of_query(call: &Call, measure: PairMeasure, first: usize) -> Self {
        let query = Query::open(call, 1, "query");
        let is_bits = |column| {
            let found = RowKind::of_column(column, pg_sys::InvalidOid);
            matches!(found, Some((RowKind::Bits, _)))
        };
        let mut collection = match (measure, &query.columns()[..]) {
            (PairMeasure::Resemblance, [_, column]) if is_bits(column) => {
                let bound = Bound::Distance(options::distance_argument(call, 2));
                Self::of_bound(call.argument_type(0), bound)
            }
            _ => {
                let threshold = options::threshold_argument(call, 2);
                Self::of_call(call, measure, threshold, first, VerifiedPlan::slots)
            }
        };
        collection.read(query);
        collection
    }

    /// Returns an empty collection for pairs within `bound`. Documents are signed with the defaults of `minhash`,
    /// except for the bound's shingling and a number of slots that suits the threshold.
    pub fn of_bound(key_type: pg_sys::Oid, bound: Bound) -> Self {
        let document = RowKind::Document;
        let (kind, threshold, cut) = match bound {
            Bound::Distance(_) => (RowKind::Bits, 1.0, None),
            Bound::Threshold(least) => (RowKind::Signature(None), least, None),
            Bound::Share(least) => {
                let cut = Some(Shingling::default());
                (document(DocumentKind::HashSet), least, cut)
            }
            Bound::Resemblance(least, cut) => (document(DocumentKind::Text), least, Some(cut)),
        };
        let signing = cut.map_or_else(Signing::default, |shingling| Signing {
            shingling,
            slots: VerifiedPlan::slots(threshold),
            ..Signing::default()
        });
        let mut collection = Self::new(key_type, pg_sys::InvalidOid, threshold, signing);
        if let Bound::Distance(distance) = bound {
            collection.distance = Some(distance);
        }
        collection.kind = Some(kind);
        collection
    }

    fn new(
        key_type: pg_sys::Oid,
        signature_type: pg_sys::Oid,
        threshold: f64,
        signing: Signing,
    ) -> Self {
        Self {
            key_type,
            signature_type,
            measure: PairMeasure::Resemblance,
            signing,
            threshold,
            distance: None,
            kind: None,
            keys: Keys::new(key_type),
            without: Keys::new(key_type),
            records: Records::new(share_of_work_mem_bytes()),
            outlines: Records::new(share_of_work_mem_bytes()),
            outlining: None,
            waiting: Vec::new(),
            exceptions: ExceptedRows::default(),
            first_side: None,
            first_tokens: None,
        }
    }

    pub fn rows(&self) -> u32 {
        self.keys.len() as u32
    }

    /// Makes the pairs of `exceptions` count as not similar. Must be called after all rows are read.
    pub fn except(&mut self, exceptions: Option<impl Into<Rc<Exceptions>>>) {
        if let Some(exceptions) = exceptions {
            self.exceptions = ExceptedRows::of(exceptions.into(), &self.keys);
        }
    }

    /// Ends the first of two queries to be joined. Rows of the second query are left out if they share too few tokens
    /// with the rows of the first query to be similar to one of them.
    pub fn end_first_side(&mut self) {
        let rows = self.rows();
        self.first_side = Some(rows);
        let Some(outlining) = &self.outlining else {
            return;
        };
        let room = TOKEN_ROOM * rows as usize * outlining.tokens().len();
        let mut first_tokens = GroupSizes::new(room, work_mem_bytes() / 4).or_raise();
        let mut buffer = Vec::new();
        for row in 0..rows as usize {
            check_interrupts();
            let tokens = self
                .outlines
                .read_part(row, outlining.tokens(), &mut buffer);
            for (band, token) in read_tokens(tokens).enumerate() {
                first_tokens.add(GroupSizes::key(band, token), 2);
            }
        }
        self.first_tokens = Some(first_tokens);
    }

    /// Returns whether a row with this `outline` may be similar to a row of the first side.
    fn may_join(&self, outlining: Option<&Outlining>, outline: &[u8]) -> bool {
        let (Some(first_tokens), Some(outlining)) = (&self.first_tokens, outlining) else {
            return true;
        };
        let tokens = read_tokens(&outline[outlining.tokens()]).enumerate();
        let shared = tokens.filter(|(band, token)| first_tokens.size(*band, *token) > 1);
        shared.count() >= outlining.plan.needed
    }

    /// Returns the side of a join that `row` is on, or both sides without a join.
    pub fn sides(&self, row: u32) -> Sides {
        self.first_side.map_or(Sides::BOTH, |first| {
            let a = row < first;
            Sides { a, b: !a }
        })
    }

    /// Returns the kind of the documents by which rows are compared, or None if rows are not compared by documents.
    pub fn documents(&self) -> Option<DocumentKind> {
        self.kind?.documents()
    }

    /// Returns a closure that appends a row's entry in `records` to a list. Texts are appended in UTF-8.
    pub fn reader(&mut self) -> impl FnMut(u32, &mut Vec<u8>) {
        let kind = self.documents();
        record_reader(&mut self.records, kind)
    }

    /// Calls `make` for the sets of `rows` in helper threads, and calls `take` with the results in the same order.
    pub fn for_each_set<U: Send>(
        &mut self,
        (stage, rows): (&'static str, &[u32]),
        make: &MakeOfSet<'_, U>,
        take: &mut dyn FnMut(u32, &[U]),
    ) {
        let shingling = self.shingling();
        sweep(
            &mut Progress::begin(stage, rows.len()),
            rows.iter().copied(),
            &mut self.reader(),
            &|document, made, check| make(&set_of_document(document, shingling, check)?, made),
            take,
        );
    }

    /// Returns k, unit and fold of the documents. Returns None if the documents are sets, if rows are not compared by
    /// documents, or if no row has been outlined.
    pub fn shingling(&self) -> Option<Shingling> {
        match self.documents()? {
            DocumentKind::Text => shingling(&self.outlining?.header),
            DocumentKind::TextSet | DocumentKind::HashSet => None,
        }
    }

    /// Returns the kind of the records by which rows are compared.
    pub fn record_kind(&self) -> RecordKind {
        match (self.kind, self.shingling()) {
            (Some(RowKind::Bits), _) => RecordKind::Bits,
            (Some(RowKind::Contained(_)), _) => RecordKind::Contained,
            (_, Some(shingling)) => RecordKind::Text(shingling),
            _ if self.documents().is_some() => RecordKind::Set,
            _ => RecordKind::Signature,
        }
    }

    /// Reads all rows of `query`. Its columns are a key and a signature, optionally with a document; a key and a
    /// document, which is signed unless the measure is containment; or a key and a bit string.
    ///
    /// # Errors
    /// ERROR `datatype_mismatch` for other columns, and for documents of another kind than in an earlier query;
    /// `invalid_parameter_value` for signatures made with different parameters.
    pub fn read(&mut self, query: Query) {
        let (kind, (key, value, document)) = self.check_columns(&query.columns());
        announce(&query);
        let stage = match kind {
            RowKind::Document(_) => "reading and signing",
            _ => "reading",
        };
        let before = self.kind.replace(kind);
        if before.is_some_and(|before| before.documents() != kind.documents()) {
            wrong_type(
                "the documents of the two queries differ in type",
                "Let both queries yield documents of the same type, or neither.",
            );
        }
        let key_type = self.key_type;
        self.outline(|put| {
            let (mut keys, mut piece) = (Keys::new(key_type), Piece::default());
            query.for_each(stage, &mut |row| {
                let document = document.and_then(|column| row.get(column));
                keys.push(row.get(key));
                // SAFETY: the columns are of the types of the kind.
                unsafe { piece.push(kind, row.get(value), document) };
                if piece.bytes() >= piece_bytes() {
                    let keys = std::mem::replace(&mut keys, Keys::new(key_type));
                    put(keys, std::mem::take(&mut piece));
                }
            });
            put(keys, piece);
        });
    }

    /// Adds a row to a collection from [`Self::of_bound`].
    ///
    /// # Safety
    /// `key` is of the collection's key type, `value` of the bound's kind.
    pub unsafe fn push(&mut self, key: Option<pg_sys::Datum>, value: Option<pg_sys::Datum>) {
        let kind = self.kind.expect("the bound has a kind");
        let is_full = |(_, piece): &(Keys, Piece)| piece.bytes() >= piece_bytes();
        if self.waiting.last().is_none_or(is_full) {
            let bytes: usize = self.waiting.iter().map(|(_, piece)| piece.bytes()).sum();
            if bytes >= share_of_work_mem_bytes() {
                self.end();
            }
            let piece = (Keys::new(self.key_type), Piece::default());
            self.waiting.try_push(piece).or_raise();
        }
        if let Some((keys, piece)) = self.waiting.last_mut() {
            keys.push(key);
            // SAFETY: guaranteed by the caller.
            unsafe { piece.push(kind, value, None) };
        }
    }

    /// Outlines the rows that [`Self::push`] added.
    pub fn end(&mut self) {
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        self.outline(|put| waiting.for_each(|(keys, piece)| put(keys, piece)));
    }

    /// Outlines the pieces that `feed` passes to its argument, with the help of other threads, and adds their rows in
    /// order.
    fn outline(&mut self, feed: impl FnOnce(&mut dyn FnMut(Keys, Piece))) {
        let Some(kind) = self.kind else {
            return;
        };
        if let (RowKind::Document(kind), None) = (kind, &self.outlining) {
            let header = match kind {
                DocumentKind::Text => self.signing.header(),
                DocumentKind::TextSet | DocumentKind::HashSet => {
                    let Signing { slots, key, .. } = &self.signing;
                    Header::of_set(SignatureUnit::Set, 1, *slots, key.id())
                }
            };
            self.outlining = Some(outlining_of(&header, self.threshold, Some(kind)));
        }
        let signing = self.signing.clone();
        let known = self.outlining.map_or_else(OnceLock::new, OnceLock::from);
        let (threshold, documents) = (self.threshold, kind.documents());
        let work = |piece: Piece, check: &mut dyn FnMut()| {
            piece.outline(kind, &signing, known.get(), check)
        };
        let mut take = |keys: Keys, made: Result<(Piece, Parts<u8>)>| {
            let (rows, outlines) = made.or_raise();
            self.add(&keys, &rows, &outlines, known.get());
        };
        in_order(&work, &mut take, |line| {
            feed(&mut |keys, piece| {
                if let (RowKind::Signature(_), None) = (kind, known.get())
                    && let Some(header) = piece.first_header()
                {
                    known.get_or_init(|| outlining_of(&header, threshold, documents));
                }
                let bytes = piece.bytes();
                line.put(keys, piece, bytes);
            });
        });
        self.outlining = known.into_inner();
    }

    /// Adds `rows`, with their `keys` and `outlines`. Rows with an empty outline go to `without`, and rows that cannot
    /// join the first side are left out.
    fn add(
        &mut self,
        keys: &Keys,
        rows: &Piece,
        outlines: &Parts<u8>,
        outlining: Option<&Outlining>,
    ) {
        let records = match self.documents() {
            Some(_) => &rows.documents,
            None => &rows.values,
        };
        for (number, (outline, record)) in (0..).zip(outlines.iter().zip(records.iter())) {
            if self.keys.len().max(self.without.len()) >= u32::MAX as usize - 1 {
                too_large("the query yields more than 4 294 967 294 rows", "");
            }
            // SAFETY: no other key is read before the next row.
            let key = unsafe { keys.get(number) };
            if outline.is_empty() {
                self.without.push(key);
                continue;
            }
            if !self.may_join(outlining, outline) {
                continue;
            }
            self.records.push(record);
            self.outlines.push(outline);
            self.keys.push(key);
        }
    }

    fn check_columns(&self, columns: &[Column]) -> (RowKind, Columns) {
        let valid = || self.valid_columns();
        let (key, second, third) = match columns {
            [key, second] => (key, second, None),
            [key, second, third] if self.measure == PairMeasure::Resemblance => {
                (key, second, Some(third))
            }
            _ => wrong_columns(columns, &valid()),
        };
        let key = key.of_type(self.key_type, "first", "key");
        let found = RowKind::of_column(second, self.signature_type);
        let (kind, value) = found.unwrap_or_else(|| second.reject("second", &valid()));
        match (self.measure, kind, third) {
            (PairMeasure::Containment, RowKind::Document(kind), None) => {
                (RowKind::Contained(kind), (key, value, None))
            }
            (PairMeasure::Resemblance, RowKind::Signature(_), Some(third)) => {
                let (documents, document) = third
                    .kind(DocumentKind::of_type)
                    .unwrap_or_else(|| third.reject("third", &valid()));
                let kind = RowKind::Signature(Some(documents));
                (kind, (key, value, Some(document)))
            }
            (PairMeasure::Resemblance, kind, None)
                if kind != RowKind::Bits || self.distance.is_some() =>
            {
                (kind, (key, value, None))
            }
            _ => second.reject("second", &valid()),
        }
    }

    /// Returns the columns that a query can have, for the hint of an error.
    fn valid_columns(&self) -> String {
        if self.measure == PairMeasure::Containment {
            return "For containment, select the key and the document (text), or its shingles as text[] or bigint[].".into();
        }
        format!(
            "Select the key and the value to compare: a document (text), a set (text[] or bigint[]), a signature ({}), \
             or, except in near_dup_join, a bit string; after a signature, optionally the document or the set that decides.",
            names::type_(self.signature_type)
        )
    }
}

/// Plans the outlines of signatures with `header`, for pairs that reach `threshold` by their documents or, without
/// documents, by the estimate.
///
/// # Errors
/// ERROR `invalid_parameter_value` if the documents are texts but the signatures were not made from text.
fn outlining_of(header: &Header, threshold: f64, documents: Option<DocumentKind>) -> Outlining {
    if documents == Some(DocumentKind::Text) && shingling(header).is_none() {
        invalid(
            "signatures of sets cannot be verified with the text of documents",
            "Let the third column of the query be the set itself, as text[] or bigint[].",
        );
    }
    Outlining::new(header, threshold, documents.is_some())
}

/// Number of tokens that the filter has room for, per byte of the stored tokens. The filter takes about as many bytes
/// as the stored tokens. One in 200 other tokens passes it.
const TOKEN_ROOM: usize = 2;

/// Approximate bytes per row outside work_mem: its key, numbers and, if it may have partners, a few bits of its bands
/// or slots.
const HELD_BYTES: f64 = 60.0;

/// Approximate bytes per row in temporary files besides its columns: its signature and the keys of its bands.
const FILED_BYTES: f64 = 700.0;

/// Reports the planner's estimate of the number of rows of `query`, and the memory and temporary files that these rows
/// take.
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
