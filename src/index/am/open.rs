//! Opens indexes that are named in function calls.

use super::build;
use super::page::Index;
use crate::pg::prelude::*;
use crate::pg::rights::{owns, raise_not_owner};

/// The predefined role pg_stat_scan_tables, which pg_monitor is a member of.
const STAT_SCAN_TABLES: pg_sys::Oid = pg_sys::Oid::from_u32(3377);

/// An index of this access method and its table, both open until the value is dropped.
pub struct Opened {
    pub table: Relation,
    index: Relation,
}

impl Opened {
    /// Opens the index `oid` and its table with ACCESS SHARE locks.
    ///
    /// # Errors
    /// ERROR `wrong_object_type` if `oid` is not an index of this access method, `insufficient_privilege` unless the
    /// caller owns the index or is a member of pg_stat_scan_tables.
    pub fn new(oid: pg_sys::Oid) -> Self {
        // SAFETY: looks a relation up in the catalog.
        let kind = unsafe { pg_sys::get_rel_relkind(oid) } as u8;
        // SAFETY: as above.
        let table = unsafe { pg_sys::IndexGetRelation(oid, true) };
        if table == pg_sys::InvalidOid || kind != pg_sys::RELKIND_INDEX {
            reject(oid);
        }
        // The table is locked before its index, as is the rule in PostgreSQL.
        let table = Relation::open_table(table);
        let index = Relation::open_index(oid);
        // SAFETY: the index is open.
        let build = unsafe { (*(*index.as_ptr()).rd_indam).ambuild };
        if build.map(|f| f as usize) != Some(build::build as *const () as usize) {
            reject(oid);
        }
        // SAFETY: the index is open.
        if !unsafe { (*(*index.as_ptr()).rd_index).indisvalid } {
            not_ready(
                &format!("index {} is not valid", names::relation(oid)),
                "CREATE INDEX CONCURRENTLY is still building it, or has failed: then REINDEX or drop it.",
            );
        }
        // The index's pages show how many rows there are, including rows that row-level security hides.
        // SAFETY: looks roles up in the catalog.
        let may_read = owns(oid)
            || unsafe { pg_sys::has_privs_of_role(pg_sys::GetUserId(), STAT_SCAN_TABLES) };
        if !may_read {
            raise_not_owner(pg_sys::ObjectType::OBJECT_INDEX, oid);
        }
        Self { table, index }
    }

    pub fn index(&self) -> Index<'_> {
        // SAFETY: the index is open while `self` lives.
        unsafe { Index::new(self.index.as_ptr()) }
    }
}

fn reject(oid: pg_sys::Oid) -> ! {
    let name = names::find_bare(oid).unwrap_or_else(|| oid.to_u32().to_string());
    raise(
        PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
        &format!("\"{name}\" is not a neardup index"),
        "Name an index created with USING neardup; for a partitioned index, name an index of a partition.",
    )
}
