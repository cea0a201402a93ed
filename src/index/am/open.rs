//! Indexes named in calls of functions.

use super::build;
use super::page::Index;
use crate::pg::error::raise;
use crate::pg::names;
use crate::pg::rights::owns;
use pgrx::{PgSqlErrorCode, pg_sys};

/// The predefined role pg_stat_scan_tables; pg_monitor is a member of it.
const STAT_SCAN_TABLES: pg_sys::Oid = pg_sys::Oid::from_u32(3377);

/// An index of this access method and its table, open until it is dropped.
pub struct Opened {
    pub table: pg_sys::Relation,
    index: pg_sys::Relation,
}

impl Opened {
    /// Opens an index and its table with ACCESS SHARE locks.
    ///
    /// # Errors
    /// ERROR `wrong_object_type` if it is no index of this access method, `insufficient_privilege`
    /// unless the caller owns it or is a member of pg_stat_scan_tables.
    pub fn new(oid: pg_sys::Oid) -> Self {
        let lock = pg_sys::AccessShareLock as i32;
        // SAFETY: the table is locked before its index, as everybody does; a missing relation is an
        // ERROR.
        unsafe {
            let table = pg_sys::IndexGetRelation(oid, true);
            if table == pg_sys::InvalidOid || !is_plain_index(oid) {
                refuse(oid);
            }
            let table = pg_sys::table_open(table, lock);
            let index = pg_sys::index_open(oid, lock);
            let opened = Self { table, index };
            if (*(*index).rd_indam).ambuild.map(|f| f as usize)
                != Some(build::build as *const () as usize)
            {
                refuse(oid);
            }
            if !may_read(oid) {
                pg_sys::aclcheck_error(
                    pg_sys::AclResult::ACLCHECK_NOT_OWNER,
                    pg_sys::ObjectType::OBJECT_INDEX,
                    pg_sys::get_rel_name(oid),
                );
            }
            opened
        }
    }

    pub fn index(&self) -> Index<'_> {
        // SAFETY: the index is open while `self` lives.
        unsafe { Index::new(self.index) }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // After an ERROR both are closed with the resource owner.
        if !std::thread::panicking() {
            // SAFETY: the relations are open; the locks are released with the transaction.
            unsafe {
                pg_sys::relation_close(self.index, pg_sys::NoLock as i32);
                pg_sys::relation_close(self.table, pg_sys::NoLock as i32);
            }
        }
    }
}

/// Returns whether the caller may read the whole of an index: its pages show how many rows there
/// are, also those that row-level security hides.
fn may_read(oid: pg_sys::Oid) -> bool {
    // SAFETY: looks roles up in the catalog.
    owns(oid) || unsafe { pg_sys::has_privs_of_role(pg_sys::GetUserId(), STAT_SCAN_TABLES) }
}

fn is_plain_index(oid: pg_sys::Oid) -> bool {
    // SAFETY: looks a relation up in the catalog.
    unsafe { pg_sys::get_rel_relkind(oid) as u8 == pg_sys::RELKIND_INDEX }
}

fn refuse(oid: pg_sys::Oid) -> ! {
    let name = names::find_bare(oid).unwrap_or_else(|| oid.to_u32().to_string());
    raise(
        PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
        &format!("\"{name}\" is not a neardup index"),
        "Name an index made with USING neardup; of a partitioned one, an index of a partition.",
    )
}
