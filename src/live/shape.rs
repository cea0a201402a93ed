//! The columns that a tracker reads, and the parts of its statements that are made of them.

use crate::guard::keys::holds_keys;
use crate::live::order::Order;
use crate::live::tracker::Tracker;
use crate::pg::error::{not_ready, raise};
use crate::pg::names;
use crate::pg::relation::{ColumnType, Relation};
use crate::pg::statement::{Connection, server_text};
use pgrx::{PgSqlErrorCode, pg_sys};

/// A column of the table.
pub struct TrackedColumn {
    /// Its name as SQL writes it.
    pub name: String,
    pub number: i16,
    pub type_: ColumnType,
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
        Some(Self {
            name: names::identifier(&name),
            number,
            type_: ColumnType::of(relation, number),
        })
    }

    /// Returns the operator that tells whether two values are equal.
    ///
    /// # Errors
    /// ERROR `undefined_function` for a type without one.
    pub fn equality(&self) -> String {
        names::equality(self.type_.type_).unwrap_or_else(|| {
            raise(
                PgSqlErrorCode::ERRCODE_UNDEFINED_FUNCTION,
                &format!(
                    "near_dup_track cannot compare column {}: type {} has no equality",
                    self.name,
                    self.type_.name()
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
    pub held: ColumnType,
    /// Its name.
    pub type_: String,
    /// The names of the key's columns in that row type, which stay when the table's are renamed.
    pub fields: Vec<String>,
}

impl TrackedKey {
    /// Returns the key of a table that has it in these columns; others hold it in columns of type `held`.
    fn new(table: &Relation, numbers: &[i16], held: ColumnType) -> Self {
        // SAFETY: looks the type up in the catalog; InvalidOid for a type that is no row type.
        let row = unsafe { pg_sys::get_typ_typrelid(held.type_) };
        let columns = numbers
            .iter()
            .filter_map(|&number| TrackedColumn::find(table.oid(), number));
        let columns: Vec<TrackedColumn> = columns.collect();
        let field = |(number, column): (i16, &TrackedColumn)| match names::column(row, number) {
            Some(name) => names::identifier(&name),
            None => column.name.clone(),
        };
        Self {
            fields: (1..).zip(&columns).map(field).collect(),
            held: match &columns[..] {
                [column] => column.type_,
                _ => held,
            },
            columns,
            type_: held.name(),
        }
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
        let (_, numbers) = table.primary_key().unwrap_or_default();
        if numbers.is_empty() || !holds_keys(&clusters, &table, &numbers) {
            changed(&tracker);
        }
        let key = TrackedKey::new(&table, &numbers, ColumnType::of(clusters.oid(), 1));
        let list: Vec<&str> = key.columns.iter().map(|column| &*column.name).collect();
        let (keep, list) = (Some(&*tracker.keep), list.join(", "));
        let query = Order::prepare(connection, tracker.relation, keep, &list);
        let scope = tracker.scope.iter();
        Self {
            order: Order::of_query(tracker.relation, &query),
            scope: scope
                .map(|name| TrackedColumn::named(&table, name))
                .collect(),
            tracker,
            key,
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

    /// Returns a text of each scope column, made of its number from 1 on and the column.
    pub fn of_scope(&self, text: impl Fn(usize, &TrackedColumn) -> String) -> String {
        let numbered = (1..).zip(&self.scope);
        numbered
            .map(|(number, column)| text(number, column))
            .collect()
    }

    /// Returns the scope columns of the table's row `alias`, each behind a comma.
    pub fn scope_of(&self, alias: &str) -> String {
        self.of_scope(|_, column| format!(", {alias}.{}", column.name))
    }

    /// Returns the condition that the table's row `b` can be near another one: its value is there and
    /// near itself, which no empty one is, and its scope columns are there.
    pub fn joins(&self) -> String {
        let value = self.value_of("b");
        let scope = self.of_scope(|_, column| format!(" AND b.{} IS NOT NULL", column.name));
        let near = self.tracker.measure.near(&value, &value);
        format!("({near} IS TRUE{scope})")
    }

    /// Returns the condition, beginning with AND, that the table's rows `a` and `b` are in one scope.
    pub fn same_scope(&self, a: &str, b: &str) -> String {
        self.of_scope(|_, column| {
            let (name, equality) = (&column.name, column.equality());
            format!(" AND {a}.{name} {equality} {b}.{name}")
        })
    }

    /// Returns the condition, beginning with AND, that a canonical row `ca` and the table's row `b` are in
    /// one scope.
    pub fn canonical_in_scope(&self) -> String {
        self.of_scope(|number, column| {
            let (name, equality) = (&column.name, column.equality());
            format!(" AND ca.scope{number} {equality} b.{name}")
        })
    }
}

fn changed(tracker: &Tracker) -> ! {
    let (table, clusters) = (
        names::relation(tracker.relation),
        names::relation(tracker.tables.clusters),
    );
    not_ready(
        &format!("the primary key of {table} is not the one that {clusters} was made for"),
        &format!("SELECT near_dup_untrack({});", names::literal(&clusters)),
    )
}
