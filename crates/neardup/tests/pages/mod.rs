//! Pages in memory, for all code that tests, measures or fuzzes postings.
#![allow(dead_code, reason = "each user needs a part of it")]

use neardup::bands::RowSize;
use neardup::bands::occurrence::minima;
use neardup::postings::directory::{self, Directories, DirectoryEntry};
use neardup::postings::{
    AHEAD, Damaged, Directory, KeyAndRow, KeyQuery, Leaf, LeafBuilder, Merge, MergeOutput,
    PageAhead, PageKind, Pages, Posting, RowSizes, Segment, SegmentGroup, passed, search,
    split_of_input, sweep,
};
use std::collections::HashMap;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// A page that was freed, or belongs to another segment: the reader must start over.
    Gone(u32),
    Damaged(Damaged),
    OutOfMemory,
    /// More pages were read than allowed.
    Endless,
}

impl From<Damaged> for Failure {
    fn from(damaged: Damaged) -> Self {
        Self::Damaged(damaged)
    }
}

impl From<neardup::Error> for Failure {
    fn from(_: neardup::Error) -> Self {
        Self::OutOfMemory
    }
}

#[derive(Clone)]
pub struct Page {
    pub segment: u64,
    pub kind: PageKind,
    pub payload: Vec<u8>,
}

#[derive(Clone)]
pub struct Store {
    /// The pages; `None` if a page is free.
    pub pages: Vec<Option<Page>>,
    pub free: Vec<u32>,
    pub capacity: usize,
    /// Number of reads still allowed.
    pub fuel: usize,
    pub leaves_read: usize,
    pub directories_read: usize,
    /// How many times a reader has waited for leaves, one time after the other; directories stay in memory.
    pub waits: usize,
    /// The number of waits after which the announced leaves are in memory.
    there: HashMap<u32, usize>,
    /// The number of keys of each row that is not dead, for searches that depend on it.
    pub sizes: HashMap<u64, usize>,
}

impl Store {
    pub fn new(capacity: usize) -> Self {
        Self {
            pages: Vec::new(),
            free: Vec::new(),
            capacity,
            fuel: usize::MAX,
            leaves_read: 0,
            directories_read: 0,
            waits: 0,
            there: HashMap::new(),
            sizes: HashMap::new(),
        }
    }

    /// Resets the counts, and removes all leaves from memory.
    pub fn grow_cold(&mut self) {
        (self.leaves_read, self.directories_read, self.waits) = (0, 0, 0);
        self.there.clear();
    }

    /// Takes a free page if there is one, as a real file does.
    pub fn put(&mut self, segment: u64, kind: PageKind, payload: Vec<u8>) -> u32 {
        let block = self.free.pop().unwrap_or_else(|| {
            self.pages.push(None);
            self.pages.len() as u32 - 1
        });
        self.pages[block as usize] = Some(Page {
            segment,
            kind,
            payload,
        });
        block
    }

    /// Writes a leaf and adds it to a segment.
    pub fn add_leaf(&mut self, segment: &mut Segment, leaf: &mut LeafBuilder) {
        let (first, postings) = (leaf.first().expect("a posting"), leaf.len() as u64);
        let mut payload = vec![0; self.capacity];
        let used = leaf.finish(&mut payload);
        payload.truncate(used);
        let block = self.put(segment.number, PageKind::Leaf, payload);
        let mut directories = SegmentDirectories {
            number: segment.number,
            store: self,
        };
        let entry = DirectoryEntry { first, block };
        directory::add_leaf(&mut directories, segment, entry).expect("sound pages");
        segment.postings += postings;
    }

    /// Writes sorted, distinct postings of the rows from `lo` up to but not including `hi`.
    pub fn write(&mut self, number: u64, lo: u64, hi: u64, postings: &[u64]) -> Segment {
        let mut segment = empty(number, lo, hi);
        let mut leaf = LeafBuilder::new(self.capacity).expect("memory");
        for &posting in postings {
            if !leaf.push(posting.into()) {
                self.add_leaf(&mut segment, &mut leaf);
                assert!(leaf.push(posting.into()), "an empty leaf has room");
            }
        }
        if !leaf.is_empty() {
            self.add_leaf(&mut segment, &mut leaf);
        }
        segment
    }

    /// Frees the leaves of an input that lie completely below the split of a merge.
    pub fn free_below(&mut self, input: &Segment, split: Option<Posting>, lo: u64) {
        let split = split.map(|split| split_of_input(split, input.lo - lo));
        if input.postings > 0 {
            self.free_page(input, input.depth, input.root, split);
        }
    }

