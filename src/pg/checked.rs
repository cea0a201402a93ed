//! The extension's own tables, which users can alter. They are opened only if they are as they were created.

use crate::pg::error::not_ready;
use crate::pg::names;
use crate::pg::relation::{ColumnType, Relation};
use crate::pg::rights::may_use;
use crate::pg::statement::{Connection, server_text};
use pgrx::pg_sys;

/// A column as the extension creates it.
#[derive(Clone)]
pub struct CreatedColumn {
    pub name: String,
    pub type_: ColumnType,
    pub is_not_null: bool,
}

impl CreatedColumn {
    pub fn new(name: &str, type_: ColumnType, is_not_null: bool) -> Self {
        Self {
            name: name.into(),
            type_,
            is_not_null,
        }
    }

    /// Returns the column's definition for CREATE TABLE.
    fn definition(&self) -> String {
        let not_null = if self.is_not_null { " NOT NULL" } else { "" };
        format!("{} {}{not_null}", self.name, self.type_.definition())
    }
}

/// A table as the extension creates it to serve another table.
pub struct CreatedTable<'a> {
    /// Owner and persistence, as in `pg_class.relpersistence`, of the table that it serves.
    pub owner: pg_sys::Oid,
    pub persistence: u8,
    pub columns: &'a [CreatedColumn],
    /// The columns of the primary key; empty for a table with no primary key and no index. None for a user's table,
    /// which may have other columns, any key, and NULLs.
    pub key: Option<&'a [i16]>,
}

impl CreatedTable<'_> {
    /// Creates the table in a schema, and returns it.
    ///
    /// # Errors
    /// The errors of CREATE TABLE.
    #[allow(clippy::disallowed_methods, reason = "one entry per column")]
    pub fn create(&self, connection: &Connection, schema: pg_sys::Oid, bare: &str) -> pg_sys::Oid {
        // After a crash, an unlogged table and the table that it serves are both empty.
        let unlogged = match self.persistence {
            pg_sys::RELPERSISTENCE_UNLOGGED => "UNLOGGED",
            _ => "",
        };
        let table = names::qualified(schema, bare);
        let definitions = self.columns.iter().map(CreatedColumn::definition);
        let key = self.key.unwrap_or_default().iter();
        let key = key.map(|&number| &*self.columns[number as usize - 1].name);
        let key = key.collect::<Vec<_>>().join(", ");
        let key = (!key.is_empty()).then(|| format!("PRIMARY KEY ({key})"));
        let definitions = definitions.chain(key).collect::<Vec<_>>().join(", ");
        connection.execute(&format!("CREATE {unlogged} TABLE {table} ({definitions})"));
        // SAFETY: the name is NUL-terminated.
        unsafe { pg_sys::get_relname_relid(server_text(bare).as_ptr(), schema) }
    }
}

/// An open table that is as it was created. While it is open, ALTER TABLE waits for its lock in other sessions, and fails
/// in this one, where the table is in use. Others can still create triggers and foreign keys until it is written, and
/// children at any time.
pub struct CheckedTable(Relation);

/// The difference between a table and its definition.
pub struct Altered(pub String);

impl Altered {
    /// Raises the difference as an ERROR, with `hint`.
    ///
    /// # Errors
    /// ERROR `object_not_in_prerequisite_state`.
    pub fn raise(&self, hint: &str) -> ! {
        not_ready(&self.0, hint)
    }
}

impl CheckedTable {
    /// Opens a table with `lock`, or returns how it differs from `created`.
    pub fn open(
        table: pg_sys::Oid,
        created: &CreatedTable<'_>,
        lock: u32,
    ) -> Result<Self, Altered> {
        // Checked before the lock: another owner could make us wait for it.
        let owner = names::owner(table);
        if owner.is_some_and(|owner| owner != created.owner) {
            return Err(altered(table, "it has a different owner"));
        }
        let Some(relation) = Relation::try_open(table, lock) else {
            return Err(Altered(
                "a table that the extension uses was dropped".into(),
            ));
        };
        match difference(&relation, created) {
            Some(difference) => Err(altered(table, &difference)),
            None => Ok(Self(relation)),
        }
    }

    /// Returns the table unless it has a foreign key, which can delete or change its rows, or a deferrable trigger, for
    /// which a restricted operation cannot write.
    pub fn unconstrained(self) -> Result<Self, Altered> {
        // SAFETY: looks only at the number of the function.
        let refers = |trigger: &pg_sys::Trigger| unsafe {
            pg_sys::RI_FKey_trigger_type(trigger.tgfoid) as u32 == pg_sys::RI_TRIGGER_FK
        };
        let triggers = self.0.triggers();
        if triggers.iter().any(refers) {
            return Err(altered(self.0.oid(), "it has a foreign key"));
        }
        match triggers.iter().any(|trigger| trigger.tgdeferrable) {
            true => Err(altered(
                self.0.oid(),
                "it has a deferrable trigger or foreign key",
            )),
            false => Ok(self),
        }
    }

