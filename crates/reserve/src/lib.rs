//! An allocator with a bounded reserve for when the underlying allocator has no memory left.
//!
//! Rust ends the process if a small allocation fails. With this allocator, the memory comes from the reserve instead,
//! and [`Allocator::was_short`] reports it, so that the caller can stop in good order. Large allocations still fail, so
//! that callers of `try_reserve` notice.
//!
//! Until the caller stops, other code that asks the system for memory, and cannot use the reserve, gets the ballast: a
//! block that is held for no other purpose and is given back at the first failure.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

/// The size and the number of the slots of each kind, 5 MiB in all; pages that are never touched take no memory. The
/// largest slot is the largest request that the reserve serves. Callers must handle failures of larger requests.
const KINDS: [(usize, usize); 4] = [(64, 16_384), (1024, 1024), (16_384, 64), (131_072, 16)];

const BYTES: usize = total(0);
const WORDS: usize = total(1);

/// Returns a sum over all kinds of slots: of their bytes (0), or of their words, which have one bit per slot (1).
const fn total(what: usize) -> usize {
    let (mut sum, mut kind) = (0, 0);
    while kind < KINDS.len() {
        let (size, slots) = KINDS[kind];
        sum += [size * slots, slots.div_ceil(64)][what];
        kind += 1;
    }
    sum
}

#[repr(align(4096))]
struct Memory(UnsafeCell<[u8; BYTES]>);

/// Slots that any thread takes and gives back without waiting.
struct Reserve {
    memory: Memory,
    /// One bit per slot, set while the slot is taken.
    taken: [AtomicU64; WORDS],
    /// Set when a slot is taken, until [`Allocator::was_short`] reads it.
    is_used: AtomicBool,
}

/// SAFETY: a slot belongs to the thread whose atomic operation set its bit.
unsafe impl Sync for Reserve {}

/// One slot: its place in the reserve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot {
    offset: usize,
    size: usize,
    word: usize,
    bit: u64,
}

impl Reserve {
    const fn new() -> Self {
        Self {
            memory: Memory(UnsafeCell::new([0; BYTES])),
            taken: [const { AtomicU64::new(0) }; WORDS],
            is_used: AtomicBool::new(false),
        }
    }

    /// Returns a slot that `layout` fits into; null if there is none.
    #[cold]
    fn take(&self, layout: Layout) -> *mut u8 {
        let (mut offset, mut word) = (0, 0);
        for (size, slots) in KINDS {
            // Every slot begins at a multiple of the smallest.
            if size >= layout.size() && layout.align() <= KINDS[0].0 {
                for number in (0..slots).step_by(64) {
                    let free = self.set_bit(word + number / 64, slots - number);
                    if let Some(bit) = free {
                        self.is_used.store(true, Ordering::Relaxed);
                        let start = offset + (number + bit) * size;
                        // SAFETY: within the memory, by the sums of `total`.
                        return unsafe { self.memory.0.get().cast::<u8>().add(start) };
                    }
                }
            }
            offset += size * slots;
            word += slots.div_ceil(64);
        }
        std::ptr::null_mut()
    }

    /// Sets one of the lowest `bits` bits of a word that is not set, and returns its number.
    fn set_bit(&self, word: usize, bits: usize) -> Option<usize> {
        loop {
            let free = self.taken[word].load(Ordering::Relaxed).trailing_ones() as usize;
            if free >= bits.min(64) {
                return None;
            }
            let bit = 1 << free;
            if self.taken[word].fetch_or(bit, Ordering::Acquire) & bit == 0 {
                return Some(free);
            }
        }
    }

    /// Returns the slot that begins at an address, if the address is in the reserve.
    #[inline]
    fn slot(&self, address: *mut u8) -> Option<Slot> {
        let at = (address as usize).wrapping_sub(self.memory.0.get() as usize);
        if at >= BYTES {
            return None;
        }
        let (mut offset, mut word) = (0, 0);
        for (size, slots) in KINDS {
            if at < offset + size * slots {
                let number = (at - offset) / size;
                return Some(Slot {
                    offset: at,
                    size,
                    word: word + number / 64,
                    bit: 1 << (number % 64),
                });
            }
            offset += size * slots;
            word += slots.div_ceil(64);
        }
        None
    }

    fn give_back(&self, slot: Slot) {
        self.taken[slot.word].fetch_and(!slot.bit, Ordering::Release);
    }
}

/// The size of the ballast: more than PostgreSQL requests at once where it needs little, which is 1 MiB. Its pages are
/// never touched, so it takes only address space.
const BALLAST: Layout = match Layout::from_size_align(2 << 20, 16) {
    Ok(layout) => layout,
    Err(_) => panic!("the alignment is a power of two"),
};

/// An allocator with a reserve of its own.
pub struct Allocator<A> {
    behind: A,
    reserve: Reserve,
    /// Null while the ballast is not held.
    ballast: AtomicPtr<u8>,
    /// Set when the ballast is given back, until there is memory for it again. In the meantime, small requests are
    /// served from the reserve.
    is_spent: AtomicBool,
}

