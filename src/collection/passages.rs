//! Passages that stand in several places of a collection.

use crate::collection::documents::{keyed_documents, share_of_work_mem_bytes};
use crate::pg::call::Call;
use crate::pg::error::{OrRaise, check_interrupts, too_large};
use crate::pg::helpers::{in_order, in_pieces, piece_bytes};
use crate::pg::progress::{Progress, over};
use crate::pg::query::Query;
use crate::pg::settings::work_mem_bytes;
use crate::pg::spool::Records;
use crate::pg::srf::ResultRows;
use crate::pg::temporary_file::TemporaryFile;
use crate::pg::text::Text;
use crate::pg::value::Keys;
use neardup::Result;
use neardup::memory::Grow;
use neardup::parts::Parts;
use neardup::passages::{
    Batches, Boundaries, BoundaryBatch, DocumentReader, DocumentTexts, Fingerprints, FoundWindows,
    Hashes, Listed, Listing, Located, Numbering, PassagePlaces, PassageSearch, Passages,
    PlaceComparison, Repeated, WindowCandidates, WindowPart, Winnowed, min_words,
};
use neardup::text::Fold;
use pgrx::prelude::*;
use std::cell::{Cell, RefCell};
use std::ops::Range;

/// Implements `repeated_passages(key, query, min_words, fold, params)`.
///
/// # Errors
/// `invalid_parameter_value` for `min_words` or `fold` out of range, `datatype_mismatch` for columns
/// of other types, `program_limit_exceeded` for too many repeats.
#[pg_extern(sql = false)]
fn repeated_passages(fcinfo: pg_sys::FunctionCallInfo) {
    // SAFETY: the call is running; the argument is declared as text.
    let (call, fold) = unsafe {
        let call = Call::new(fcinfo);
        let fold = Text::from_raw(call.argument(3, "fold"));
        (call, fold)
    };
    let least = call.argument(2, "min_words").value() as i32;
    let least = min_words(i64::from(least)).or_raise();
    let fold: Fold = fold.name().parse().or_raise();
    let mut documents = KeyedDocuments::new(call.argument_type(0), least, fold);
    let mut fingerprints = documents.read(Query::open(&call, 1, "query"));
    let mut rows = call.rows();
    // Words of equal hashes are compared. If they differ, other hashes are drawn; that this happens
    // even twice is as good as impossible.
    for _ in 0..ATTEMPTS {
        let passages = documents.passages(fingerprints);
        if documents.put_places(passages, &mut rows) {
            return;
        }
        rows.clear();
        fingerprints = documents.fingerprints_again();
    }
    too_large(
        "different words have the same hashes",
        "Call the function again.",
    )
}

/// Searches before the function gives up.
const ATTEMPTS: usize = 8;

/// Draws the hashes of a search, so that nobody can write documents for which they are alike.
fn draw_hashes() -> Hashes {
    let mut seed = [0; 8];
    // SAFETY: the buffer is valid for its length. Where the system has no random numbers it stays as
    // it is, which makes the hashes ones that can be known.
    unsafe { pg_sys::pg_strong_random(seed.as_mut_ptr().cast(), seed.len()) };
    Hashes::from_seed(i64::from_ne_bytes(seed))
}

/// The keys and documents of a query. Rows without a document are left out.
struct KeyedDocuments {
    key_type: pg_sys::Oid,
    min_words: usize,
    fold: Fold,
    keys: Keys,
    texts: Texts,
}

/// Documents in UTF-8.
struct Texts {
    records: Records,
    buffer: Vec<u8>,
}

impl DocumentTexts for Texts {
    fn length(&self, document: usize) -> usize {
        self.records.length(document)
    }

    fn read(&mut self, document: usize, bytes: Range<usize>, into: &mut Vec<u8>) -> Result<()> {
        let part = self.records.read_part(document, bytes, &mut self.buffer);
        into.try_extend_from_slice(part)
    }
}

impl KeyedDocuments {
    fn new(key_type: pg_sys::Oid, min_words: usize, fold: Fold) -> Self {
        Self {
            key_type,
            min_words,
            fold,
            keys: Keys::new(key_type),
            texts: Texts {
                records: Records::new(share_of_work_mem_bytes()),
                buffer: Vec::new(),
            },
        }
    }

