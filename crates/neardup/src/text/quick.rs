//! The fast form of the folds. Text that the quick check (UAX #15, section 9) finds folded already is written directly,
//! ASCII in runs. Other segments, each from a starter up to the next, go through the [`Folder`].

use super::Fold;
use super::cell::{Cell, decode};
use super::decode::pieces;
use super::fold::{FoldedText, Folder};
use super::properties::WordClass;
use super::table::Table;
use crate::Result;
use crate::kernels::fold::Folded;
use crate::kernels::{Vectorize, first_bytes, vectorized};
use std::ops::Range;

/// Maximum number of items of a text to keep before [`Units::take`] takes them.
pub(crate) const ROOM: usize = 4096;

/// Maximum number of items written at once.
const SLACK: usize = RUN + 8;

/// Number of bytes of ASCII folded at once, in long and in short runs.
const RUN: usize = 64;
const SHORT_RUN: usize = 8;

/// A folded text as a list of items, from which units are made.
pub(crate) trait Units {
    type Item: Copy + PartialEq;
    /// The item of white space.
    const SPACE: Self::Item;

    /// Writes the items of the code point `cell` at `end`. Returns where they begin and end.
    fn write(
        &self,
        items: &mut [Self::Item; ROOM],
        end: usize,
        cell: Cell,
        before: Cell,
    ) -> (usize, usize);

    /// Writes the items of the first `count` characters of `ascii` at `end`. Returns where they end.
    fn write_ascii<const N: usize>(
        &self,
        items: &mut [Self::Item; ROOM],
        end: usize,
        ascii: &[u8; N],
        count: usize,
        before: Cell,
    ) -> usize;

    /// Writes the items of the ASCII at the beginning of a text at `end`, as far as there is room; at least
    /// [`SHORT_RUN`] characters. Returns the number of characters, and where the items end.
    #[inline(always)]
    fn write_ascii_runs(
        &self,
        items: &mut [Self::Item; ROOM],
        mut end: usize,
        text: &[u8],
        mut before: Cell,
    ) -> (usize, usize) {
        let runs = text.as_chunks::<RUN>().0.iter();
        let mut count = 0;
        for run in runs.take_while(|run| run.is_ascii()) {
            if end > ROOM - SLACK {
                return (count, end);
            }
            end = self.write_ascii(items, end, run, RUN, before);
            before = Table::of(Fold::None).cell(usize::from(run[RUN - 1]));
            count += RUN;
        }
        if count == 0 {
            let run = first_bytes::<SHORT_RUN>(text);
            end = self.write_ascii(items, end, &run, SHORT_RUN, before);
            count = SHORT_RUN;
        }
        (count, end)
    }

    /// Writes the items of the beginning of a text, as far as the room and the fast path allow.
    fn write_run(
        &self,
        items: &mut [Self::Item],
        text: &[u8],
        table: &'static Table,
        before: Cell,
    ) -> Folded;

    /// Takes at least one item from the beginning, or all items if `is_last`. Returns how many it took.
    fn take(&mut self, items: &[Self::Item], is_last: bool) -> usize;

    /// See [`FoldedText::check`].
    fn check(&mut self);
}

/// Folds a document, and checks for interrupts at every piece. Returns the units.
///
/// # Errors
/// `OutOfMemory`, if a sequence of combining marks is too long to be ordered.
pub(crate) fn fold_quickly<U: Units>(
    doc: &[u8],
    fold: Fold,
    items: &mut [U::Item; ROOM],
    units: U,
) -> Result<U> {
    items[0] = U::SPACE;
    let mut output = FoldedItems {
        items,
        end: 1,
        last: Cell::BEFORE,
        units,
    };
    let mut folder = Folder::new(fold);
    let mut is_open = false;
    for piece in pieces(doc) {
        output.units.check();
        let is_ended = fold == Fold::None
            || !piece.invalid.is_empty()
            || piece.start + piece.text.len() == doc.len();
        let mut rest = piece.text;
        loop {
            if is_open {
                rest = fold_segment(rest, Table::of(fold), &mut folder, &mut output);
                is_open = rest.is_empty() && !is_ended;
            }
            if rest.is_empty() {
                break;
            }
            let done = output.write_run(rest.as_bytes(), Table::of(fold), is_ended);
            rest = &rest[done..];
            is_open = !rest.is_empty();
        }
        if !piece.invalid.is_empty() {
            folder.push(char::REPLACEMENT_CHARACTER, piece.invalid, &mut output);
            folder.flush(&mut output);
        }
    }
    folder.finish(&mut output)?;
    output.units.take(&output.items[1..output.end], true);
    Ok(output.units)
}

