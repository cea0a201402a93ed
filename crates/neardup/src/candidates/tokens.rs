//! The tokens of rows, the tokens under which rows look for partners, and the pairs of rows that share one.

use super::GroupSizes;
use super::frequencies::place;
use super::hot::{Prefixes, meetings};
use crate::Result;
use crate::memory::{Grow, collected, with_room};

/// Number of bits of a token. Bit 31 marks a token under which to look for partners, bit 30 a hot token.
const TOKEN_BITS: u32 = 30;
const TOKEN: u32 = HOT - 1;
const HOT: u32 = 1 << TOKEN_BITS;
const LOOK_HERE: u32 = HOT << 1;

/// Minimum count of a hot token. Stands for about 2^7 rows.
const HOT_COUNT: u8 = 8;

/// Returns the token of a band, given the band's hash.
#[inline]
pub fn token(band_hash: u64) -> u32 {
    (band_hash >> (64 - TOKEN_BITS)) as u32
}

/// Prefixes are used if tokens bring together this many times as many pairs as elements do. A meeting under an element
/// costs more: the merge of two lists.
const FAR_FEWER: f64 = 4.0;

/// The tokens of the rows that may have partners: 4 bytes per band. Rows are numbered in the order of [`Tokens::push`].
pub struct Tokens {
    flagged: Vec<u32>,
    bands: usize,
    needed: usize,
    /// The prefixes under which hot rows look for partners, or None if they look under hot tokens.
    prefixes: Option<Prefixes>,
}

impl Tokens {
    /// Returns an empty list with room for the tokens of `rows` rows.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn new(bands: usize, needed: usize, rows: usize) -> Result<Self> {
        Ok(Self {
            flagged: with_room(bands * rows)?,
            bands,
            needed,
            prefixes: None,
        })
    }

    /// Returns the maximum number of tokens under which a row looks for partners.
    pub(crate) fn looked_for(&self) -> usize {
        self.bands - self.needed + 1
    }

    /// Returns the number of bytes of the tokens.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.flagged[..])
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> u32 {
        (self.flagged.len() / self.bands) as u32
    }

    /// Appends a row with the tokens `chosen`, which [`choose`] made.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn push(&mut self, chosen: impl Iterator<Item = u32>) -> Result<()> {
        self.flagged.try_extend(chosen)
    }

    fn row(&self, row: u32) -> &[u32] {
        let start = row as usize * self.bands;
        &self.flagged[start..start + self.bands]
    }

    /// Loads rows into the processor's cache, all at once instead of one after the other during the comparisons.
    pub fn load(&self, rows: impl Iterator<Item = u32>) {
        const A_LINE: usize = 16;
        let tokens = rows.flat_map(|row| self.row(row).iter().step_by(A_LINE));
        std::hint::black_box(tokens.fold(0, |all, token| all ^ token));
    }

    /// Returns whether a row has a hot token.
    pub fn is_hot(&self, row: u32) -> bool {
        self.row(row).iter().any(|token| token & HOT != 0)
    }

    /// Makes hot rows look for partners under the elements of their prefixes instead of under hot tokens, if far fewer
    /// pairs of hot rows meet under elements. For documents with little text of their own this is not the case.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn set_prefixes(&mut self, prefixes: Prefixes) -> Result<()> {
        let rows = self.flagged.chunks(self.bands);
        let hot = rows.flat_map(|row| keys_where(row, |token| token & HOT != 0));
        if FAR_FEWER * prefixes.meetings()? < meetings(hot.map(|key| (key, true)))? {
            self.prefixes = Some(prefixes);
        }
        Ok(())
    }

    pub fn has_prefixes(&self) -> bool {
        self.prefixes.is_some()
    }

    /// Returns the prefix of a row, as [`Prefixes::of_row`] does.
    pub fn prefix(&self, row: u32) -> [&[u32]; 2] {
        let prefixes = self.prefixes.as_ref();
        prefixes.map_or([&[]; 2], |prefixes| prefixes.of_row(row))
    }

    /// Returns whether rows look for partners under `token`, given with its flags.
    fn looks_under(&self, token: u32) -> bool {
        token & LOOK_HERE != 0 && (token & HOT == 0 || self.prefixes.is_none())
    }

    /// Returns sort keys for the tokens under which a row looks for partners. Rows that share such a token share its
    /// key.
    pub fn keys(&self, row: u32) -> impl Iterator<Item = u32> + '_ {
        keys_where(self.row(row), |token| self.looks_under(token))
    }

    /// Returns keys of the elements of the prefix of `row`: the keys under which it finds others if `finds` is true,
    /// else the keys under which others find it.
    pub(crate) fn prefix_keys<'a>(
        &'a self,
        row: u32,
        finds: bool,
    ) -> impl Iterator<Item = u32> + 'a {
        let [larger, smaller] = self.prefix(row);
        let under = match finds {
            true => [(0, larger), (0, smaller), (1, larger)],
            false => [(0, larger), (1, smaller), (1, &[])],
        };
        let keys = move |(space, elements): (usize, &'a [u32])| {
            let of = move |element: &u32| key(self.bands + space, *element);
            elements.iter().map(of)
        };
        under.into_iter().flat_map(keys)
    }

    /// Returns whether rows `a` and `b`, which met under the key `met`, must be compared: they share as many tokens as
    /// similar rows do, and `met` is the first key that they share, so that a pair is compared once.
    pub fn meet(&self, a: u32, b: u32, met: u32) -> bool {
        let first = self.first_shared(a, b);
        if first.is_none_or(|band| key(band, self.row(a)[band]) != met) {
            return false;
        }
        self.needed <= 1 || self.share_enough(a, b)
    }

    /// Returns whether hot rows `a` and `b`, which met under the element `met` of their prefixes, must be compared:
    /// they share as many tokens as similar rows do, do not meet under a token, and `met` is the first element that
    /// they share.
    pub fn meet_under_element(&self, a: u32, b: u32, met: u32) -> bool {
        let prefixes = self.prefixes.as_ref();
        prefixes.is_some_and(|prefixes| prefixes.first_shared(a, b) == Some(met))
            && self.share_enough(a, b)
            && self.first_shared(a, b).is_none()
    }

    /// Returns the first band in which rows `a` and `b` share a token under which rows look for partners, or None if
    /// there is none.
    fn first_shared(&self, a: u32, b: u32) -> Option<usize> {
        let mut tokens = self.row(a).iter().zip(self.row(b));
        tokens.position(|(x, y)| x == y && self.looks_under(*x))
    }

    /// Returns whether rows `a` and `b`, which met under the key `met`, must be compared, if groups come in ascending
    /// order of keys: whether `met` is the lowest key that they share. Takes longer than [`Self::meet`], but lets a
    /// caller that joins similar rows know of a pair at its first meeting.
    pub fn meet_first(&self, a: u32, b: u32, met: u32) -> bool {
        let mut is_shared = false;
        for (band, (x, y)) in self.row(a).iter().zip(self.row(b)).enumerate() {
            if x == y && self.looks_under(*x) {
                let key = key(band, *x);
                if key < met {
                    return false;
                }
                is_shared |= key == met;
            }
        }
        is_shared && self.share_enough(a, b)
    }

    /// Returns whether rows `a` and `b` share as many tokens as similar rows do. Such rows also have a key in common.
    pub fn share_enough(&self, a: u32, b: u32) -> bool {
        let shared = |(x, y): (&u32, &u32)| u32::from((x ^ y) & TOKEN == 0);
        let shared: u32 = self.row(a).iter().zip(self.row(b)).map(shared).sum();
        shared as usize >= self.needed.max(1)
    }
}

