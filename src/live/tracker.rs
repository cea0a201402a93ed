//! A tracker, as its triggers describe it.
//!
//! The condition of every trigger names the tracker's tables as constants of type regclass, so that PostgreSQL records
//! the dependency, follows renames and dumps the names. The condition of the trigger for updates also contains the
//! columns and expressions of the tracker; its arguments contain the rest.
//!
//! Any role can create such a trigger on its own table. It counts only if the owner of its table owns all tables that
//! it names, and if the tracker's state does not name a different table.

use crate::index::kind::Kind;
use crate::live::measure::Measure;
use crate::live::order::{Expression, Order, Term};
use crate::live::tables::{Tables, TrackerTable, open_state};
use crate::options::{CUT, with_text};
use crate::pg::call::Call;
use crate::pg::catalog::function_beside;
use crate::pg::encoding::utf8;
use crate::pg::error::not_ready;
use crate::pg::relation::{self, Relation};
use crate::pg::rights::{OwnerRights, check_owner};
use crate::pg::statement::Connection;
use crate::pg::{condition, names};
use neardup::shingle::Shingling;
use pgrx::{IntoDatum, pg_sys};

/// A tracker: the table that it follows, its own tables, and how it compares rows.
pub struct Tracker {
    pub relation: pg_sys::Oid,
    /// The owner of the tracked table and of the tracker's tables.
    pub owner: pg_sys::Oid,
    pub tables: Tables,
    /// The column whose values identify rows.
    pub key: Expression,
    /// The column whose values are compared.
    pub value: Expression,
    pub scope: Vec<Expression>,
    pub measure: Measure,
    pub order: Order,
    /// Rows that do not satisfy it are ignored.
    pub condition: Option<Expression>,
    /// The function of the triggers, `near_dup_track()`.
    pub note: pg_sys::Oid,
}

/// Returns the function of the triggers, given another function of the extension.
pub fn note_function(beside: pg_sys::Oid) -> pg_sys::Oid {
    function_beside(beside, c"near_dup_track", &[]).expect("the extension has its functions")
}

impl Tracker {
    /// Returns the tracker that a trigger for updates of `table` describes, or None if near_dup_track did not create
    /// it.
    fn of_trigger(note: pg_sys::Oid, table: &Relation, trigger: &pg_sys::Trigger) -> Option<Self> {
        if !matches!(
            table.kind(),
            pg_sys::RELKIND_RELATION | pg_sys::RELKIND_PARTITIONED_TABLE
        ) {
            return None;
        }
        // SAFETY: the table is open, and the trigger one of its own; the arguments are NUL-terminated.
        unsafe {
            let arguments = relation::trigger_arguments(trigger).into_iter();
            let arguments: Vec<String> = arguments.map(utf8).collect();
            let [threshold, scopes, conditions, rest @ ..] = &arguments[..] else {
                return None;
            };
            let mut kept = condition::kept(trigger.tgqual)?.into_iter();
            let own = table.oid();
            let mut next = || kept.next().map(|node| Expression::new(node, own));
            let mut column = || next().filter(|column| column.number > 0);
            let (key, value) = (column()?, column()?);
            let scope = (0..scopes.parse::<u8>().ok()?).map(|_| column());
            let scope = scope.collect::<Option<Vec<_>>>()?;
            let schema = pg_sys::get_func_namespace(note);
            let kind = Kind::of_type(value.type_.type_, schema)?;
            let (cut, direction) = rest.split_at_checked(kind.cut_types().len())?;
            let mut cut = CUT.into_iter().zip(cut);
            let shingling = cut.try_fold(Shingling::default(), with_text).ok();
            let measure = Measure::new(kind, threshold.parse().ok()?, shingling, schema)?;
            let term = match direction.first() {
                Some(direction) => Some(Term::directed(next()?, direction)?),
                None => None,
            };
            let condition = match &**conditions {
                "1" => Some(next()?),
                _ => None,
            };
            Some(Self {
                relation: own,
                owner: table.owner(),
                tables: Tables::of(trigger)?,
                order: Order::new(term, &key),
                key,
                value,
                scope,
                measure,
                condition,
                note,
            })
        }
    }

    /// Returns the trackers of a table, none if it no longer exists.
    pub fn all_of_table(
        note: pg_sys::Oid,
        connection: &Connection,
        table: pg_sys::Oid,
    ) -> Vec<Self> {
        let Some(table) = Relation::try_open_table(table) else {
            return Vec::new();
        };
        let own = table.triggers().iter().filter(|trigger| {
            let is_update = trigger.tgtype as u32 & pg_sys::TRIGGER_TYPE_UPDATE != 0;
            trigger.tgfoid == note && is_update && !trigger.tgisclone
        });
        let found = own.filter_map(|trigger| Self::of_trigger(note, &table, trigger));
        found
            .filter(|tracker| tracker.is_linked(connection))
            .collect()
    }

    /// Returns whether all tables belong to the owner of the tracked table, and the state does not name a different
    /// table.
    fn is_linked(&self, connection: &Connection) -> bool {
        let tables = self.tables.all();
        if tables
            .iter()
            .any(|&table| names::owner(table) != Some(self.owner))
        {
            return false;
        }
        // `OpenTables` reports what was altered.
        let Ok(_state) = open_state(self) else {
            return true;
        };
        let rights = OwnerRights::assume(self.owner);
        let sql = format!(
            "SELECT s.relation::pg_catalog.oid FROM {} s",
            self.table(TrackerTable::State)
        );
        let linked = connection.prepare(&sql, &[]).oids(&[]);
        rights.resign();
        linked.iter().all(|&linked| linked == self.relation)
    }

