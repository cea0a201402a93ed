//! Index paths and row estimates for comparisons such as `minhash_sim(column, x) >= c`. Index paths for
//! `near_contained` of documents through an index of sets.
//!
//! Like PostgreSQL in orclauses.c, the hook derives a condition that an index serves: `column <@ ball(x, c)`. The
//! condition exists only while index paths are added to a table's paths. In the finished paths, the comparison takes
//! its place. The index serves a weaker form of the comparison, which therefore stays as a filter, so that every answer
//! is right, and no plan evaluates both. `near_contained` does not stay, because an index of sets keeps the same rows.
//! Existing paths stay, whoever made them, with new row estimates.

use super::condition::NearCondition;
use super::constraint;
use super::selectivity::TableMatches;
use crate::index::planned_column::PlannedColumn;
use crate::pg::nodes;
use pgrx::prelude::*;
use pgrx::{PgList, pg_sys};

static mut PREVIOUS: pg_sys::set_rel_pathlist_hook_type = None;

/// Installs the hook. Called once, when a session loads the library.
pub fn install() {
    // SAFETY: called while the library is loaded, before any helper starts.
    unsafe {
        PREVIOUS = pg_sys::set_rel_pathlist_hook;
        pg_sys::set_rel_pathlist_hook = Some(make_paths);
    }
}

/// A comparison among the conditions of a table, and a condition that follows from it.
#[derive(Clone, Copy)]
struct Derived {
    comparison: *mut pg_sys::RestrictInfo,
    /// For an index on one of the values.
    condition: *mut pg_sys::RestrictInfo,
    /// True if an index of the table can serve the condition.
    is_served: bool,
    /// True if the condition keeps the same rows as the comparison.
    is_exact: bool,
}

#[pg_guard]
unsafe extern "C-unwind" fn make_paths(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    number: pg_sys::Index,
    entry: *mut pg_sys::RangeTblEntry,
) {
    if (*entry).rtekind == pg_sys::RTEKind::RTE_RELATION {
        if (*entry).inh {
            add_up_children(root, rel);
        } else if has_plain_paths(rel, entry) {
            let filters = derived(root, rel, (*rel).baserestrictinfo);
            let joins = derived(root, rel, (*rel).joininfo);
            if !filters.is_empty() || !joins.is_empty() {
                let rows = (*rel).rows;
                estimate(root, rel, &filters, &joins);
                add_paths(root, rel, rows, &filters, &joins);
            }
        }
    }
    if let Some(previous) = PREVIOUS {
        previous(root, rel, number, entry);
    }
}

/// Returns whether a table will be read by plain paths: it is a table or a materialized view, neither sampled nor
/// excluded.
unsafe fn has_plain_paths(rel: *mut pg_sys::RelOptInfo, entry: *mut pg_sys::RangeTblEntry) -> bool {
    matches!(
        (*entry).relkind as u8,
        pg_sys::RELKIND_RELATION | pg_sys::RELKIND_MATVIEW
    ) && (*entry).tablesample.is_null()
        && !pg_sys::is_dummy_rel(rel)
}

/// Returns the conditions that follow from comparisons in `conditions`, for each compared value that is computed from
/// columns of `rel` alone, if the other value uses no columns of `rel`.
unsafe fn derived(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    conditions: *mut pg_sys::List,
) -> Vec<Derived> {
    let mut all = Vec::new();
    for comparison in PgList::<pg_sys::RestrictInfo>::from_pg(conditions).iter_ptr() {
        let Some(near) = NearCondition::of((*comparison).clause.cast()) else {
            continue;
        };
        let mut derive = |clause, is_served, is_exact| {
            all.push(Derived {
                comparison,
                condition: restriction(root, comparison, clause),
                is_served,
                is_exact,
            });
        };
        let relids = (*rel).relids;
        for column in 0..2 {
            let [own, other] =
                [column, 1 - column].map(|of| pg_sys::pull_varnos(root, near.values[of]));
            if !pg_sys::bms_equal(own, relids) || pg_sys::bms_overlap(other, relids) {
                continue;
            }
            let of_sets = near.of_sets(root, rel, column);
            if let Some(clause) = near.of_ball(root, column) {
                let is_served = is_served(rel, &near, near.values[1 - column]);
                // A condition that no index serves has no estimate of its own.
                if is_served || of_sets.is_none() {
                    derive(clause, is_served, false);
                }
            }
            if let Some(clause) = of_sets {
                derive(clause, true, near.is_call());
            }
            for index in PgList::<pg_sys::IndexOptInfo>::from_pg((*rel).indexlist).iter_ptr() {
                if let Some(clause) = constraint::of_key(&near, root, index, column) {
                    derive(clause, true, false);
                }
            }
        }
    }
    all
}

