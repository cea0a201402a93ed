//! Locks by which a transaction announces its state at a root table. PostgreSQL keeps them for prepared transactions,
//! releases them when a subtransaction is rolled back, and otherwise releases them only after the transaction is no
//! longer in progress.

use pgrx::pg_sys;

/// State of a transaction that has written rows. An announced state's number goes into field 4 of an advisory lock's
/// tag, where the SQL functions for advisory locks put 1 or 2.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PassState {
    Passed = 3,
    WillPass = 4,
    /// Nothing announced yet.
    Silent,
    /// No longer in progress.
    Ended,
}

/// Field 4 of the tag of the gate's lock.
const GATE: u16 = 5;

/// Field 4 of the tag of the lock of a transaction whose rows pass one by one.
const ONE_BY_ONE: u16 = 6;

/// Field 4 of the tag of the lock of a transaction that has rows in a partition that only it sees.
const HIDDEN: u16 = 7;

/// Announces `state`: the running transaction has passed `root`, or will pass it before it commits.
pub fn announce(root: pg_sys::Oid, state: PassState) {
    // SAFETY: a transaction is running; it gets an identifier unless it has one.
    let transaction = unsafe { pg_sys::GetTopTransactionId() };
    with_rows(|| acquire(tag(root, transaction, state as u16), pg_sys::ExclusiveLock));
}

/// Waits until no other transaction passes `root` row by row. Makes others wait until this transaction ends.
pub fn pass_one_by_one(root: pg_sys::Oid) {
    let tag = tag(root, pg_sys::InvalidTransactionId, ONE_BY_ONE);
    with_rows(|| acquire(tag, pg_sys::ExclusiveLock));
}

/// Returns the state of `transaction` at `root`. A subtransaction has the state of its top transaction.
pub fn pass_state(root: pg_sys::Oid, transaction: pg_sys::TransactionId) -> PassState {
    // SAFETY: the transaction was in progress when this one had a snapshot.
    let top = unsafe { pg_sys::SubTransGetTopmostTransaction(transaction) };
    let announced = [PassState::Passed, PassState::WillPass]
        .into_iter()
        .find(|state| is_held(tag(root, top, *state as u16)));
    // Asked last, because a transaction that is in progress now still holds its locks.
    // SAFETY: as above.
    match unsafe { pg_sys::TransactionIdIsInProgress(transaction) } {
        false => PassState::Ended,
        true => announced.unwrap_or(PassState::Silent),
    }
}

/// Closes the gate of `root`: waits until no other transaction is passing.
///
/// # Errors
/// ERROR on a timeout or a cancel.
pub fn close_gate(root: pg_sys::Oid) {
    let tag = tag(root, pg_sys::InvalidTransactionId, GATE);
    acquire(tag, pg_sys::ExclusiveLock);
}

/// Opens the gate of `root`, which this transaction has closed.
pub fn open_gate(root: pg_sys::Oid) {
    let tag = tag(root, pg_sys::InvalidTransactionId, GATE);
    // SAFETY: `close_gate` has taken the lock.
    unsafe { pg_sys::LockRelease(&tag, pg_sys::ExclusiveLock as i32, false) };
}

/// Makes others wait until this transaction ends before they list the partitions of `root`: it has rows in one that only
/// it sees.
pub fn hide_partitions(root: pg_sys::Oid) {
    let tag = tag(root, pg_sys::InvalidTransactionId, HIDDEN);
    with_rows(|| {
        acquire(tag, pg_sys::ExclusiveLock);
        // For `sees_partitions`, which would queue behind those who wait for the first lock.
        acquire(tag, pg_sys::ShareLock);
    });
}

/// Returns whether no other transaction hides partitions of `root`; if `waits`, waits until none does. Then accepts the
/// changes of the catalog that others have published, so that their partitions can be listed. A transaction publishes
/// them before it releases its locks, but after it has ceased to be in progress. So asking for the lock's holders, which
/// excludes transactions that have ended, does not replace taking it.
pub fn sees_partitions(root: pg_sys::Oid, waits: bool) -> bool {
    let tag = tag(root, pg_sys::InvalidTransactionId, HIDDEN);
    let mode = pg_sys::ShareLock as i32;
    // SAFETY: a transaction is running.
    unsafe {
        let result = pg_sys::LockAcquire(&tag, mode, false, !waits);
        let sees = result != pg_sys::LockAcquireResult::LOCKACQUIRE_NOT_AVAIL;
        if sees {
            pg_sys::LockRelease(&tag, mode, false);
        }
        pg_sys::AcceptInvalidationMessages();
        sees
    }
}

/// Locks `table` in `mode` until the subtransaction whose rows are being written ends.
pub fn lock_with_rows(table: pg_sys::Oid, mode: u32) {
    // SAFETY: a transaction is running.
    with_rows(|| unsafe { pg_sys::LockRelationOid(table, mode as i32) });
}

fn tag(root: pg_sys::Oid, transaction: pg_sys::TransactionId, purpose: u16) -> pg_sys::LOCKTAG {
    pg_sys::LOCKTAG {
        // SAFETY: a variable of the backend, set once.
        locktag_field1: unsafe { pg_sys::MyDatabaseId }.to_u32(),
        locktag_field2: root.to_u32(),
        locktag_field3: transaction.into_inner(),
        locktag_field4: purpose,
        locktag_type: pg_sys::LockTagType::LOCKTAG_ADVISORY as u8,
        locktag_lockmethodid: pg_sys::USER_LOCKMETHOD as u8,
    }
}

/// Calls `lock` so that its locks belong to the subtransaction whose rows are being written, and are released with them.
/// A cursor has an owner of its own, which releases its locks if a later FETCH fails in a savepoint, although the rows
/// stay.
fn with_rows(lock: impl FnOnce()) {
    // SAFETY: a transaction is running. After an ERROR, PostgreSQL sets the owner itself.
    unsafe {
        let owner = pg_sys::CurrentResourceOwner;
        pg_sys::CurrentResourceOwner = pg_sys::CurTransactionResourceOwner;
        lock();
        pg_sys::CurrentResourceOwner = owner;
    }
}

/// Takes the lock `tag` in `mode`. It is held until the current resource owner ends, unless it is released.
fn acquire(tag: pg_sys::LOCKTAG, mode: u32) {
    // SAFETY: a transaction is running.
    unsafe { pg_sys::LockAcquire(&tag, mode as i32, false, false) };
}

/// Returns whether another transaction, possibly a prepared one, holds the lock `tag`.
fn is_held(tag: pg_sys::LOCKTAG) -> bool {
    let mut holders = 0;
    // SAFETY: takes no lock; the list is newly allocated.
    unsafe {
        let list = pg_sys::GetLockConflicts(&tag, pg_sys::ShareLock as i32, &mut holders);
        pg_sys::pfree(list.cast());
    }
    holders > 0
}