    pub fn relation(&self) -> &Relation {
        &self.0
    }
}

fn altered(table: pg_sys::Oid, difference: &str) -> Altered {
    let name = names::find_relation(table).unwrap_or_default();
    Altered(format!("table {name} cannot be used: {difference}"))
}

/// Returns the first difference between `table` and `created`, or None if there is none.
fn difference(table: &Relation, created: &CreatedTable<'_>) -> Option<String> {
    // SAFETY: the relation is open.
    let form = unsafe { &*(*table.as_ptr()).rd_rel };
    let is_plain = table.kind() == pg_sys::RELKIND_RELATION
        && form.relam == pg_sys::HEAP_TABLE_AM_OID
        && !form.relispartition;
    let is_changed_by_others = form.relhasrules || table.triggers().iter().any(changes_rows);
    let differences = [
        (form.relowner != created.owner, "it has a different owner"),
        (!is_plain, "it is not an ordinary table"),
        (
            form.relpersistence as u8 != created.persistence,
            "its persistence (logged or unlogged) is not that of its table",
        ),
        (
            form.relhassubclass,
            "other tables inherit from it, or did before its last ANALYZE",
        ),
        (
            is_changed_by_others,
            "a rule or a trigger changes the rows written to it",
        ),
        (
            form.relforcerowsecurity,
            "row-level security is forced on its owner",
        ),
        (
            !has_rights(table, created),
            "its owner lacks privileges on it or its schema",
        ),
        (
            !created.key.is_none_or(|key| has_key(table, key)),
            "its primary key or its indexes are different",
        ),
    ];
    if let Some((_, difference)) = differences.iter().find(|(is_so, _)| *is_so) {
        return Some((*difference).into());
    }
    let columns = table.columns();
    if created.key.is_none() {
        return created.columns.iter().find_map(|wanted| {
            let is_wanted = |column: &&pg_sys::FormData_pg_attribute| {
                !column.attisdropped && names::of_column(column) == wanted.name
            };
            match columns.iter().find(is_wanted) {
                Some(column) => different_type(column, wanted),
                None => Some(format!(
                    "it has no column {}",
                    names::identifier(&wanted.name)
                )),
            }
        });
    }
    if columns.len() != created.columns.len() {
        return Some("a column was added or dropped".into());
    }
    let mut pairs = columns.iter().zip(created.columns);
    pairs.find_map(|(column, created)| different_column(column, created))
}

/// Returns whether the owner may read the table, and write it unless it is a user's table.
fn has_rights(table: &Relation, created: &CreatedTable<'_>) -> bool {
    let writes = pg_sys::ACL_INSERT | pg_sys::ACL_UPDATE | pg_sys::ACL_DELETE;
    let wanted = pg_sys::ACL_SELECT | if created.key.is_some() { writes } else { 0 };
    let wanted = wanted as pg_sys::AclMode;
    // SAFETY: looks the table up in the catalog.
    let rights = unsafe {
        let all = pg_sys::AclMaskHow::ACLMASK_ALL;
        pg_sys::pg_class_aclmask(table.oid(), created.owner, wanted, all)
    };
    rights == wanted && may_use(created.owner, table.schema())
}

/// Returns whether a trigger can change or suppress rows that are written.
fn changes_rows(trigger: &pg_sys::Trigger) -> bool {
    let kind = trigger.tgtype as u32;
    kind & pg_sys::TRIGGER_TYPE_ROW != 0 && kind & pg_sys::TRIGGER_TYPE_BEFORE != 0
}

/// Returns whether `key` is the table's primary key or, if it is empty, whether the table has no index.
fn has_key(table: &Relation, key: &[i16]) -> bool {
    match (table.primary_key(), key) {
        (Some((_, columns)), key) => columns == key,
        (None, key) => key.is_empty() && table.indexes().is_empty(),
    }
}

fn different_column(
    column: &pg_sys::FormData_pg_attribute,
    created: &CreatedColumn,
) -> Option<String> {
    if column.attisdropped {
        return Some("a column was dropped".into());
    }
    let name = names::of_column(column);
    if name != created.name {
        let (name, wanted) = (names::identifier(&name), names::identifier(&created.name));
        return Some(format!("column {wanted} was renamed to {name}"));
    }
    let is_other = column.attnotnull != created.is_not_null || column.attgenerated != 0;
    different_type(column, created)
        .or_else(|| is_other.then(|| format!("column {name} is generated, or differs in NOT NULL")))
}

fn different_type(
    column: &pg_sys::FormData_pg_attribute,
    created: &CreatedColumn,
) -> Option<String> {
    let type_ = ColumnType {
        type_: column.atttypid,
        modifier: column.atttypmod,
        collation: column.attcollation,
    };
    (type_ != created.type_).then(|| {
        let (type_, wanted) = (type_.definition(), created.type_.definition());
        format!("column {} has type {type_}, not {wanted}", created.name)
    })
}
