//! Calls to `near_dup_key` in queries and index expressions.

use crate::index::constraint_key::MAKE;
use crate::index::kind::Kind;
use crate::index::terms::Terms;
use crate::pg::catalog::{function_beside, is_named_function};
use crate::pg::nodes;
use pgrx::pg_sys;

/// A call to `near_dup_key`.
pub struct KeyCall {
    pub kind: Kind,
    pub function: pg_sys::Oid,
    pub value: *mut pg_sys::Node,
    pub terms: Terms,
}

impl KeyCall {
    /// Parses `expression` as a call to `near_dup_key`. Returns None if it is not one.
    ///
    /// # Safety
    /// `expression` is a valid node.
    pub unsafe fn of(expression: *mut pg_sys::Node) -> Option<Self> {
        let (function, _) = nodes::call(expression)?;
        let mut kinds = Kind::WITH_KEYS.into_iter();
        let (kind, _) = kinds.find(|(_, make)| is_named_function(function, MAKE, *make))?;
        // The label, a further argument, is ignored.
        let (value, terms) = Terms::of_ball(expression, kind)?;
        Some(Self {
            kind,
            function,
            value,
            terms,
        })
    }

    /// Returns a call that makes the key of another `value` with `terms`, without a label. Returns None if there is no
    /// such function.
    ///
    /// # Safety
    /// The planner's structures are valid. `value` and `terms` are of the call's kind.
    #[allow(clippy::disallowed_methods, reason = "one entry per argument")]
    pub unsafe fn of_other(
        &self,
        root: *mut pg_sys::PlannerInfo,
        value: *mut pg_sys::Node,
        terms: Terms,
    ) -> Option<*mut pg_sys::Node> {
        let schema = pg_sys::get_func_namespace(self.function);
        let [value_type, _] = self.kind.types(schema);
        let collation = pg_sys::DEFAULT_COLLATION_OID;
        let no_label = pg_sys::makeNullConst(pg_sys::TEXTOID, -1, collation).cast();
        let args: Vec<_> = terms.after(value).chain([no_label]).collect();
        let terms = args[1..].iter().map(|term| pg_sys::exprType(*term));
        let types: Vec<_> = [value_type].into_iter().chain(terms).collect();
        let function = function_beside(self.function, MAKE, &types)?;
        Some(nodes::new_call(root, function, args))
    }
}
