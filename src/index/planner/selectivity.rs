//! Estimates of the rows, or pairs of rows, within a bound: `column <@ ball`.
//!
//! For a value that is known an index is asked, which takes less time than PostgreSQL takes to plan.
//! For one that is not, it is asked for the values that ANALYZE has kept, once, and the mean is
//! remembered. Without an index there are the column's statistics.
#![allow(clippy::disallowed_methods, reason = "an entry an index of the table")]

use super::constraint::as_containment;
use super::statistics::{self, Slot, Version};
use crate::index::am;
use crate::index::classes::{CONTAINED, CONTAINS};
use crate::index::constraint_key::value_and_bound;
use crate::index::kind::{Bound, Containment, Kind};
use crate::pg::nodes::{call, constant, elements, is_null, pointer};
use pgrx::prelude::*;
use pgrx::{Internal, pg_sys};

/// Share of rows that match where nothing is known; PostgreSQL's own for matching operators.
const DEFAULT: f64 = 0.01;

/// A column of an index with an operator class of ours.
#[derive(Clone, Copy)]
pub struct IndexColumn {
    index: *mut pg_sys::IndexOptInfo,
    at: usize,
}

impl IndexColumn {
    /// Returns the parsed options; a hypothetical index may lack them.
    pub fn options(&self) -> *mut pg_sys::bytea {
        // SAFETY: the array, where there is one, has an element for every column.
        unsafe {
            let options = (*self.index).opclassoptions;
            if options.is_null() {
                return std::ptr::null_mut();
            }
            *options.add(self.at)
        }
    }
}

/// Returns the columns of a kind in the indexes of a table.
///
/// # Safety
/// The planner's structures are valid.
pub unsafe fn columns(
    rel: *mut pg_sys::RelOptInfo,
    kind: Kind,
) -> impl Iterator<Item = IndexColumn> {
    // SAFETY: vouched for by the caller; the arrays have an element for every column.
    unsafe {
        let indexes = pgrx::PgList::<pg_sys::IndexOptInfo>::from_pg((*rel).indexlist);
        let indexes: Vec<_> = indexes.iter_ptr().collect();
        indexes.into_iter().flat_map(move |index| {
            (0..(*index).nkeycolumns as usize).filter_map(move |at| {
                let (family, type_) = (*(*index).opfamily.add(at), *(*index).opcintype.add(at));
                kind.has_family(family, type_)
                    .then_some(IndexColumn { index, at })
            })
        })
    }
}

/// Implements `RESTRICT` of the operators between values and balls, and of `%`.
#[pg_extern(stable, parallel_safe, strict, name = "_near_dup_sel")]
fn near_dup_ballsel(root: Internal, operator: pg_sys::Oid, args: Internal, relation: i32) -> f64 {
    let (root, args) = (pointer(root), pointer(args));
    let mut variable = pg_sys::VariableStatData::default();
    let mut ball = std::ptr::null_mut();
    let mut column_on_left = false;
    // SAFETY: the planner calls this with its structures.
    unsafe {
        let (function, args) =
            as_containment(root, args).unwrap_or_else(|| (pg_sys::get_opcode(operator), args));
        let found = pg_sys::get_restriction_variable(
            root,
            args,
            relation,
            &mut variable,
            &mut ball,
            &mut column_on_left,
        );
        if !found {
            return DEFAULT;
        }
        let column = Column { root, variable };
        match Ball::of(function, ball) {
            Some(_) if is_null(ball) => 0.0,
            Some(ball) => column.share(&ball, column_on_left),
            None => DEFAULT,
        }
    }
}

/// Implements `JOIN` of the operators between values and balls, and of `%`.
#[pg_extern(stable, parallel_safe, strict, name = "_near_dup_sel")]
fn near_dup_balljoinsel(
    root: Internal,
    operator: pg_sys::Oid,
    args: Internal,
    join_type: i16,
    _join: Internal,
) -> f64 {
    // SAFETY: the planner calls this with its structures.
    let share = unsafe { of_pairs(pointer(root), pg_sys::get_opcode(operator), pointer(args)) };
    match join_type as pg_sys::JoinType::Type {
        pg_sys::JoinType::JOIN_SEMI | pg_sys::JoinType::JOIN_ANTI => share.semi,
        _ => share.inner,
    }
}

