//! How a tracker compares values.

use crate::index::bound::Bound;
use crate::index::kind::Kind;
use crate::pg::prelude::*;
use neardup::shingle::Shingling;
use std::ffi::CStr;

/// The similarity that a tracker uses: a kind, and the bound within which two values are near. The methods return SQL
/// expressions.
#[derive(Debug, Clone, Copy)]
pub struct Measure {
    pub kind: Kind,
    pub bound: Bound,
    /// The schema of the extension.
    pub schema: pg_sys::Oid,
}

impl Measure {
    /// Returns k, unit and fold of documents, or None for other kinds.
    pub fn shingling(&self) -> Option<Shingling> {
        match self.bound {
            Bound::Resemblance(_, shingling) => Some(shingling),
            _ => None,
        }
    }

    /// Returns the SQL that calls `function`, which belongs to the extension. For documents, k, unit and fold follow
    /// the arguments.
    fn call(&self, function: &CStr, arguments: &[&str]) -> String {
        let function = names::qualified(self.schema, &function.to_string_lossy());
        let cut = self.shingling().map(|Shingling { k, unit, fold }| {
            format!(", {k}, '{unit}'::pg_catalog.text, '{fold}'::pg_catalog.text")
        });
        let (arguments, cut) = (arguments.join(", "), cut.unwrap_or_default());
        format!("{function}({arguments}{cut})")
    }

    /// Returns the condition that values `a` and `b` are near.
    pub fn near(&self, a: &str, b: &str) -> String {
        let type_ = names::type_(self.kind.bound_type());
        let bound = format!("{}::{type_}", self.bound.number());
        self.call(self.kind.predicate().0, &[a, b, &bound])
    }

    /// Returns the similarity of near values `a` and `b`, as `near_dup_clusters` computes it.
    pub fn similarity(&self, a: &str, b: &str) -> String {
        match self.kind {
            Kind::Minhash => self.call(c"minhash_sim", &[a, b]),
            Kind::Hamming => format!(
                "(1 - {}::pg_catalog.float8 / greatest(pg_catalog.length({a}), 1))",
                self.call(c"bit_hamming", &[a, b])
            ),
            Kind::Containing | Kind::ContainingDocuments => self.call(c"containment", &[a, b]),
            Kind::Resembling => self.call(c"jaccard", &[a, b]),
            Kind::Documents => self.call(c"resemblance", &[a, b]),
        }
    }

    /// Returns `value` cast to the type that the canonical rows table keeps.
    pub fn kept(&self, value: &str) -> String {
        // A column's type may be a domain.
        format!("{value}::{}", names::type_of(self.kept_type(), -1))
    }

    /// Returns the type to which [`Self::kept`] casts.
    pub fn kept_type(&self) -> pg_sys::Oid {
        match self.kind {
            Kind::Hamming => pg_sys::VARBITOID,
            kind => kind.types(self.schema)[0],
        }
    }
}
