//! All ordered pairs of rows such that the second contains a share of the first: exactly, by their sets.
//!
//! Of every set the rarest elements are looked up, as many as a set that contains the share has one
//! of. Rows that have one in common are sorted into pairs, each once, and their sets are compared.

use crate::collection::compare::{RecordKind, compare_pairs};
use crate::collection::documents::{DocumentKind, read_set, set_record};
use crate::collection::items::Items;
use crate::collection::sweep::{read_in_pieces, read_stored, sweep};
use crate::options;
use crate::pg::call::Call;
use crate::pg::error::{OrRaise, check_interrupts, or_out_of_memory, too_large};
use crate::pg::parts::Parts;
use crate::pg::progress::Progress;
use crate::pg::query::{Query, QueryRow};
use crate::pg::settings::work_mem_bytes;
use crate::pg::sort::RowSort;
use crate::pg::spool::Records;
use crate::pg::text::Text;
use crate::pg::value::Keys;
use neardup::Result;
use neardup::bands::element_key;
use neardup::candidates::{Frequencies, rarest};
use neardup::memory::{Grow, collected, filled};
use neardup::shingle::{Key, Shingling, shingle_hashes};
use pgrx::pg_sys;

/// The most distinct sets: a bit of their numbers tells sets to look up from sets that were found.
const MOST: u32 = u32::MAX / 2;

/// Makes values of a set and appends them to a list, in any thread.
type MakeOfSet<'a, U> = dyn Fn(&[i64], &mut Vec<U>) -> Result<()> + Sync + 'a;