/// An estimate of the pairs of rows within a bound.
pub struct PairShare {
    /// As a share of all pairs.
    pub inner: f64,
    /// The share of rows that are in such a pair at all.
    pub semi: f64,
}

/// Returns how many pairs of a value and the center of a ball are within the ball's bound.
///
/// # Safety
/// The planner's structures are valid; the arguments are those of the function.
pub unsafe fn of_pairs(
    root: *mut pg_sys::PlannerInfo,
    function: pg_sys::Oid,
    args: *mut pg_sys::List,
) -> PairShare {
    // SAFETY: vouched for by the caller.
    let measured = unsafe {
        let (function, args) = as_containment(root, args).unwrap_or((function, args));
        measured_pairs(root, function, args)
    };
    let (inner, matches) = measured.unwrap_or((DEFAULT, 1.0));
    PairShare {
        inner: inner.clamp(0.0, 1.0),
        semi: matches / (1.0 + matches),
    }
}

/// Returns the share of pairs, and the number of rows that match one; preferably as an index has it.
unsafe fn measured_pairs(
    root: *mut pg_sys::PlannerInfo,
    function: pg_sys::Oid,
    args: *mut pg_sys::List,
) -> Option<(f64, f64)> {
    // SAFETY: vouched for by the caller.
    unsafe {
        let containment = Containment::of(function)?;
        let [left, right] = elements(args)?;
        let (value, ball) = match containment.ball_on_left {
            true => (right, left),
            false => (left, right),
        };
        let ball = Ball::of(function, ball)?;
        let sides = [Some(value), ball.center].into_iter().flatten();
        let columns: Vec<_> = sides
            .filter_map(|node| Column::examine(root, node))
            .collect();
        let counted = columns.iter().find_map(|column| {
            let mean = column.mean_counted(&ball)?;
            Some((mean / column.rows(), mean))
        });
        counted.or_else(|| {
            let share = columns.first()?.mean_share(&ball);
            Some((share, share * columns[0].rows()))
        })
    }
}

/// The operand that is a ball.
#[derive(Clone, Copy)]
struct Ball {
    kind: Kind,
    /// The operator's.
    function: pg_sys::Oid,
    strategy: u16,
    is_on_left: bool,
    /// None unless it is constant.
    datum: Option<pg_sys::Datum>,
    bound: Option<Bound>,
    center: Option<*mut pg_sys::Node>,
}

impl Ball {
    /// # Safety
    /// The node is an operand of the function, the one that is a ball if the function is ours.
    unsafe fn of(function: pg_sys::Oid, node: *mut pg_sys::Node) -> Option<Self> {
        let Containment {
            kind,
            ball_on_left,
            strategy,
        } = Containment::of(function)?;
        // SAFETY: vouched for by the caller.
        unsafe {
            let datum = constant(node);
            let mut ball = Self {
                kind,
                function,
                strategy,
                is_on_left: ball_on_left,
                datum,
                bound: datum.and_then(|datum| kind.bound_of_ball(datum)),
                center: None,
            };
            if datum.is_none()
                && let Some((_, args)) = call(node)
                && let Some([center, bound]) = value_and_bound(args)
                && pg_sys::exprType(bound) == kind.bound_type()
            {
                ball.center = Some(center);
                ball.bound = constant(bound).and_then(|bound| kind.bound(bound));
            }
            Some(ball)
        }
    }

    /// Returns a ball that keeps as many pairs of rows, found by more of its keys: of sets, those that
    /// contain others are as many as those that are contained.
    fn as_selective(&self) -> Self {
        let containing =
            Containment::containing(self.function).filter(|_| self.strategy == CONTAINED);
        match containing {
            Some(function) => Self {
                function,
                strategy: CONTAINS,
                is_on_left: false,
                ..*self
            },
            None => *self,
        }
    }

