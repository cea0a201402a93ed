//! The columns that a tracker reads, and the parts of its statements that are made of them.

use crate::guard::keys::holds_keys;
use crate::live::order::Order;
use crate::live::tracker::Tracker;
use crate::pg::error::raise;
use crate::pg::names;
use crate::pg::relation::{ColumnType, Relation};
use crate::pg::statement::{Connection, server_text};
use pgrx::{PgSqlErrorCode, pg_sys};

/// A column of the table.
pub struct TrackedColumn {
    /// Its name as SQL writes it.
    pub name: String,
    pub number: i16,
    pub type_: pg_sys::Oid,
    /// Its type with modifier.
    pub type_name: String,
    /// Its type with modifier and collation.
    pub definition: String,
    /// None for a type without equality.
    equality: Option<String>,
}

impl TrackedColumn {
    /// # Errors
    /// ERROR `undefined_column`.
    pub fn named(table: &Relation, name: &str) -> Self {
        let number = names::column_number(table.oid(), &server_text(name));
        let found = number.and_then(|number| Self::find(table.oid(), number));
        found.unwrap_or_else(|| {
            let table = names::relation(table.oid());
            raise(
                PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN,
                &format!("table {table} has no column {}", names::identifier(name)),
                "Name columns of the table.",
            )
        })
    }

    /// Returns a column of a table or of a row type; None if there is no such column.
    pub fn find(relation: pg_sys::Oid, number: i16) -> Option<Self> {
        let name = names::column(relation, number)?;
        let type_ = ColumnType::of(relation, number);
        Some(Self {
            name: names::identifier(&name),
            number,
            type_: type_.type_,
            type_name: type_.name(),
            definition: type_.definition(),
            equality: names::equality(type_.type_),
        })
    }

    /// Returns the operator that tells whether two values are equal.
    ///
    /// # Errors
    /// ERROR `undefined_function` for a type without one.
    pub fn equality(&self) -> &str {
        self.equality.as_deref().unwrap_or_else(|| {
            raise(
                PgSqlErrorCode::ERRCODE_UNDEFINED_FUNCTION,
                &format!(
                    "near_dup_track cannot compare column {}: type {} has no equality",
                    self.name, self.type_name
                ),
                "Use columns of types with a default B-tree or hash operator class.",
            )
        })
    }
}

/// The primary key of the table.
pub struct TrackedKey {
    pub columns: Vec<TrackedColumn>,
    /// The type of the columns that hold keys, a row type for a key of several columns.
    pub type_: String,
    /// The names of the key's columns in that row type, which stay when the table's are renamed.
    pub fields: Vec<String>,
}

impl TrackedKey {
    /// Returns the primary key of a table; None if it has none.
    pub fn columns_of(table: &Relation) -> Option<Vec<TrackedColumn>> {
        let (_, numbers) = table.primary_key()?;
        let column = |number: &i16| TrackedColumn::find(table.oid(), *number);
        numbers.iter().map(column).collect()
    }

    /// Returns the columns as a list.
    pub fn list(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|column| &*column.name).collect();
        names.join(", ")
    }

    /// Returns the key of the table's row `alias`.
    pub fn of(&self, alias: &str) -> String {
        let columns: Vec<String> = self
            .columns
            .iter()
            .map(|column| format!("{alias}.{}", column.name))
            .collect();
        match &columns[..] {
            [column] => column.clone(),
            columns => format!("ROW({})::{}", columns.join(", "), self.type_),
        }
    }

    /// Returns the key of the table's row `alias` as text; NULL where an outer join found none.
    pub fn text_of(&self, alias: &str) -> String {
        let first = &self.columns[0].name;
        format!(
            "CASE WHEN {alias}.{first} IS NOT NULL THEN ({})::pg_catalog.text END",
            self.of(alias)
        )
    }

    /// Returns the condition that the table's row `alias` has a key.
    pub fn matches(&self, alias: &str, key: &str) -> String {
        let is_single = self.columns.len() == 1;
        let conditions = self.columns.iter().zip(&self.fields);
        let conditions = conditions.map(|(column, field)| {
            let (name, equality) = (&column.name, column.equality());
            match is_single {
                true => format!("{alias}.{name} {equality} {key}"),
                false => format!("{alias}.{name} {equality} ({key}).{field}"),
            }
        });
        conditions.collect::<Vec<_>>().join(" AND ")
    }

    /// Returns the condition that two keys are equal.
    pub fn equal(&self, a: &str, b: &str) -> String {
        match &self.columns[..] {
            [column] => format!("{a} {} {b}", column.equality()),
            _ => format!("{a} OPERATOR(pg_catalog.=) {b}"),
        }
    }
}

/// A tracker with the parts of its statements.
pub struct Shape {
    pub tracker: Tracker,
    pub key: TrackedKey,
    pub scope: Vec<TrackedColumn>,
    pub order: Order,
}