    fn reader(&self) -> DocumentReader {
        DocumentReader::new(self.min_words, self.fold, draw_hashes())
    }

    fn read(&mut self, query: Query) -> Fingerprints<TemporaryFile> {
        let [key, document] = keyed_documents(&query, self.key_type);
        fingerprints(self.reader(), |visit| {
            query.for_each("reading", &mut |row| {
                let Some(doc) = row.get(document) else {
                    return;
                };
                // SAFETY: the column is of type text or one of those that are stored as it is.
                let doc = unsafe { Text::from_raw(doc) };
                self.keys.push(row.get(key));
                self.texts.records.push(&doc);
                visit(&doc);
            });
        })
    }

    fn fingerprints_again(&mut self) -> Fingerprints<TemporaryFile> {
        let reader = self.reader();
        let Texts { records, buffer } = &mut self.texts;
        fingerprints(reader, |visit| {
            for number in over("reading again", 0..records.len()) {
                visit(records.read(number, buffer));
            }
        })
    }

    fn passages(&mut self, fingerprints: Fingerprints<TemporaryFile>) -> Passages<TemporaryFile> {
        let mut progress = sorting("sorting fingerprints", fingerprints.count());
        let repeated = fingerprints.repeated(&mut progress).or_raise();
        let candidates = boundaries(self.candidates(&repeated), &repeated);
        let count = candidates.boundaries();
        let batches = candidates.batches(repeated, &mut sorting("sorting boundaries", count));
        let (batches, search) = batches.or_raise();
        let numbering = places(batches, count, &search);
        let mut progress = sorting("numbering passages", numbering.places());
        numbering.passages(search, &mut progress).or_raise()
    }

    /// Reads all documents again for the windows whose fingerprints repeat.
    fn candidates(&mut self, repeated: &Repeated) -> WindowCandidates<TemporaryFile> {
        let candidates = WindowCandidates::new(repeated, work_mem_bytes()).or_raise();
        let candidates = RefCell::new(candidates);
        let work = |(number, docs): (usize, Parts<u8>), check: &mut dyn FnMut()| {
            repeated.find(number, docs.iter(), check)
        };
        let mut take = |(), found: Result<FoundWindows>| {
            let mut candidates = candidates.borrow_mut();
            candidates.add(found.or_raise()).or_raise();
        };
        let Texts { records, buffer } = &mut self.texts;
        let mut progress = Progress::begin("finding windows", Some(records.len()));
        in_order(&work, &mut take, |line| {
            for number in 0..repeated.pieces() {
                let mut docs = Parts::default();
                for document in repeated.documents(number) {
                    progress.step();
                    push(&mut docs, records.read(document, buffer));
                }
                let bytes = docs.items.len();
                if bytes <= work_mem_bytes() / WINDOWS {
                    line.put((), (number, docs), bytes);
                } else {
                    let mut candidates = candidates.borrow_mut();
                    candidates
                        .find(repeated, number, docs.iter(), &mut || progress.look())
                        .or_raise();
                }
            }
        });
        candidates.into_inner()
    }

    /// Returns false if different words had the same hash.
    fn put_places(&mut self, passages: Passages<TemporaryFile>, rows: &mut ResultRows) -> bool {
        let Self {
            fold, keys, texts, ..
        } = self;
        let fold = *fold;
        let texts = RefCell::new(texts);
        let is_true = Cell::new(true);
        let mut comparison = PlaceComparison::new(fold);
        let mut put = |listed: &Listed| {
            rows.put(columns(listed, keys));
            Ok(())
        };
        let work = |listing: Listing, check: &mut dyn FnMut()| listing.locate(fold, check);
        let mut take = |(), located: Result<Located>| {
            if is_true.get() {
                let (located, texts) = (located.or_raise(), &mut **texts.borrow_mut());
                let is_same = comparison.visit(&located, texts, &mut check_interrupts, &mut put);
                is_true.set(is_same.or_raise());
            }
        };
        let mut progress = Progress::begin("listing places", Some(keys.len()));
        in_order(&work, &mut take, |line| {
            let (mut listing, mut document) = (Listing::default(), 0);
            let all = passages.for_each(&mut check_interrupts, &mut |place| {
                (document..place.document).for_each(|_| progress.step());
                document = place.document;
                if listing.ends_before(place, piece_bytes()) {
                    let bytes = listing.bytes();
                    line.put((), std::mem::take(&mut listing), bytes);
                }
                listing.push(place, &mut **texts.borrow_mut())
            });
            all.or_raise();
            let bytes = listing.bytes();
            line.put((), listing, bytes);
        });
        is_true.get()
    }
}

