//! The arguments of a condition other than the two values that it compares.

use crate::index::bound::Bound;
use crate::index::kind::Kind;
use crate::pg::catalog::function_beside;
use crate::pg::nodes::{self, all_elements, call, constant};
use crate::pg::prelude::*;
use neardup::shingle::Shingling;
use pgrx::FromDatum;

/// The bound and, for documents, how they are cut into shingles: k, unit and fold.
#[derive(Clone, Copy)]
pub struct Terms {
    kind: Kind,
    pub bound: *mut pg_sys::Node,
    cut: Option<[*mut pg_sys::Node; 3]>,
}

impl Terms {
    /// Returns the terms of `kind`, or None if the arguments `bound` and `cut` have other types than the ones of its
    /// functions: users' functions may return balls, too.
    ///
    /// # Safety
    /// The nodes are valid.
    pub unsafe fn new(
        kind: Kind,
        bound: *mut pg_sys::Node,
        cut: &[*mut pg_sys::Node],
    ) -> Option<Self> {
        let are_typed = pg_sys::exprType(bound) == kind.bound_type()
            && cut
                .iter()
                .map(|&node| pg_sys::exprType(node))
                .eq(kind.cut_types().iter().copied());
        are_typed.then(|| Self {
            kind,
            bound,
            cut: cut.first_chunk().copied(),
        })
    }

    /// Returns the two values compared by a call with the arguments (a, b, bound...), and its terms. Returns None if
    /// `args` do not match `kind`.
    ///
    /// # Safety
    /// `args` is a list of expressions, or NULL.
    pub unsafe fn of_call(
        args: *mut pg_sys::List,
        kind: Kind,
    ) -> Option<(*mut pg_sys::Node, *mut pg_sys::Node, Self)> {
        match &all_elements(args)[..] {
            &[a, b, bound, ref cut @ ..] => Some((a, b, Self::new(kind, bound, cut)?)),
            _ => None,
        }
    }

    /// Returns the center and the terms of a call with the arguments (center, bound...), which makes a ball or a key.
    /// Returns None if `ball` is not such a call.
    ///
    /// # Safety
    /// `ball` is a valid node.
    pub unsafe fn of_ball(
        ball: *mut pg_sys::Node,
        kind: Kind,
    ) -> Option<(*mut pg_sys::Node, Self)> {
        match &all_elements(call(ball)?.1)[..] {
            &[center, bound, ref more @ ..] => {
                let cut = more.get(..kind.cut_types().len())?;
                Some((center, Self::new(kind, bound, cut)?))
            }
            _ => None,
        }
    }

    /// Returns the bound of `ball`, a constant or a call, or None if it is not known yet.
    ///
    /// # Safety
    /// `ball` is a valid node of type `_ball`.
    pub unsafe fn bound_of_ball(ball: *mut pg_sys::Node, kind: Kind) -> Option<Bound> {
        match constant(ball) {
            Some(ball) => kind.bound_of_ball(ball),
            None => Self::of_ball(ball, kind)?.1.bound(),
        }
    }

    /// Returns the arguments of the function that makes the ball around `center`.
    pub fn after(self, center: *mut pg_sys::Node) -> impl Iterator<Item = *mut pg_sys::Node> {
        let cut = self.cut.into_iter().flatten();
        [center, self.bound].into_iter().chain(cut)
    }

    /// Returns [`Kind::in_ball`] for the ball around `center`.
    ///
    /// # Safety
    /// The same as for [`Kind::in_ball`].
    #[allow(clippy::disallowed_methods, reason = "one entry per argument")]
    pub unsafe fn in_ball(
        self,
        root: *mut pg_sys::PlannerInfo,
        function: pg_sys::Oid,
        value: (usize, *mut pg_sys::Node),
        center: *mut pg_sys::Node,
    ) -> Option<*mut pg_sys::OpExpr> {
        let ball: Vec<_> = self.after(center).collect();
        self.kind.in_ball(root, function, value, &ball)
    }

    /// Returns the calls `shingle_hashes(document, k, unit, fold, 0)` for `documents`, or None if the terms are not for
    /// documents. `function` is any function of the extension.
    ///
    /// # Safety
    /// `documents` are valid nodes of type text.
    pub unsafe fn sets(
        self,
        root: *mut pg_sys::PlannerInfo,
        function: pg_sys::Oid,
        documents: [*mut pg_sys::Node; 2],
    ) -> Option<[*mut pg_sys::Node; 2]> {
        const TEXT: pg_sys::Oid = pg_sys::TEXTOID;
        let types = [TEXT, pg_sys::INT4OID, TEXT, TEXT, pg_sys::INT8OID];
        let shingle_hashes = function_beside(function, c"shingle_hashes", &types)?;
        let [k, unit, fold] = self.cut?;
        Some(documents.map(|document| {
            let seed = nodes::new_constant(pg_sys::INT8OID, 0i64.into());
            // Equal to the expression of an index on the column, which may have its own collation.
            nodes::new_call(root, shingle_hashes, &[document, k, unit, fold, seed])
        }))
    }

    /// Returns whether an index column with `options` has keys for the terms. Assumes that it has keys for a bound that
    /// is not known yet. If it has none for the actual bound, the index reads all its rows, which still gives the right
    /// answers.
    ///
    /// # Safety
    /// The same as for [`Self::bound`] and [`Bound::is_served`].
    pub unsafe fn are_served(
        &self,
        options: *mut pg_sys::bytea,
        center: Option<pg_sys::Datum>,
    ) -> bool {
        match constant(self.bound) {
            Some(_) => self
                .bound()
                .is_some_and(|bound| bound.is_served(options, center)),
            None => self.kind.is_cut_as(options, self.shingling()),
        }
    }

    /// Returns the bound, or None unless the terms are constants in range.
    ///
    /// # Safety
    /// The nodes are valid.
    pub unsafe fn bound(&self) -> Option<Bound> {
        self.kind.bound(self.number()?, self.shingling())
    }

    /// Returns the bound as a number, or None unless it is a constant.
    ///
    /// # Safety
    /// The same as for [`Self::bound`].
    pub unsafe fn number(&self) -> Option<f64> {
        let bound = constant(self.bound)?;
        match self.kind {
            Kind::Hamming => i32::from_datum(bound, false).map(f64::from),
            _ => f64::from_datum(bound, false),
        }
    }

    /// Returns how documents are cut. Returns None for other kinds, and unless the arguments are valid constants.
    ///
    /// # Safety
    /// The same as for [`Self::bound`].
    pub unsafe fn shingling(&self) -> Option<Shingling> {
        let [k, unit, fold] = self.cut?;
        let k = constant(k)?.value() as i32;
        let unit = Text::from_raw(constant(unit)?).name().parse().ok()?;
        let fold = Text::from_raw(constant(fold)?).name().parse().ok()?;
        Shingling::new(i64::from(k), unit, fold).ok()
    }
}
