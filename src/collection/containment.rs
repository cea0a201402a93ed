//! All ordered pairs of rows of which one contains a share of the other: exactly, by their sets.
//!
//! Of every set the rarest elements are looked up, as many as a set that contains the share has one
//! of. Rows that have one in common are sorted into pairs, each once, and their sets are compared.

use crate::collection::documents::{DocumentKind, push_set, read_set};
use crate::collection::items::Items;
use crate::collection::verify::HeldRecord;
use crate::options;
use crate::pg::call::Call;
use crate::pg::error::{OrRaise, check_interrupts, or_out_of_memory, raise};
use crate::pg::progress::Progress;
use crate::pg::query::{CheckedColumn, Column, Query, work_mem_bytes};
use crate::pg::sort::RowSort;
use crate::pg::spool::Records;
use crate::pg::text::Text;
use crate::pg::value::Keys;
use neardup::bands::element_key;
use neardup::candidates::{Frequencies, rarest};
use neardup::memory::filled;
use neardup::set;
use neardup::shingle::{Key, Shingling, shingle_hashes};
use pgrx::{PgSqlErrorCode, pg_sys};

/// The most distinct sets: a bit of their numbers tells what is looked up from what is found.
const MOST: u32 = u32::MAX / 2;

/// The rows of one query or of two, with the sets of their documents.
pub struct SetCollection {
    key_type: pg_sys::Oid,
    shingling: Shingling,
    keys: Keys,
    /// Sorted elements, 8 bytes each.
    sets: Records,
    /// Rows of the first query, where two are joined.
    first_side: Option<u32>,
}

impl SetCollection {
    /// Returns a collection with keys of the type of the call's first argument. Documents are cut into
    /// shingles as the arguments from `first` on say.
    pub fn new(call: &Call, first: usize) -> Self {
        let key_type = call.argument_type(0);
        Self {
            key_type,
            shingling: options::signing_arguments(call, first).shingling,
            keys: Keys::new(key_type),
            sets: Records::new(work_mem_bytes()),
            first_side: None,
        }
    }

    /// Reads all rows of a query for (key, document or set); those without an element contain nothing
    /// and are contained in nothing.
    ///
    /// # Errors
    /// ERROR `datatype_mismatch` for other columns.
    pub fn read(&mut self, query: pg_sys::Datum) {
        let query = Query::open(query);
        let (key, kind, document) = self.check_columns(&query.columns());
        let mut record = Vec::new();
        let mut progress = Progress::begin("reading", None);
        query.for_each(&mut |row| {
            progress.step();
            let Some(datum) = row.get(document) else {
                return;
            };
            record.clear();
            // SAFETY: the column's type has been checked; the row outlives the borrow.
            unsafe { self.push_elements(kind, datum, &mut record) };
            if !record.is_empty() {
                self.sets.push(&record);
                self.keys.push(row.get(key));
            }
        });
    }

    /// Ends the first of two queries.
    pub fn end_first_side(&mut self) {
        self.first_side = Some(self.keys.len() as u32);
    }

    fn check_columns(&self, columns: &[Column]) -> (CheckedColumn, DocumentKind, CheckedColumn) {
        let [key, document] = columns else {
            wrong_columns(&format!("the query yields {} columns", columns.len()));
        };
        let key = key.of_type(self.key_type, "first", "key");
        let (kind, document) = DocumentKind::of_column(document).unwrap_or_else(|| {
            wrong_columns(&format!(
                "the second column of the query is of type {}",
                document.type_name()
            ))
        });
        (key, kind, document)
    }

    /// Appends the elements of a document.
    ///
    /// # Safety
    /// `datum` is a non-null datum of a type of the kind.
    unsafe fn push_elements(&self, kind: DocumentKind, datum: pg_sys::Datum, record: &mut Vec<u8>) {
        if kind != DocumentKind::Text {
            // SAFETY: vouched for by the caller.
            return unsafe { kind.push_record(datum, record) };
        }
        // SAFETY: as above.
        let text = unsafe { Text::from_raw(datum) };
        let key = Key::from_seed(0);
        let hashes = shingle_hashes(&text, &self.shingling, &key, &mut check_interrupts);
        push_set(hashes.or_raise(), record);
    }

    /// Calls `visit` with the keys of every ordered pair of different rows, of the two sides if there
    /// are two, of which the second contains the share `threshold` of the first, and with that share.
    pub fn for_each_pair(
        mut self,
        threshold: f64,
        visit: &mut dyn FnMut([Option<pg_sys::Datum>; 2], f64),
    ) {
        let items = Items::of_records(&mut self.sets);
        if items.len() > MOST {
            raise(
                PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                &format!("the query yields more than {MOST} different sets"),
                "",
            );
        }
        for item in 0..items.len() {
            self.visit_rows(&items, (item, item), 1.0, visit);
        }
        let lookups = self.lookups(&items, threshold);
        let candidates = self.candidates(&items, lookups);
        let (mut held, mut part, mut whole) = (HeldRecord::default(), Vec::new(), Vec::new());
        let mut progress = Progress::begin("comparing", None);
        candidates.for_each_group(&mut |a, containing| {
            for &b in containing {
                progress.step();
                let rows = [a, b].map(|item| items.first_row(item));
                let (x, y) = held.load(&mut self.sets, rows[0], rows[1]);
                read_set(x, &mut part).or_raise();
                read_set(y, &mut whole).or_raise();
                let shared = set::intersection_size(&part, &whole, &mut check_interrupts);
                if set::reaches(shared, part.len(), threshold) {
                    let share = shared as f64 / part.len() as f64;
                    self.visit_rows(&items, (a, b), share, visit);
                }
            }
        });
    }

