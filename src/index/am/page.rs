//! Raw access to the pages of an index: pinned and locked buffers, their contents as byte slices, and changes that are
//! logged as one record.
//!
//! A page is a standard page of PostgreSQL: header, payload, free space, and a special space that identifies the page.
//! Pages are identified by kind and number, so that a reader notices if a page has been reused in the meantime.

use super::recent;
use crate::pg::encoding::utf8;
use crate::pg::prefetch;
use crate::pg::prelude::*;
use crate::pg::relation;
use neardup::postings::Damaged;
use std::ffi::CStr;
use std::marker::PhantomData;
use strum::FromRepr;

pub const BLOCK_LEN: usize = pg_sys::BLCKSZ as usize;
const HEADER_LEN: usize = std::mem::offset_of!(pg_sys::PageHeaderData, pd_linp);
const SPECIAL_LEN: usize = size_of::<Special>();
const SPECIAL_START: usize = BLOCK_LEN - SPECIAL_LEN;

/// Number of bytes of a page that can be filled.
pub const PAYLOAD_LEN: usize = SPECIAL_START - HEADER_LEN;

/// Distinguishes our pages from pages of other access methods.
const PAGE_ID: u16 = 0xFF94;

/// The block of the metapage.
pub const META_BLOCK: u32 = 0;

/// Stands for no block: only the metapage has this block number.
pub const NO_BLOCK: u32 = 0;

const NO_SUBTRANSACTION: pg_sys::SubTransactionId = 0;

const NEW_BLOCK: u32 = pg_sys::InvalidBlockNumber;

/// The contents of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromRepr)]
#[repr(u16)]
pub enum PageType {
    Meta = 1,
    /// Keys of new rows. The page number is the number of the first row on the page.
    Log = 2,
    /// The log page to which rows are appended.
    Tail = 3,
    /// Part of the row table. The page number is the position of the page in the table.
    Rows = 4,
    /// Block numbers of pages of the row table. The page number is the position within this level.
    RowsDirectory = 5,
    /// Block numbers of `RowsDirectory` pages. The page number is the position within this level.
    RowsTop = 6,
    /// Postings. The page number is the number of the segment.
    Leaf = 7,
    /// Directory of leaves or of other directory pages. The page number is the number of the segment.
    Directory = 8,
    /// Free for reuse.
    Free = 9,
}

/// The special space of a page, which identifies it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Special {
    number: u64,
    kind: u16,
    unused: [u16; 2],
    page_id: u16,
}

/// Ends the statement because a page is damaged.
pub fn raise_corrupted(index: &Index, block: Option<u32>, reason: &str) -> ! {
    let place = block.map_or_else(String::new, |block| format!(" at block {block}"));
    raise(
        PgSqlErrorCode::ERRCODE_INDEX_CORRUPTED,
        &format!("index \"{}\" is damaged{place}: {reason}", index.name()),
        "Rebuild it with REINDEX INDEX.",
    )
}

/// An open index.
#[derive(Clone, Copy)]
pub struct Index<'a> {
    relation: pg_sys::Relation,
    /// True while the index is being built: changes are not logged page by page.
    unlogged: bool,
    /// The buffer strategy for reading all pages once, or NULL.
    strategy: pg_sys::BufferAccessStrategy,
    open: PhantomData<&'a ()>,
}

impl<'a> Index<'a> {
    /// # Safety
    /// `relation` is an index of this access method that stays open for `'a`.
    pub unsafe fn new(relation: pg_sys::Relation) -> Self {
        Self {
            relation,
            unlogged: false,
            strategy: std::ptr::null_mut(),
            open: PhantomData,
        }
    }

    /// Returns the same index for building it: the pages are logged at the end.
    pub fn unlogged(self) -> Self {
        Self {
            unlogged: true,
            ..self
        }
    }

    /// Returns the same index for reading all of it once.
    ///
    /// # Safety
    /// `strategy` is NULL, or valid for `'a`.
    pub unsafe fn read_once(self, strategy: pg_sys::BufferAccessStrategy) -> Self {
        Self { strategy, ..self }
    }

