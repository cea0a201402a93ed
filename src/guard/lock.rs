//! Locks on the band keys of a row that is about to be stored: two near-duplicates share one of
//! them, so that the second is looked at only after the first can be found through the index.
//!
//! The locks are of a type that PostgreSQL itself leaves to extensions (`userlock` in `pg_locks`),
//! apart from advisory locks. At most one row's are held for a table and a statement: they are
//! released when the next row of that statement comes, for the row before it is indexed then, and
//! at the end of the statement.

use pgrx::{PgSqlErrorCode, pg_sys};
use std::cell::RefCell;
use std::ffi::c_void;

/// The owner of a row: a trigger in a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The memory context of the statement.
    pub statement: pg_sys::MemoryContext,
    /// The table, or the root of its partitions.
    pub table: pg_sys::Oid,
    pub trigger: String,
}

struct Row {
    owner: Owner,
    subtransaction: pg_sys::SubTransactionId,
    tags: Vec<pg_sys::LOCKTAG>,
}

thread_local! {
    static HELD: RefCell<Vec<Row>> = const { RefCell::new(Vec::new()) };
}

/// Registers what releases locks at the end of a transaction, once when the library is loaded.
pub fn register_callbacks() {
    // SAFETY: the callbacks live as long as the library, which is never unloaded.
    unsafe {
        pg_sys::RegisterXactCallback(Some(at_transaction_end), std::ptr::null_mut());
        pg_sys::RegisterSubXactCallback(Some(at_subtransaction_end), std::ptr::null_mut());
    }
}

/// Locks all keys, in their order, which every session shares: no two wait for each other.
///
/// # Errors
/// ERROR if the wait is cancelled, or the lock table is full.
pub fn acquire(owner: &Owner, keys: &[u64]) {
    // SAFETY: reads the state of this backend.
    let subtransaction = unsafe { pg_sys::GetCurrentSubTransactionId() };
    HELD.with_borrow_mut(|held| {
        held.push(Row {
            owner: owner.clone(),
            subtransaction,
            tags: Vec::with_capacity(keys.len()),
        });
    });
    for &key in keys {
        let tag = tag(owner.table, key);
        lock(&tag);
        HELD.with_borrow_mut(|held| {
            if let Some(row) = held.last_mut() {
                row.tags.push(tag);
            }
        });
    }
}

/// Releases the locks of the owner's row.
pub fn release(owner: &Owner) {
    release_where(|row| row.owner == *owner);
}

/// Releases the locks of all rows of a statement.
pub fn release_statement(statement: pg_sys::MemoryContext) {
    release_where(|row| row.owner.statement == statement);
}

fn tag(table: pg_sys::Oid, key: u64) -> pg_sys::LOCKTAG {
    pg_sys::LOCKTAG {
        // SAFETY: reads the state of this backend.
        locktag_field1: unsafe { pg_sys::MyDatabaseId }.to_u32(),
        locktag_field2: table.to_u32(),
        locktag_field3: (key >> 32) as u32,
        locktag_field4: (key >> 16) as u16,
        locktag_type: pg_sys::LockTagType::LOCKTAG_USERLOCK as u8,
        locktag_lockmethodid: pg_sys::DEFAULT_LOCKMETHOD as u8,
    }
}

/// Session locks belong to no resource owner, so that any later moment may release them.
fn lock(tag: &pg_sys::LOCKTAG) {
    // SAFETY: the tag is valid for the call.
    let result = unsafe {
        pg_sys::LockAcquireExtended(
            tag,
            pg_sys::ExclusiveLock as i32,
            true,
            false,
            true,
            std::ptr::null_mut(),
            #[cfg(feature = "pg18")]
            false,
        )
    };
    if result == pg_sys::LockAcquireResult::LOCKACQUIRE_NOT_AVAIL {
        crate::pg::error::raise(
            PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE,
            "could not lock",
            "",
        );
    }
}

fn release_where(condition: impl Fn(&Row) -> bool) {
    let released: Vec<Row> = HELD.with_borrow_mut(|held| {
        let (released, kept) = std::mem::take(held)
            .into_iter()
            .partition(|row| condition(row));
        *held = kept;
        released
    });
    for tag in released.iter().flat_map(|row| &row.tags) {
        // SAFETY: the session holds the lock.
        unsafe { pg_sys::LockRelease(tag, pg_sys::ExclusiveLock as i32, true) };
    }
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn at_transaction_end(
    event: pg_sys::XactEvent::Type,
    _nothing: *mut c_void,
) {
    use pg_sys::XactEvent::*;
    if matches!(
        event,
        XACT_EVENT_COMMIT | XACT_EVENT_ABORT | XACT_EVENT_PREPARE
    ) {
        release_where(|_| true);
    }
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn at_subtransaction_end(
    event: pg_sys::SubXactEvent::Type,
    subtransaction: pg_sys::SubTransactionId,
    parent: pg_sys::SubTransactionId,
    _nothing: *mut c_void,
) {
    match event {
        pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB => {
            release_where(|row| row.subtransaction == subtransaction);
        }
        pg_sys::SubXactEvent::SUBXACT_EVENT_COMMIT_SUB => HELD.with_borrow_mut(|held| {
            for row in held
                .iter_mut()
                .filter(|row| row.subtransaction == subtransaction)
            {
                row.subtransaction = parent;
            }
        }),
        _ => {}
    }
}