    fn free_page(&mut self, input: &Segment, level: u8, block: u32, split: Option<Posting>) {
        if level > 0
            && let Some(page) = &self.pages[block as usize]
            && page.segment == input.number
        {
            let payload = page.payload.clone();
            let directory = Directory::parse(&payload).expect("sound pages");
            let passed = split.map_or(directory.children(), |split| directory.child_of(split));
            for child in directory.iter().take(passed) {
                self.free_page(input, level - 1, child.block, None);
            }
            if let (Some(child), Some(_)) = (directory.get(passed), split) {
                self.free_page(input, level - 1, child.block, split);
            }
        }
        let page = &mut self.pages[block as usize];
        if split.is_none()
            && page
                .as_ref()
                .is_some_and(|page| page.segment == input.number)
        {
            *page = None;
            self.free.push(block);
        }
    }

    /// Returns the results of [`search`] in one group, with all keys counted.
    pub fn find(
        &mut self,
        group: &SegmentGroup,
        keys: &[u32],
        needed: usize,
    ) -> Result<Vec<(u64, u32)>, Failure> {
        let query = KeyQuery {
            keys,
            needed: needed.max(1),
            minima: minima(keys.len(), needed.max(1)),
            by_size: None,
            is_exact: true,
            most: u32::MAX,
        };
        self.search(&[*group], &query)
    }

    /// Returns the results of [`search`].
    pub fn search(
        &mut self,
        groups: &[SegmentGroup],
        query: &KeyQuery,
    ) -> Result<Vec<(u64, u32)>, Failure> {
        let mut rows = Vec::new();
        search(self, groups, query, &mut |row, shared| {
            rows.push((row, shared));
            Ok(())
        })?;
        Ok(rows)
    }
}

/// Returns a segment without postings.
pub fn empty(number: u64, lo: u64, hi: u64) -> Segment {
    Segment {
        number,
        lo,
        hi,
        ..Segment::default()
    }
}

struct SegmentDirectories<'s> {
    number: u64,
    store: &'s mut Store,
}

impl SegmentDirectories<'_> {
    fn page(&mut self, block: u32) -> &mut Vec<u8> {
        let page = self.store.pages[block as usize].as_mut();
        &mut page.expect("a page in use").payload
    }
}

impl Directories for SegmentDirectories<'_> {
    type Error = Failure;

    fn first(&mut self, level: u8, block: u32) -> Result<Posting, Failure> {
        let payload = self.page(block);
        Ok(match level {
            0 => Leaf::parse(payload)?.first(),
            _ => Directory::parse(payload)?.get(0).expect("an entry").first,
        })
    }

    fn last(&mut self, _level: u8, block: u32) -> Result<u32, Failure> {
        Ok(Directory::parse(self.page(block))?
            .last()
            .expect("an entry")
            .block)
    }

    fn append(&mut self, _level: u8, block: u32, entry: DirectoryEntry) -> Result<bool, Failure> {
        let capacity = self.store.capacity;
        let page = self.page(block);
        page.resize(capacity, 0);
        let used = directory::append(page, entry)?;
        page.truncate(used.unwrap_or(capacity));
        Ok(used.is_some())
    }

    fn create(&mut self, level: u8, entries: &[DirectoryEntry]) -> Result<u32, Failure> {
        let mut payload = vec![0; self.store.capacity];
        let mut used = directory::init(&mut payload, level);
        for entry in entries {
            used = directory::append(&mut payload, *entry)?.expect("room");
        }
        payload.truncate(used);
        Ok(self.store.put(self.number, PageKind::Directory, payload))
    }
}

impl Pages for Store {
    type Error = Failure;

    /// Changes the order of the pages, as happens when some of them are in memory.
    fn announce<T>(
        &mut self,
        pages: &mut [T],
        ahead: impl Fn(&T) -> PageAhead,
    ) -> Result<(), Failure> {
        assert!(pages.len() <= AHEAD);
        for page in &*pages {
            self.there
                .entry(ahead(page).block)
                .or_insert(self.waits + 1);
        }
        pages.rotate_left(pages.len() / 2);
        Ok(())
    }

