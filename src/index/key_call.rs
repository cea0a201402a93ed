//! Calls to `near_dup_key` in queries and index expressions.

use crate::index::constraint_key::MAKE;
use crate::index::kind::Kind;
use crate::index::terms::Terms;
use crate::pg::catalog::is_named_function;
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
}