/// Returns the columns of a place.
fn columns(listed: &Listed, keys: &Keys) -> [Option<pg_sys::Datum>; 7] {
    let Listed { place, characters } = listed;
    [
        i64::from(place.passage).into_datum(),
        keys.get(place.document as u32),
        (characters.start as i32 + 1).into_datum(),
        (characters.len() as i32).into_datum(),
        (place.words as i32).into_datum(),
        i64::from(place.occurrences).into_datum(),
        i64::from(place.documents).into_datum(),
    ]
}

/// Bytes of windows for one of text, at most about: of documents with more than memory holds, windows
/// are sorted as they are found.
const WINDOWS: usize = 8;

/// Appends a document to a piece.
fn push(piece: &mut Parts<u8>, doc: &[u8]) {
    piece.items.try_extend_from_slice(doc).or_raise();
    piece.end().or_raise();
}

/// Returns the fingerprints of documents that `visit_all` goes through.
fn fingerprints(
    reader: DocumentReader,
    visit_all: impl FnOnce(&mut dyn FnMut(&[u8])),
) -> Fingerprints<TemporaryFile> {
    let mut fingerprints = Fingerprints::new(reader, work_mem_bytes());
    let work = |docs: Parts<u8>, check: &mut dyn FnMut()| reader.winnow(docs.iter(), check);
    let mut take = |read: Result<Winnowed>| {
        fingerprints
            .add(&read.or_raise(), &mut check_interrupts)
            .or_raise();
    };
    in_pieces(&work, &mut take, visit_all);
    fingerprints
}

/// Returns a function that reports the number of records done in a stage.
fn sorting(stage: &'static str, records: u64) -> impl FnMut(u64) {
    let mut progress = Progress::begin(stage, Some(records as usize));
    move |done| progress.reach(done as usize)
}

/// Searches all windows for boundaries.
fn boundaries(
    candidates: WindowCandidates<TemporaryFile>,
    repeated: &Repeated,
) -> WindowCandidates<TemporaryFile> {
    let candidates = RefCell::new(candidates);
    let work = |part: WindowPart, check: &mut dyn FnMut()| {
        repeated.boundaries::<TemporaryFile>(part, check)
    };
    let mut take = |(), found: Result<Boundaries>| {
        let mut candidates = candidates.borrow_mut();
        candidates.add_boundaries(found.or_raise()).or_raise();
    };
    let parts = candidates.borrow().parts();
    let mut progress = Progress::begin("sorting windows", Some(parts));
    in_order(&work, &mut take, |line| {
        loop {
            progress.reach(parts - candidates.borrow().parts());
            let look = &mut || progress.look();
            let next = candidates.borrow_mut().next_part(repeated, look);
            let Some(part) = next.or_raise() else {
                return;
            };
            let bytes = part.bytes();
            line.put((), part, bytes);
        }
    });
    candidates.into_inner()
}

/// Returns the places of all batches, which have `count` boundaries.
fn places(
    mut batches: Batches<TemporaryFile>,
    count: u64,
    search: &PassageSearch,
) -> Numbering<TemporaryFile> {
    let mut numbering = Numbering::new(work_mem_bytes());
    let held = work_mem_bytes() / 4;
    let work = |batch: BoundaryBatch, check: &mut dyn FnMut()| search.places(batch, held, check);
    let mut take = |(), places: Result<PassagePlaces>| {
        numbering
            .add(places.or_raise(), search, &mut check_interrupts)
            .or_raise();
    };
    let mut progress = Progress::begin("finding repeats", Some(count as usize));
    let mut done = 0;
    in_order(&work, &mut take, |line| {
        while let Some(batch) = batches.next(&mut || progress.look()).or_raise() {
            done += batch.boundaries();
            progress.reach(done);
            let bytes = batch.bytes();
            line.put((), batch, bytes);
        }
    });
    numbering
}

pgrx::extension_sql_file!("../../sql/collection/passages.sql", name = "passages");
