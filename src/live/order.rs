//! The order of a table's rows. The first row of a cluster is its canonical row.

use crate::guard::row_condition::parsed;
use crate::pg::condition;
use crate::pg::prelude::*;
use crate::pg::relation::ColumnType;
use crate::pg::sort::ValueOrder;
use crate::pg::statement::Tuple;
use crate::pg::value::Layout;
use std::cmp::Ordering;
use std::ffi::CStr;

/// An expression over the columns of a table. Its SQL means the same under every search_path.
#[derive(Clone)]
pub struct Expression {
    /// The number of the column, or 0 if the expression is not a column.
    pub number: i16,
    /// Names columns without a prefix.
    pub sql: String,
    /// Names columns of a row `new`, as in the condition of a trigger.
    pub new_sql: String,
    pub type_: ColumnType,
}

/// One expression of the order, and its direction.
pub struct Term {
    pub expression: Expression,
    sort_operator: pg_sys::Oid,
    is_descending: bool,
    is_nulls_first: bool,
}

/// A total order: by an expression, if there is one, then by the key.
pub struct Order {
    pub terms: Vec<Term>,
}

const VALID_KEEP: &str = "keep is one column of the table, or an immutable expression over its columns, with [ASC | DESC] [NULLS FIRST | NULLS LAST], such as 'published DESC NULLS LAST'.";

impl Expression {
    /// Returns the expression in `node`.
    ///
    /// # Safety
    /// `node` is an expression over columns of `table` alone.
    pub unsafe fn new(node: *mut pg_sys::Node, table: pg_sys::Oid) -> Self {
        let deparsed =
            |alias: &CStr, is_prefixed| names::expression(node, table, alias, is_prefixed);
        Self {
            number: condition::column(node).unwrap_or(0),
            sql: deparsed(c"new", false),
            new_sql: deparsed(c"new", true),
            type_: ColumnType {
                type_: pg_sys::exprType(node),
                modifier: pg_sys::exprTypmod(node),
                collation: pg_sys::exprCollation(node),
            },
        }
    }

    /// Returns column `number` of `table` as an expression.
    pub fn column(table: pg_sys::Oid, number: i16) -> Self {
        let of = ColumnType::of(table, number);
        // SAFETY: a new node for a column of the table.
        unsafe {
            let column = pg_sys::makeVar(1, number, of.type_, of.modifier, of.collation, 0);
            Self::new(column.cast(), table)
        }
    }

    /// Returns the equality operator of the expression's type.
    ///
    /// # Errors
    /// ERROR `undefined_function` for a type without one.
    pub fn equality(&self) -> String {
        names::equality(self.type_.type_).unwrap_or_else(|| {
            raise(
                PgSqlErrorCode::ERRCODE_UNDEFINED_FUNCTION,
                &format!(
                    "near_dup_track cannot compare column {}: type {} has no equality",
                    self.sql,
                    self.type_.name()
                ),
                "Use columns of types with a default B-tree or hash operator class.",
            )
        })
    }
}

impl Order {
    /// Returns the order by `keep` and then by `key`.
    ///
    /// # Errors
    /// The errors of [`parsed`], and `invalid_parameter_value` for a sort operator other than the default `<` and `>`.
    pub fn named(
        connection: &Connection,
        table: pg_sys::Oid,
        keep: Option<&str>,
        key: &Expression,
    ) -> Self {
        let name = names::relation(table);
        let term = keep.map(|keep| {
            let statement =
                connection.prepare(&format!("SELECT FROM {name} ORDER BY {keep}\n"), &[]);
            let (node, clause) = parsed(&statement, table, "keep", VALID_KEEP);
            let clause = clause.expect("the statement has an order");
            // SAFETY: the expression is only over the table.
            let expression = unsafe { Expression::new(node, table) };
            let terms = [false, true].map(|is_descending| {
                Term::new(expression.clone(), is_descending, clause.nulls_first)
            });
            let mut terms = terms.into_iter().flatten();
            let term = terms.find(|term| term.sort_operator == clause.sortop);
            let message = "keep uses an operator that is not a default ordering operator";
            term.unwrap_or_else(|| invalid(message, VALID_KEEP))
        });
        Self::new(term, key)
    }

    /// Returns the order by `term`, if there is one, and then by `key`.
    pub fn new(term: Option<Term>, key: &Expression) -> Self {
        let is_by_key = |term: &Term| term.expression.sql == key.sql;
        let by_key = match term.as_ref().is_some_and(is_by_key) {
            true => None,
            false => Term::new(key.clone(), false, false),
        };
        Self {
            terms: term.into_iter().chain(by_key).collect(),
        }
    }