/// Folds the text of the open segment, including its first code point if none is open. Returns the rest of the text,
/// which begins with a starter.
fn fold_segment<'a>(
    text: &'a str,
    table: &'static Table,
    folder: &mut Folder,
    output: &mut impl FoldedText,
) -> &'a str {
    for (at, c) in text.char_indices() {
        if !folder.is_empty() && table.cell(c as usize).has(Cell::STARTER) {
            folder.flush(output);
            return &text[at..];
        }
        folder.push(c, 0..0, output);
    }
    ""
}

/// The items of a text that have not been taken yet.
struct FoldedItems<'a, U: Units> {
    items: &'a mut [U::Item; ROOM],
    end: usize,
    /// The last code point of the text.
    last: Cell,
    units: U,
}

/// The last code point of a text before which no later code point changes anything.
#[derive(Clone, Copy)]
struct Starter {
    /// The code point's place in the text.
    at: usize,
    /// The place of the code point's first item.
    item: usize,
}

impl<U: Units> FoldedItems<'_, U> {
    /// Folds code points up to a segment that the quick check does not accept. Unless `is_ended`, leaves out the last
    /// segment, too. Returns the number of bytes folded.
    fn write_run(&mut self, text: &[u8], table: &'static Table, is_ended: bool) -> usize {
        let mut reached = Reached {
            at: 0,
            end: self.end,
            last: self.last,
            starter: Starter {
                at: 0,
                item: self.end,
            },
        };
        let mut single = 1;
        loop {
            let done = reached.write_run(&self.units, self.items, table, text);
            let is_short = done < RUN / 2;
            // If runs are short, going code point by code point takes less time.
            single = if is_short { 2 * single } else { 1 };
            let until = text.len().min(reached.at + single);
            reached = vectorized(QuickRun {
                units: &self.units,
                table,
                text,
                until,
                items: self.items,
                reached,
            });
            if reached.at >= until && until < text.len() {
                continue;
            }
            (self.end, self.last) = (reached.end, reached.last);
            if reached.at == text.len() && is_ended {
                return reached.at;
            }
            let is_full = reached.at < text.len() && self.end > ROOM - SLACK;
            let starter = &mut reached.starter;
            let taken = if is_full {
                self.make_room(starter.item)
            } else {
                0
            };
            if taken == 0 {
                self.end = starter.item;
                let is_space = self.items[self.end - 1] == U::SPACE;
                self.last = Cell::behind(is_space, self.last.has(Cell::ALONE));
                return starter.at;
            }
            starter.item -= taken;
            reached.end = self.end;
        }
    }

    /// Takes items from the beginning, but none from `settled` onwards. Returns their number.
    fn make_room(&mut self, settled: usize) -> usize {
        if settled == 1 {
            return 0;
        }
        let taken = self.units.take(&self.items[1..settled], false);
        self.items.copy_within(taken..self.end, 0);
        self.end -= taken;
        taken
    }
}

/// The extent to which a text has been written.
#[derive(Clone, Copy)]
struct Reached {
    at: usize,
    end: usize,
    last: Cell,
    starter: Starter,
}

/// Writes code points until one needs a closer look or there is no room.
struct QuickRun<'a, U: Units> {
    units: &'a U,
    table: &'static Table,
    text: &'a [u8],
    /// The place in the text up to which code points are written.
    until: usize,
    items: &'a mut [U::Item; ROOM],
    reached: Reached,
}

