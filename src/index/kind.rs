//! The kinds of similarity. For each kind: the values that it compares, the bound of a search, its SQL objects, and the
//! keys that similar values share. Defined only here.
#![allow(clippy::disallowed_methods, reason = "one entry per argument")]

use crate::index::ball::{Ball, NewBall, Within};
use crate::index::ball_functions::{
    bit_in_ball_wrapper, document_contained_wrapper, document_contains_wrapper,
    document_in_ball_wrapper, minhash_in_ball_wrapper, set_contained_wrapper, set_contains_wrapper,
    set_resembles_wrapper,
};
use crate::index::bound::Bound;
use crate::index::classes::{
    CONTAINED, CONTAINS, ComparedClass, DocumentClass, HammingClass, MinhashClass,
    PREDICATE_FUNCTION, RESEMBLES, SetClass, ValueParameters,
};
use crate::index::constraint_key::{
    near_dup_key_of_bits_wrapper, near_dup_key_of_document_wrapper, near_dup_key_wrapper,
};
use crate::minhash::datum::StoredSignature;
use crate::minhash::similarity::near_dup_wrapper;
use crate::options;
use crate::pg::arrays::Bigints;
use crate::pg::bits::Bits;
use crate::pg::catalog::{
    CFunction, address_of, function_beside, is_at, is_function, operator_beside, support_function,
    type_named,
};
use crate::pg::nodes;
use crate::pg::prelude::*;
use crate::simhash::hamming::hamming_within_wrapper;
use crate::text::measures::{
    near_contained_documents_wrapper, near_contained_wrapper, near_dup_documents_wrapper,
    near_dup_of_sets_wrapper,
};
use neardup::minhash::Header;
use neardup::shingle::Shingling;
use std::ffi::CStr;

/// The name of the query type, and of the functions (value, bound...) that make it.
pub const BALL: &CStr = c"_ball";

/// The threshold that the planner assumes for a search of sets or documents whose threshold is not known.
pub const USUAL_SHARE: f64 = 0.8;

/// The types that [`Kind::of_type`] accepts, as an error hint.
pub const COLUMN_TYPES: &str = "Valid column types are text, minhash_signature, bit, bit varying and bigint[]. A char(n) column can be changed with ALTER COLUMN ... TYPE text.";

/// A kind of values and of similarity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Signatures at or above a similarity.
    Minhash,
    /// Bit strings within a Hamming distance.
    Hamming,
    /// Sets, where one contains a share of the other.
    Containing,
    /// Sets at or above a Jaccard similarity.
    Resembling,
    /// Documents at or above a resemblance.
    Documents,
    /// Documents, where one contains a share of the other.
    ContainingDocuments,
}

/// The kind and strategy of one of our operators between a value and a ball.
#[derive(Debug, Clone, Copy)]
pub struct BallOperator {
    pub kind: Kind,
    pub strategy: u16,
}

impl BallOperator {
    /// Returns the kind and strategy of the operator with this `function`, whatever its name and schema. Returns None
    /// if it is not one of ours. PostgreSQL inlines the functions of operators with the ball on the left.
    pub fn of(function: pg_sys::Oid) -> Option<Self> {
        use Kind::{Containing, ContainingDocuments, Documents, Hamming, Minhash, Resembling};
        let ours: [(CFunction, Kind, u16); 8] = [
            (minhash_in_ball_wrapper, Minhash, CONTAINED),
            (bit_in_ball_wrapper, Hamming, CONTAINED),
            (set_contained_wrapper, Containing, CONTAINED),
            (set_contains_wrapper, Containing, CONTAINS),
            (set_resembles_wrapper, Resembling, RESEMBLES),
            (document_in_ball_wrapper, Documents, RESEMBLES),
            (document_contained_wrapper, ContainingDocuments, CONTAINED),
            (document_contains_wrapper, ContainingDocuments, CONTAINS),
        ];
        let address = address_of(function);
        let mut ours = ours.into_iter();
        let (_, kind, strategy) = ours.find(|(own, ..)| is_at(&address, *own))?;
        Some(Self { kind, strategy })
    }
}

impl Kind {
    /// The kinds that have constraint keys, with their functions `near_dup_key(value, bound... , label)`.
    pub const WITH_KEYS: [(Self, CFunction); 3] = [
        (Self::Minhash, near_dup_key_wrapper),
        (Self::Hamming, near_dup_key_of_bits_wrapper),
        (Self::Documents, near_dup_key_of_document_wrapper),
    ];

    pub const ALL: [Self; 6] = [
        Self::Minhash,
        Self::Hamming,
        Self::Containing,
        Self::Resembling,
        Self::Documents,
        Self::ContainingDocuments,
    ];

