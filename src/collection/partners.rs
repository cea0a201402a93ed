//! Finds a limited number of partners for every row, in time linear in the number of rows even among copies.

use crate::collection::batch::Batch;
use crate::collection::items::Items;
use crate::collection::measured::{Measured, Visit};
use crate::pg::prelude::*;
use bitvec::vec::BitVec;
use neardup::Error;
use neardup::candidates::KeyLists;
use std::ops::ControlFlow;

const NONE: u32 = u32::MAX;

/// The number of partners that the rows of each item still lack. Takes 8 bytes per item.
pub struct Lacking {
    /// The number of rows of every item.
    sizes: Vec<u32>,
    lacking: Vec<u32>,
}

impl Lacking {
    /// Pairs the rows of each item until each row has `most` partners or is paired with all other rows of the item.
    /// Returns the numbers of partners that rows still lack.
    pub fn after_copies(measured: &Measured, most: u32, visit: Visit<'_>) -> Self {
        let items = &measured.items;
        let (mut sizes, mut lacking) = (Vec::new(), Vec::new());
        for item in over("pairing copies", 0..items.len()) {
            let rows = collected(items.rows(item)).or_raise();
            let others = rows.len() as u32 - 1;
            sizes.try_push(others + 1).or_raise();
            lacking.try_push(most.saturating_sub(others)).or_raise();
            if others <= most {
                items.for_each_pair_within(item, &mut |x, y| visit(measured.keys(x, y), 1.0));
                continue;
            }
            // Pairs each row with the next `most / 2` rows, rounded up, in a circle.
            for (place, x) in rows.iter().enumerate() {
                check_interrupts();
                for next in 1..=most.div_ceil(2) as usize {
                    let y = rows[(place + next) % rows.len()];
                    visit(measured.keys(y.min(*x), y.max(*x)), 1.0);
                }
            }
        }
        Self { sizes, lacking }
    }

    /// Pairs the rows of two similar items until each row has the partners that it lacks, or all rows of the other
    /// item.
    fn pair(&mut self, items: &Items, (x, y): (u32, u32), visit: &mut dyn FnMut(u32, u32)) {
        let [x, y] = [x, y].map(|item| item as usize);
        let [of_x, of_y] = [(x, y), (y, x)].map(|(x, y)| self.lacking[x].min(self.sizes[y]));
        // An item whose rows lack partners has at most `most` rows.
        let first = |item: usize, most: u32| {
            collected(items.rows(item as u32).take(most as usize)).or_raise()
        };
        let [rows_x, rows_y] = [(x, of_y, of_x), (y, of_x, of_y)].map(|(item, needed, lacks)| {
            let all = if lacks > 0 { self.sizes[item] } else { 0 };
            first(item, all.max(needed))
        });
        for (place, a) in (0..).zip(&rows_x) {
            for (other, b) in (0..).zip(&rows_y) {
                if other < of_x || place < of_y {
                    visit(*a, *b);
                }
            }
        }
        self.lacking[x] -= of_x;
        self.lacking[y] -= of_y;
    }

    /// Pairs the rows of a batch with similar ones until every row has enough partners, or all its partners if it has
    /// fewer. Looks under a row's rarest keys first.
    pub fn search(&mut self, measured: &mut Measured, batch: &Batch, visit: Visit<'_>) {
        let tokens = &batch.tokens;
        let mut lists = KeyLists::new(tokens, &mut check_interrupts).or_raise();
        let mut partners = Partners {
            heads: filled(NONE, tokens.rows() as usize).or_raise(),
            entries: Vec::new(),
        };
        let words = tokens.rows().div_ceil(usize::BITS) as usize;
        let mut has_all: BitVec = BitVec::from_vec(filled(0, words).or_raise());
        for kept in over("searching partners", 0..tokens.rows()) {
            let item = batch.item(kept);
            if self.lacking[item as usize] == 0 {
                continue;
            }
            partners.for_each(kept, &mut |partner| lists.pass_over(kept, partner));
            let searched = lists.for_each_partner(tokens, kept, &mut |other| {
                if has_all[other as usize] {
                    return ControlFlow::Continue(());
                }
                let pair = (kept.min(other), kept.max(other));
                if let Some(similarity) = measured.kept_similarity(batch, pair, 0.0) {
                    let items = (item, batch.item(other));
                    let measured = &*measured;
                    self.pair(&measured.items, items, &mut |a, b| {
                        visit(measured.keys(a.min(b), a.max(b)), similarity);
                    });
                    partners.put(kept, other);
                    partners.put(other, kept);
                }
                match self.lacking[item as usize] {
                    0 => ControlFlow::Break(()),
                    _ => ControlFlow::Continue(()),
                }
            });
            searched.or_raise();
            has_all.set(kept as usize, self.lacking[item as usize] > 0);
        }
    }
}

/// The partners found, in linked lists that take 8 bytes per entry.
struct Partners {
    heads: Vec<u32>,
    entries: Vec<(u32, u32)>,
}

impl Partners {
    fn put(&mut self, kept: u32, partner: u32) {
        let head = &mut self.heads[kept as usize];
        self.entries.try_push((partner, *head)).or_raise();
        let entries = u32::try_from(self.entries.len());
        *head = entries.map_err(|_| Error::OutOfMemory).or_raise() - 1;
    }

    fn for_each(&self, kept: u32, visit: &mut dyn FnMut(u32)) {
        let mut entry = self.heads[kept as usize];
        while entry != NONE {
            let (partner, next) = self.entries[entry as usize];
            visit(partner);
            entry = next;
        }
    }
}
