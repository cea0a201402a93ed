//! Pages that are read one after the other: the storage is asked for all of them before the first is waited
//! for, and the next ones come into the processor's cache meanwhile.

use super::page::{Index, Page, Pinned};
use neardup::memory::Grow;
use neardup::postings::PageAhead;
use std::collections::VecDeque;

/// Pages that are pinned at a time, to be fetched while those before are read. Of more than 8 a backend
/// keeps account in a hash table.
const PINNED: usize = 6;

/// Reads pages, those announced quickly.
pub struct PageReader<'a> {
    index: Index<'a>,
    /// Pages that are read next, and those behind them, the last first.
    pinned: VecDeque<Pinned<'a>>,
    announced: Vec<PageAhead>,
}

impl<'a> PageReader<'a> {
    pub fn new(index: Index<'a>) -> Self {
        Self {
            index,
            pinned: VecDeque::with_capacity(PINNED),
            announced: Vec::new(),
        }
    }

    /// Announces the pages that are read next, in this order.
    ///
    /// # Errors
    /// Too little memory.
    pub fn announce_pages(
        &mut self,
        pages: impl ExactSizeIterator<Item = PageAhead>,
    ) -> neardup::Result<()> {
        self.pinned.clear();
        self.announced.clear();
        self.announced.try_extend(pages)?;
        if self.announced.len() > 1 {
            let blocks = self.announced.iter().map(|page| page.block);
            self.index.ask_ahead(blocks);
        }
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

    /// Returns a page, locked for reading.
    pub fn page(&mut self, block: u32) -> Page<'a> {
        let next = self.pinned.pop_front();
        self.pin_ahead();
        match next {
            Some(pinned) if pinned.block() == block => pinned.read(),
            _ => self.index.read(block),
        }
    }
}