impl<A: GlobalAlloc> Allocator<A> {
    /// Holds the ballast. Before the first call there is none.
    pub fn hold_ballast(&self) {
        // SAFETY: the size is not 0.
        let block = unsafe { self.behind.alloc(BALLAST) };
        self.is_spent.store(block.is_null(), Ordering::Relaxed);
        self.give_back(self.ballast.swap(block, Ordering::AcqRel));
    }

    fn give_back(&self, ballast: *mut u8) {
        if !ballast.is_null() {
            // SAFETY: the ballast was allocated with this layout in `hold_ballast`. It has been swapped out, so that
            // nobody else has it.
            unsafe { self.behind.dealloc(ballast, BALLAST) };
        }
    }

    /// Returns memory from the reserve after the underlying allocator had none.
    #[cold]
    fn help(&self, layout: Layout) -> *mut u8 {
        let memory = self.reserve.take(layout);
        self.release_ballast();
        memory
    }

    /// Gives the ballast back for others to take, until there is memory for it again.
    #[cold]
    pub fn release_ballast(&self) {
        let ballast = self.ballast.swap(std::ptr::null_mut(), Ordering::AcqRel);
        if !ballast.is_null() {
            self.is_spent.store(true, Ordering::Relaxed);
            self.give_back(ballast);
        }
    }

    /// Returns memory while the ballast is spent; null if the underlying allocator should be asked.
    #[cold]
    fn spare(&self, layout: Layout) -> *mut u8 {
        // The caller has stopped since then, so there may be memory again.
        if !self.reserve.is_used.load(Ordering::Relaxed) {
            self.hold_ballast();
            if !self.is_spent.load(Ordering::Relaxed) {
                return std::ptr::null_mut();
            }
        }
        self.reserve.take(layout)
    }
}

impl<A> Allocator<A> {
    pub const fn new(behind: A) -> Self {
        Self {
            behind,
            reserve: Reserve::new(),
            ballast: AtomicPtr::new(std::ptr::null_mut()),
            is_spent: AtomicBool::new(false),
        }
    }

    /// Returns whether the reserve has been used since the last call.
    pub fn was_short(&self) -> bool {
        let is_used = &self.reserve.is_used;
        is_used.load(Ordering::Relaxed) && is_used.swap(false, Ordering::Relaxed)
    }
}

