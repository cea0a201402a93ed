//! Passages copied from earlier documents of a collection, and passages shared by the most documents.

use crate::collection::documents::keyed_documents;
use crate::options;
use crate::pg::helpers::{PutRecord, in_pieces};
use crate::pg::partitions::{Partitions, VisitSlices, push_entries};
use crate::pg::prelude::*;
use crate::pg::query::QueryRow;
use crate::pg::srf::ResultRows;
use bitvec::vec::BitVec;
use neardup::parts::Parts;
use neardup::passages::{
    Characters, Classes, CopiedPassage, Copies, DocumentReader, Frequent, Hashes, Member, Place,
    Texts, Window, Winnowed, min_words,
};
use neardup::set::sort;
use pgrx::prelude::*;
use std::cell::RefCell;
use std::ops::Range;

/// Implements `copied_passages(key, query, min_words, fold, params)`.
///
/// # Errors
/// `invalid_parameter_value` for `min_words` or `fold` out of range, `datatype_mismatch` for columns of other types.
#[pg_extern(sql = false)]
fn copied_passages(call: Call) {
    let mut reader = reader(&call, 2);
    let query = Query::open(&call, 1, "query");
    let [key, document] = keyed_documents(&query, call.argument_type(0));
    let (mut keys, mut documents) = (Keys::new(call.argument_type(0)), SpooledTexts::new());
    let mut push_key = |row: &QueryRow<'_>| keys.push(row.get(key));
    let mut fingerprints = documents.read_all(reader, query, document, &mut push_key);
    let mut rows = call.rows_within(work_mem_bytes() / ROWS);
    // If different words have the same hash, another hash function is drawn. A second collision is practically
    // impossible.
    for _ in 0..ATTEMPTS {
        let windows = documents.windows(reader, fingerprints);
        let copies = documents.entries(windows, Kept::Copies);
        if documents.put_rows(reader, copies, (&keys, &mut rows)) {
            return;
        }
        rows.clear();
        reader = self::reader(&call, 2);
        fingerprints = Fingerprints::read(reader, |visit| {
            for number in over("reading again", 0..documents.records.len()) {
                visit(documents.records.read(number, &mut documents.buffer));
            }
        });
    }
    too_large(
        "different words have the same hashes",
        "Call the function again.",
    )
}

/// Implements `frequent_passages(query, min_words, fold, most, params)`.
///
/// # Errors
/// `invalid_parameter_value` for arguments out of range, `datatype_mismatch` unless the query yields one column of
/// text.
#[pg_extern(sql = false)]
fn frequent_passages(call: Call) {
    let reader = reader(&call, 1);
    let most = options::integer(&call, 3, "most", 1, i32::MAX) as usize;
    let query = Query::open(&call, 0, "query");
    let [document] = query.exactly("Its only column is the document.");
    let document = document.of_documents("only");
    let mut documents = SpooledTexts::new();
    let fingerprints = documents.read_all(reader, query, document, &mut |_| ());
    let windows = documents.windows(reader, fingerprints);
    let repeated = documents.entries(windows, Kept::Repeated);
    let mut rows = call.rows();
    let (mut frequent, check) = (Frequent::new(reader, most), &mut check_interrupts);
    documents.for_each_sorted(repeated, &mut |documents, window, counts| {
        let window = (window, (counts >> 32) as u32, counts as u32);
        frequent.add(window, documents, check).or_raise();
    });
    for passage in frequent.passages(&mut documents, check).or_raise() {
        let mut text = Vec::new();
        documents.read(passage.bytes, &mut text).or_raise();
        let (text, words) = (NewText(text).into_datum(), passage.words as i32);
        let counts = [passage.documents, passage.places].map(|count| i64::from(count).into_datum());
        rows.put_and_free([text, words.into_datum(), counts[0], counts[1]], &[text]);
    }
}

/// Number of attempts before `copied_passages` gives up.
const ATTEMPTS: usize = 8;

/// Rough upper limit of the memory for a document's windows, as a multiple of its bytes.
const WINDOWS: usize = 8;

/// Number of numbers in a record of a long document's windows.
const AT_ONCE: usize = 3 << 12;

/// Number of bytes of a short word, for an upper estimate of the number of words.
const BYTES_A_WORD: usize = 4;

/// Divisors of work_mem, for shares that add up to less than all of it. In memory at the same time are the documents;
/// the fingerprints or, later, the windows; the copies; and the classes of a large part with its leftover windows or,
/// later, the result rows.
const DOCUMENTS: usize = 8;
const ENTRIES: usize = 4;
const LEFT: usize = 8;
const ROWS: usize = 4;

/// Number of bits of a hash that divide windows at a time.
const DIVIDED_BITS: u32 = 16;

/// Number of bytes of work_mem per class of a large part. The classes' table takes a quarter of them while it grows.
const BYTES_FOR_A_CLASS: usize = 512;

