//! Locks that say how far a transaction is with a root table. PostgreSQL keeps them with a prepared
//! transaction, releases them with a subtransaction that is rolled back, and after the transaction has
//! ceased to be in progress.

use pgrx::pg_sys;

/// Field 4 of an advisory lock's tag. The functions for users write 1 and 2.
#[derive(Clone, Copy)]
#[repr(u16)]
enum Says {
    /// The transaction has passed.
    Passed = 3,
    /// The transaction passes before it commits.
    WillPass = 4,
    /// Held while a transaction passes.
    Gate = 5,
}

/// The state of a transaction that inserted a row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Passed,
    WillPass,
    /// It has inserted rows without saying that it will pass.
    Silent,
    /// It is no longer in progress.
    Ended,
}

/// Says that the running transaction has passed a root.
pub fn say_passed(root: pg_sys::Oid) {
    // SAFETY: the transaction has written rows, and so has an identifier.
    acquire(tag(
        root,
        unsafe { pg_sys::GetTopTransactionId() },
        Says::Passed,
    ));
}

/// Says that the running transaction will pass a root before it commits.
pub fn say_will_pass(root: pg_sys::Oid) {
    // SAFETY: a transaction is running; it gets an identifier.
    let transaction = unsafe { pg_sys::GetTopTransactionId() };
    acquire(tag(root, transaction, Says::WillPass));
}

/// Returns the standing of a transaction with a root; a subtransaction has the standing of the top one.
pub fn standing(root: pg_sys::Oid, transaction: pg_sys::TransactionId) -> Standing {
    // SAFETY: the transaction was in progress when this one had a snapshot.
    let top = unsafe { pg_sys::SubTransGetTopmostTransaction(transaction) };
    let says = [
        (Says::Passed, Standing::Passed),
        (Says::WillPass, Standing::WillPass),
    ];
    let said = says.iter().find(|(says, _)| is_held(tag(root, top, *says)));
    // Asked last: a transaction in progress now has held its locks until now.
    // SAFETY: as above.
    match unsafe { pg_sys::TransactionIdIsInProgress(transaction) } {
        false => Standing::Ended,
        true => said.map_or(Standing::Silent, |(_, standing)| *standing),
    }
}

/// The gate of a root, through which one transaction passes at a time.
pub struct Gate(pg_sys::LOCKTAG);

impl Gate {
    /// Waits until nobody else passes.
    ///
    /// # Errors
    /// ERROR on a timeout or a cancel, which open the gate.
    pub fn close(root: pg_sys::Oid) -> Self {
        let tag = tag(root, pg_sys::InvalidTransactionId, Says::Gate);
        acquire(tag);
        Self(tag)
    }

    pub fn open(self) {
        // SAFETY: `close` has taken the lock.
        unsafe { pg_sys::LockRelease(&self.0, pg_sys::ExclusiveLock as i32, false) };
    }
}

fn tag(root: pg_sys::Oid, transaction: pg_sys::TransactionId, says: Says) -> pg_sys::LOCKTAG {
    pg_sys::LOCKTAG {
        // SAFETY: a variable of the backend, set once.
        locktag_field1: unsafe { pg_sys::MyDatabaseId }.to_u32(),
        locktag_field2: root.to_u32(),
        locktag_field3: transaction.into_inner(),
        locktag_field4: says as u16,
        locktag_type: pg_sys::LockTagType::LOCKTAG_ADVISORY as u8,
        locktag_lockmethodid: pg_sys::USER_LOCKMETHOD as u8,
    }
}

/// Takes a lock until the transaction ends.
fn acquire(tag: pg_sys::LOCKTAG) {
    // SAFETY: a transaction is running.
    unsafe { pg_sys::LockAcquire(&tag, pg_sys::ExclusiveLock as i32, false, false) };
}

/// Returns whether another transaction, prepared ones among them, holds a lock.
fn is_held(tag: pg_sys::LOCKTAG) -> bool {
    let mut holders = 0;
    // SAFETY: takes no lock; the list is a new one.
    unsafe {
        let list = pg_sys::GetLockConflicts(&tag, pg_sys::ShareLock as i32, &mut holders);
        pg_sys::pfree(list.cast());
    }
    holders > 0
}
