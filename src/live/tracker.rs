//! A tracker, as its triggers describe it.
//!
//! The condition of every trigger names the tracker's tables as constants of type regclass, so that PostgreSQL records
//! the dependency, follows renames and dumps the names. The condition of the trigger for updates also contains the
//! columns and expressions of the tracker; its arguments contain the rest.
//!
//! Any role can create such a trigger on its own table. The trigger counts only if the owner of its table owns all
//! tables that its condition names, and if the tracker's state does not name a different table.

use crate::index::kind::Kind;
use crate::live::measure::Measure;
use crate::live::order::{Expression, Order, Term};
use crate::options::{CUT, with_text};
use crate::pg::catalog::function_beside;
use crate::pg::encoding::utf8;
use crate::pg::relation::{self, Relation};
use crate::pg::{condition, names};
use neardup::shingle::Shingling;
use pgrx::pg_sys;

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

/// The tables that a tracker creates, in the order in which the conditions of its triggers name them.
#[derive(Clone, Copy)]
pub enum TrackerTable {
    /// The clusters: key, cluster, canonical, similarity.
    Clusters,
    /// The log of the clusters' events.
    Log,
    /// The canonical rows with the values that are searched for, and their places in the order.
    Canonical,
    /// Keys of changed rows.
    Queue,
    /// One row: the tracked table, and the state after the last refresh.
    State,
}

/// The tables of a tracker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tables {
    /// The tables that it creates, by [`TrackerTable`].
    pub own: [pg_sys::Oid; 5],
    /// The user's table of pairs that are not duplicates.
    pub exceptions: Option<pg_sys::Oid>,
}

impl Tables {
    /// Returns the tables that the condition of `trigger` names, or None if it names fewer than a tracker has.
    pub fn of(trigger: &pg_sys::Trigger) -> Option<Self> {
        // SAFETY: the condition is the trigger's.
        let named = unsafe { condition::named(trigger.tgqual) };
        let (&own, exceptions) = named.split_first_chunk()?;
        let exceptions = exceptions.first().copied();
        Some(Self { own, exceptions })
    }

    pub fn get(&self, table: TrackerTable) -> pg_sys::Oid {
        self.own[table as usize]
    }

    /// Returns the tables in the order in which a condition names them.
    pub fn all(&self) -> Vec<pg_sys::Oid> {
        self.own.into_iter().chain(self.exceptions).collect()
    }
}

/// Returns the function of the triggers, given `beside`, another function of the extension.
pub fn note_function(beside: pg_sys::Oid) -> pg_sys::Oid {
    function_beside(beside, c"near_dup_track", &[]).expect("the extension has its functions")
}

impl Tracker {
    /// Returns the tracker that a trigger for updates of `table` describes, or None if near_dup_track did not create
    /// it.
    pub fn of_trigger(
        note: pg_sys::Oid,
        table: &Relation,
        trigger: &pg_sys::Trigger,
    ) -> Option<Self> {
        let kinds = [pg_sys::RELKIND_RELATION, pg_sys::RELKIND_PARTITIONED_TABLE];
        if !kinds.contains(&table.kind()) {
            return None;
        }
        // SAFETY: the table is open, and the trigger belongs to it; the arguments are NUL-terminated.
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
            let measure = Measure {
                kind,
                bound: kind.bound(threshold.parse().ok()?, shingling)?,
                schema,
            };
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

    /// Returns the rows that are compared, as an item of FROM.
    pub fn base(&self) -> String {
        let table = names::relation(self.relation);
        match &self.condition {
            Some(condition) => format!("(SELECT * FROM {table} new WHERE {})", condition.new_sql),
            None => table,
        }
    }

    /// Returns the qualified name of `table`, one of the tracker's own.
    pub fn table(&self, table: TrackerTable) -> String {
        names::relation(self.tables.get(table))
    }

    /// Returns the name of the type of keys.
    pub fn key_type(&self) -> String {
        self.key.type_.name()
    }

    /// Returns the key of the row `alias` of the table.
    pub fn key_of(&self, alias: &str) -> String {
        format!("{alias}.{}", self.key.sql)
    }

    /// Returns the condition that keys `a` and `b` are equal.
    pub fn equal(&self, a: &str, b: &str) -> String {
        format!("{a} {} {b}", self.key.equality())
    }

    /// Returns the compared value of the row `alias` of the table.
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

    /// Returns the condition, beginning with AND, that keys `x` and `y` are not an exception. It is empty if the
    /// tracker has no exceptions table.
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
