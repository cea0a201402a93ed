//! The arguments of a condition besides the two values that it compares.

use crate::index::kind::{Bound, Kind};
use crate::pg::nodes::{all_elements, constant};
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
            (Kind::Documents, cut) => Some(*cut.first_chunk().filter(|_| cut.len() == 3)?),
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
        // SAFETY: vouched for by the caller.
        match &unsafe { all_elements(args) }[..] {
            &[a, b, bound, ref cut @ ..] => Some((a, b, Self::new(kind, bound, cut)?)),
            _ => None,
        }
    }

    /// Returns the arguments of the function that makes a ball around a center.
    pub fn after(self, center: *mut pg_sys::Node) -> impl Iterator<Item = *mut pg_sys::Node> {
        let cut = self.cut.into_iter().flatten();
        [center, self.bound].into_iter().chain(cut)
    }

    /// Returns whether documents are cut as an index cuts them; true of other kinds.
    ///
    /// # Safety
    /// As of [`Self::bound`].
    pub unsafe fn is_cut_as(&self, own: Option<Bound>) -> bool {
        match own {
            // SAFETY: vouched for by the caller.
            Some(Bound::Resemblance(_, own)) => unsafe { self.shingling() == Some(own) },
            _ => true,
        }
    }

    /// Returns the bound; None unless the terms are constants in range.
    ///
    /// # Safety
    /// The nodes are valid, of the types of the kind.
    pub unsafe fn bound(&self) -> Option<Bound> {
        // SAFETY: vouched for by the caller.
        unsafe { self.kind.bound(constant(self.bound)?, self.shingling()) }
    }

    /// Returns how documents are cut; None unless that is constant and valid, and of other kinds.
    ///
    /// # Safety
    /// As of [`Self::bound`].
    pub unsafe fn shingling(&self) -> Option<Shingling> {
        // SAFETY: vouched for by the caller.
        unsafe {
            let [k, unit, fold] = self.cut?;
            let k = constant(k)?.value() as i32;
            let unit = Text::from_raw(constant(unit)?).name().parse().ok()?;
            let fold = Text::from_raw(constant(fold)?).name().parse().ok()?;
            Shingling::new(i64::from(k), unit, fold).ok()
        }
    }
}
