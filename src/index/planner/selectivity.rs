//! Estimates of the rows, or pairs of rows, that satisfy `column <@ ball`.
//!
//! If the ball is known, an index looks up a few of its keys. If not, the index knows how many rows match one of its
//! own values on average.

use super::constraint::as_ball_operator;
use crate::index::am::{self, Mean, planned};
use crate::index::bound::Bound;
use crate::index::kind::{BallOperator, Kind, USUAL_SHARE};
use crate::index::planned_column::PlannedColumn;
use crate::index::terms::Terms;
use crate::pg::nodes::{constant, elements, is_null, pointer};
use pgrx::prelude::*;
use pgrx::{Internal, PgList, pg_sys};

/// Share of rows that match if no table is known. The same as PostgreSQL's default for matching operators.
const DEFAULT: f64 = 0.01;

/// The rows assumed to match a value if no index has an estimate.
const UNKNOWN: Mean = Mean {
    rows: 1.0,
    any: 0.5,
};

/// Implements `RESTRICT` for the operators between values and balls, and for `%`.
#[pg_extern(stable, parallel_safe, strict, name = "_near_dup_sel")]
fn near_dup_ballsel(root: Internal, operator: pg_sys::Oid, args: Internal, relation: i32) -> f64 {
    // SAFETY: the planner calls this with its structures.
    unsafe {
        let function = pg_sys::get_opcode(operator);
        TableMatches::of(pointer(root), function, pointer(args), relation).share()
    }
}

/// Implements `JOIN` for the operators between values and balls, and for `%`.
#[pg_extern(stable, parallel_safe, strict, name = "_near_dup_sel")]
fn near_dup_balljoinsel(
    root: Internal,
    operator: pg_sys::Oid,
    args: Internal,
    join_type: i16,
    _join: Internal,
) -> f64 {
    // SAFETY: the planner calls this with its structures.
    let matches = unsafe {
        let function = pg_sys::get_opcode(operator);
        TableMatches::of(pointer(root), function, pointer(args), 0)
    };
    match join_type as pg_sys::JoinType::Type {
        pg_sys::JoinType::JOIN_SEMI | pg_sys::JoinType::JOIN_ANTI => matches.mean.any,
        _ => matches.share(),
    }
}

/// The bound assumed for a search of sets or documents whose bound is not known yet.
const USUAL: Bound = Bound::Share(USUAL_SHARE);

/// The rows of a table that match a value or, for a join, the matching pairs relative to all pairs.
pub struct TableMatches {
    pub mean: Mean,
    /// The number of rows in the table.
    all: f64,
}

impl TableMatches {
    /// Estimates the rows that an operator's `function` keeps, in the first table whose values are compared and whose
    /// index has an estimate. If `relation` is not 0, considers only this table.
    ///
    /// # Safety
    /// The planner's structures are valid; `args` are the arguments of `function`.
    pub unsafe fn of(
        root: *mut pg_sys::PlannerInfo,
        function: pg_sys::Oid,
        args: *mut pg_sys::List,
        relation: i32,
    ) -> Self {
        Self::known(root, function, args, relation).unwrap_or(Self {
            mean: Mean {
                rows: DEFAULT,
                ..UNKNOWN
            },
            all: 1.0,
        })
    }

    unsafe fn known(
        root: *mut pg_sys::PlannerInfo,
        function: pg_sys::Oid,
        args: *mut pg_sys::List,
        relation: i32,
    ) -> Option<Self> {
        let (ball_operator, [value, ball]) = match as_ball_operator(root, args) {
            Some(of_keys) => of_keys,
            None => (BallOperator::of(function)?, elements(args)?),
        };
        let ball = pg_sys::estimate_expression_value(root, ball);
        if is_null(ball) {
            let mean = Mean::default();
            return Some(Self { mean, all: 1.0 });
        }
        let operand = BallOperand::of(ball_operator, ball);
        let of_table = |value| {
            let mut table = 0;
            let tables = pg_sys::pull_varnos(root, value);
            let is_one = pg_sys::bms_get_singleton_member(tables, &mut table)
                && (relation == 0 || relation == table);
            is_one.then_some((table, value))
        };
        let sides = [Some(value), operand.center].map(|side| side.and_then(of_table));
        let mut sides = sides.into_iter().flatten();
        let in_table = |(table, value)| Self::in_table(root, table, value, &operand);
        sides.clone().find_map(in_table).or_else(|| {
            let (table, _) = sides.next()?;
            let rel = *(*root).simple_rel_array.add(table as usize);
            let all = rel.as_ref().map_or(1.0, |rel| rel.tuples.max(1.0));
            Some(Self { mean: UNKNOWN, all })
        })
    }