    pub fn as_ptr(&self) -> pg_sys::Relation {
        self.relation
    }

    pub fn name(&self) -> String {
        // SAFETY: an open relation has a catalog row with a NUL-terminated name.
        utf8(unsafe { CStr::from_ptr((*(*self.relation).rd_rel).relname.data.as_ptr()) })
    }

    /// Returns the number of blocks.
    pub fn blocks(&self) -> u32 {
        // SAFETY: the relation is open.
        unsafe { relation::blocks(self.relation) }
    }

    /// Returns the value of `found`, which was read from the page of `block`.
    ///
    /// # Errors
    /// ERROR `index_corrupted` if the page is damaged.
    pub fn sound<T>(&self, block: u32, found: Result<T, Damaged>) -> T {
        found.unwrap_or_else(|Damaged(reason)| raise_corrupted(self, Some(block), reason))
    }

    /// Returns how many bytes of a payload are in use after an append with the result `appended`.
    ///
    /// # Errors
    /// ERROR `index_corrupted` if the page is damaged, or has less room than it declares.
    pub fn used(&self, block: u32, appended: Result<Option<usize>, Damaged>) -> usize {
        const FULL: Damaged = Damaged("page fuller than it says");
        self.sound(block, appended.and_then(|used| used.ok_or(FULL)))
    }

    /// Opens and returns the index's table. Takes no lock, because a page may be locked here, and because the table is
    /// locked anyway while the index is in use.
    pub fn table(&self) -> Relation {
        // SAFETY: the relation is open.
        Relation::open_locked(unsafe { (*(*self.relation).rd_index).indrelid })
    }

    /// Returns whether changes to the index must be logged, as the macro RelationNeedsWAL does.
    pub fn needs_wal(&self) -> bool {
        // SAFETY: the relation is open.
        unsafe {
            let relation = &*self.relation;
            #[cfg(feature = "pg15")]
            let first = relation.rd_firstRelfilenodeSubid;
            #[cfg(not(feature = "pg15"))]
            let first = relation.rd_firstRelfilelocatorSubid;
            let archived = pg_sys::wal_level >= pg_sys::WalLevel::WAL_LEVEL_REPLICA as i32;
            (*relation.rd_rel).relpersistence == pg_sys::RELPERSISTENCE_PERMANENT as i8
                && (archived
                    || (relation.rd_createSubid == NO_SUBTRANSACTION && first == NO_SUBTRANSACTION))
        }
    }