    /// Returns the `text` of every term, numbered from 1, separated by commas.
    fn listed(&self, text: impl Fn((usize, &Term)) -> String) -> String {
        let numbered = (1..).zip(&self.terms);
        numbered.map(text).collect::<Vec<_>>().join(", ")
    }

    /// Returns the items of ORDER BY.
    pub fn order_by_sql(&self) -> String {
        self.listed(|(_, term)| term.expression.sql.clone() + term.direction())
    }

    /// Returns the items of ORDER BY over the columns of `place`, as in [`Self::with_place`].
    pub fn place_order_by_sql(&self) -> String {
        self.listed(|(number, term)| format!("place.order{number}{}", term.direction()))
    }

    /// Returns the values by which a row `new` is sorted.
    pub fn new_values_sql(&self) -> String {
        self.listed(|(_, term)| term.expression.new_sql.clone())
    }

    /// Returns an item of FROM with the rows `new` of `base` and these values, in columns of `place`. They are computed
    /// below an outer join, since a function in `keep` may reject the NULLs that it adds.
    pub fn with_place(&self, base: &str) -> String {
        let values = self.listed(|(n, term)| format!("{} AS order{n}", term.expression.new_sql));
        format!("({base} new CROSS JOIN LATERAL (SELECT {values}) place)")
    }

    /// Returns the place in column `first` and the following columns of `tuple`, copied to the current memory context.
    pub fn place(&self, tuple: &Tuple<'_>, first: usize) -> OrderPlace {
        let values = self.terms.iter().zip(first..).map(|(term, number)| {
            let type_ = term.expression.type_.type_;
            let value = tuple.value(number, type_)?;
            // SAFETY: the value is of the type.
            Some(unsafe { Layout::of(type_).copy(value) })
        });
        collected(values).or_raise()
    }

    /// Compares places `a` and `b` as PostgreSQL's sort does.
    pub fn compare(&self, a: &OrderPlace, b: &OrderPlace) -> Ordering {
        let terms = self.terms.iter().zip(a.iter().zip(b));
        let mut orderings = terms.map(|(term, (a, b))| term.compare(*a, *b));
        let difference = orderings.find(|ordering| ordering.is_ne());
        difference.unwrap_or(Ordering::Equal)
    }

    /// Returns the columns of `alias`, such as the canonical rows table, that hold the values by which rows are sorted.
    pub fn values_sql(&self, alias: &str) -> String {
        self.listed(|(number, _)| format!("{alias}.order{number}"))
    }
}

impl Term {
    /// Returns the term, or None if the type has no order.
    fn new(expression: Expression, is_descending: bool, is_nulls_first: bool) -> Option<Self> {
        let wanted = (pg_sys::TYPECACHE_LT_OPR | pg_sys::TYPECACHE_GT_OPR) as i32;
        // SAFETY: cache entries are never freed.
        let defaults = unsafe { &*pg_sys::lookup_type_cache(expression.type_.type_, wanted) };
        let sort_operator = match is_descending {
            true => defaults.gt_opr,
            false => defaults.lt_opr,
        };
        (sort_operator != pg_sys::InvalidOid).then_some(Self {
            sort_operator,
            is_descending,
            is_nulls_first,
            expression,
        })
    }

    /// Returns the term with `direction`, a result of [`Self::direction`], or None if the type has no order.
    pub fn directed(expression: Expression, direction: &str) -> Option<Self> {
        let is_descending = direction.contains("DESC");
        let is_nulls_first = is_descending != direction.contains("NULLS");
        Self::new(expression, is_descending, is_nulls_first)
    }

    fn compare(&self, a: Option<pg_sys::Datum>, b: Option<pg_sys::Datum>) -> Ordering {
        let order = ValueOrder::of_column(self.expression.type_);
        match (a, b) {
            (Some(a), Some(b)) if self.is_descending => order.compare(b, a),
            (Some(a), Some(b)) => order.compare(a, b),
            (a, b) if self.is_nulls_first => a.is_some().cmp(&b.is_some()),
            (a, b) => a.is_none().cmp(&b.is_none()),
        }
    }

    /// Returns the words that follow the expression in ORDER BY.
    pub fn direction(&self) -> &'static str {
        match (self.is_descending, self.is_nulls_first) {
            (false, false) => "",
            (false, true) => " NULLS FIRST",
            (true, true) => " DESC",
            (true, false) => " DESC NULLS LAST",
        }
    }
}

/// The values by which a row is sorted, None for NULL.
pub type OrderPlace = Vec<Option<pg_sys::Datum>>;
