//! Conditions that two values are near each other, and the index conditions that follow from them.
//!
//! A comparison of a measure with a bound, such as `minhash_sim(a, b) >= c`, implies `a <@ ball(b, bound)` or `a <%
//! ball(b, bound)`. For documents, `near_contained(part, whole, c)` and `containment(part, whole) >= c` also imply
//! conditions for an index of sets, such as `shingle_hashes(whole) %> _ball(shingle_hashes(part), c)`.

use crate::index::bound::Bound;
use crate::index::kind::Kind;
use crate::index::planned_column::PlannedColumn;
use crate::index::terms::Terms;
use crate::minhash::similarity::{minhash_distance_wrapper, minhash_sim_wrapper};
use crate::pg::catalog::{CFunction, is_named_function};
use crate::pg::nodes::{self, all_elements, call, constant, elements, new_call};
use crate::simhash::hamming::bit_hamming_wrapper;
use crate::text::measures::{
    containment_of_documents_wrapper, containment_wrapper, jaccard_wrapper, resemblance_wrapper,
};
use neardup::minhash::least_similarity;
use pgrx::{FromDatum, pg_sys};
use std::cmp::Ordering;
use std::ffi::CStr;

/// A condition that two values are near each other, or that one contains a share of the other.
pub struct NearCondition {
    pub kind: Kind,
    /// A function of the extension.
    pub function: pg_sys::Oid,
    pub values: [*mut pg_sys::Node; 2],
    pub terms: Terms,
    form: Form,
}

/// How a condition is written.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// A call to the kind's predicate.
    Call,
    /// A comparison of a measure with a bound, which is itself excluded if `is_strict`. `is_distance` tells whether the
    /// measure is a distance, or is None if the bound must be constant.
    Comparison {
        is_distance: Option<bool>,
        is_strict: bool,
    },
}

/// Returns the kind that `function` measures, and whether it measures a distance. This flag is None for sets and
/// documents, whose bounds must be constant. Returns None for any other function.
fn measure(function: pg_sys::Oid) -> Option<(Kind, Option<bool>)> {
    use Kind::{Containing, ContainingDocuments, Documents, Hamming, Minhash, Resembling};
    let of_documents: CFunction = containment_of_documents_wrapper;
    let (near, far) = (Some(false), Some(true));
    let measures: [(&CStr, CFunction, Kind, Option<bool>); 7] = [
        (c"minhash_sim", minhash_sim_wrapper, Minhash, near),
        (c"minhash_distance", minhash_distance_wrapper, Minhash, far),
        (c"bit_hamming", bit_hamming_wrapper, Hamming, far),
        (c"containment", containment_wrapper, Containing, None),
        (c"jaccard", jaccard_wrapper, Resembling, None),
        (c"resemblance", resemblance_wrapper, Documents, None),
        (c"containment", of_documents, ContainingDocuments, None),
    ];
    let mut measures = measures.into_iter();
    let found = measures.find(|(name, own, ..)| is_named_function(function, name, *own));
    found.map(|(.., kind, is_distance)| (kind, is_distance))
}

/// Returns how `operator` compares its left operand with its right one, and whether strictly. Returns None unless it is
/// in the default btree family of `type_`.
fn ordering(operator: pg_sys::Oid, type_: pg_sys::Oid) -> Option<(Ordering, bool)> {
    // SAFETY: cache entries are never freed; looks an operator up.
    let strategy = unsafe {
        let wanted = pg_sys::TYPECACHE_BTREE_OPFAMILY as i32;
        let family = (*pg_sys::lookup_type_cache(type_, wanted)).btree_opf;
        pg_sys::get_op_opfamily_strategy(operator, family)
    };
    match strategy as u32 {
        pg_sys::BTGreaterStrategyNumber => Some((Ordering::Greater, true)),
        pg_sys::BTGreaterEqualStrategyNumber => Some((Ordering::Greater, false)),
        pg_sys::BTLessStrategyNumber => Some((Ordering::Less, true)),
        pg_sys::BTLessEqualStrategyNumber => Some((Ordering::Less, false)),
        pg_sys::BTEqualStrategyNumber => Some((Ordering::Equal, false)),
        _ => None,
    }
}

/// Returns `bound` converted to the type `wanted`, or None if `bound` cannot be converted.
///
/// # Safety
/// `bound` is a valid node.
unsafe fn bound_of_type(
    wanted: pg_sys::Oid,
    bound: *mut pg_sys::Node,
) -> Option<*mut pg_sys::Node> {
    let cast = match (pg_sys::exprType(bound), wanted) {
        (given, _) if given == wanted => return Some(bound),
        (pg_sys::FLOAT4OID, pg_sys::FLOAT8OID) => pg_sys::F_FLOAT8_FLOAT4,
        (pg_sys::INT2OID, pg_sys::INT4OID) => pg_sys::F_INT4_INT2,
        (pg_sys::INT8OID, pg_sys::INT4OID) => {
            i32::try_from(i64::from_datum(constant(bound)?, false)?).ok()?;
            pg_sys::F_INT4_INT8
        }
        _ => return None,
    };
    Some(new_call(std::ptr::null_mut(), cast.into(), &[bound]))
}

