//! The arguments of a condition besides the two values that it compares.

use crate::index::kind::{Bound, Kind};
use crate::pg::catalog::function_beside;
use crate::pg::nodes::{self, all_elements, call, constant};
use crate::pg::text::Text;
use neardup::shingle::Shingling;
use pgrx::pg_sys;

/// The bound, and of documents how they are cut into shingles: k, unit and fold.
#[derive(Clone, Copy)]
pub struct Terms {
    kind: Kind,
    pub bound: *mut pg_sys::Node,
    cut: Option<[*mut pg_sys::Node; 3]>,
}

impl Terms {
    /// Returns the terms of a kind; None if `cut` are not the arguments that it has after the bound.
    pub fn new(kind: Kind, bound: *mut pg_sys::Node, cut: &[*mut pg_sys::Node]) -> Option<Self> {
        let cut = match (kind, cut) {
            (Kind::Documents | Kind::ContainingDocuments, &[k, unit, fold]) => {
                Some([k, unit, fold])
            }
            (Kind::Documents | Kind::ContainingDocuments, _) => return None,
            (_, []) => None,
            _ => return None,
        };
        Some(Self { kind, bound, cut })
    }

    /// Returns the two values that a call (a, b, bound...) compares, and its terms.
    ///
    /// # Safety
    /// A list of expressions, or NULL.
    pub unsafe fn of_call(
        args: *mut pg_sys::List,
        kind: Kind,
    ) -> Option<(*mut pg_sys::Node, *mut pg_sys::Node, Self)> {
        match &all_elements(args)[..] {
            &[a, b, bound, ref cut @ ..] => Some((a, b, Self::new(kind, bound, cut)?)),
            _ => None,
        }
    }

    /// Returns the center and the terms of a call that makes a ball; None if the expression is another one.
    ///
    /// # Safety
    /// The node is valid.
    pub unsafe fn of_ball(
        ball: *mut pg_sys::Node,
        kind: Kind,
    ) -> Option<(*mut pg_sys::Node, Self)> {
        match &all_elements(call(ball)?.1)[..] {
            &[center, bound, ref more @ ..] if pg_sys::exprType(bound) == kind.bound_type() => {
                let cut = more.get(..kind.cut_types().len())?;
                Some((center, Self::new(kind, bound, cut)?))
            }
            _ => None,
        }
    }

    /// Returns the bound of a ball, a constant or a call; None if it is not known yet.
    ///
    /// # Safety
    /// The node is valid, of the type of balls.
    pub unsafe fn bound_of_ball(ball: *mut pg_sys::Node, kind: Kind) -> Option<Bound> {
        match constant(ball) {
            Some(ball) => kind.bound_of_ball(ball),
            None => Self::of_ball(ball, kind)?.1.bound(),
        }
    }

    /// Returns the arguments of the function that makes a ball around a center.
    pub fn after(self, center: *mut pg_sys::Node) -> impl Iterator<Item = *mut pg_sys::Node> {
        let cut = self.cut.into_iter().flatten();
        [center, self.bound].into_iter().chain(cut)
    }

    /// Returns [`Kind::containment`] in the ball around a center.
    ///
    /// # Safety
    /// As there.
    #[allow(clippy::disallowed_methods, reason = "arguments of a call")]
    pub unsafe fn containment(
        self,
        root: *mut pg_sys::PlannerInfo,
        function: pg_sys::Oid,
        value: (usize, *mut pg_sys::Node),
        center: *mut pg_sys::Node,
    ) -> Option<(pg_sys::Oid, [*mut pg_sys::Node; 2])> {
        let ball: Vec<_> = self.after(center).collect();
        self.kind.containment(root, function, value, &ball)
    }

    /// Returns the sets of hashes of documents that are cut like this, `shingle_hashes(document, k, unit, fold, 0)`; None
    /// unless the terms are those of documents. `function` is one of the extension's.
    ///
    /// # Safety
    /// The nodes are valid, of type text.
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
            // As in the expression of an index on the column, which may have a collation of its own.
            let collation = pg_sys::exprCollation(document);
            let arguments = [document, k, unit, fold, seed];
            nodes::new_collated_call(root, shingle_hashes, arguments, collation)
        }))
    }

    /// Returns whether an index column with these options has keys for the terms. A bound that is not known
    /// yet may be one for which it has none: then the index reads all its rows, and the answers are right too.
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

    /// Returns the bound; None unless the terms are constants in range.
    ///
    /// # Safety
    /// The nodes are valid, of the types of the kind.
    pub unsafe fn bound(&self) -> Option<Bound> {
        self.kind.bound(constant(self.bound)?, self.shingling())
    }

    /// Returns how documents are cut; None unless that is constant and valid, and of other kinds.
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