/// Returns whether an index of `rel` finds by its keys the rows that `comparison` allows. Returns true if `rel` has an
/// index of the kind and the bound is not known yet: an index without keys for the actual bound reads all its rows.
unsafe fn is_served(
    rel: *mut pg_sys::RelOptInfo,
    comparison: &NearCondition,
    center: *mut pg_sys::Node,
) -> bool {
    let bound = comparison.bound();
    PlannedColumn::all_of(rel, comparison.kind).any(|column| {
        bound.is_none_or(|bound| bound.is_served(column.options(), nodes::constant(center)))
    })
}

/// Sets the selectivities of the comparisons to the estimates for the conditions that follow from them, and updates the
/// size estimate of `rel` for `filters`.
unsafe fn estimate(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    filters: &[Derived],
    joins: &[Derived],
) {
    let matches_of = |derived: &Derived| {
        let condition = &*(*derived.condition).clause.cast::<pg_sys::OpExpr>();
        TableMatches::of(root, condition.opfuncid, condition.args, 0)
    };
    for derived in filters {
        (*derived.comparison).norm_selec = matches_of(derived).share();
    }
    for derived in joins {
        let comparison = &mut *derived.comparison;
        if comparison.norm_selec < 0.0 || comparison.outer_selec < 0.0 {
            let matches = matches_of(derived);
            comparison.norm_selec = matches.share();
            comparison.outer_selec = match semijoin(root, comparison.clause_relids) {
                true => matches.mean.any,
                false => matches.share(),
            };
        }
    }
    if !filters.is_empty() {
        pg_sys::set_baserel_size_estimates(root, rel);
    }
}

/// Returns whether a condition on the tables `relids` belongs to a semijoin or an antijoin.
unsafe fn semijoin(root: *mut pg_sys::PlannerInfo, relids: pg_sys::Relids) -> bool {
    PgList::<pg_sys::SpecialJoinInfo>::from_pg((*root).join_info_list)
        .iter_ptr()
        .any(|join| {
            let kind = (*join).jointype;
            (kind == pg_sys::JoinType::JOIN_SEMI || kind == pg_sys::JoinType::JOIN_ANTI)
                && pg_sys::bms_overlap(relids, (*join).syn_righthand)
                && !pg_sys::bms_is_subset(relids, (*join).syn_righthand)
        })
}

/// Sets the row estimate of a parent table to the sum of the estimates of its children, which may have changed since
/// PostgreSQL added them up.
unsafe fn add_up_children(root: *mut pg_sys::PlannerInfo, rel: *mut pg_sys::RelOptInfo) {
    let conditions = PgList::<pg_sys::RestrictInfo>::from_pg((*rel).baserestrictinfo);
    let is_near = |of: *mut pg_sys::RestrictInfo| NearCondition::of((*of).clause.cast()).is_some();
    if !conditions.iter_ptr().any(is_near) || pg_sys::is_dummy_rel(rel) {
        return;
    }
    let mut rows = 0.0;
    for child in PgList::<pg_sys::AppendRelInfo>::from_pg((*root).append_rel_list).iter_ptr() {
        if (*child).parent_relid != (*rel).relid {
            continue;
        }
        let child = *(*root).simple_rel_array.add((*child).child_relid as usize);
        if !child.is_null() && !pg_sys::is_dummy_rel(child) {
            rows += (*child).rows;
        }
    }
    (*rel).rows = pg_sys::clamp_row_est(rows);
}

/// Adds paths through indexes that serve the derived conditions. Updates the row estimates of the existing paths, which
/// were made when the table's estimate was `before`.
unsafe fn add_paths(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    before: f64,
    filters: &[Derived],
    joins: &[Derived],
) {
    // At the end, all lists are restored, and whatever refers to a derived condition refers to its comparison.
    let indexes = PgList::<pg_sys::IndexOptInfo>::from_pg((*rel).indexlist);
    let own_filters = indexes.iter_ptr().map(|index| (*index).indrestrictinfo);
    let own_filters: Vec<_> = own_filters.collect();
    let own_joins = (*rel).joininfo;
    for index in indexes.iter_ptr() {
        (*index).indrestrictinfo = with((*index).indrestrictinfo, filters);
    }
    (*rel).joininfo = with(own_joins, joins);
    // For the rows of a parameterized path, the derived condition counts, and not the comparison: marked as redundant,
    // it keeps all rows.
    let own_shares: Vec<_> = joins
        .iter()
        .filter(|derived| derived.is_served)
        .map(|derived| {
            let share = &raw mut (*derived.comparison).norm_selec;
            (share, share.replace(REDUNDANT))
        })
        .collect();
    adopt_rows(root, rel, before, joins);
    if !is_current_row(rel) {
        pg_sys::create_index_paths(root, rel);
    }
    // In reverse order, because one comparison may have several conditions.
    for (share, own) in own_shares.into_iter().rev() {
        *share = own;
    }
    (*rel).joininfo = own_joins;
    for (index, filters) in indexes.iter_ptr().zip(own_filters) {
        (*index).indrestrictinfo = filters;
    }
    let all = [filters, joins].concat();
    for paths in [(*rel).pathlist, (*rel).partial_pathlist] {
        for path in PgList::<pg_sys::Path>::from_pg(paths).iter_ptr() {
            put_comparisons(path, &all);
        }
    }
    for parameters in PgList::<pg_sys::ParamPathInfo>::from_pg((*rel).ppilist).iter_ptr() {
        for derived in joins {
            let condition = derived.condition.cast();
            (*parameters).ppi_clauses =
                pg_sys::list_delete_ptr((*parameters).ppi_clauses, condition);
        }
    }
}