    /// Returns the kind for columns of `column_type`, or None if there is none. The extension is in `schema`.
    pub fn of_type(column_type: pg_sys::Oid, schema: pg_sys::Oid) -> Option<Self> {
        // SAFETY: plain catalog lookup.
        match unsafe { pg_sys::getBaseType(column_type) } {
            pg_sys::TEXTOID | pg_sys::VARCHAROID => Some(Self::Documents),
            pg_sys::BITOID | pg_sys::VARBITOID => Some(Self::Hamming),
            pg_sys::INT8ARRAYOID => Some(Self::Resembling),
            base if base == type_named(schema, c"minhash_signature") => Some(Self::Minhash),
            _ => None,
        }
    }

    /// Returns the types of the arguments after the bound: k, unit and fold for documents, none for other kinds.
    pub fn cut_types(self) -> &'static [pg_sys::Oid] {
        match self {
            Self::Documents | Self::ContainingDocuments => {
                &[pg_sys::INT4OID, pg_sys::TEXTOID, pg_sys::TEXTOID]
            }
            _ => &[],
        }
    }

    /// Returns the boolean function (a, b, bound...). It means `a operator ball(b, bound)` with the [`Self::operator`]
    /// for argument 0, and `b operator ball(a, bound)` with the one for argument 1.
    pub fn predicate(self) -> (&'static CStr, CFunction) {
        match self {
            Self::Minhash => (c"near_dup", near_dup_wrapper),
            Self::Hamming => (c"hamming_within", hamming_within_wrapper),
            Self::Containing => (c"near_contained", near_contained_wrapper),
            Self::Resembling => (c"near_dup", near_dup_of_sets_wrapper),
            Self::Documents => (c"near_dup", near_dup_documents_wrapper),
            Self::ContainingDocuments => (c"near_contained", near_contained_documents_wrapper),
        }
    }

    /// Returns the operator that takes argument `argument` of [`Self::predicate`] on the left, and its strategy. All
    /// predicates are symmetric except those of containment, which is of the first argument in the second.
    pub fn operator(self, argument: usize) -> (&'static CStr, u16) {
        match (self, argument) {
            (Self::Minhash | Self::Hamming, _) => (c"<@", CONTAINED),
            (Self::Documents, _) => (c"<@", RESEMBLES),
            (Self::Containing | Self::ContainingDocuments, 0) => (c"<%", CONTAINED),
            (Self::Containing | Self::ContainingDocuments, _) => (c"%>", CONTAINS),
            (Self::Resembling, _) => (c"<%>", RESEMBLES),
        }
    }

    /// Returns the kind whose predicate is `function`, or None if it is not one of ours.
    pub fn of_predicate(function: pg_sys::Oid) -> Option<Self> {
        Self::of_address(&address_of(function))
    }

    /// Returns the kind whose predicate is at `address`, or None if there is none.
    pub fn of_address(address: &pg_sys::PGFunction) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|kind| is_at(address, kind.predicate().1))
    }

    /// Returns the operator class with the `options` of an index column, or None if they are out of range.
    ///
    /// # Safety
    /// The same as for [`Self::own_bound`].
    pub unsafe fn class(self, options: *mut pg_sys::bytea) -> Option<Box<dyn ComparedClass>> {
        Some(match self {
            Self::Minhash => Box::new(MinhashClass::from_options(options)?),
            Self::Hamming => Box::new(HammingClass::from_options(options)?),
            Self::Containing | Self::Resembling => Box::new(SetClass),
            Self::Documents | Self::ContainingDocuments => {
                Box::new(DocumentClass::from_options(options)?)
            }
        })
    }

    /// Returns whether `family` belongs to the kind, whatever its name and schema, judging by its support function
    /// [`PREDICATE_FUNCTION`].
    pub fn has_family(self, family: pg_sys::Oid, column_type: pg_sys::Oid) -> bool {
        let (_, own) = match self {
            Self::Containing => Self::Resembling.predicate(),
            Self::ContainingDocuments => Self::Documents.predicate(),
            _ => self.predicate(),
        };
        support_function(family, column_type, PREDICATE_FUNCTION as i16)
            .is_some_and(|found| is_function(found, own))
    }

    pub fn bound_type(self) -> pg_sys::Oid {
        match self {
            Self::Hamming => pg_sys::INT4OID,
            _ => pg_sys::FLOAT8OID,
        }
    }

    /// Returns the bound with this `number`, a threshold or a distance, or None if it is out of range. `shingling`
    /// tells how documents are cut.
    pub fn bound(self, number: f64, shingling: Option<Shingling>) -> Option<Bound> {
        let threshold = Some(number).filter(|&threshold| options::is_threshold(threshold));
        match self {
            Self::Minhash => threshold.map(Bound::Threshold),
            Self::Containing | Self::Resembling => threshold.map(Bound::Share),
            Self::Documents | Self::ContainingDocuments => {
                Some(Bound::Resemblance(threshold?, shingling?))
            }
            Self::Hamming => (number as i32).try_into().ok().map(Bound::Distance),
        }
    }

    /// Returns the bound of a ball, or None if the ball is of another kind or contains everything.
    ///
    /// # Safety
    /// `datum` is a ball.
    pub unsafe fn bound_of_ball(self, datum: pg_sys::Datum) -> Option<Bound> {
        let ball = Ball::from_raw(datum);
        match (self, ball.read()) {
            (Self::Documents | Self::ContainingDocuments, Within::Document(center)) => {
                Some(Bound::Resemblance(center.threshold, center.shingling))
            }
            (Self::Minhash, Within::Signature(_, threshold)) => {
                options::is_threshold(threshold).then_some(Bound::Threshold(threshold))
            }
            (Self::Hamming, Within::Bits(_, distance)) => Some(Bound::Distance(distance)),
            (Self::Containing | Self::Resembling, Within::Set(_, share)) => {
                Some(Bound::Share(share))
            }
            _ => None,
        }
    }

    /// Returns the bound for which an index column has keys. Returns None if it has keys for every bound, or if
    /// `options` are out of range.
    ///
    /// # Safety
    /// `options` belong to an index of the kind's operator class of `neardup`, or are NULL.
    pub unsafe fn own_bound(self, options: *mut pg_sys::bytea) -> Option<Bound> {
        self.class(options)?.own_bound()
    }

    /// Returns whether an index column has keys for documents cut by `shingling`. Always true for other kinds.
    ///
    /// # Safety
    /// The same as for [`Self::own_bound`].
    pub unsafe fn is_cut_as(
        self,
        options: *mut pg_sys::bytea,
        shingling: Option<Shingling>,
    ) -> bool {
        self.cut_types().is_empty()
            || DocumentClass::from_options(options)
                .is_some_and(|class| shingling == Some(class.keys.shingling))
    }

    /// Returns the types of values and of balls. The extension is in `schema`.
    pub fn types(self, schema: pg_sys::Oid) -> [pg_sys::Oid; 2] {
        let value_type = match self {
            Self::Minhash => type_named(schema, c"minhash_signature"),
            Self::Hamming => pg_sys::BITOID,
            Self::Containing | Self::Resembling => pg_sys::INT8ARRAYOID,
            Self::Documents | Self::ContainingDocuments => pg_sys::TEXTOID,
        };
        [value_type, type_named(schema, BALL)]
    }

    /// Returns the condition that `value` is in the ball made from the arguments `ball`. `value` is argument `column`
    /// of a call to `function`, which belongs to the extension. Returns None if the extension lacks the operator or the
    /// function that makes the ball.
    ///
    /// # Safety
    /// The nodes are the planner's, and of the kind's types.
    pub unsafe fn in_ball(
        self,
        root: *mut pg_sys::PlannerInfo,
        function: pg_sys::Oid,
        (column, value): (usize, *mut pg_sys::Node),
        ball: &[*mut pg_sys::Node],
    ) -> Option<*mut pg_sys::OpExpr> {
        let types = self.types(pg_sys::get_func_namespace(function));
        let operator = operator_beside(function, self.operator(column).0, types)?;
        let ball = self.call(root, function, BALL, ball)?;
        Some(nodes::new_condition(operator, value, ball).cast())
    }

    /// Returns a call to the function `name` of the extension, or its result if it is constant. The first of `args` is
    /// a value, the others are its bound and the arguments after the bound. `function` belongs to the extension.
    /// Returns None if there is no such function.
    ///
    /// # Safety
    /// The same as for [`Self::in_ball`].
    pub unsafe fn call(
        self,
        root: *mut pg_sys::PlannerInfo,
        function: pg_sys::Oid,
        name: &CStr,
        args: &[*mut pg_sys::Node],
    ) -> Option<*mut pg_sys::Node> {
        let [value_type, _] = self.types(pg_sys::get_func_namespace(function));
        let terms = args[1..].iter().map(|term| pg_sys::exprType(*term));
        let types: Vec<_> = [value_type].into_iter().chain(terms).collect();
        let make = function_beside(function, name, &types)?;
        Some(nodes::new_call(root, make, args))
    }
}

