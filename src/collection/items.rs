//! Groups identical rows into items, so that later steps need not look at copies one by one. A row with exceptions is
//! an item of its own.

use crate::collection::documents::set_record;
use crate::collection::outlines::{Digest, digest, read_digest};
use crate::collection::reading::Collection;
use crate::pg::partitions::Partitions;
use crate::pg::prelude::*;
use neardup::candidates::Sides;
use neardup::set::sort;

const NONE: u32 = u32::MAX;

/// Items: the distinct rows of a collection, in order of their first appearance.
pub struct Items {
    /// The first row of each item.
    first: Vec<u32>,
    /// The first row of each item on side b of a join or, without a join, its first row. `NONE` if there is none.
    first_of_b: Vec<u32>,
    /// The item of each row.
    of_row: Vec<u32>,
    /// The next row of the same item, or `NONE`.
    next: Vec<u32>,
}

impl Items {
    /// Groups rows with the same value or, if there are documents, with the same signature and set of shingles. A row
    /// with exceptions is an item of its own.
    pub fn of(collection: &mut Collection) -> Self {
        let rows = collection.rows();
        let mut digests = digests_alike(&mut collection.outlines, rows);
        if collection.documents().is_some() {
            tell_sets_apart(&mut digests, collection);
        }
        digests.retain(|(_, row)| !collection.exceptions.has(*row));
        let mut items = Self::of_digests(&digests, rows as usize);
        items.first_of_b = filled(NONE, items.first.len()).or_raise();
        let of_b = collection.first_side.unwrap_or(0)..rows;
        for row in over("finding first rows", of_b.rev()) {
            items.first_of_b[items.of_row[row as usize] as usize] = row;
        }
        items
    }

    /// Groups rows, given `sorted`, the sorted digests of all rows that may be identical, and `rows`, the number of all
    /// rows.
    fn of_digests(sorted: &[(Digest, u32)], rows: usize) -> Self {
        let mut items = Self {
            first: Vec::new(),
            first_of_b: Vec::new(),
            of_row: collected(0..rows as u32).or_raise(),
            next: filled(NONE, rows).or_raise(),
        };
        // `of_row` holds the first row of an item in place of its number until the items are numbered in order.
        for same in sorted.chunk_by(|a, b| a.0 == b.0) {
            for pair in same.windows(2) {
                items.next[pair[0].1 as usize] = pair[1].1;
            }
            for (_, row) in same {
                items.of_row[*row as usize] = same[0].1;
            }
        }
        for row in 0..rows {
            let first = items.of_row[row] as usize;
            items.of_row[row] = if first == row {
                items.first.try_push(row as u32).or_raise();
                items.first.len() as u32 - 1
            } else {
                items.of_row[first]
            };
        }
        items
    }

    pub fn len(&self) -> u32 {
        self.first.len() as u32
    }

    pub fn first_row(&self, item: u32) -> u32 {
        self.first[item as usize]
    }

    pub fn of_row(&self, row: u32) -> u32 {
        self.of_row[row as usize]
    }

    /// Returns the rows of an item, in ascending order.
    pub fn rows(&self, item: u32) -> impl Iterator<Item = u32> + Clone + '_ {
        self.rows_from(self.first_row(item))
    }

    /// Returns the rows of `items`, in ascending order, each with the place of its item in `items`.
    pub fn rows_of(&self, items: impl Iterator<Item = u32>) -> Vec<(u32, u32)> {
        let mut rows = Vec::new();
        for (item, place) in items.zip(0..) {
            rows.try_extend(self.rows(item).map(|row| (row, place)))
                .or_raise();
        }
        rows.sort_unstable();
        rows
    }

    /// Returns `row` and the later rows of its item, or nothing for `NONE`.
    fn rows_from(&self, row: u32) -> impl Iterator<Item = u32> + Clone + '_ {
        let is_row = |row: &u32| *row != NONE;
        let next = move |row: &u32| Some(self.next[*row as usize]).filter(is_row);
        std::iter::successors(Some(row).filter(is_row), next)
    }

    /// Calls `visit` for every pair of rows of `item`, the earlier row first.
    pub fn for_each_pair_within(&self, item: u32, visit: &mut dyn FnMut(u32, u32)) {
        let mut rows = self.rows(item);
        while let Some(x) = rows.next() {
            rows.clone().for_each(|y| visit(x, y));
        }
    }

    /// Returns the rows of an item on side b of a join or, without a join, all its rows, in ascending order.
    pub fn rows_of_b(&self, item: u32) -> impl Iterator<Item = u32> + Clone + '_ {
        self.rows_from(self.first_of_b[item as usize])
    }

    /// Returns the sides of a join on which `item` has rows.
    pub fn sides(&self, item: u32, collection: &Collection) -> Sides {
        Sides {
            a: collection.sides(self.first_row(item)).a,
            b: self.first_of_b[item as usize] != NONE,
        }
    }
}

/// Returns, sorted, the digests of the rows that may be identical: those whose digest begins with the same 32 bits as
/// the digest of another row. Finding these rows takes at most work_mem.
fn digests_alike(outlines: &mut Records, rows: u32) -> Vec<(Digest, u32)> {
    const STAGE: &str = "grouping identical rows";
    let (mut entries, mut buffer) = (Partitions::new(rows as usize), Vec::new());
    for row in over(STAGE, 0..rows) {
        let (low, _) = read_digest(outlines, row, &mut buffer);
        entries.push([low >> 32 << 32 | u64::from(row)]);
    }
    let work = |mut entries: Vec<u64>, check: &mut dyn FnMut()| {
        sort(&mut entries, check);
        let groups = entries.chunk_by(|a, b| a >> 32 == b >> 32);
        let alike = groups.filter(|group| group.len() > 1).flatten();
        collected(alike.map(|entry| *entry as u32))
    };
    let mut alike: Vec<u32> = Vec::new();
    entries.work_on(STAGE, &work, None, &mut |rows: Vec<u32>| {
        alike.try_extend_from_slice(&rows).or_raise();
    });
    sort(&mut alike, &mut check_interrupts);
    let mut digests = Vec::new();
    for row in over(STAGE, alike.into_iter()) {
        let digest = read_digest(outlines, row, &mut buffer);
        digests.try_push((digest, row)).or_raise();
    }
    sort(&mut digests, &mut check_interrupts);
    digests
}

/// Mixes the digest of a row's set into its digest if other rows have the same signature, and sorts `digests` again. An
/// empty set is not even like itself: for it, the row's number is mixed in.
fn tell_sets_apart(digests: &mut [(Digest, u32)], collection: &mut Collection) {
    let (mut places, mut rows) = (Vec::new(), Vec::new());
    let mut place = 0;
    for same in digests.chunk_by(|a, b| a.0 == b.0) {
        if same.len() > 1 {
            places.try_extend(place..place + same.len()).or_raise();
            rows.try_extend(same.iter().map(|&(_, row)| row)).or_raise();
        }
        place += same.len();
    }
    let mut places = places.into_iter();
    collection.for_each_set(
        ("comparing identical signatures", &rows),
        &|set, made| match set {
            [] => Ok(()),
            set => made.try_push(digest(&set_record(set)?)),
        },
        &mut |row, made| {
            let place = places.next().expect("a place for every row");
            let (low, high) = made.first().map_or((row.into(), 0), |digest| *digest);
            let signature = digests[place].0;
            digests[place].0 = (low ^ signature.0, high ^ signature.1);
        },
    );
    sort(digests, &mut check_interrupts);
}