impl Shape {
    /// Reads the columns of a tracker's table.
    ///
    /// # Errors
    /// ERROR for a table that has changed so that it cannot be tracked any more.
    pub fn of(connection: &Connection, tracker: Tracker) -> Self {
        let table = Relation::open_table(tracker.relation);
        let clusters = Relation::open_table(tracker.tables.clusters);
        let numbers = table.primary_key().map(|(_, numbers)| numbers);
        let numbers = numbers.filter(|numbers| holds_keys(&clusters, &table, numbers));
        let Some(numbers) = numbers else {
            changed(&tracker);
        };
        let column = |number: &i16| TrackedColumn::find(table.oid(), *number);
        let columns: Option<Vec<TrackedColumn>> = numbers.iter().map(column).collect();
        let held = TrackedColumn::find(clusters.oid(), 1);
        let (Some(columns), Some(held)) = (columns, held) else {
            changed(&tracker);
        };
        let key = TrackedKey {
            fields: fields(row_of(held.type_), &columns),
            columns,
            type_: held.type_name,
        };
        Self::new(connection, tracker, key)
    }

    /// Returns the shape of a tracker of a table with that key.
    pub fn new(connection: &Connection, tracker: Tracker, key: TrackedKey) -> Self {
        let table = Relation::open_table(tracker.relation);
        let query = Order::prepare(
            connection,
            tracker.relation,
            Some(&tracker.keep),
            &key.list(),
        );
        let order = Order::of_query(tracker.relation, &query);
        let scope = tracker.scope.iter();
        Self {
            scope: scope
                .map(|name| TrackedColumn::named(&table, name))
                .collect(),
            tracker,
            key,
            order,
        }
    }

    pub fn base(&self) -> String {
        names::relation(self.tracker.relation)
    }

    pub fn clusters(&self) -> String {
        names::relation(self.tracker.tables.clusters)
    }

    pub fn canonical(&self) -> String {
        names::relation(self.tracker.tables.canonical)
    }

    /// Returns the value of the table's row `alias` that is compared.
    pub fn value_of(&self, alias: &str) -> String {
        format!("{alias}.{}", names::identifier(&self.tracker.column))
    }

    /// Returns the scope columns of the table's row `alias`, each behind a comma.
    pub fn scope_of(&self, alias: &str) -> String {
        let columns = self.scope.iter();
        columns
            .map(|column| format!(", {alias}.{}", column.name))
            .collect()
    }

    /// Returns the condition that the table's row `b` can be near another one: its value is there and
    /// near itself, which no empty one is, and its scope columns are there.
    pub fn joins(&self) -> String {
        let value = self.value_of("b");
        let scope = self
            .scope
            .iter()
            .map(|column| format!(" AND b.{} IS NOT NULL", column.name));
        let near = self.tracker.measure.near(&value, &value);
        format!("({near} IS TRUE{})", scope.collect::<String>())
    }

    /// Returns the condition, beginning with AND, that the table's rows `a` and `b` are in one scope.
    pub fn same_scope(&self, a: &str, b: &str) -> String {
        let scope = self.scope.iter();
        scope
            .map(|column| {
                let (name, equality) = (&column.name, column.equality());
                format!(" AND {a}.{name} {equality} {b}.{name}")
            })
            .collect()
    }

    /// Returns the condition, beginning with AND, that a canonical row `ca` and the table's row `b` are in
    /// one scope.
    pub fn canonical_in_scope(&self) -> String {
        let scope = (1..).zip(&self.scope);
        scope
            .map(|(number, column)| {
                let (name, equality) = (&column.name, column.equality());
                format!(" AND ca.scope{number} {equality} b.{name}")
            })
            .collect()
    }
}

/// Returns the relation of a row type; InvalidOid for other types.
fn row_of(type_: pg_sys::Oid) -> pg_sys::Oid {
    // SAFETY: looks the type up in the catalog.
    unsafe { pg_sys::get_typ_typrelid(type_) }
}

/// Returns the names of a key's columns in the row type that holds keys, if there is one.
pub fn fields(row: pg_sys::Oid, columns: &[TrackedColumn]) -> Vec<String> {
    let field = |(number, column): (i16, &TrackedColumn)| match names::column(row, number) {
        Some(name) => names::identifier(&name),
        None => column.name.clone(),
    };
    (1..).zip(columns).map(field).collect()
}

fn changed(tracker: &Tracker) -> ! {
    let (table, clusters) = (
        names::relation(tracker.relation),
        names::relation(tracker.tables.clusters),
    );
    raise(
        PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        &format!("the primary key of {table} is not the one that {clusters} was made for"),
        &format!("SELECT near_dup_untrack({});", names::literal(&clusters)),
    )
}
