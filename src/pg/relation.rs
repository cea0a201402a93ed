//! Open tables and indexes.

use crate::pg::catalog::cached;
use crate::pg::error::not_ready;
use crate::pg::names;
use pgrx::{IntoDatum, PgList, direct_function_call, pg_sys};
use std::ffi::CStr;

/// An open relation. Closing it keeps the lock until the end of the transaction.
pub struct Relation(pg_sys::Relation);

impl Relation {
    /// Opens a table.
    ///
    /// # Errors
    /// ERROR `undefined_table` if there is no such relation.
    pub fn open_table(oid: pg_sys::Oid) -> Self {
        Self::try_open_table(oid).unwrap_or_else(|| names::undefined_relation(oid))
    }

    /// Opens a table, or returns None if it no longer exists.
    pub fn try_open_table(oid: pg_sys::Oid) -> Option<Self> {
        // SAFETY: raises an ERROR unless it is a table.
        let table = unsafe { pg_sys::try_table_open(oid, pg_sys::AccessShareLock as i32) };
        (!table.is_null()).then(|| Self(table))
    }

    /// Opens a relation of any kind with `lock`, or returns None if it no longer exists.
    pub fn try_open(oid: pg_sys::Oid, lock: u32) -> Option<Self> {
        // SAFETY: returns NULL if there is no such relation.
        let relation = unsafe { pg_sys::try_relation_open(oid, lock as i32) };
        (!relation.is_null()).then(|| Self(relation))
    }

    /// Opens a relation that is already locked.
    ///
    /// # Errors
    /// ERROR `internal_error` if there is no such relation.
    pub fn open_locked(oid: pg_sys::Oid) -> Self {
        // SAFETY: raises an ERROR if there is no such relation.
        Self(unsafe { pg_sys::relation_open(oid, pg_sys::NoLock as i32) })
    }

    pub fn open_index(oid: pg_sys::Oid) -> Self {
        // SAFETY: raises an ERROR if there is no such index.
        Self(unsafe { pg_sys::index_open(oid, pg_sys::AccessShareLock as i32) })
    }

    pub fn as_ptr(&self) -> pg_sys::Relation {
        self.0
    }

    pub fn oid(&self) -> pg_sys::Oid {
        // SAFETY: the relation is open.
        unsafe { (*self.0).rd_id }
    }

    /// Returns whether the running transaction has created the relation, or changed its row in `pg_class`.
    pub fn has_changed(&self) -> bool {
        let cache = pg_sys::SysCacheIdentifier::RELOID;
        let column = pg_sys::MinTransactionIdAttributeNumber as u32;
        // SAFETY: the system column is a number of the size of an OID.
        let writer = unsafe { cached(cache, column, [self.oid().into()]) };
        writer.is_some_and(|writer| {
            let writer = pg_sys::TransactionId::from(writer.to_u32());
            // SAFETY: a transaction is running.
            unsafe { pg_sys::TransactionIdIsCurrentTransactionId(writer) }
        })
    }

    /// Returns the number of blocks of the relation's main fork.
    pub fn blocks(&self) -> u32 {
        // SAFETY: the relation is open.
        unsafe { blocks(self.0) }
    }

    /// Returns the kind of the relation, as in `pg_class.relkind`.
    pub fn kind(&self) -> u8 {
        // SAFETY: the relation is open.
        unsafe { (*(*self.0).rd_rel).relkind as u8 }
    }

    /// Returns the persistence of the relation, as in `pg_class.relpersistence`. A partitioned table is never unlogged: where
    /// it can be, before PostgreSQL 18, that means nothing for its partitions.
    pub fn persistence(&self) -> u8 {
        // SAFETY: the relation is open.
        match unsafe { (*(*self.0).rd_rel).relpersistence as u8 } {
            pg_sys::RELPERSISTENCE_UNLOGGED if self.kind() == pg_sys::RELKIND_PARTITIONED_TABLE => {
                pg_sys::RELPERSISTENCE_PERMANENT
            }
            persistence => persistence,
        }
    }

    /// Returns the role that owns the relation.
    pub fn owner(&self) -> pg_sys::Oid {
        // SAFETY: the relation is open.
        unsafe { (*(*self.0).rd_rel).relowner }
    }

    /// Returns the schema of the relation.
    pub fn schema(&self) -> pg_sys::Oid {
        // SAFETY: the relation is open.
        unsafe { (*(*self.0).rd_rel).relnamespace }
    }

    /// Returns a copy of the table's triggers, in the current memory context: reading a catalog may free the
    /// relation's own.
    pub fn triggers(&self) -> &[pg_sys::Trigger] {
        // SAFETY: the relation is open; the copy lives as long as the memory context.
        unsafe { triggers(pg_sys::CopyTriggerDesc((*self.0).trigdesc)) }
    }