/// Returns the schema-qualified name of the operator class for scope columns. The extension is in `schema`.
pub fn scope_class(schema: pg_sys::Oid) -> String {
    names::qualified(schema, "scope_ops")
}

impl Bound {
    /// Returns the minimum similarity or the maximum distance.
    pub fn number(&self) -> f64 {
        match *self {
            Self::Threshold(bound) | Self::Share(bound) | Self::Resemblance(bound, _) => bound,
            Self::Distance(distance) => distance.into(),
        }
    }

    /// Returns the bound as a constant of its type.
    pub fn node(&self) -> *mut pg_sys::Node {
        let (type_, datum) = match self {
            Self::Distance(distance) => (pg_sys::INT4OID, (*distance as i32).into()),
            _ => (pg_sys::FLOAT8OID, self.number().to_bits().into()),
        };
        // SAFETY: the datum is of the type.
        unsafe { nodes::new_constant(type_, datum) }
    }

    /// Returns whether every value within this bound of a center is also within `other`. Always false for shares.
    pub fn is_within(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Threshold(threshold), Self::Threshold(other)) => threshold >= other,
            (Self::Distance(distance), Self::Distance(other)) => distance <= other,
            (Self::Resemblance(threshold, cut), Self::Resemblance(other, other_cut)) => {
                threshold >= other && cut == other_cut
            }
            _ => false,
        }
    }

    /// Returns the average share of a center's keys that a value just within the bound has. The index has `options`,
    /// and the values have `parameters`. Returns None if the value may have none of these keys.
    ///
    /// # Safety
    /// The same as for [`Self::is_served`].
    pub unsafe fn share_of_keys(
        &self,
        options: *mut pg_sys::bytea,
        strategy: u16,
        parameters: &ValueParameters,
    ) -> Option<f64> {
        let occurrence = match *self {
            Self::Share(share) | Self::Resemblance(share, _) => {
                return Some(match strategy {
                    RESEMBLES => 2.0 * share / (1.0 + share),
                    _ => share,
                });
            }
            Self::Threshold(threshold) => {
                let header = Header::parse(parameters).ok()?;
                MinhashClass::from_options(options)?.occurrence(&header, threshold)
            }
            Self::Distance(distance) => HammingClass::from_options(options)?.occurrence(distance),
        };
        Some(occurrence?.typical_share)
    }

    /// Returns the ball of everything within the bound of `value`.
    ///
    /// # Safety
    /// `value` is of the kind's type.
    pub unsafe fn ball(&self, value: pg_sys::Datum) -> NewBall {
        match self {
            Self::Threshold(threshold) => {
                NewBall::of_signature(StoredSignature::from_raw(value).bytes(), *threshold)
            }
            Self::Distance(distance) => {
                let bits = Bits::from_raw(value);
                NewBall::of_bits(bits.bytes(), bits.len(), *distance)
            }
            Self::Share(share) => NewBall::of_set(&Bigints::from_raw(value).set(), *share),
            Self::Resemblance(threshold, shingling) => {
                NewBall::of_document(&Text::from_raw(value), *threshold, shingling)
            }
        }
    }

    /// Returns whether an index with `options` finds everything within the bound of `center` by its keys. If `center`
    /// is None, returns whether this is true for any center.
    ///
    /// # Safety
    /// `options` belong to an index of the kind's operator class of `neardup`, or are NULL. `center` is of the kind's
    /// type.
    pub unsafe fn is_served(
        &self,
        options: *mut pg_sys::bytea,
        center: Option<pg_sys::Datum>,
    ) -> bool {
        match *self {
            Self::Threshold(threshold) => {
                let center = center.map(|datum| StoredSignature::from_raw(datum));
                let header = center.as_ref().map(|center| center.read().header);
                MinhashClass::from_options(options)
                    .is_some_and(|class| class.serves(header.as_ref(), threshold))
            }
            Self::Share(_) => true,
            Self::Resemblance(_, shingling) => Kind::Documents.is_cut_as(options, Some(shingling)),
            Self::Distance(distance) => HammingClass::from_options(options)
                .is_some_and(|class| class.occurrence(distance).is_some()),
        }
    }

    /// Returns the operator class, with schema and options, of an index that serves the bound. The extension is in `schema`.
    pub fn operator_class(&self, schema: pg_sys::Oid) -> String {
        let named = |name| names::qualified(schema, name);
        match self {
            Self::Threshold(bound) => format!("{} (threshold = {bound})", named("minhash_ops")),
            Self::Distance(bound) => format!("{} (distance = {bound})", named("hamming_ops")),
            Self::Share(_) => named("set_ops"),
            Self::Resemblance(_, Shingling { k, unit, fold }) => {
                let options = format!("k = {k}, unit = {unit}, fold = {fold}");
                format!("{} ({options})", named("text_ops"))
            }
        }
    }
}