    /// Estimates the rows of a table, or of its partitions that will be read, in `ball`. Returns None if no index has
    /// an estimate.
    unsafe fn in_table(
        root: *mut pg_sys::PlannerInfo,
        table: i32,
        value: *mut pg_sys::Node,
        ball: &BallOperand,
    ) -> Option<Self> {
        let rel = *(*root).simple_rel_array.add(table as usize);
        let entry = *(*root).simple_rte_array.add(table as usize);
        if rel.is_null() || (*entry).rtekind != pg_sys::RTEKind::RTE_RELATION {
            return None;
        }
        if !(*entry).inh {
            let mean = ball.matches(root, rel, value)?;
            let all = (*rel).tuples.max(1.0);
            return Some(Self { mean, all });
        }
        let mut sum: Option<Self> = None;
        for child in PgList::<pg_sys::AppendRelInfo>::from_pg((*root).append_rel_list).iter_ptr() {
            if (*child).parent_relid != table as u32 {
                continue;
            }
            let mut infos = [child];
            let value = pg_sys::adjust_appendrel_attrs(root, value, 1, infos.as_mut_ptr());
            let Some(part) = Self::in_table(root, (*child).child_relid as i32, value, ball) else {
                continue;
            };
            let sum = sum.get_or_insert(Self {
                mean: Mean::default(),
                all: 0.0,
            });
            sum.all += part.all;
            sum.mean.rows += part.mean.rows;
            sum.mean.any = sum.mean.any.max(part.mean.any);
        }
        sum
    }

    pub fn share(&self) -> f64 {
        (self.mean.rows / self.all).clamp(0.0, 1.0)
    }
}

/// The operand that is a ball.
struct BallOperand {
    kind: Kind,
    strategy: u16,
    /// The ball, if it is constant.
    datum: Option<pg_sys::Datum>,
    bound: Option<Bound>,
    center: Option<*mut pg_sys::Node>,
}

impl BallOperand {
    /// # Safety
    /// `node` is the operand that is a ball.
    unsafe fn of(ball_operator: BallOperator, node: *mut pg_sys::Node) -> Self {
        let BallOperator { kind, strategy } = ball_operator;
        Self {
            kind,
            strategy,
            datum: constant(node),
            bound: Terms::bound_of_ball(node, kind),
            center: Terms::of_ball(node, kind).map(|(center, _)| center),
        }
    }

    /// Returns the index column on `value` that serves the ball best, or None if no index serves it.
    unsafe fn column(
        &self,
        rel: *mut pg_sys::RelOptInfo,
        value: *mut pg_sys::Node,
    ) -> Option<PlannedColumn> {
        let own = |column: &PlannedColumn| self.kind.own_bound(column.options());
        let is_usable = |column: &PlannedColumn| {
            let index = column.index;
            am::is_ours(index)
                && (*index).nkeycolumns == 1
                && (*index).indpred.is_null()
                && pg_sys::match_index_to_operand(value, column.at as i32, index)
                && self
                    .bound
                    .is_none_or(|bound| bound.is_served(column.options(), None))
        };
        let closest = |best, other| match (own(&best), own(&other)) {
            (Some(a), Some(b)) if b.is_within(&a) => other,
            _ => best,
        };
        PlannedColumn::all_of(rel, self.kind)
            .filter(is_usable)
            .reduce(closest)
    }

    /// Returns how many rows of `rel` are in the ball or, if that cannot be counted, in a ball around one of the
    /// table's own values, on average. Returns None without such an estimate.
    unsafe fn matches(
        &self,
        root: *mut pg_sys::PlannerInfo,
        rel: *mut pg_sys::RelOptInfo,
        value: *mut pg_sys::Node,
    ) -> Option<Mean> {
        let column = self.column(rel, value)?;
        let (index, options) = (column.index, column.options());
        let datum = self.datum.filter(|_| may_be_counted(root, rel));
        let counted = datum.and_then(|ball| planned::count(root, index, self.strategy, ball));
        if let Some(rows) = counted {
            return Some(Mean { rows, any: 1.0 });
        }
        let meta = planned::meta(root, index)?;
        let bound = self.bound.or(self.kind.own_bound(options));
        let bound = bound.unwrap_or(USUAL);
        let share = bound.share_of_keys(options, self.strategy, &meta.parameters[0])?;
        meta.matches.at(share)
    }
}

/// Returns whether the user may learn how many rows match, which requires the right to read the table and all its rows.
unsafe fn may_be_counted(root: *mut pg_sys::PlannerInfo, rel: *mut pg_sys::RelOptInfo) -> bool {
    let rel = &*rel;
    let top = match rel.top_parent_relids.is_null() {
        true => rel.relid,
        false => pg_sys::bms_next_member(rel.top_parent_relids, -1) as u32,
    };
    let entries = (*root).simple_rte_array;
    let entry = &**entries.add(top as usize);
    let user = match rel.userid {
        pg_sys::InvalidOid => pg_sys::GetUserId(),
        user => user,
    };
    if entry.rtekind != pg_sys::RTEKind::RTE_RELATION {
        return false;
    }
    let select = pg_sys::ACL_SELECT as pg_sys::AclMode;
    entry.securityQuals.is_null()
        && (**entries.add(rel.relid as usize)).securityQuals.is_null()
        && pg_sys::pg_class_aclcheck(entry.relid, user, select) == pg_sys::AclResult::ACLCHECK_OK
}
