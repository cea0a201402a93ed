//! Pairs of rows, given by their keys, that count as not similar whatever their values.

use crate::pg::prelude::*;
use crate::pg::sort::{ValueOrder, ValueSort};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Pairs of keys. Takes 8 bytes per pair, plus the keys.
pub struct Exceptions {
    /// The distinct keys, in ascending order.
    keys: Keys,
    order: ValueOrder,
    /// The pairs in ascending order, as places in `keys`, the smaller place first.
    pairs: Vec<[u32; 2]>,
}

impl Exceptions {
    /// Returns the pairs that the query in argument `number` yields, or None if the argument is NULL. Skips pairs with
    /// a NULL key.
    ///
    /// # Errors
    /// ERROR `datatype_mismatch` unless the query has two columns of the type of the call's first argument,
    /// `undefined_function` if this type has no order.
    pub fn of_call(call: &Call, number: usize) -> Option<Self> {
        call.optional_argument(number)?;
        let key_type = call.argument_type(0);
        let query = Query::open(call, number, "exceptions");
        let [a, b] = query.exactly("Select two columns for exceptions: the keys of a pair.");
        let columns = [
            a.of_type(key_type, "first", "key"),
            b.of_type(key_type, "second", "key"),
        ];
        Some(Self::read(key_type, |put| {
            query.for_each("reading exceptions", &mut |row| {
                if let [Some(a), Some(b)] = columns.map(|column| row.get(column)) {
                    put([a, b]);
                }
            });
        }))
    }

    /// Returns the pairs of keys that `read` passes to its argument. The keys are of type `key_type`.
    ///
    /// # Errors
    /// ERROR `undefined_function` if the type has no order.
    pub fn read(
        key_type: pg_sys::Oid,
        read: impl FnOnce(&mut dyn FnMut([pg_sys::Datum; 2])),
    ) -> Self {
        let (mut sort, mut count) = (ValueSort::begin(key_type), 0);
        read(&mut |pair| {
            for end in pair {
                sort.put(end, count);
                count += 1;
            }
        });
        let (keys, places) = sort.places(count);
        let (ends, _) = places.as_chunks();
        let mut pairs = collected(ends.iter().map(|&[a, b]| [a.min(b), a.max(b)])).or_raise();
        neardup::set::sort(&mut pairs, &mut check_interrupts);
        Self {
            keys,
            order: ValueOrder::of(key_type),
            pairs,
        }
    }

    /// Returns the place of `key`, or None if no pair has it.
    pub fn place(&self, key: Option<pg_sys::Datum>) -> Option<u32> {
        let key = key?;
        let (mut start, mut end) = (0, self.keys.len() as u32);
        while start < end {
            let middle = start.midpoint(end);
            // SAFETY: no other key is read before they are compared.
            let found = unsafe { self.keys.get(middle) }?;
            match self.order.compare(found, key) {
                std::cmp::Ordering::Less => start = middle + 1,
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Greater => end = middle,
            }
        }
        None
    }

    /// Returns whether the keys at places `a` and `b` are a pair.
    pub fn contain(&self, a: u32, b: u32) -> bool {
        self.pairs.binary_search(&[a.min(b), a.max(b)]).is_ok()
    }
}

/// The rows of a collection that have exceptions. Takes some 20 bytes for each.
#[derive(Default)]
pub struct ExceptedRows {
    exceptions: Option<Rc<Exceptions>>,
    /// The places of the keys of these rows, by row number. Users do not choose row numbers, so a fast hash is safe.
    places: FxHashMap<u32, u32>,
}

impl ExceptedRows {
    /// Returns the rows with exceptions, given `keys`, the keys of all rows.
    pub fn of(exceptions: Rc<Exceptions>, keys: &Keys) -> Self {
        let mut places = FxHashMap::default();
        for row in 0..keys.len() as u32 {
            check_interrupts();
            // SAFETY: no other key in `keys` is read before the next row.
            if let Some(place) = exceptions.place(unsafe { keys.get(row) }) {
                places.try_reserve(1).or_raise();
                places.insert(row, place);
            }
        }
        Self {
            exceptions: Some(exceptions),
            places,
        }
    }

    /// Returns whether the key of `row` occurs in an exception.
    pub fn has(&self, row: u32) -> bool {
        self.places.contains_key(&row)
    }

    /// Returns whether rows `x` and `y` are an exception.
    pub fn contain(&self, [x, y]: [u32; 2]) -> bool {
        let places = self.places.get(&x).zip(self.places.get(&y));
        let pair = places.zip(self.exceptions.as_ref());
        pair.is_some_and(|((x, y), exceptions)| exceptions.contain(*x, *y))
    }
}