/// Returns a reader with the `min_words` and `fold` given by arguments `first` and `first + 1` of `call`. Its hash
/// function is random, so that nobody can craft documents whose words collide.
fn reader(call: &Call, first: usize) -> DocumentReader {
    let least = call.get::<i32>(first, "min_words");
    let least = min_words(i64::from(least)).or_raise();
    let fold = call.get::<Text<'_>>(first + 1, "fold").name().parse();
    let mut seed = [0; 8];
    // SAFETY: the buffer is valid for its length. If the system has no random numbers, it stays zero, and the hashes
    // are predictable.
    unsafe { pg_sys::pg_strong_random(seed.as_mut_ptr().cast(), seed.len()) };
    let hashes = Hashes::from_seed(i64::from_ne_bytes(seed));
    DocumentReader::new(least, fold.or_raise(), hashes)
}

/// The fingerprints of a collection, each with its number.
struct Fingerprints {
    entries: Partitions<2>,
    /// The number of each document's first fingerprint, followed by the number of all fingerprints.
    starts: Vec<u64>,
}

impl Fingerprints {
    /// Returns the fingerprints of the documents that `visit_all` passes to its argument.
    fn read(reader: DocumentReader, visit_all: impl FnOnce(&mut dyn FnMut(&[u8]))) -> Self {
        let mut entries = Partitions::within(work_mem_bytes() / ENTRIES, None);
        let (mut starts, mut number, mut end) = (filled(0, 1).or_raise(), 0, 0);
        let work = |(_, docs): (Vec<()>, Parts<u8>), check: &mut dyn FnMut()| {
            reader.winnow(docs.iter(), check)
        };
        let mut take = |read: Result<Winnowed>| {
            let read = read.or_raise();
            for fingerprint in read.fingerprints {
                entries.push([fingerprint, number]);
                number += 1;
            }
            for count in read.counts {
                end += u64::from(count);
                starts.try_push(end).or_raise();
            }
        };
        in_pieces(0, &work, &mut take, |put| {
            visit_all(&mut |doc| put((), &mut |docs| docs.try_extend_from_slice(doc).or_raise()));
        });
        Self { entries, starts }
    }

    /// Returns one bit for each fingerprint, set if it occurs more than once.
    fn repeated(self) -> BitVec<u64> {
        let words = self.entries.len().div_ceil(64);
        let mut repeats = BitVec::from_vec(filled(0, words).or_raise());
        let work = |mut entries: Vec<u64>, check: &mut dyn FnMut()| {
            let (entries, _) = entries.as_chunks_mut::<2>();
            sort(entries, check);
            let mut repeated = Vec::new();
            let groups = entries.chunk_by(|a, b| a[0] == b[0]);
            for same in groups.filter(|group| group.len() > 1) {
                repeated.try_extend(same.iter().map(|entry| entry[1]))?;
            }
            Ok(repeated)
        };
        let mut take = |repeated: Vec<u64>| {
            for number in repeated {
                repeats.set(number as usize, true);
            }
        };
        self.entries
            .work_on("sorting fingerprints", &work, None, &mut take);
        repeats
    }
}

/// The number and the start of a document, or None for windows.
type WindowsTag = Option<(usize, u64)>;

/// Puts `windows` in line behind the documents and windows put before, and empties the list.
fn put_windows(put: &mut PutRecord<'_, WindowsTag>, windows: &mut Vec<u64>) {
    put(None, &mut |record| {
        let bytes = windows.iter().flat_map(|number| number.to_le_bytes());
        record.try_extend(bytes).or_raise();
    });
    windows.clear();
}

/// The entries kept for the windows with the same hash.
#[derive(PartialEq, Eq)]
enum Kept {
    /// The place of every copy, with the place of the first window.
    Copies,
    /// For two or more windows, the place of the first, with the numbers of documents and places.
    Repeated,
}

/// Documents in UTF-8, back to back.
struct SpooledTexts {
    records: Records,
    characters: Characters,
    buffer: Vec<u8>,
}

impl Texts for SpooledTexts {
    fn document(&self, byte: u64) -> (u32, Range<u64>) {
        let (number, bytes) = self.records.record_of(byte);
        (number as u32, bytes)
    }

    fn read(&mut self, bytes: Range<u64>, into: &mut Vec<u8>) -> Result<()> {
        into.try_extend_from_slice(self.records.read_bytes(bytes, &mut self.buffer))
    }
}

impl SpooledTexts {
    fn new() -> Self {
        Self {
            records: Records::new(work_mem_bytes() / DOCUMENTS),
            characters: Characters::default(),
            buffer: Vec::new(),
        }
    }