    /// Returns a page, locked for shared access.
    pub fn read(&self, block: u32) -> Page<'a> {
        self.pinned(block).read()
    }

    /// Returns a page, locked for exclusive access.
    pub fn lock(&self, block: u32) -> Page<'a> {
        self.pinned(block).lock(pg_sys::BUFFER_LOCK_EXCLUSIVE)
    }

    /// Returns the page as [`Self::lock`] does, or None if another session has locked it.
    pub fn try_lock(&self, block: u32) -> Option<Page<'a>> {
        let pinned = self.pinned(block);
        // SAFETY: the buffer is pinned.
        let is_locked = unsafe { pg_sys::ConditionalLockBuffer(pinned.buffer) };
        is_locked.then(|| Page::new(pinned))
    }

    /// Returns the page of `block`, locked exclusively, or None if the file now ends before the block. The block was
    /// remembered from an earlier statement.
    pub fn remembered(&self, block: u32) -> Option<Page<'a>> {
        // SAFETY: the relation is open.
        let pinned = match unsafe { recent::recall(self.relation, block) } {
            Some(buffer) => Pinned::new(buffer, block),
            None if block < self.blocks() => self.pinned(block),
            None => return None,
        };
        Some(pinned.lock(pg_sys::BUFFER_LOCK_EXCLUSIVE))
    }

    /// Pins and returns the page of `block`, which will be read soon. Prefetches the page's first cache lines, and the
    /// lines around `place`, which ranges from 0 to 1.
    pub fn pin(&self, block: u32, place: f32) -> Pinned<'a> {
        let pinned = self.pinned(block);
        pinned.prefetch(place);
        pinned
    }

    /// Requests from storage the `blocks` that will be read, without waiting for them. Calls `asked` for each requested
    /// block, with true if it must be read. May skip the rest if the first blocks are all in memory, or request none
    /// (see [`prefetch::ask_ahead`]).
    pub fn ask_ahead(&self, blocks: impl Iterator<Item = u32>, mut asked: impl FnMut(bool)) {
        let index = self.relation;
        // SAFETY: the relation is open.
        unsafe {
            prefetch::ask_ahead(index, blocks, |block| {
                let is_read = recent::ask_ahead(index, block);
                asked(is_read);
                is_read
            });
        }
    }

    fn pinned(&self, block: u32) -> Pinned<'a> {
        // Beyond the relation's first file, PostgreSQL would report a missing file.
        let is_beyond = block >= pg_sys::RELSEG_SIZE && block >= self.blocks();
        if block == NEW_BLOCK || is_beyond {
            raise_corrupted(self, None, "it refers to an invalid block");
        }
        // SAFETY: the relation is open; a block beyond its end is an ERROR.
        let buffer = unsafe {
            match self.strategy.is_null() {
                true => recent::read_buffer(self.relation, block),
                false => self.buffer(pg_sys::ForkNumber::MAIN_FORKNUM, block),
            }
        };
        Pinned::new(buffer, block)
    }

    /// # Safety
    /// The fork has that block, or the block is a new one and the caller has the extension lock.
    unsafe fn buffer(&self, fork: pg_sys::ForkNumber::Type, block: u32) -> pg_sys::Buffer {
        let mode = pg_sys::ReadBufferMode::RBM_NORMAL;
        pg_sys::ReadBufferExtended(self.relation, fork, block, mode, self.strategy)
    }

    /// Adds a page of zeros at the end of `fork`, and returns it, locked exclusively.
    pub fn extend(&self, fork: pg_sys::ForkNumber::Type) -> Page<'a> {
        // SAFETY: the relation is open; the extension lock keeps others from adding the same block.
        unsafe {
            let lock = pg_sys::ExclusiveLock as i32;
            pg_sys::LockRelationForExtension(self.relation, lock);
            let buffer = self.buffer(fork, NEW_BLOCK);
            pg_sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_EXCLUSIVE as _);
            pg_sys::UnlockRelationForExtension(self.relation, lock);
            Page::new(Pinned::new(buffer, pg_sys::BufferGetBlockNumber(buffer)))
        }
    }
}

/// A pinned page. Unpinned when dropped. After an ERROR, PostgreSQL unpins it itself, and has reset its counters by
/// then.
pub struct Pinned<'a> {
    buffer: pg_sys::Buffer,
    block: u32,
    held: PhantomData<&'a ()>,
}

impl<'a> Pinned<'a> {
    /// Number of bytes at the beginning of a page that every reader looks at: its header, and the heads of a leaf's
    /// blocks.
    const HEADS: usize = 320;

    /// Number of bytes to prefetch before the estimated position: it may be at the end of a block, which is read from
    /// its beginning.
    const BEFORE: usize = 320;

    /// Number of bytes to prefetch after the estimated position.
    const BEHIND: usize = 128;

    /// Takes over the pin of a buffer.
    fn new(buffer: pg_sys::Buffer, block: u32) -> Self {
        Self {
            buffer,
            block,
            held: PhantomData,
        }
    }

    pub fn block(&self) -> u32 {
        self.block
    }

