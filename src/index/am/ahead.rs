//! Reads pages one after another. Requests all of them from storage before it waits for the first, and prefetches the
//! next ones into the processor's cache while one is read.

use super::page::{Index, Page, Pinned};
use neardup::memory::Grow;
use neardup::postings::PageAhead;
use std::collections::VecDeque;

/// Number of pages pinned at a time, to be fetched while earlier ones are read. A backend that pins more than 8 tracks
/// them in a hash table.
const PINNED: usize = 6;

/// A reader of pages. It reads announced pages faster.
pub struct PageReader<'a> {
    index: Index<'a>,
    /// The next announced pages, pinned. The pages after them are in `announced`, in reverse order.
    pinned: VecDeque<Pinned<'a>>,
    announced: Vec<PageAhead>,
    /// One flag per requested page: true if it must be read from storage.
    is_read: Vec<bool>,
}

impl<'a> PageReader<'a> {
    pub fn new(index: Index<'a>) -> Self {
        Self {
            index,
            pinned: VecDeque::with_capacity(PINNED),
            announced: Vec::new(),
            is_read: Vec::new(),
        }
    }

    /// Announces the pages that will be read next, in this order.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn announce_pages(
        &mut self,
        pages: impl ExactSizeIterator<Item = PageAhead> + Clone,
    ) -> neardup::Result<()> {
        if pages.len() > 1 {
            let blocks = pages.clone().map(|page| page.block);
            self.index.ask_ahead(blocks, |_| ());
        }
        self.announce(pages)
    }

    /// Announces the pages that will be read next. If some must be read from storage, moves pages already in memory to
    /// the front, so that they are read before they are evicted.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn announce_in_any_order<T>(
        &mut self,
        pages: &mut [T],
        ahead: impl Fn(&T) -> PageAhead,
    ) -> neardup::Result<()> {
        self.is_read.clear();
        self.is_read.try_reserve(pages.len())?;
        if pages.len() > 1 {
            let blocks = pages.iter().map(|page| ahead(page).block);
            self.index
                .ask_ahead(blocks, |is_read| self.is_read.push(is_read));
        }
        let in_memory = (0..self.is_read.len()).filter(|&place| !self.is_read[place]);
        for (first, place) in in_memory.enumerate() {
            pages.swap(first, place);
        }
        self.announce(pages.iter().map(ahead))
    }

    fn announce(&mut self, pages: impl Iterator<Item = PageAhead>) -> neardup::Result<()> {
        self.pinned.clear();
        self.announced.clear();
        self.announced.try_extend(pages)?;
        self.announced.reverse();
        self.pin_ahead();
        Ok(())
    }

    fn pin_ahead(&mut self) {
        while self.pinned.len() < PINNED
            && let Some(next) = self.announced.pop()
        {
            self.pinned
                .push_back(self.index.pin(next.block, next.place));
        }
    }

    /// Returns the page of `block`, locked for reading. Drops the next announced page if that is another one.
    pub fn page(&mut self, block: u32) -> Page<'a> {
        let next = self.pinned.pop_front();
        self.pin_ahead();
        match next {
            Some(pinned) if pinned.block() == block => pinned.read(),
            _ => self.index.read(block),
        }
    }
}