    /// Returns the tracker of the table of clusters that the first argument of a call names.
    ///
    /// # Errors
    /// ERROR `object_not_in_prerequisite_state` if there is none, or several tables have its triggers;
    /// `insufficient_privilege` unless the caller owns the tracked table.
    pub fn of_argument(call: &Call) -> Self {
        let clusters = call.oid(0, "clusters");
        let note = note_function(call.function());
        let connection = Connection::open();
        let tables = connection.prepare_kept(TRACKED, &[pg_sys::OIDOID]);
        let tables = tables.oids(&[clusters.into_datum()]).into_iter();
        let trackers = tables.flat_map(|table| Self::all_of_table(note, &connection, table));
        let of_clusters = |tracker: &Self| tracker.tables.get(TrackerTable::Clusters) == clusters;
        let mut trackers: Vec<_> = trackers.filter(of_clusters).collect();
        connection.close();
        let name = names::relation(clusters);
        let Some(tracker) = trackers.pop() else {
            not_ready(
                &format!("{name} is not kept by near_dup_track"),
                "The view near_dup_tracked lists the tables that are; all tables of a tracker have the owner of the tracked one.",
            );
        };
        if let Some(other) = trackers
            .iter()
            .find(|other| other.relation != tracker.relation)
        {
            let [first, other] = [other, &tracker].map(|tracker| names::relation(tracker.relation));
            not_ready(
                &format!("{first} and {other} both have the triggers of {name}"),
                "Drop the triggers of the table that is not tracked.",
            );
        }
        check_owner(tracker.relation);
        tracker
    }

    /// Returns the rows that are compared, as an item of FROM.
    pub fn base(&self) -> String {
        let table = names::relation(self.relation);
        match &self.condition {
            Some(condition) => format!("(SELECT * FROM {table} new WHERE {})", condition.new_sql),
            None => table,
        }
    }

    /// Returns the qualified name of one of the tracker's tables.
    pub fn table(&self, table: TrackerTable) -> String {
        names::relation(self.tables.get(table))
    }

    /// Returns the name of the type of keys.
    pub fn key_type(&self) -> String {
        self.key.type_.name()
    }

    /// Returns the key of a row `alias` of the table.
    pub fn key_of(&self, alias: &str) -> String {
        format!("{alias}.{}", self.key.sql)
    }

    /// Returns the condition that two keys are equal.
    pub fn equal(&self, a: &str, b: &str) -> String {
        format!("{a} {} {b}", self.key.equality())
    }

    /// Returns the compared value of a row `alias` of the table.
    pub fn value_of(&self, alias: &str) -> String {
        format!("{alias}.{}", self.value.sql)
    }

    /// Returns the concatenation of `text` for all scope columns, numbered from 1.
    pub fn of_scope(&self, text: impl Fn(usize, &Expression) -> String) -> String {
        let numbered = (1..).zip(&self.scope);
        let texts = numbered.map(|(number, column)| text(number, column));
        texts.collect()
    }

    /// Returns the condition that the row `new` can be near others: no scope column is NULL, and the value is near
    /// itself, which NULL and empty values are not.
    pub fn joins(&self) -> String {
        let value = self.value_of("new");
        let scope = self.of_scope(|_, column| format!(" AND new.{} IS NOT NULL", column.sql));
        let near = self.measure.near(&value, &value);
        format!("({near} IS TRUE{scope})")
    }

    /// Returns the condition, beginning with AND, that the row `new` and another row are in one scope. `other` returns
    /// the value of the other row for a scope column.
    pub fn in_scope(&self, other: impl Fn(usize, &Expression) -> String) -> String {
        self.of_scope(|number, column| {
            let (name, equality) = (&column.sql, column.equality());
            format!(" AND {} {equality} new.{name}", other(number, column))
        })
    }

    /// Returns the condition, beginning with AND, that two keys are not an exception.
    pub fn not_excepted(&self, x: &str, y: &str) -> String {
        let Some(exceptions) = self.tables.exceptions.map(names::relation) else {
            return String::new();
        };
        let (a, b) = (self.equal("e.a", x), self.equal("e.b", y));
        let (c, d) = (self.equal("e.a", y), self.equal("e.b", x));
        format!(
            " AND NOT EXISTS (SELECT FROM {exceptions} e WHERE {a} AND {b})
              AND NOT EXISTS (SELECT FROM {exceptions} e WHERE {c} AND {d})"
        )
    }
}

/// Finds the tables whose triggers name a table and that have the same owner.
const TRACKED: &str = "SELECT DISTINCT t.tgrelid FROM pg_catalog.pg_depend d
    JOIN pg_catalog.pg_trigger t ON t.oid OPERATOR(pg_catalog.=) d.objid
    JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) t.tgrelid
    JOIN pg_catalog.pg_class o ON o.oid OPERATOR(pg_catalog.=) d.refobjid
        AND o.relowner OPERATOR(pg_catalog.=) c.relowner
    WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_trigger'::pg_catalog.regclass
        AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
        AND d.refobjid OPERATOR(pg_catalog.=) $1 AND t.tgparentid OPERATOR(pg_catalog.=) 0";