impl NearCondition {
    /// Returns the condition that `node` states, or None if `node` states no such condition.
    ///
    /// # Safety
    /// `node` is valid.
    pub unsafe fn of(node: *mut pg_sys::Node) -> Option<Self> {
        if let Some(comparison) = nodes::cast::<pg_sys::OpExpr>(node, pg_sys::NodeTag::T_OpExpr) {
            let operator = (*comparison).opno;
            let [left, right] = elements((*comparison).args)?;
            return Self::measured(left, operator, right, |ordering| ordering)
                .or_else(|| Self::measured(right, operator, left, Ordering::reverse));
        }
        let call = &*nodes::cast::<pg_sys::FuncExpr>(node, pg_sys::NodeTag::T_FuncExpr)?;
        let mut kinds = Kind::ALL.into_iter();
        let kind = kinds.find(|kind| {
            let (name, wrapper) = kind.predicate();
            is_named_function(call.funcid, name, wrapper)
        })?;
        let (a, b, terms) = Terms::of_call(call.args, kind)?;
        Some(Self {
            kind,
            function: call.funcid,
            values: [a, b],
            terms,
            form: Form::Call,
        })
    }

    /// Returns the condition if `node` is a measure that `operator` compares with `bound`, and values near each other
    /// satisfy the comparison. Returns None otherwise. `turned` converts the operator's ordering to that of the measure
    /// relative to the bound.
    unsafe fn measured(
        node: *mut pg_sys::Node,
        operator: pg_sys::Oid,
        bound: *mut pg_sys::Node,
        turned: fn(Ordering) -> Ordering,
    ) -> Option<Self> {
        let (function, args) = call(node)?;
        let (kind, is_distance) = measure(function)?;
        let bound_type = kind.bound_type();
        let (ordering, is_strict) = ordering(operator, bound_type)?;
        let far = match is_distance {
            Some(true) => Ordering::Greater,
            _ => Ordering::Less,
        };
        let args = all_elements(args);
        let (values, cut) = args.split_first_chunk()?;
        let terms = Terms::new(kind, bound_of_type(bound_type, bound)?, cut)?;
        (turned(ordering) != far).then_some(Self {
            kind,
            function,
            values: *values,
            terms,
            form: Form::Comparison {
                is_distance,
                is_strict,
            },
        })
    }

    /// Returns whether this is a call to the predicate. The condition on sets that follows from a call keeps the same
    /// rows, so PostgreSQL need not check both.
    pub fn is_call(&self) -> bool {
        self.form == Form::Call
    }

    /// Returns the bound of the ball that contains everything that the condition allows. If the comparison is strict,
    /// the ball also contains values exactly at the bound, except for Hamming distances. Returns None if the bound is
    /// not constant, or if everything or nothing is within it.
    pub fn bound(&self) -> Option<Bound> {
        // SAFETY: the function's result, with which the constant is compared, has this type.
        unsafe {
            let number = self.terms.number()?;
            match (self.kind, self.form) {
                (
                    Kind::Minhash,
                    Form::Comparison {
                        is_distance: Some(true),
                        ..
                    },
                ) => least_similarity(number).map(Bound::Threshold),
                (Kind::Hamming, Form::Comparison { is_strict, .. }) => {
                    self.kind.bound(number - f64::from(is_strict), None)
                }
                _ => self.terms.bound(),
            }
        }
    }

    /// Returns the condition between the column and a ball, such as `column <@ ball(center, bound)`, that follows from
    /// a comparison. `column` is the position in `values` of the value on the left. Returns None if the comparison
    /// allows everything or nothing, and for calls, which [`super::support`] handles.
    ///
    /// # Safety
    /// The planner's structures are valid.
    pub unsafe fn of_ball(
        &self,
        root: *mut pg_sys::PlannerInfo,
        column: usize,
    ) -> Option<*mut pg_sys::Expr> {
        let Form::Comparison { is_distance, .. } = self.form else {
            return None;
        };
        let (value, center) = ((column, self.values[column]), self.values[1 - column]);
        let condition = match constant(self.terms.bound) {
            Some(_) => {
                let mut terms = self.terms;
                terms.bound = self.bound()?.node();
                terms.in_ball(root, self.function, value, center)?
            }
            None => {
                let is_distance = pg_sys::Datum::from(is_distance?);
                let is_distance = nodes::new_constant(pg_sys::BOOLOID, is_distance);
                let ball = [center, self.terms.bound, is_distance];
                self.kind.in_ball(root, self.function, value, &ball)?
            }
        };
        Some(condition.cast())
    }

    /// Returns the condition on sets that follows from a containment of documents. `column` is the position in `values`
    /// of the value from `rel`. Returns None unless `rel` has an index on this value's shingle hashes.
    ///
    /// # Safety
    /// The planner's structures are valid.
    pub unsafe fn of_sets(
        &self,
        root: *mut pg_sys::PlannerInfo,
        rel: *mut pg_sys::RelOptInfo,
        column: usize,
    ) -> Option<*mut pg_sys::Expr> {
        if self.kind != Kind::ContainingDocuments {
            return None;
        }
        let bound = match self.is_call() {
            true => self.terms.bound,
            false => self.bound()?.node(),
        };
        let mut indexes = PlannedColumn::all_of(rel, Kind::Containing).peekable();
        indexes.peek()?;
        let sets = self.terms.sets(root, self.function, self.values)?;
        let (value, center) = (sets[column], sets[1 - column]);
        indexes.find(|of| pg_sys::match_index_to_operand(value, of.at as i32, of.index))?;
        let (value, ball) = ((column, value), [center, bound]);
        let near = Kind::Containing.in_ball(root, self.function, value, &ball)?;
        Some(near.cast())
    }
}
