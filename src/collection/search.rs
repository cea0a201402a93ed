//! From the tokens of items to the pairs worth comparing.

use crate::pg::error::{OrRaise, or_out_of_memory};
use crate::pg::progress::Progress;
use crate::pg::sort::RowSort;
use neardup::candidates::{Frequencies, Sides, Tokens, pairs_of_group};
use neardup::kernels::count_equal;
use neardup::memory::Grow;
use neardup::minhash::Header;

/// The items that may have partners, under new numbers ("kept"), with their tokens.
pub struct Search {
    pub tokens: Tokens,
    items: Vec<u32>,
    prefilter: Option<Prefilter>,
}

impl Search {
    /// Reads the tokens of all items twice: to count them, and to keep those that may have
    /// partners. `read` writes `bands` tokens of an item.
    pub fn new(
        items: &[u32],
        bands: usize,
        needed: usize,
        read: &mut dyn FnMut(u32, &mut Vec<u32>),
    ) -> Self {
        let memory = crate::pg::query::work_mem_bytes();
        let mut counts = or_out_of_memory(Frequencies::new(items.len() * bands, memory));
        let mut tokens = Tokens::new(bands, needed);
        let (mut row, mut kept) = (Vec::new(), Vec::new());
        let mut progress = Progress::begin("counting bands", Some(items.len()));
        for &item in items {
            progress.step();
            row.clear();
            read(item, &mut row);
            counts.add(&row);
        }
        let mut progress = Progress::begin("choosing bands", Some(items.len()));
        for &item in items {
            progress.step();
            row.clear();
            read(item, &mut row);
            if or_out_of_memory(tokens.keep(&row, &counts)) {
                kept.try_push(item).or_raise();
            }
        }
        Self {
            tokens,
            items: kept,
            prefilter: None,
        }
    }

    /// Adds a prefilter: `read` appends the slots of an item as signatures of that header store
    /// them, and pairs with fewer than `equal` equal ones are not compared.
    pub fn prefilter(
        &mut self,
        header: Header,
        equal: usize,
        read: &mut dyn FnMut(u32, &mut Vec<u8>),
    ) {
        let mut packed = Vec::new();
        or_out_of_memory(packed.try_reserve_exact(header.payload_len() * self.items.len()));
        let mut progress = Progress::begin("reading signatures", Some(self.items.len()));
        for &item in &self.items {
            progress.step();
            read(item, &mut packed);
        }
        self.prefilter = Some(Prefilter {
            packed,
            header,
            equal,
        });
    }

    /// Returns the item behind a kept number.
    pub fn item(&self, kept: u32) -> u32 {
        self.items[kept as usize]
    }

    /// Returns whether two kept items pass the prefilter.
    pub fn passes(&self, a: u32, b: u32) -> bool {
        self.prefilter
            .as_ref()
            .is_none_or(|filter| filter.passes(a, b))
    }

    /// Visits each pair of kept items worth comparing, once, of which one has rows on side a and
    /// the other on side b. `sides` is that of a kept number.
    pub fn for_each_pair(&self, sides: &dyn Fn(u32) -> Sides, visit: &mut dyn FnMut(u32, u32)) {
        self.for_each_group(&mut |key, group| {
            pairs_of_group(&self.tokens, group, key, sides, &mut |a, b| {
                if self.passes(a, b) {
                    visit(a, b);
                }
            })
            .or_raise();
        });
    }

    /// Visits every key with the kept items that look for partners under it, ascending.
    pub fn for_each_group(&self, visit: &mut dyn FnMut(u32, &[u32])) {
        let mut sort = RowSort::begin();
        let mut progress = Progress::begin("sorting bands", Some(self.items.len()));
        let mut entries = 0;
        for kept in 0..self.tokens.rows() {
            progress.step();
            for key in self.tokens.keys(kept) {
                entries += 1;
                sort.put(key, kept);
            }
        }
        let mut progress = Progress::begin("comparing", Some(entries));
        sort.for_each_group(&mut |key, group| {
            group.iter().for_each(|_| progress.step());
            if group.len() > 1 {
                visit(key, group);
            }
        });
    }
}

/// A few bits of each slot: enough to tell that too few are equal.
struct Prefilter {
    packed: Vec<u8>,
    header: Header,
    equal: usize,
}

impl Prefilter {
    fn passes(&self, a: u32, b: u32) -> bool {
        let (slots, slot_bits) = (self.header.slots, self.header.slot_bits);
        let bytes = self.header.payload_len();
        let of = |kept: u32| &self.packed[kept as usize * bytes..][..bytes];
        count_equal(of(a), of(b), slots.into(), slot_bits.into()) >= self.equal
    }
}