    /// Stores the documents of `query`, passes their rows to `take_row`, and returns their fingerprints. Skips rows
    /// without a document.
    fn read_all(
        &mut self,
        reader: DocumentReader,
        query: Query,
        document: CheckedColumn,
        take_row: &mut dyn FnMut(&QueryRow<'_>),
    ) -> Fingerprints {
        Fingerprints::read(reader, |visit| {
            query.for_each("reading", &mut |row| {
                if let Some(doc) = row.get(document) {
                    take_row(row);
                    // SAFETY: the column is of type text or one stored like it.
                    let doc = unsafe { Text::from_raw(doc) };
                    self.records.push(&doc);
                    self.characters.push(&doc).or_raise();
                    visit(&doc);
                }
            });
        })
    }

    /// Returns the windows whose fingerprints repeat, in the order of their places. Skips documents without such
    /// fingerprints.
    fn windows(&mut self, reader: DocumentReader, mut fingerprints: Fingerprints) -> Partitions<3> {
        let starts = std::mem::take(&mut fingerprints.starts);
        let repeats = fingerprints.repeated();
        let repeats_of = |document: usize| {
            let [start, end] = [starts[document], starts[document + 1]].map(|at| at as usize);
            &repeats[start..end]
        };
        let mut windows = Partitions::within(work_mem_bytes() / ENTRIES, None);
        let divider = windows.divider();
        let work = |(tags, records): (Vec<WindowsTag>, Parts<u8>), check: &mut dyn FnMut()| {
            let mut found = Vec::new();
            for (tag, record) in tags.into_iter().zip(records.iter()) {
                let Some((number, start)) = tag else {
                    push_entries(record, &mut found)?;
                    continue;
                };
                let repeats = repeats_of(number).iter().by_vals();
                reader.windows((record, start), repeats, check, &mut |window| {
                    found.try_extend_from_slice(&window)
                })?;
            }
            divider.divide(&found)
        };
        let mut take = |divided: Result<Parts<u8>>| windows.put(divided.or_raise());
        let mut progress = Progress::begin("finding windows", self.records.len());
        in_pieces(0, &work, &mut take, |put| {
            for number in 0..self.records.len() {
                progress.step();
                if !repeats_of(number).any() {
                    continue;
                }
                let start = self.records.start(number);
                let doc = self.records.read(number, &mut self.buffer);
                if doc.len() <= work_mem_bytes() / WINDOWS {
                    put(Some((number, start)), &mut |docs| {
                        docs.try_extend_from_slice(doc).or_raise()
                    });
                    continue;
                }
                // The windows of a long document take more memory than the document.
                let mut found = Vec::new();
                let push = &mut |window: Window| {
                    found.try_extend_from_slice(&window)?;
                    if found.len() >= AT_ONCE {
                        put_windows(put, &mut found);
                    }
                    Ok(())
                };
                let repeats = repeats_of(number).iter().by_vals();
                let read = reader.windows((doc, start), repeats, &mut check_interrupts, push);
                read.or_raise();
                put_windows(put, &mut found);
            }
        });
        windows
    }

    /// Groups `windows` by hash, and returns the entries of each group that `kept` selects, partitioned by place.
    fn entries(&self, windows: Partitions<3>, kept: Kept) -> Partitions<2> {
        let most = self.records.end() as usize / BYTES_A_WORD;
        let entries = Partitions::within(work_mem_bytes() / ENTRIES, Some(most));
        let grouping = Grouping {
            kept,
            shift: self.shift(),
            records: &self.records,
        };
        let entries = RefCell::new(entries);
        grouping.group(windows, &entries);
        entries.into_inner()
    }

    /// Returns the number of bits by which to shift places left so that their highest bits are evenly distributed.
    fn shift(&self) -> u32 {
        Place::new(self.records.end().max(1), 0).0.leading_zeros()
    }

    /// Puts the copied passages into `rows`. Returns false if different words had the same hash.
    fn put_rows(
        &mut self,
        reader: DocumentReader,
        entries: Partitions<2>,
        (keys, rows): (&Keys, &mut ResultRows),
    ) -> bool {
        let (mut copies, mut is_true) = (Copies::new(reader).or_raise(), true);
        self.for_each_sorted(entries, &mut |documents, window, first| {
            if is_true && !copies.is_within(window) {
                let row = copies.passage(window, Place(first), documents, &mut check_interrupts);
                match row.or_raise() {
                    Some(row) => rows.put(documents.columns(&row, keys)),
                    None => is_true = false,
                }
            }
        });
        is_true
    }

    /// Returns the columns of a result row.
    fn columns(&mut self, row: &CopiedPassage, keys: &Keys) -> [Option<pg_sys::Datum>; 7] {
        let characters = std::mem::take(&mut self.characters);
        let [[key, start, length], [source, source_start, source_length]] =
            [&row.bytes, &row.source].map(|bytes| {
                let (document, whole) = self.document(bytes.start);
                let [before, length] = [whole.start..bytes.start, bytes.clone()]
                    .map(|bytes| characters.count(bytes, self).or_raise() as i32);
                // SAFETY: both keys are used before another one is read.
                let key = unsafe { keys.get(document) };
                [key, (before + 1).into_datum(), length.into_datum()]
            });
        self.characters = characters;
        [
            key,
            start,
            length,
            (row.words as i32).into_datum(),
            source,
            source_start,
            source_length,
        ]
    }

    /// Calls `visit` with the place and value of each entry, in ascending order of places.
    fn for_each_sorted(
        &mut self,
        entries: Partitions<2>,
        visit: &mut dyn FnMut(&mut Self, Place, u64),
    ) {
        let shift = self.shift();
        let work = |mut entries: Vec<u64>, check: &mut dyn FnMut()| {
            sort(entries.as_chunks_mut::<2>().0, check);
            Ok(entries)
        };
        let mut take = |sorted: Vec<u64>| {
            for &[place, value] in sorted.as_chunks().0 {
                visit(self, Place(place >> shift), value);
            }
        };
        entries.work_on("comparing words", &work, None, &mut take);
    }
}

/// How to group windows by hash, and the entries to make of the groups.
struct Grouping<'a> {
    kept: Kept,
    shift: u32,
    records: &'a Records,
}