    /// Estimates the number of rows that an index has in a ball.
    ///
    /// # Safety
    /// As of [`am::count`].
    unsafe fn count(&self, index: pg_sys::Oid, ball: pg_sys::Datum) -> Option<f64> {
        let is_inside = |value| {
            let operands = match self.is_on_left {
                true => [ball, value],
                false => [value, ball],
            };
            let no_collation = pg_sys::InvalidOid;
            // SAFETY: the operands are of the function's types.
            unsafe {
                let [left, right] = operands;
                pg_sys::OidFunctionCall2Coll(self.function, no_collation, left, right).value() != 0
            }
        };
        // SAFETY: vouched for by the caller.
        unsafe { am::count(index, self.strategy, ball, &is_inside) }
    }
}

/// A column, or an expression, whose statistics the planner has found.
struct Column {
    root: *mut pg_sys::PlannerInfo,
    variable: pg_sys::VariableStatData,
}

impl Drop for Column {
    fn drop(&mut self) {
        if let (Some(free), false) = (self.variable.freefunc, self.variable.statsTuple.is_null()) {
            // SAFETY: the tuple came with the function.
            unsafe { free(self.variable.statsTuple) };
        }
    }
}

impl Column {
    /// # Safety
    /// The planner's structures are valid.
    unsafe fn examine(root: *mut pg_sys::PlannerInfo, node: *mut pg_sys::Node) -> Option<Self> {
        let mut variable = pg_sys::VariableStatData::default();
        // SAFETY: vouched for by the caller.
        unsafe { pg_sys::examine_variable(root, node, 0, &mut variable) };
        let column = Self { root, variable };
        (!column.variable.rel.is_null()).then_some(column)
    }

    /// Returns the number of rows of the table, at least 1.
    unsafe fn rows(&self) -> f64 {
        // SAFETY: the planner's structures are valid.
        unsafe { (*self.variable.rel).tuples.max(1.0) }
    }

    /// Returns the share of rows that are in a ball.
    unsafe fn share(&self, ball: &Ball, column_on_left: bool) -> f64 {
        // SAFETY: vouched for by the caller.
        unsafe {
            let share = match ball.datum {
                None => self.mean_share(ball),
                Some(datum) => match self.counted(ball, datum) {
                    Some(count) => count / self.rows(),
                    None => self.tried(ball.function, datum, column_on_left),
                },
            };
            share.clamp(0.0, 1.0)
        }
    }

    /// Returns how many rows an index finds in a ball.
    unsafe fn counted(&self, ball: &Ball, datum: pg_sys::Datum) -> Option<f64> {
        // SAFETY: vouched for by the caller.
        unsafe {
            let index = self.index(ball)?;
            ball.count((*index.index).indexoid, datum)
        }
    }

    /// Returns an index that can count the rows in balls.
    unsafe fn index(&self, ball: &Ball) -> Option<IndexColumn> {
        // SAFETY: vouched for by the caller.
        unsafe {
            if !self.may_be_counted() {
                return None;
            }
            columns(self.variable.rel, ball.kind).find(|column| {
                let index = column.index;
                am::is_ours(index)
                    && (*index).nkeycolumns == 1
                    && !(*index).hypothetical
                    && (*index).indpred.is_null()
                    && pg_sys::match_index_to_operand(self.variable.var, column.at as i32, index)
            })
        }
    }

    /// Returns whether the user may learn how many rows there are: he may read the table, and all
    /// its rows.
    unsafe fn may_be_counted(&self) -> bool {
        // SAFETY: the planner's structures are valid; privileges are those of the topmost parent.
        unsafe {
            let rel = &*self.variable.rel;
            let top = match rel.top_parent_relids.is_null() {
                true => rel.relid,
                false => pg_sys::bms_next_member(rel.top_parent_relids, -1) as u32,
            };
            let entries = (*self.root).simple_rte_array;
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
                && pg_sys::pg_class_aclcheck(entry.relid, user, select)
                    == pg_sys::AclResult::ACLCHECK_OK
        }
    }