const VALID: &str = "Valid for containment are the key and the document (text), or its shingles as text[] or bigint[].";

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
            shingling: options::shingling_arguments(call, first),
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
    pub fn read(&mut self, query: Query) {
        let [key, document] = query.exactly(VALID);
        let key = key.of_type(self.key_type, "first", "key");
        let kind = DocumentKind::of_column(&document);
        let (kind, document) = kind.unwrap_or_else(|| document.refuse("second", VALID));
        let shingling = self.shingling;
        let work = |documents: Parts<u8>, check: &mut dyn FnMut()| match kind {
            DocumentKind::Text => sets_of(&documents, &shingling, check),
            DocumentKind::TextSet | DocumentKind::HashSet => Ok(documents),
        };
        let mut push = |row: &QueryRow<'_>, piece: &mut Parts<u8>| {
            let Some(datum) = row.get(document) else {
                return false;
            };
            // SAFETY: the column's type has been checked; the row outlives the borrow.
            unsafe { push_document(kind, datum, &mut piece.items) };
            piece.end().or_raise();
            true
        };
        let mut take = |keys: Keys, sets: Parts<u8>| {
            for (number, set) in (0..).zip(sets.iter()) {
                if !set.is_empty() {
                    self.sets.push(set);
                    self.keys.push(keys.get(number));
                }
            }
        };
        let rows = (query, key, self.key_type);
        read_in_pieces("reading", rows, &mut push, &work, &mut take);
    }

    /// Ends the first of two queries.
    pub fn end_first_side(&mut self) {
        self.first_side = Some(self.keys.len() as u32);
    }

    /// Calls `visit` with the keys of every ordered pair of different rows, of the two sides if there
    /// are two, where the second contains the share `threshold` of the first, and with that share.
    pub fn for_each_pair(
        mut self,
        threshold: f64,
        visit: &mut dyn FnMut([Option<pg_sys::Datum>; 2], f64),
    ) {
        let items = Items::of_records(&mut self.sets);
        if items.len() > MOST {
            too_large(
                &format!("the query yields more than {MOST} different sets"),
                "",
            );
        }
        for item in 0..items.len() {
            self.visit_rows(&items, (item, item), 1.0, visit);
        }
        let lookups = self.lookups(&items, threshold);
        let candidates = self.candidates(&items, lookups);
        self.compare(&items, candidates, threshold, visit);
    }

    /// Compares candidates with the help of other threads, and visits the rows of those that reach the
    /// threshold.
    fn compare(
        mut self,
        items: &Items,
        candidates: RowSort,
        threshold: f64,
        visit: &mut dyn FnMut([Option<pg_sys::Datum>; 2], f64),
    ) {
        let mut sets = std::mem::replace(&mut self.sets, Records::new(0));
        let mut read = read_stored(&mut sets);
        let mut take = |pair, share: Option<f64>| {
            if let Some(share) = share {
                self.visit_rows(items, pair, share, visit);
            }
        };
        let mut progress = Progress::begin("comparing", Some(candidates.len()));
        let kind = (RecordKind::Contained, threshold);
        compare_pairs(kind, &mut read, &mut take, |put| {
            candidates.for_each_group(&mut |a, containing| {
                for &b in containing {
                    progress.step();
                    put((a, b), [a, b].map(|item| items.first_row(item)));
                }
            });
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

    /// Returns the elements to look up of every item that may be a part.
    fn lookups(&mut self, items: &Items, threshold: f64) -> Lookups {
        let elements = (0..self.sets.len()).map(|row| self.sets.length(row) / size_of::<i64>());
        let elements = elements.sum::<usize>();
        let counts = Frequencies::new(elements, work_mem_bytes());
        let mut counts = or_out_of_memory(counts);
        self.sweep(
            "counting elements",
            (items, Self::is_whole),
            &|set, keys| keys.try_extend(set.iter().copied().map(element_key)),
            &mut |_, keys| keys.iter().for_each(|&key| counts.add(&[key])),
        );
        let mut lookups = Lookups::new(elements, items.len());
        self.sweep(
            "choosing elements",
            (items, Self::is_part),
            &|set, chosen| {
                let mut tokens = Vec::new();
                if let Some(needed) = rarest(set, threshold, &counts, &mut tokens)? {
                    chosen.try_push(needed as u32)?;
                    chosen.try_extend(tokens)?;
                }
                Ok(())
            },
            &mut |item, chosen| {
                if let [needed, tokens @ ..] = chosen {
                    lookups.add(item, *needed, tokens);
                }
            },
        );
        lookups
    }

    /// Makes something of the sets of the items that have a row for which that holds, and takes it in
    /// order.
    fn sweep<U: Send>(
        &mut self,
        stage: &'static str,
        (items, has): (&Items, fn(&Self, u32) -> bool),
        make: &MakeOfSet<'_, U>,
        take: &mut dyn FnMut(u32, &[U]),
    ) {
        let of_items = |item: &u32| items.rows(*item).any(|row| has(self, row));
        let chosen = collected((0..items.len()).filter(of_items)).or_raise();
        let mut read = read_stored(&mut self.sets);
        sweep(
            &mut Progress::begin(stage, Some(chosen.len())),
            chosen.into_iter(),
            &mut |item, record| read(items.first_row(item), record),
            &|record, made, _| {
                let mut set = Vec::new();
                read_set(record, &mut set)?;
                make(&set, made)
            },
            take,
        );
    }

    /// Returns the pairs of items, the part first, where the whole has enough elements and a looked up one.
    fn candidates(&mut self, items: &Items, lookups: Lookups) -> RowSort {
        let mut sizes = filled(0u32, items.len() as usize).or_raise();
        let Lookups {
            bits,
            mut sort,
            needed,
        } = lookups;
        self.sweep(
            "sorting elements",
            (items, Self::is_whole),
            &|set, met| {
                met.try_push(set.len() as u32)?;
                let keys = set.iter().copied().map(element_key);
                met.try_extend(keys.filter(|&key| bits.has(key)))
            },
            &mut |item, met| {
                if let [size, keys @ ..] = met {
                    sizes[item as usize] = *size;
                    keys.iter().for_each(|&key| sort.put(key, item << 1));
                }
            },
        );
        let mut candidates = RowSort::begin();
        let mut progress = Progress::begin("pairing", Some(sort.len()));
        let mut seen = 0;
        sort.for_each_group(&mut |_, group| {
            seen += group.len();
            progress.reach(seen);
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
    bits: LookedUp,
    /// The elements that others have to share with each item.
    needed: Vec<u32>,
}

impl Lookups {
    fn new(elements: usize, items: u32) -> Self {
        let words = elements.min(work_mem_bytes()).max(64).next_power_of_two() / 8;
        Self {
            sort: RowSort::begin(),
            bits: LookedUp(filled(0, words).or_raise()),
            needed: filled(0, items as usize).or_raise(),
        }
    }

    fn add(&mut self, item: u32, needed: u32, tokens: &[u32]) {
        self.needed[item as usize] = needed;
        for &token in tokens {
            self.bits.set(token);
            self.sort.put(token, item << 1 | LOOKED_UP);
        }
    }
}

/// Bits that tell most tokens that nobody looks up.
struct LookedUp(Vec<u64>);

impl LookedUp {
    /// Returns the word and the bit of a token, which is well mixed.
    fn place(&self, token: u32) -> (usize, u32) {
        (token as usize / 64 % self.0.len(), token % 64)
    }

    fn set(&mut self, token: u32) {
        let (word, bit) = self.place(token);
        self.0[word] |= 1 << bit;
    }

    /// Returns true if somebody looks a token up, and for a few others.
    fn has(&self, token: u32) -> bool {
        let (word, bit) = self.place(token);
        self.0[word] >> bit & 1 == 1
    }
}

/// Returns the records of the sets of texts, in any thread.
fn sets_of(texts: &Parts<u8>, shingling: &Shingling, check: &mut dyn FnMut()) -> Result<Parts<u8>> {
    texts.each(|text, record| {
        let set = shingle_hashes(text, shingling, &Key::from_seed(0), check)?;
        record.try_extend_from_slice(&set_record(&set)?)
    })
}

/// Appends a text in UTF-8, or the record of a set.
///
/// # Safety
/// `datum` is a non-null datum of a type of the kind.
unsafe fn push_document(kind: DocumentKind, datum: pg_sys::Datum, document: &mut Vec<u8>) {
    // SAFETY: vouched for by the caller.
    unsafe {
        match kind {
            DocumentKind::Text => {
                let text = Text::from_raw(datum);
                document.try_extend_from_slice(&text).or_raise();
            }
            DocumentKind::TextSet | DocumentKind::HashSet => kind.push_record(datum, document),
        }
    }
}