    fn read<R>(
        &mut self,
        segment: &Segment,
        kind: PageKind,
        block: u32,
        look: impl FnOnce(&[u8]) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        self.fuel = self.fuel.checked_sub(1).ok_or(Failure::Endless)?;
        match kind {
            PageKind::Leaf => self.leaves_read += 1,
            PageKind::Directory => self.directories_read += 1,
        }
        if kind == PageKind::Leaf {
            let there = *self.there.entry(block).or_insert(self.waits + 1);
            self.waits = self.waits.max(there);
        }
        match self.pages.get(block as usize) {
            Some(Some(page)) if page.segment == segment.number && page.kind == kind => {
                look(&page.payload)
            }
            _ => Err(Failure::Gone(block)),
        }
    }

    fn interrupt(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

impl RowSizes for Store {
    fn sizes(&mut self, rows: &[u64], look: &mut dyn FnMut(usize, RowSize)) -> Result<(), Failure> {
        assert!(rows.is_sorted());
        for (place, row) in rows.iter().enumerate() {
            if let Some(&size) = self.sizes.get(row) {
                look(place, RowSize::new(0, size));
            }
        }
        Ok(())
    }
}

/// Calls `each` with the places of a segment's postings below `end`. Fails if their number differs from the segment's.
pub fn check(
    store: &mut Store,
    segment: &Segment,
    end: Option<Posting>,
    each: &mut impl FnMut(KeyAndRow),
) -> Result<(), Failure> {
    let split = end.unwrap_or(Posting::MAX);
    let group = SegmentGroup {
        inputs: &[],
        output: Some(MergeOutput {
            segment: *segment,
            split,
        }),
    };
    let mut postings = 0;
    sweep(store, &[group], (0, 0), &mut |place| {
        postings += 1;
        each(place);
        true
    })?;
    if postings != segment.postings {
        return Err(Damaged("another number of postings").into());
    }
    Ok(())
}

/// A merge as the access method performs it: one leaf per step, with all its state here.
#[derive(Clone)]
pub struct Merging {
    pub inputs: Vec<Segment>,
    pub output: MergeOutput,
}

impl Merging {
    pub fn begin(number: u64, inputs: &[Segment]) -> Self {
        let lo = inputs.iter().map(|input| input.lo).min().expect("an input");
        let hi = inputs.iter().map(|input| input.hi).max().expect("an input");
        Self {
            inputs: inputs.to_vec(),
            output: MergeOutput {
                segment: empty(number, lo, hi),
                split: Posting::MIN,
            },
        }
    }

    pub fn group(&self) -> SegmentGroup<'_> {
        SegmentGroup {
            inputs: &self.inputs,
            output: Some(self.output),
        }
    }

    /// Writes a leaf from scratch, as after a crash. Returns false at the end.
    pub fn step(
        &mut self,
        store: &mut Store,
        keep: &mut impl FnMut(u64) -> bool,
    ) -> Result<bool, Failure> {
        let from = self.output.split;
        let next = self.write_leaf(store, keep)?;
        for input in &self.inputs {
            let shift = input.lo - self.output.segment.lo;
            let split = |split| split_of_input(split, shift);
            let mut found = Vec::new();
            passed(store, input, split(from), next.map(split), &mut |block| {
                found.push(block);
            })?;
            let freed = store.free.len();
            store.free_below(input, next, self.output.segment.lo);
            let mut freed = store.free[freed..].to_vec();
            found.sort_unstable();
            freed.sort_unstable();
            assert_eq!(found, freed, "pages of {input:?} passed");
        }
        Ok(next.is_some())
    }

    /// Does the same as [`Self::step`], but leaves the inputs' pages as they are, possibly damaged.
    pub fn step_without_freeing(
        &mut self,
        store: &mut Store,
        keep: &mut impl FnMut(u64) -> bool,
    ) -> Result<bool, Failure> {
        self.write_leaf(store, keep).map(|next| next.is_some())
    }

    /// Returns the new split.
    fn write_leaf(
        &mut self,
        store: &mut Store,
        keep: &mut impl FnMut(u64) -> bool,
    ) -> Result<Option<Posting>, Failure> {
        let mut merge = Merge::new(&self.inputs, self.output.segment.lo, self.output.split)?;
        let mut leaf = LeafBuilder::new(store.capacity)?;
        let next = merge.fill(store, &mut leaf, keep)?;
        if !leaf.is_empty() {
            store.add_leaf(&mut self.output.segment, &mut leaf);
        }
        if let Some(next) = next {
            self.output.split = next;
        }
        Ok(next)
    }
}