/// Returns the keys under which a row looks for partners, given its tokens as appended by [`choose`].
pub fn keys(chosen: &[u32]) -> impl Iterator<Item = u32> + '_ {
    keys_where(chosen, |token| token & LOOK_HERE != 0)
}

/// Returns the keys of a row's tokens for which `wanted` returns true.
fn keys_where<'a>(
    row: &'a [u32],
    wanted: impl Fn(u32) -> bool + 'a,
) -> impl Iterator<Item = u32> + 'a {
    let tokens = row.iter().copied().enumerate();
    tokens
        .filter(move |(_, token)| wanted(*token))
        .map(|(band, token)| key(band, token))
}

/// Appends the tokens of a row to `chosen`, with a flag on those under which to look for partners. If the row shares
/// fewer than `needed` tokens with others, appends nothing and returns false.
///
/// # Errors
/// `OutOfMemory`.
pub fn choose(
    row: &[u32],
    needed: usize,
    sizes: &GroupSizes,
    chosen: &mut Vec<u32>,
) -> Result<bool> {
    let counts = collected(sizes.sizes(row))?;
    let mut rows_with = [0usize; 16];
    for &count in &counts {
        rows_with[usize::from(count)] += 1;
    }
    if row.len() - rows_with[0] - rows_with[1] < needed {
        return Ok(false);
    }
    let mut looked_for = row.len() - needed + 1;
    let mut last = 0;
    while rows_with[last] < looked_for {
        looked_for -= rows_with[last];
        last += 1;
    }
    chosen.try_extend(row.iter().zip(&counts).map(|(&token, &count)| {
        let count = usize::from(count);
        let rare = count < last || (count == last && looked_for > 0);
        looked_for -= usize::from(count == last && rare);
        let look = if rare && count >= 2 { LOOK_HERE } else { 0 };
        let is_hot = look != 0 && count >= HOT_COUNT.into();
        let hot = if is_hot { HOT } else { 0 };
        token & TOKEN | look | hot
    }))?;
    Ok(true)
}

#[inline]
pub(super) fn key(band: usize, token: u32) -> u32 {
    (place(band, token & TOKEN) >> 32) as u32
}

/// The sides of a join that a row represents, possibly both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sides {
    pub a: bool,
    pub b: bool,
}

impl Sides {
    pub const BOTH: Self = Self { a: true, b: true };
}

/// Calls `visit` for every pair of row `x` and another row of `group` for which `meet` returns true. `x` represents
/// side a, the other row side b. Over all rows of all groups, every pair is visited once.
pub fn pairs_of_row(
    x: u32,
    group: &[u32],
    meet: &dyn Fn(u32, u32) -> bool,
    sides: &dyn Fn(u32) -> Sides,
    visit: &mut dyn FnMut(u32, u32),
) {
    let sides_of_x = sides(x);
    if !sides_of_x.a {
        return;
    }
    for &y in group {
        let sides_of_y = sides(y);
        // A pair in which either row could be on either side would come twice.
        let again = y >= x && (y == x || (sides_of_x.b && sides_of_y.a));
        if sides_of_y.b && !again && meet(x, y) {
            visit(x.min(y), x.max(y));
        }
    }
}