    /// Returns whether other tables inherit from the table.
    pub fn has_children(&self) -> bool {
        let lock = pg_sys::NoLock as i32;
        // SAFETY: looks into the catalog.
        !unsafe { pg_sys::find_inheritance_children(self.oid(), lock) }.is_null()
    }

    /// Returns the table on which the table's trigger `name` was created: the table itself, or a partitioned table above
    /// it, whose partitions have clones of the trigger, with its name. Only PostgreSQL makes clones.
    pub fn of_trigger(&self, name: &CStr) -> Relation {
        let mut table = Relation::open_table(self.oid());
        // SAFETY: the triggers are the table's, which is a partition if one is a clone.
        unsafe {
            let is_clone =
                |own: &pg_sys::Trigger| own.tgisclone && CStr::from_ptr(own.tgname) == name;
            while table.triggers().iter().any(is_clone) {
                table = Relation::open_table(pg_sys::get_partition_parent(table.oid(), true));
            }
        }
        table
    }

    /// Returns the partitions of a partitioned table, except those that are being detached.
    #[allow(clippy::disallowed_methods, reason = "one entry per partition")]
    pub fn partitions(&self) -> Vec<pg_sys::Oid> {
        // SAFETY: the relation is open; the array has that many elements.
        unsafe {
            let parts = pg_sys::RelationGetPartitionDesc(self.0, true);
            match (*parts).nparts {
                0 => Vec::new(),
                count => std::slice::from_raw_parts((*parts).oids, count as usize).to_vec(),
            }
        }
    }

    /// Returns the columns of the relation, including dropped ones.
    pub fn columns(&self) -> &[pg_sys::FormData_pg_attribute] {
        // SAFETY: the relation is open; its descriptor has that many columns.
        unsafe {
            let descriptor = (*self.0).rd_att;
            let count = (*descriptor).natts as usize;
            #[cfg(not(any(feature = "pg15", feature = "pg16", feature = "pg17")))]
            let first = pg_sys::TupleDescAttr(descriptor, 0).cast_const();
            #[cfg(any(feature = "pg15", feature = "pg16", feature = "pg17"))]
            let first = (*descriptor).attrs.as_ptr();
            std::slice::from_raw_parts(first, count)
        }
    }

    /// Returns whether the table's current file was created in this transaction. TRUNCATE empties such a file instead
    /// of creating a new one.
    pub fn has_new_file(&self) -> bool {
        // SAFETY: the relation is open.
        unsafe {
            #[cfg(feature = "pg15")]
            let since = (*self.0).rd_newRelfilenodeSubid;
            #[cfg(not(feature = "pg15"))]
            let since = (*self.0).rd_newRelfilelocatorSubid;
            [(*self.0).rd_createSubid, since]
                .iter()
                .any(|&since| since != 0)
        }
    }

    /// Returns the index of the table's primary key and the numbers of its columns, or None if there is no primary key.
    /// A deferrable one does not count, because two rows may have the same key until the transaction ends.
    pub fn primary_key(&self) -> Option<(pg_sys::Oid, Vec<i16>)> {
        // SAFETY: the table is open; listing its indexes sets `rd_pkindex`.
        let index = unsafe {
            pg_sys::list_free(pg_sys::RelationGetIndexList(self.0));
            (*self.0).rd_pkindex
        };
        // Since PostgreSQL 18, `rd_pkindex` is also set for a deferrable primary key.
        if index == pg_sys::InvalidOid || !Self::open_index(index).description().indimmediate {
            return None;
        }
        Some((index, key_columns(index)))
    }

    /// Returns the only column of the table's primary key.
    ///
    /// # Errors
    /// ERROR `object_not_in_prerequisite_state` for a table without a primary key, and for a primary key that is
    /// deferrable or has more than one column.
    pub fn only_key_column(&self) -> i16 {
        let key = self.primary_key();
        if let Some((_, columns)) = &key
            && let [column] = columns[..]
        {
            return column;
        }
        let is_primary = |&index: &pg_sys::Oid| Self::open_index(index).description().indisprimary;
        let lack = match self.indexes().iter().find(|index| is_primary(index)) {
            None => "has no primary key",
            Some(_) if key.is_none() => "has a deferrable primary key",
            Some(_) => "has a primary key of several columns",
        };
        not_ready(
            &format!("table {} {lack}", names::relation(self.oid())),
            "Name a column whose values are unique and not NULL: key => 'id'.",
        )
    }

    /// Returns the indexes of the table.
    #[allow(clippy::disallowed_methods, reason = "one entry per index")]
    pub fn indexes(&self) -> Vec<pg_sys::Oid> {
        // SAFETY: the table is open; the list is a new one.
        let list = unsafe { PgList::<pg_sys::Oid>::from_pg(pg_sys::RelationGetIndexList(self.0)) };
        list.iter_oid().collect()
    }