/// SAFETY: memory comes from the underlying allocator or from a slot of the reserve. A slot is taken only once until it
/// is given back, is at least as large as requested, and begins at a multiple of the alignment.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Allocator<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if self.is_spent.load(Ordering::Relaxed) {
            let memory = self.spare(layout);
            if !memory.is_null() {
                return memory;
            }
        }
        // SAFETY: the caller's contract is the same as that of the underlying allocator.
        let memory = unsafe { self.behind.alloc(layout) };
        if memory.is_null() {
            return self.help(layout);
        }
        memory
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !self.is_spent.load(Ordering::Relaxed) {
            // SAFETY: the caller's contract is the same as that of the underlying allocator.
            let memory = unsafe { self.behind.alloc_zeroed(layout) };
            if !memory.is_null() {
                return memory;
            }
        }
        // SAFETY: the same contract; the block has at least this size.
        unsafe {
            let memory = self.alloc(layout);
            if !memory.is_null() {
                memory.write_bytes(0, layout.size());
            }
            memory
        }
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        match self.reserve.slot(memory) {
            Some(slot) => self.reserve.give_back(slot),
            // SAFETY: the block is outside the reserve, so it came from the underlying allocator.
            None => unsafe { self.behind.dealloc(memory, layout) },
        }
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let slot = self.reserve.slot(memory);
        if slot.is_none() {
            // SAFETY: the block is outside the reserve, so it came from the underlying allocator.
            let grown = unsafe { self.behind.realloc(memory, layout, size) };
            if !grown.is_null() {
                return grown;
            }
        } else if slot.is_some_and(|slot| size <= slot.size) {
            return memory;
        }
        // SAFETY: the caller guarantees `size`. The new block is a different one, with at least as many bytes as are
        // copied, and the old one belongs to the caller until it is given back.
        unsafe {
            let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !moved.is_null() {
                moved.copy_from_nonoverlapping(memory, size.min(layout.size()));
                self.dealloc(memory, layout);
            }
            moved
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::alloc::System;

    static RESERVE: Reserve = Reserve::new();

    fn layout(size: usize) -> Layout {
        Layout::from_size_align(size, 16).unwrap()
    }

    #[test]
    fn every_slot_is_taken_once_and_again_when_given_back() {
        let threads: Vec<_> = (0..2)
            .map(|_| {
                std::thread::spawn(|| {
                    let mut taken = Vec::new();
                    loop {
                        let memory = RESERVE.take(layout(1));
                        if memory.is_null() {
                            return taken;
                        }
                        taken.push(memory as usize);
                    }
                })
            })
            .collect();
        let mut taken: Vec<usize> = threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect();
        taken.sort_unstable();
        taken.dedup();
        assert_eq!(taken.len(), KINDS.iter().map(|kind| kind.1).sum::<usize>());
        for address in taken {
            let slot = RESERVE.slot(address as *mut u8).unwrap();
            let start = RESERVE.memory.0.get() as usize;
            assert_eq!((address - start, address % 64), (slot.offset, 0));
            RESERVE.give_back(slot);
        }
        for (size, slots) in KINDS {
            let memory = RESERVE.take(layout(size));
            assert_eq!(RESERVE.slot(memory).unwrap().size, size, "{slots}");
        }
        assert!(RESERVE.take(layout(KINDS[3].0 + 1)).is_null());
        assert!(RESERVE.is_used.load(Ordering::Relaxed));
        assert_eq!(RESERVE.slot(std::ptr::null_mut()), None);
    }

    /// An allocator that has memory only for large requests.
    struct Scarce;

    /// SAFETY: all its memory is the system's.
    unsafe impl GlobalAlloc for Scarce {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            if layout.size() < 200_000 {
                return std::ptr::null_mut();
            }
            // SAFETY: the caller's contract is the same as the system's.
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
            // SAFETY: allocated by the system.
            unsafe { System.dealloc(memory, layout) };
        }
    }

    #[test]
    fn memory_moves_between_the_reserve_and_the_allocator_behind() {
        static SHORT: Allocator<Scarce> = Allocator::new(Scarce);
        // SAFETY: each block is used within its size, and freed with it.
        unsafe {
            let mut memory = SHORT.alloc_zeroed(layout(10));
            assert!(SHORT.was_short() && !SHORT.was_short());
            assert_eq!(std::slice::from_raw_parts(memory, 10), [0; 10]);
            memory.write_bytes(7, 10);
            let mut size = 10;
            for next in [60, 100, 5000, 200_000, 300_000, 70_000, 20] {
                memory = SHORT.realloc(memory, layout(size), next);
                size = next;
                assert_eq!(std::slice::from_raw_parts(memory, 10), [7; 10], "{size}");
                assert_eq!(SHORT.reserve.slot(memory).is_none(), size >= 200_000);
            }
            assert!(SHORT.alloc(layout(150_000)).is_null());
            assert!(SHORT.realloc(memory, layout(size), 150_000).is_null());
            assert_eq!(std::slice::from_raw_parts(memory, 10), [7; 10]);
            SHORT.dealloc(memory, layout(size));
        }
        let is_free = |word: &AtomicU64| word.load(Ordering::Relaxed) == 0;
        assert!(SHORT.reserve.taken.iter().all(is_free));
    }

    /// An allocator that has a given number of bytes.
    struct Limited(AtomicU64);

    /// SAFETY: all its memory is the system's.
    unsafe impl GlobalAlloc for Limited {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            let size = layout.size() as u64;
            let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
            let taken = self.0.try_update(set, fetch, |left| left.checked_sub(size));
            if taken.is_err() {
                return std::ptr::null_mut();
            }
            // SAFETY: the caller's contract is the same as the system's.
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
            self.0.fetch_add(layout.size() as u64, Ordering::Relaxed);
            // SAFETY: allocated by the system.
            unsafe { System.dealloc(memory, layout) };
        }
    }

    #[test]
    fn the_ballast_is_left_to_others_until_the_caller_has_stopped() {
        const BYTES: u64 = BALLAST.size() as u64;
        static MEMORY: Allocator<Limited> = Allocator::new(Limited(AtomicU64::new(BYTES + 100)));
        let memory = &MEMORY;
        let left = || memory.behind.0.load(Ordering::Relaxed);
        let is_in_reserve = |block| memory.reserve.slot(block).is_some();
        memory.hold_ballast();
        assert_eq!(left(), 100);
        // SAFETY: each block is freed once, with its size.
        unsafe {
            let first = memory.alloc(layout(100));
            assert!(!is_in_reserve(first));
            let others = [10, 20].map(|size| (size, memory.alloc(layout(size))));
            assert!(others.iter().all(|(_, block)| is_in_reserve(*block)));
            assert_eq!(left(), BYTES);
            others
                .into_iter()
                .for_each(|(size, block)| memory.dealloc(block, layout(size)));
            // Other allocations have taken some of it, so it cannot be held again.
            memory.behind.0.fetch_sub(1000, Ordering::Relaxed);
            assert!(memory.was_short());
            let block = memory.alloc_zeroed(layout(30));
            assert!(is_in_reserve(block) && memory.was_short());
            memory.dealloc(block, layout(30));
            memory.behind.0.fetch_add(1000, Ordering::Relaxed);
            memory.dealloc(first, layout(100));
            let block = memory.alloc(layout(30));
            assert_eq!((is_in_reserve(block), left()), (false, 70));
            memory.dealloc(block, layout(30));
        }
    }
}
