//! The tables that a guard looks into, with their indexes.

use crate::guard::columns::{Columns, RootKey};
use crate::guard::options::Options;
use crate::index::kind::{Bound, Kind, Method, Objects};
use crate::pg::catalog::{quoted_identifier, relation_name};
use crate::pg::error::raise;
use crate::pg::relation::Relation;
use pgrx::{PgList, PgSqlErrorCode, pg_sys};

/// A table that is looked into: the guarded one, or a partition beside it.
pub struct Table {
    pub oid: pg_sys::Oid,
    /// The partitioned tables that it belongs to, from the root on.
    pub ancestors: Vec<pg_sys::Oid>,
    pub columns: Columns,
    /// The index, and the column of it that holds the signature; None where the table has no
    /// usable one.
    pub index: Option<(pg_sys::Oid, i16)>,
}

impl Table {
    /// Returns whether row-level security keeps rows of the table from the role, read from itself or
    /// from a table that it is a partition of.
    pub fn hides_rows(&self) -> bool {
        let enabled = pg_sys::CheckEnableRlsResult::RLS_ENABLED as i32;
        self.ancestors.iter().chain([&self.oid]).any(|&table| {
            // SAFETY: the table exists; no ERROR where `row_security` is off.
            unsafe { pg_sys::check_enable_rls(table, pg_sys::InvalidOid, true) == enabled }
        })
    }
}

/// Returns the root of the partitions that a table belongs to; itself if it is no partition.
///
/// # Safety
/// The table is open.
pub unsafe fn root_of(table: pg_sys::Relation) -> pg_sys::Oid {
    // SAFETY: vouched for by the caller; the function takes one regclass.
    unsafe {
        if !(*(*table).rd_rel).relispartition {
            return (*table).rd_id;
        }
        let function = pg_sys::Oid::from(pg_sys::F_PG_PARTITION_ROOT);
        let datum =
            pg_sys::OidFunctionCall1Coll(function, pg_sys::InvalidOid, (*table).rd_id.into());
        pg_sys::Oid::from(datum.value() as u32)
    }
}

/// The tables with rows under a root, for a guard with these options.
pub struct Tables<'a> {
    pub options: &'a Options,
    pub kind: Kind,
    pub bound: &'a Bound,
    pub objects: &'a Objects,
    pub root_key: &'a RootKey,
}

impl Tables<'_> {
    /// Appends the tables under `table`, a table under `ancestors`.
    ///
    /// # Errors
    /// ERROR for a table that the options do not fit, and `wrong_object_type` for a foreign table.
    pub fn under(&self, table: pg_sys::Oid, ancestors: &[pg_sys::Oid], tables: &mut Vec<Table>) {
        let relation = Relation::open_table(table);
        match relation.kind() {
            pg_sys::RELKIND_PARTITIONED_TABLE => {
                // SAFETY: the relation is open; the array has that many elements.
                let partitions = unsafe {
                    let parts = pg_sys::RelationGetPartitionDesc(relation.as_ptr(), true);
                    std::slice::from_raw_parts((*parts).oids, (*parts).nparts as usize).to_vec()
                };
                let ancestors = [ancestors, &[table]].concat();
                for partition in partitions {
                    self.under(partition, &ancestors, tables);
                }
            }
            pg_sys::RELKIND_RELATION => tables.push(self.table(&relation, ancestors)),
            pg_sys::RELKIND_FOREIGN_TABLE => foreign(table, ancestors),
            _ => {}
        }
    }

    fn table(&self, relation: &Relation, ancestors: &[pg_sys::Oid]) -> Table {
        // SAFETY: the relation is open.
        unsafe {
            let columns = Columns::of(relation.as_ptr(), self.options, self.root_key);
            columns.check_types(relation.as_ptr(), self.options, self.kind);
            Table {
                oid: (*relation.as_ptr()).rd_id,
                ancestors: ancestors.to_vec(),
                index: usable_index(
                    relation.as_ptr(),
                    columns.signature,
                    self.bound,
                    self.objects,
                ),
                columns,
            }
        }
    }
}