    /// Returns the page, locked for reading.
    pub fn read(self) -> Page<'a> {
        self.lock(pg_sys::BUFFER_LOCK_SHARE)
    }

    fn lock(self, mode: u32) -> Page<'a> {
        // SAFETY: the buffer is pinned.
        unsafe { pg_sys::LockBuffer(self.buffer, mode as _) };
        Page::new(self)
    }

    fn prefetch(&self, place: f32) {
        const CACHE_LINE: usize = 64;
        let place = Self::HEADS + (place * (SPECIAL_START - Self::HEADS) as f32) as usize;
        let start = place.saturating_sub(Self::BEFORE).max(Self::HEADS);
        let end = (place + Self::BEHIND).min(SPECIAL_START);
        let lines = (0..Self::HEADS)
            .step_by(CACHE_LINE)
            .chain((start..end).step_by(CACHE_LINE))
            .chain([SPECIAL_START]);
        for at in lines {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the address is within the pinned page, and is only prefetched.
            unsafe {
                use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
                _mm_prefetch::<_MM_HINT_T0>(pg_sys::BufferGetPage(self.buffer).add(at).cast());
            }
            #[cfg(not(target_arch = "x86_64"))]
            let _ = at;
        }
    }
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: the buffer was pinned for this value.
            unsafe { pg_sys::ReleaseBuffer(self.buffer) };
        }
    }
}

/// A pinned and locked page. Unlocked and unpinned when dropped, like a [`Pinned`].
pub struct Page<'a> {
    pinned: Pinned<'a>,
    start: *mut u8,
}

impl<'a> Page<'a> {
    /// Takes over the lock of a page.
    fn new(pinned: Pinned<'a>) -> Self {
        // SAFETY: the buffer is pinned.
        let start = unsafe { pg_sys::BufferGetPage(pinned.buffer) }.cast();
        Self { pinned, start }
    }

    pub fn block(&self) -> u32 {
        self.pinned.block
    }

    fn bytes(&self) -> &[u8; BLOCK_LEN] {
        // SAFETY: the buffer is pinned and locked: nobody changes the page while `self` lives.
        unsafe { &*self.start.cast() }
    }

    fn special(&self) -> Special {
        // SAFETY: the special space of our pages is at the end of the page, and any bytes are valid.
        unsafe { self.start.add(SPECIAL_START).cast::<Special>().read() }
    }

    fn header(&self) -> pg_sys::PageHeaderData {
        // SAFETY: a page begins with its header, and any bytes are valid.
        unsafe { self.start.cast::<pg_sys::PageHeaderData>().read() }
    }

    /// Returns whether the page itself says that it is free for any use, or is all zeros: added to the file, but never
    /// written.
    pub fn is_free(&self) -> bool {
        self.header().pd_upper == 0 || self.kind() == Some(PageType::Free)
    }

    /// Returns the kind of the page, or None if the page is not one of ours.
    pub fn kind(&self) -> Option<PageType> {
        let header = self.header();
        let lower = usize::from(header.pd_lower);
        let special = self.special();
        // Generic WAL zeroes the bytes from `pd_lower` to `pd_upper`, in a critical section.
        let valid = usize::from(header.pd_special) == SPECIAL_START
            && usize::from(header.pd_upper) == SPECIAL_START
            && (HEADER_LEN..=SPECIAL_START).contains(&lower)
            && special.page_id == PAGE_ID;
        PageType::from_repr(special.kind).filter(|_| valid)
    }

    pub fn number(&self) -> u64 {
        self.special().number
    }

    /// Returns whether the page has this `kind` and `number`. If not, it has been reused.
    pub fn is(&self, kind: PageType, number: u64) -> bool {
        self.kind() == Some(kind) && self.number() == number
    }

    /// Returns the bytes in use, or an empty slice if the page is not one of ours.
    pub fn payload(&self) -> &[u8] {
        let lower = usize::from(self.header().pd_lower);
        self.bytes()
            .get(HEADER_LEN..lower.min(SPECIAL_START))
            .unwrap_or(&[])
    }
}

impl Drop for Page<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: the buffer was locked for this value.
            unsafe { pg_sys::LockBuffer(self.pinned.buffer, pg_sys::BUFFER_LOCK_UNLOCK as _) };
        }
    }
}