    /// Visits the pairs of a row of one item and another row of another, or of the same.
    fn visit_rows(
        &self,
        items: &Items,
        (a, b): (u32, u32),
        share: f64,
        visit: &mut dyn FnMut([Option<pg_sys::Datum>; 2], f64),
    ) {
        for x in items.rows(a).filter(|&row| self.is_part(row)) {
            for y in items.rows(b).filter(|&row| self.is_whole(row)) {
                check_interrupts();
                if x != y {
                    visit([self.keys.get(x), self.keys.get(y)], share);
                }
            }
        }
    }

    fn is_part(&self, row: u32) -> bool {
        self.first_side.is_none_or(|first| row < first)
    }

    fn is_whole(&self, row: u32) -> bool {
        self.first_side.is_none_or(|first| row >= first)
    }

    fn load(&mut self, items: &Items, item: u32, set: &mut Vec<i64>) {
        let mut buffer = Vec::new();
        let row = items.first_row(item) as usize;
        read_set(self.sets.read(row, &mut buffer), set).or_raise();
    }

    /// Returns what is to be looked up of every item that may be a part.
    fn lookups(&mut self, items: &Items, threshold: f64) -> Lookups {
        let mut set = Vec::new();
        let elements = (0..self.sets.len()).map(|row| self.sets.length(row) / size_of::<i64>());
        let elements = elements.sum::<usize>();
        let counts = Frequencies::new(elements, work_mem_bytes());
        let mut counts = or_out_of_memory(counts);
        let mut progress = Progress::begin("counting elements", Some(items.len() as usize));
        for item in 0..items.len() {
            progress.step();
            if items.rows(item).any(|row| self.is_whole(row)) {
                self.load(items, item, &mut set);
                set.iter()
                    .for_each(|&element| counts.add(&[element_key(element)]));
            }
        }
        let mut lookups = Lookups::new(elements, items.len());
        let mut tokens = Vec::new();
        let mut progress = Progress::begin("choosing elements", Some(items.len() as usize));
        for item in 0..items.len() {
            progress.step();
            if items.rows(item).any(|row| self.is_part(row)) {
                self.load(items, item, &mut set);
                if let Some(needed) = rarest(&set, threshold, &counts, &mut tokens).or_raise() {
                    lookups.add(item, needed as u32, &tokens);
                }
            }
        }
        lookups
    }

    /// Returns the pairs of items, the part first, of which the second has enough elements and one of
    /// those looked up.
    fn candidates(&mut self, items: &Items, mut lookups: Lookups) -> RowSort {
        let mut set = Vec::new();
        let mut sizes = filled(0u32, items.len() as usize).or_raise();
        let mut progress = Progress::begin("sorting elements", Some(items.len() as usize));
        for item in 0..items.len() {
            progress.step();
            if items.rows(item).any(|row| self.is_whole(row)) {
                self.load(items, item, &mut set);
                sizes[item as usize] = set.len() as u32;
                set.iter()
                    .for_each(|&element| lookups.meet(item, element_key(element)));
            }
        }
        let mut candidates = RowSort::begin();
        let Lookups { sort, needed, .. } = lookups;
        let mut progress = Progress::begin("pairing", None);
        sort.for_each_group(&mut |_, group| {
            progress.step();
            let looked_up = group.iter().filter(|&&entry| entry & LOOKED_UP != 0);
            for a in looked_up.map(|entry| entry >> 1) {
                check_interrupts();
                let others = group.iter().filter(|&&entry| entry & LOOKED_UP == 0);
                for b in others.map(|entry| entry >> 1) {
                    if a != b && sizes[b as usize] >= needed[a as usize] {
                        candidates.put(a, b);
                    }
                }
            }
        });
        candidates
    }
}

/// Marks an item that looks for others under an element, beside the number of the item.
const LOOKED_UP: u32 = 1;

/// The elements that are looked up.
struct Lookups {
    /// Tokens, with the items that look for others under them and those that have them.
    sort: RowSort,
    /// Tells most tokens that nobody looks up.
    bits: Vec<u64>,
    /// The elements that others have to share with each item.
    needed: Vec<u32>,
}

impl Lookups {
    fn new(elements: usize, items: u32) -> Self {
        let words = elements.min(work_mem_bytes()).max(64).next_power_of_two() / 8;
        Self {
            sort: RowSort::begin(),
            bits: filled(0, words).or_raise(),
            needed: filled(0, items as usize).or_raise(),
        }
    }

    /// Returns the word and the bit of a token, which is well mixed.
    fn place(&self, token: u32) -> (usize, u32) {
        (token as usize / 64 % self.bits.len(), token % 64)
    }

    fn add(&mut self, item: u32, needed: u32, tokens: &[u32]) {
        self.needed[item as usize] = needed;
        for &token in tokens {
            let (word, bit) = self.place(token);
            self.bits[word] |= 1 << bit;
            self.sort.put(token, item << 1 | LOOKED_UP);
        }
    }

    /// Notes that an item has an element, if somebody looks it up.
    fn meet(&mut self, item: u32, token: u32) {
        let (word, bit) = self.place(token);
        if self.bits[word] >> bit & 1 == 1 {
            self.sort.put(token, item << 1);
        }
    }
}

fn wrong_columns(message: &str) -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
        message,
        "Valid for containment are the key and the document (text), or its shingles as text[] or bigint[].",
    )
}
