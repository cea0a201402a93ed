//! Windows in parts by their hashes; windows beyond a limit of memory go to temporary storage.

use super::file::{BLOCK, File, Scratch, record};
use super::sort::LEAST_MEMORY;
use crate::Result;
use crate::memory::{Grow, filled, with_room};

/// The most parts: each has records in memory, which are written together.
const MOST_PARTS: usize = 1 << 10;

/// A part may take one of this many shares of the memory to be searched at once, because others are searched beside
/// it.
const SHARE: usize = 8;

const WINDOW: usize = size_of::<[u64; 4]>();

/// Windows in any order; if it has one of a hash, it has all of them.
pub struct WindowPart(pub(super) Vec<[u64; 4]>);

impl WindowPart {
    /// Returns how many bytes the windows and their boundaries take.
    pub fn bytes(&self) -> usize {
        2 * size_of_val(&self.0[..])
    }
}

/// Windows as (hash, first word, word before, word after).
pub(super) struct WindowParts<S> {
    parts: Vec<StoredPart>,
    /// The bits of a hash after those that determine its part.
    rest: u32,
    /// Windows of a part that are kept in memory before they are written together.
    most: usize,
    memory: usize,
    file: File<S>,
}

/// The windows of one part, still in storage.
#[derive(Default)]
pub(super) struct StoredPart {
    windows: Vec<[u64; 4]>,
    /// The places in the file at which blocks of windows begin.
    blocks: Vec<u64>,
}

impl<S: Scratch> WindowParts<S> {
    /// Keeps up to `memory` bytes of windows in memory.
    pub fn new(memory: usize) -> Result<Self> {
        let memory = memory.max(LEAST_MEMORY);
        let count = (memory / BLOCK).min(MOST_PARTS);
        let bits = count.ilog2();
        let mut parts = with_room(1 << bits)?;
        parts.resize_with(1 << bits, StoredPart::default);
        Ok(Self {
            parts,
            rest: u64::BITS - bits,
            most: (memory >> bits) / WINDOW,
            memory,
            file: File::new(),
        })
    }

    #[inline]
    pub fn push(&mut self, window: [u64; 4]) -> Result<()> {
        let part = &mut self.parts[(window[0] >> self.rest) as usize];
        if part.windows.len() == part.windows.capacity() {
            return self.make_room(window);
        }
        part.windows.push(window);
        Ok(())
    }

    #[cold]
    fn make_room(&mut self, window: [u64; 4]) -> Result<()> {
        let part = &mut self.parts[(window[0] >> self.rest) as usize];
        let held = part.windows.len();
        if held < self.most {
            let room = held.max(16).min(self.most - held);
            part.windows.try_reserve_exact(room)?;
        } else {
            part.blocks.try_push(self.file.len())?;
            self.file.append(&part.windows)?;
            part.windows.clear();
        }
        part.windows.try_push(window)
    }

    /// Returns the number of parts that are left, empty ones among them.
    pub fn len(&self) -> usize {
        self.parts.len()
    }

    /// Returns the next part that has windows, and removes it; None after the last.
    pub fn next(&mut self) -> Option<StoredPart> {
        loop {
            let part = self.parts.pop()?;
            if !part.windows.is_empty() {
                return Some(part);
            }
        }
    }

    /// Returns the windows of a part; None if the part is too large to be searched at once.
    pub fn load(&mut self, part: &mut StoredPart) -> Result<Option<WindowPart>> {
        let windows = part.windows.len() + part.blocks.len() * self.most;
        if windows * WINDOW > self.memory / SHARE {
            return Ok(None);
        }
        let mut all = with_room(windows)?;
        self.for_each(part, &mut |window| {
            all.push(window);
            Ok(())
        })?;
        Ok(Some(WindowPart(all)))
    }

    /// Visits the windows of a part, and removes them.
    pub fn for_each(
        &mut self,
        part: &mut StoredPart,
        visit: &mut dyn FnMut([u64; 4]) -> Result<()>,
    ) -> Result<()> {
        let mut bytes = Vec::new();
        for start in part.blocks.drain(..) {
            if bytes.is_empty() {
                bytes = filled(0, self.most * WINDOW)?;
            }
            self.file.read(start, &mut bytes);
            let mut windows = bytes.chunks_exact(WINDOW).map(record);
            windows.try_for_each(&mut *visit)?;
        }
        part.windows.drain(..).try_for_each(visit)
    }
}