    /// Returns the share of the column's most common values, and of its histogram, that are in a
    /// ball; at least one row.
    unsafe fn tried(
        &self,
        function: pg_sys::Oid,
        ball: pg_sys::Datum,
        column_on_left: bool,
    ) -> f64 {
        let least = 10;
        let mut info = pg_sys::FmgrInfo::default();
        let (mut common, mut size) = (0.0, 0);
        let no_collation = pg_sys::InvalidOid;
        // SAFETY: the function takes the column and the ball; the statistics are only read.
        unsafe {
            let variable = std::ptr::from_ref(&self.variable).cast_mut();
            pg_sys::fmgr_info(function, &mut info);
            let matched = pg_sys::mcv_selectivity(
                variable,
                &mut info,
                no_collation,
                ball,
                column_on_left,
                &mut common,
            );
            let others = pg_sys::histogram_selectivity(
                variable,
                &mut info,
                no_collation,
                ball,
                column_on_left,
                least,
                0,
                &mut size,
            );
            (matched + others.max(0.0) * (1.0 - common)).max(1.0 / self.rows())
        }
    }

    /// Returns the mean share of the rows that are within the bound of one of them.
    unsafe fn mean_share(&self, ball: &Ball) -> f64 {
        // SAFETY: vouched for by the caller.
        unsafe {
            if let Some(mean) = self.mean_counted(ball) {
                return (mean / self.rows()).clamp(0.0, 1.0);
            }
            let mut is_default = false;
            let variable = std::ptr::from_ref(&self.variable).cast_mut();
            1.0 / pg_sys::get_variable_numdistinct(variable, &mut is_default).max(1.0)
        }
    }

    /// Returns how many rows an index finds, on average, within the bound of the values that ANALYZE
    /// has kept.
    unsafe fn mean_counted(&self, ball: &Ball) -> Option<f64> {
        // SAFETY: vouched for by the caller.
        unsafe {
            let ball = &ball.as_selective();
            let column = self.index(ball)?;
            if self.variable.statsTuple.is_null() {
                return None;
            }
            let bound = match ball.bound {
                Some(bound) => bound,
                None => ball.kind.own_bound(column.options())?,
            };
            if !bound.is_served(column.options(), None) {
                return None;
            }
            let index = (*column.index).indexoid;
            let version = Version::of(self.variable.statsTuple, (*column.index).pages);
            statistics::remembered((index, ball.strategy, bound.bits()), version, || {
                self.count_samples(ball, &bound, index)
            })
        }
    }

    /// Returns the mean of the counts of the most common values, by their shares, and of those of the
    /// histogram, which stand for all others.
    unsafe fn count_samples(&self, ball: &Ball, bound: &Bound, index: pg_sys::Oid) -> Option<f64> {
        // SAFETY: the values are of the column's type, which is the kind's.
        unsafe {
            let objects = ball.kind.objects(ball.function);
            let count = |value| ball.count(index, bound.ball(&objects, value));
            let (mut common, mut rows) = (0.0, 0.0);
            if let Some(slot) = Slot::read(self.variable.statsTuple, pg_sys::STATISTIC_KIND_MCV) {
                for (value, &share) in slot.values().iter().zip(slot.numbers()) {
                    common += f64::from(share);
                    rows += f64::from(share) * count(*value)?;
                }
            }
            if let Some(slot) =
                Slot::read(self.variable.statsTuple, pg_sys::STATISTIC_KIND_HISTOGRAM)
            {
                let values = slot.values();
                let mut all = 0.0;
                for value in values {
                    all += count(*value)?;
                }
                rows += (1.0 - common) * all / values.len().max(1) as f64;
                common = 1.0;
            }
            (common > 0.0).then_some(rows)
        }
    }
}