    /// Returns the index's row in `pg_index`.
    pub fn description(&self) -> &pg_sys::FormData_pg_index {
        // SAFETY: the index is open.
        unsafe { &*(*self.0).rd_index }
    }
}

impl Drop for Relation {
    fn drop(&mut self) {
        // After an ERROR it is closed with the resource owner.
        if !std::thread::panicking() {
            // SAFETY: the relation is open; the lock is released with the transaction.
            unsafe { pg_sys::relation_close(self.0, pg_sys::NoLock as i32) };
        }
    }
}

/// Returns the root of the partition tree that a table belongs to, or the table itself if it is not a partition.
pub fn root_of(table: pg_sys::Oid) -> pg_sys::Oid {
    // SAFETY: the function takes one regclass.
    let root = unsafe { direct_function_call(pg_sys::pg_partition_root, &[table.into_datum()]) };
    root.unwrap_or(table)
}

/// Returns the numbers of the table columns that are the keys of an index; 0 stands for an expression. The index need
/// not be open.
///
/// # Errors
/// ERROR `undefined_table` if there is no such index.
#[allow(clippy::disallowed_methods, reason = "at most 32 columns")]
pub fn key_columns(index: pg_sys::Oid) -> Vec<i16> {
    const CACHE: i32 = pg_sys::SysCacheIdentifier::INDEXRELID as i32;
    // SAFETY: the row of the catalog is released after it is copied.
    unsafe {
        let row = pg_sys::SearchSysCache1(CACHE, index.into());
        if row.is_null() {
            names::undefined_relation(index);
        }
        let form = pg_sys::heap_tuple_get_struct::<pg_sys::FormData_pg_index>(row);
        let all = (*form).indkey.values.as_slice((*form).indnatts as usize);
        let columns = all[..(*form).indnkeyatts as usize].to_vec();
        pg_sys::ReleaseSysCache(row);
        columns
    }
}

/// Returns the triggers of a table, given its description of them, which is NULL if there are none.
///
/// # Safety
/// The description is valid while the triggers are in use. The description of an open table is valid until a catalog is
/// read.
pub unsafe fn triggers<'t>(description: *const pg_sys::TriggerDesc) -> &'t [pg_sys::Trigger] {
    match description.as_ref() {
        Some(all) => std::slice::from_raw_parts(all.triggers, all.numtriggers as usize),
        None => &[],
    }
}

/// Returns the arguments of a trigger.
///
/// # Safety
/// The trigger belongs to a table that stays open while the arguments are in use.
#[allow(clippy::disallowed_methods, reason = "one entry per argument")]
pub unsafe fn trigger_arguments(trigger: &pg_sys::Trigger) -> Vec<&CStr> {
    let arguments = 0..trigger.tgnargs as usize;
    let argument = |number| CStr::from_ptr(*trigger.tgargs.add(number));
    arguments.map(argument).collect()
}

/// Returns the number of blocks of a relation's main fork.
///
/// # Safety
/// The relation is open.
pub unsafe fn blocks(relation: pg_sys::Relation) -> u32 {
    let fork = pg_sys::ForkNumber::MAIN_FORKNUM;
    pg_sys::RelationGetNumberOfBlocksInFork(relation, fork)
}

/// The type of a column, with its modifier and its collation.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct ColumnType {
    pub type_: pg_sys::Oid,
    pub modifier: i32,
    pub collation: pg_sys::Oid,
}

impl ColumnType {
    /// Returns the type of a column of a table, an index or a row type.
    ///
    /// # Errors
    /// ERROR `internal_error` if there is no such column.
    pub fn of(relation: pg_sys::Oid, number: i16) -> Self {
        let mut of = Self::default();
        let (type_, modifier, collation) = (&mut of.type_, &mut of.modifier, &mut of.collation);
        // SAFETY: raises an ERROR if there is no such column.
        unsafe { pg_sys::get_atttypetypmodcoll(relation, number, type_, modifier, collation) };
        of
    }

    /// Returns `type_` without a modifier, and with its own collation.
    pub fn plain(type_: pg_sys::Oid) -> Self {
        Self {
            type_,
            modifier: -1,
            // SAFETY: looks the type up in the catalog.
            collation: unsafe { pg_sys::get_typcollation(type_) },
        }
    }

    /// Returns the type's name with its modifier.
    pub fn name(&self) -> String {
        names::type_of(self.type_, self.modifier)
    }

    /// Returns the type as written in the definition of a column, with its modifier and its collation.
    pub fn definition(&self) -> String {
        self.name() + &names::collate(self.collation)
    }
}