/// Changes of up to four exclusively locked pages that take effect together.
pub struct PageChanges<'a> {
    /// NULL if changes are not logged.
    state: *mut pg_sys::GenericXLogState,
    index: PhantomData<&'a ()>,
}

impl<'a> PageChanges<'a> {
    pub fn start(index: &Index<'a>) -> Self {
        let state = match index.unlogged {
            true => std::ptr::null_mut(),
            // SAFETY: the relation is open.
            false => unsafe { pg_sys::GenericXLogStart(index.relation) },
        };
        Self {
            state,
            index: PhantomData,
        }
    }

    fn register<'p>(&mut self, page: &'p mut Page, flags: u32) -> Image<'p> {
        // SAFETY: the buffer is locked exclusively, and the state, if any, is open.
        let start = unsafe {
            if self.state.is_null() {
                pg_sys::MarkBufferDirty(page.pinned.buffer);
                page.start
            } else {
                pg_sys::GenericXLogRegisterBuffer(self.state, page.pinned.buffer, flags as i32)
                    .cast()
            }
        };
        Image {
            start,
            page: PhantomData,
        }
    }

    /// Returns the current contents of the page, to be changed.
    pub fn change<'p>(&mut self, page: &'p mut Page) -> Image<'p> {
        self.register(page, 0)
    }

    /// Empties the page, gives it this `kind` and `number`, and returns its contents, to be filled.
    pub fn init<'p>(&mut self, page: &'p mut Page, kind: PageType, number: u64) -> Image<'p> {
        let image = self.register(page, pg_sys::GENERIC_XLOG_FULL_IMAGE);
        // SAFETY: the image is a page, aligned for its header and its special space.
        unsafe {
            pg_sys::PageInit(image.start.cast(), BLOCK_LEN, SPECIAL_LEN);
            let special = image.start.add(SPECIAL_START).cast::<Special>();
            special.write(Special {
                number,
                kind: kind as u16,
                unused: [0; 2],
                page_id: PAGE_ID,
            });
        }
        image
    }

    /// Applies and logs the changes.
    pub fn finish(self) {
        if !self.state.is_null() {
            // SAFETY: the state is open.
            unsafe { pg_sys::GenericXLogFinish(self.state) };
        }
    }
}

/// The contents of a page that is being changed.
pub struct Image<'p> {
    start: *mut u8,
    page: PhantomData<&'p mut ()>,
}

impl Image<'_> {
    pub fn set_kind(&mut self, kind: PageType) {
        // SAFETY: the image is a page, aligned for its special space.
        unsafe {
            (*self.start.add(SPECIAL_START).cast::<Special>()).kind = kind as u16;
        }
    }

    /// Returns all bytes of the payload, in use or not.
    pub fn payload(&mut self) -> &mut [u8] {
        // SAFETY: the image is a page, and borrowed.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(HEADER_LEN), PAYLOAD_LEN) }
    }

    /// Returns how many bytes of the payload are in use.
    pub fn used(&self) -> usize {
        // SAFETY: the image is a page.
        let lower = unsafe { (*self.start.cast::<pg_sys::PageHeaderData>()).pd_lower };
        usize::from(lower).clamp(HEADER_LEN, SPECIAL_START) - HEADER_LEN
    }

    /// Sets how many bytes of the payload are in use; the rest is not logged.
    pub fn set_used(&mut self, len: usize) {
        assert!(len <= PAYLOAD_LEN, "a payload fits its page");
        // SAFETY: the image is a page.
        unsafe {
            (*self.start.cast::<pg_sys::PageHeaderData>()).pd_lower = (HEADER_LEN + len) as u16;
        }
    }

    /// Writes bytes into the payload at `start`. These bytes and all bytes before them are in use afterwards.
    pub fn put(&mut self, start: usize, bytes: &[u8]) {
        let end = start + bytes.len();
        self.payload()[start..end].copy_from_slice(bytes);
        self.set_used(self.used().max(end));
    }
}