impl Grouping<'_> {
    /// Adds windows to `classes`. Passes copies to `emit` if `kept` is [`Kept::Copies`]. Passes windows that do not fit
    /// to `leave`.
    fn add(
        &self,
        classes: &mut Classes,
        windows: &[Window],
        emit: &mut dyn FnMut([u64; 2]) -> Result<()>,
        leave: &mut dyn FnMut(&Window),
    ) -> Result<()> {
        let document_end = |place| match self.kept {
            Kept::Copies => u64::MAX,
            Kept::Repeated => Place::new(self.records.record_of(Place(place).byte()).1.end, 0).0,
        };
        for window in windows {
            match classes.add(*window, &document_end)? {
                Member::Copy(first) if self.kept == Kept::Copies => {
                    emit([window[1] << self.shift, first])?;
                }
                Member::Copy(_) | Member::Original => {}
                Member::Excluded => leave(window),
            }
        }
        Ok(())
    }

    /// Passes the repeated classes to `emit` if `kept` is [`Kept::Repeated`].
    fn end(&self, classes: &Classes, emit: &mut dyn FnMut([u64; 2]) -> Result<()>) -> Result<()> {
        let mut repeated = classes.repeated().filter(|_| self.kept == Kept::Repeated);
        repeated.try_for_each(|(first, documents, places)| {
            let counts = u64::from(documents) << 32 | u64::from(places);
            emit([first << self.shift, counts])
        })
    }

    /// Puts the entries of `windows` into `entries`.
    fn group(&self, windows: Partitions<3>, entries: &RefCell<Partitions<2>>) {
        let divider = entries.borrow().divider();
        let work = |windows: Vec<u64>, check: &mut dyn FnMut()| {
            let (mut classes, mut found) = (Classes::new(usize::MAX), Vec::new());
            let emit = &mut |entry: [u64; 2]| found.try_extend_from_slice(&entry);
            check();
            self.add(&mut classes, windows.as_chunks().0, emit, &mut |_| ())?;
            self.end(&classes, emit)?;
            divider.divide(&found)
        };
        let mut large = |visit_all: &mut VisitSlices<'_>| {
            let left = self.work_on_large(visit_all, &mut |entry| {
                entries.borrow_mut().push(entry);
                Ok(())
            });
            if left.len() > 0 {
                self.group(left, entries);
            }
        };
        let mut take = |divided| entries.borrow_mut().put(divided);
        windows.work_on("grouping windows", &work, Some(&mut large), &mut take);
    }

    /// Groups the windows of a large part as far as their classes fit in memory. Returns the others, divided by bits of
    /// their hashes that have not divided them yet.
    fn work_on_large(
        &self,
        visit_all: &mut VisitSlices<'_>,
        emit: &mut dyn FnMut([u64; 2]) -> Result<()>,
    ) -> Partitions<3> {
        let mut classes = Classes::new(work_mem_bytes() / BYTES_FOR_A_CLASS);
        let mut left = Partitions::within(work_mem_bytes() / LEFT, None);
        visit_all(&mut |windows| {
            let leave = &mut |&[hash, place, limit]: &Window| {
                left.push([hash.rotate_left(DIVIDED_BITS), place, limit]);
            };
            let added = self.add(&mut classes, windows.as_chunks().0, emit, leave);
            added.or_raise();
        });
        self.end(&classes, emit).or_raise();
        left
    }
}

pgrx::extension_sql_file!("../../sql/collection/passages.sql", name = "passages");