impl<U: Units> Vectorize for QuickRun<'_, U> {
    type Output = Reached;

    #[inline(always)]
    fn run(self) -> Reached {
        // A local variable, so that it is kept in registers.
        let mut reached = self.reached;
        while reached.at < self.until && reached.end <= ROOM - SLACK {
            let rest = &self.text[reached.at..];
            let first = first_bytes::<SHORT_RUN>(rest);
            // The highest bit of a byte is set if the byte is not ASCII.
            let high = u64::from_le_bytes(first) & u64::from_ne_bytes([0x80; SHORT_RUN]);
            let ascii = high.trailing_zeros() as usize / 8;
            if ascii > 0 {
                let count = ascii.min(rest.len());
                reached.write_ascii(self.units, self.items, self.table, rest, &first, count);
                continue;
            }
            let (code, len) = decode(u64::from_le_bytes(first) as usize);
            if !reached.write(self.units, self.items, self.table.cell(code), len) {
                break;
            }
        }
        reached
    }
}

impl Reached {
    /// Writes the next run. Returns its length.
    fn write_run<U: Units>(
        &mut self,
        units: &U,
        items: &mut [U::Item; ROOM],
        table: &'static Table,
        text: &[u8],
    ) -> usize {
        let folded = units.write_run(&mut items[self.end..], &text[self.at..], table, self.last);
        if folded.done > 0 {
            self.at += folded.done;
            self.end += folded.written;
            self.last = Cell::behind(items[self.end - 1] == U::SPACE, folded.is_after);
            self.starter = Starter {
                at: self.at,
                item: self.end,
            };
        }
        folded.done
    }

    /// Writes the ASCII at the beginning of `rest`; the first `count` bytes of it are known to be ASCII.
    #[inline(always)]
    fn write_ascii<U: Units>(
        &mut self,
        units: &U,
        items: &mut [U::Item; ROOM],
        table: &'static Table,
        rest: &[u8],
        first: &[u8; SHORT_RUN],
        mut count: usize,
    ) {
        if count < SHORT_RUN {
            self.end = units.write_ascii(items, self.end, first, count, self.last);
        } else {
            (count, self.end) = units.write_ascii_runs(items, self.end, rest, self.last);
        }
        self.at += count;
        self.last = table.cell(usize::from(rest[count - 1]));
        self.starter = Starter {
            at: self.at - 1,
            item: (self.end - 1).max(1),
        };
    }

    /// Writes the code point `cell`, which takes `len` bytes. Returns whether it could be written.
    #[inline(always)]
    fn write<U: Units>(
        &mut self,
        units: &U,
        items: &mut [U::Item; ROOM],
        cell: Cell,
        len: usize,
    ) -> bool {
        let (at, before) = (self.at, self.last);
        if cell.has(Cell::SIMPLE) {
            let (item, end) = units.write(items, self.end, cell, before);
            self.starter = Starter { at, item };
            (self.end, self.last) = (end, cell);
        } else if cell.follows(before) || cell.follows_checked(before) {
            let cell = cell.after(before);
            let (item, end) = units.write(items, self.end, cell, before);
            if cell.holds_back() {
                self.starter = Starter { at, item };
            }
            (self.end, self.last) = (end, cell);
        } else if !cell.has(Cell::DROPPED) {
            return false;
        }
        self.at += len;
        true
    }
}

impl<U: Units> FoldedText for FoldedItems<'_, U> {
    fn put(&mut self, c: char, _: WordClass, _: Range<usize>) {
        if self.end > ROOM - SLACK {
            self.make_room(self.end);
        }
        let cell = Table::of(Fold::None).cell(c as usize).after(self.last);
        let (_, end) = self.units.write(self.items, self.end, cell, self.last);
        (self.end, self.last) = (end, cell);
    }

    fn check(&mut self) {
        self.units.check();
    }
}