/// A selectivity above 1, for which PostgreSQL uses 1 without computing anything else.
const REDUNDANT: f64 = 2.0;

/// Returns whether WHERE CURRENT OF names the row to be read, which only a TID scan can find.
unsafe fn is_current_row(rel: *mut pg_sys::RelOptInfo) -> bool {
    PgList::<pg_sys::RestrictInfo>::from_pg((*rel).baserestrictinfo)
        .iter_ptr()
        .any(|of| (*(*of).clause).type_ == pg_sys::NodeTag::T_CurrentOfExpr)
}

/// Updates the row estimates of a table's paths, which were made when the table's estimate was `before`. The
/// comparisons in `joins` are marked as redundant, because their derived conditions count.
unsafe fn adopt_rows(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    before: f64,
    joins: &[Derived],
) {
    let mut changes = Vec::new();
    for parameters in PgList::<pg_sys::ParamPathInfo>::from_pg((*rel).ppilist).iter_ptr() {
        let clauses = (*parameters).ppi_clauses;
        let is_own = |join: &&Derived| pg_sys::list_member_ptr(clauses, join.comparison.cast());
        let own: Vec<_> = joins.iter().filter(is_own).copied().collect();
        let rows = pg_sys::get_parameterized_baserel_size(root, rel, with(clauses, &own));
        changes.push((parameters, rows / (*parameters).ppi_rows));
        (*parameters).ppi_rows = rows;
    }
    for paths in [(*rel).pathlist, (*rel).partial_pathlist] {
        for path in PgList::<pg_sys::Path>::from_pg(paths).iter_ptr() {
            let own = changes.iter().find(|change| change.0 == (*path).param_info);
            let change = own.map_or((*rel).rows / before, |change| change.1);
            (*path).rows = pg_sys::clamp_row_est((*path).rows * change);
        }
    }
}

/// Returns a copy of `conditions` to which the derived conditions that an index serves are added.
unsafe fn with(conditions: *mut pg_sys::List, all: &[Derived]) -> *mut pg_sys::List {
    all.iter()
        .filter(|derived| derived.is_served)
        .fold(pg_sys::list_copy(conditions), |list, derived| {
            pg_sys::lappend(list, derived.condition.cast())
        })
}

/// Replaces derived conditions in `path` with their comparisons.
unsafe fn put_comparisons(path: *mut pg_sys::Path, all: &[Derived]) {
    let parts = match (*path.cast::<pg_sys::Node>()).type_ {
        pg_sys::NodeTag::T_IndexPath => {
            let clauses = (*path.cast::<pg_sys::IndexPath>()).indexclauses;
            for clause in PgList::<pg_sys::IndexClause>::from_pg(clauses).iter_ptr() {
                let clause = &mut *clause;
                if let Some(derived) = all.iter().find(|d| d.condition == clause.rinfo) {
                    clause.rinfo = derived.comparison;
                    clause.lossy = !derived.is_exact;
                }
            }
            return;
        }
        pg_sys::NodeTag::T_BitmapHeapPath => {
            return put_comparisons((*path.cast::<pg_sys::BitmapHeapPath>()).bitmapqual, all);
        }
        pg_sys::NodeTag::T_BitmapAndPath => (*path.cast::<pg_sys::BitmapAndPath>()).bitmapquals,
        pg_sys::NodeTag::T_BitmapOrPath => (*path.cast::<pg_sys::BitmapOrPath>()).bitmapquals,
        _ => return,
    };
    for part in PgList::<pg_sys::Path>::from_pg(parts).iter_ptr() {
        put_comparisons(part, all);
    }
}

/// Returns a restriction like `like`, but with `clause`.
unsafe fn restriction(
    root: *mut pg_sys::PlannerInfo,
    like: *mut pg_sys::RestrictInfo,
    clause: *mut pg_sys::Expr,
) -> *mut pg_sys::RestrictInfo {
    let like = &*like;
    #[cfg(feature = "pg15")]
    return pg_sys::make_restrictinfo(
        root,
        clause,
        like.is_pushed_down,
        like.outerjoin_delayed,
        false,
        like.security_level,
        like.required_relids,
        like.outer_relids,
        like.nullable_relids,
    );
    #[cfg(not(feature = "pg15"))]
    pg_sys::make_restrictinfo(
        root,
        clause,
        like.is_pushed_down,
        like.has_clone,
        like.is_clone,
        false,
        like.security_level,
        like.required_relids,
        like.incompatible_relids,
        like.outer_relids,
    )
}