/// Raises the error of a foreign partition, whose server keeps no index of ours and shows nothing of
/// transactions in progress.
fn foreign(table: pg_sys::Oid, ancestors: &[pg_sys::Oid]) -> ! {
    let name = |table| relation_name(table).unwrap_or_default();
    let parent = ancestors.last().map(|&parent| name(parent));
    raise(
        PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
        &format!("near_dup_guard cannot search foreign table {}", name(table)),
        &match parent {
            Some(parent) => format!(
                "ALTER TABLE {parent} DETACH PARTITION {}; or guard tables without foreign partitions.",
                name(table)
            ),
            None => "Put the guard on a table of the foreign server.".to_owned(),
        },
    )
}

/// Returns an index of our operator class that finds everything within the bound.
///
/// # Errors
/// ERROR if the only one collects new rows in a pending list, which every lookup would scan.
///
/// # Safety
/// The table is open.
unsafe fn usable_index(
    table: pg_sys::Relation,
    signature: i16,
    bound: &Bound,
    objects: &Objects,
) -> Option<(pg_sys::Oid, i16)> {
    // SAFETY: vouched for by the caller.
    let indexes = unsafe { PgList::<pg_sys::Oid>::from_pg(pg_sys::RelationGetIndexList(table)) };
    let mut collecting = None;
    for oid in indexes.iter_oid() {
        let index = Relation::open_index(oid);
        // SAFETY: the index is open.
        unsafe {
            let Some((column, method)) = column_served(index.as_ptr(), signature, bound, objects)
            else {
                continue;
            };
            if method != Method::Gin || !collects(index.as_ptr()) {
                return Some((oid, column));
            }
            collecting = Some(oid);
        }
    }
    if let Some(oid) = collecting {
        let index = relation_name(oid).unwrap_or_default();
        // SAFETY: vouched for by the caller.
        let table = relation_name(unsafe { (*table).rd_id }).unwrap_or_default();
        raise(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            &format!("near_dup_guard needs index {index} without a pending list"),
            &format!(
                "ALTER INDEX {index} SET (fastupdate = off); then VACUUM {table}; once to empty the list."
            ),
        );
    }
    None
}

/// # Safety
/// The index is open.
unsafe fn column_served(
    index: pg_sys::Relation,
    signature: i16,
    bound: &Bound,
    objects: &Objects,
) -> Option<(i16, Method)> {
    // SAFETY: vouched for by the caller.
    unsafe {
        let form = (*index).rd_index;
        let columns = (*form).indkey.values.as_slice((*form).indnatts as usize);
        let place = columns.iter().position(|&column| column == signature)?;
        let family = *(*index).rd_opfamily.add(place);
        let operator =
            pg_sys::get_opfamily_member(family, objects.value_type, objects.ball_type, 1);
        let partial = !pg_sys::RelationGetIndexPredicate(index).is_null();
        if operator == pg_sys::InvalidOid || partial || !(*form).indisvalid || !(*form).indisready {
            return None;
        }
        let options = *pg_sys::RelationGetIndexAttOptions(index, false).add(place);
        let method = bound.kind().method(family, objects.value_type)?;
        let is_served = bound.is_served(method, options, None);
        is_served.then_some((place as i16 + 1, method))
    }
}

/// Returns whether the index is GIN with `fastupdate`, its default.
///
/// # Safety
/// The index is open, and a GIN index.
unsafe fn collects(index: pg_sys::Relation) -> bool {
    /// The beginning of GIN's storage parameters.
    #[repr(C)]
    struct GinOptions {
        varlena_header: i32,
        fast_update: bool,
    }
    // SAFETY: vouched for by the caller; without parameters there are no options.
    unsafe {
        let options = (*index).rd_options.cast::<GinOptions>();
        options.is_null() || (*options).fast_update
    }
}

/// Raises the error of a table without a usable index.
pub fn no_index(table: pg_sys::Oid, options: &Options, bound: &Bound, objects: &Objects) -> ! {
    let table = relation_name(table).unwrap_or_default();
    let column = quoted_identifier(&options.column);
    raise(
        PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        &format!("near_dup_guard needs an index on column {column} of table {table}"),
        &format!(
            "CREATE INDEX ON {table} USING gin ({column} {}) WITH (fastupdate = off);",
            bound.operator_class(objects)
        ),
    )
}
