//! Checks before the first batch: of rights, the tables, the column and the expression.

use crate::backfill::batches::{FilledColumn, before_page};
use crate::pg::error::{raise, tell};
use crate::pg::names;
use crate::pg::statement::{Connection, server_text};
use pgrx::{PgLogLevel, PgSqlErrorCode, pg_sys};

/// Returns a table and all that inherit from it, without those that have no rows of their own.
///
/// # Errors
/// See `near_dup_backfill`.
pub fn tables(
    connection: &Connection,
    relation: pg_sys::Oid,
    column: &FilledColumn,
) -> Vec<pg_sys::Oid> {
    let tree = format!(
        "WITH RECURSIVE tree (relid) AS (
             VALUES ('{relation}'::pg_catalog.oid)
             UNION SELECT i.inhrelid FROM tree t JOIN pg_catalog.pg_inherits i
                 ON i.inhparent OPERATOR(pg_catalog.=) t.relid)
         SELECT relid FROM tree ORDER BY relid",
        relation = relation.to_u32()
    );
    let mut tables = connection.prepare(&tree, &[]).oids(&[]);
    tables.retain(|table| has_rows(*table));
    for &table in &tables {
        check_rights(table, column);
        check_column(table, column);
        check_expression(connection, table, column);
        warn_of_policies(table);
    }
    tables
}

/// # Errors
/// ERROR `undefined_table`, `wrong_object_type` unless the relation is a table or a partitioned table.
fn has_rows(relation: pg_sys::Oid) -> bool {
    // SAFETY: looks the relation up in the catalog.
    match unsafe { pg_sys::get_rel_relkind(relation) } as u8 {
        0 => names::undefined_relation(relation),
        pg_sys::RELKIND_RELATION => true,
        pg_sys::RELKIND_PARTITIONED_TABLE => false,
        _ => raise(
            PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
            &format!(
                "near_dup_backfill cannot fill {}",
                names::relation(relation)
            ),
            "Tables, partitioned tables and partitions can be filled; a foreign table only where its rows are.",
        ),
    }
}

/// # Errors
/// ERROR `insufficient_privilege` unless the caller may read the table and update the column.
fn check_rights(table: pg_sys::Oid, column: &FilledColumn) {
    let (select, update) = (
        pg_sys::ACL_SELECT as pg_sys::AclMode,
        pg_sys::ACL_UPDATE as pg_sys::AclMode,
    );
    let allowed = pg_sys::AclResult::ACLCHECK_OK;
    let number = number(table, column);
    // SAFETY: looks rights up in the catalog.
    let may_fill = unsafe {
        let role = pg_sys::GetUserId();
        pg_sys::pg_class_aclcheck(table, role, select) == allowed
            && (pg_sys::pg_class_aclcheck(table, role, update) == allowed
                || number.is_some_and(|number| {
                    pg_sys::pg_attribute_aclcheck(table, number, role, update) == allowed
                }))
    };
    if !may_fill {
        raise(
            PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
            &format!("permission denied for table {}", names::relation(table)),
            "near_dup_backfill works with the rights of its caller: SELECT on the table and UPDATE on the column, of each partition too.",
        );
    }
}

/// Returns the number of the column; None if the table has none of that name.
fn number(table: pg_sys::Oid, column: &FilledColumn) -> Option<i16> {
    names::column_number(table, &server_text(&column.name))
}

/// # Errors
/// ERROR `undefined_column`, `generated_always` for a generated column.
fn check_column(table: pg_sys::Oid, column: &FilledColumn) {
    let Some(number) = number(table, column) else {
        raise(
            PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN,
            &format!(
                "table {} has no column {} to fill",
                names::relation(table),
                column.quoted
            ),
            "Add it before: ALTER TABLE ... ADD COLUMN ... without a default.",
        );
    };
    // SAFETY: the column exists.
    if unsafe { pg_sys::get_attgenerated(table, number) } != 0 {
        raise(
            PgSqlErrorCode::ERRCODE_GENERATED_ALWAYS,
            &format!("column {} is a generated column", column.quoted),
            "PostgreSQL fills it. Name a plain column, and let a trigger fill it in new rows.",
        );
    }
}

/// # Errors
/// ERROR `syntax_error` unless `column.expression` is an expression, and any error of preparing the
/// statement of a batch.
fn check_expression(connection: &Connection, table: pg_sys::Oid, column: &FilledColumn) {
    let beginning = before_page(0);
    let statement = column.batch(&names::relation(table), &beginning, &beginning);
    if connection.prepare(&statement, &[]).query().is_none() {
        raise(
            PgSqlErrorCode::ERRCODE_SYNTAX_ERROR,
            "near_dup_backfill takes one expression",
            "Give an expression over the columns of the table, such as 'minhash(body)'.",
        );
    }
}

/// Warns where row-level security hides rows from the caller.
fn warn_of_policies(table: pg_sys::Oid) {
    let enabled = pg_sys::CheckEnableRlsResult::RLS_ENABLED as i32;
    // SAFETY: the table exists; no ERROR where `row_security` is off.
    if unsafe { pg_sys::check_enable_rls(table, pg_sys::InvalidOid, true) } == enabled {
        tell(
            PgLogLevel::WARNING,
            &format!(
                "row-level security of table {} applies",
                names::relation(table)
            ),
            "Rows that it hides are not filled. Their owner, or a role with BYPASSRLS, can fill all of them.",
        );
    }
}
