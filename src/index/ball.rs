//! The query type `_ball`: a center and a bound. A ball is the right operand of `<@`; of `%>` and `<%` for documents
//! and sets; and of `<%>` for sets. Its text form is short, because plans print it: a digest of the center, and the
//! bound. When sent to another server, the text form is complete.
//!
//! Layout, little endian: the bound, the center, and one byte for the kind of the center. The bound is an f64 or, for
//! bit strings, `distance u32 | bits u32`. A document is stored as `k u16 | unit u8 | fold u8 | 4 bytes of 0`, followed
//! by the set of its shingle hashes. A set is stored as ascending i64 elements.

use crate::minhash::datum::StoredSignature;
use crate::options;
use crate::pg::arrays::Bigints;
use crate::pg::bits::Bits;
use crate::pg::prelude::*;
use crate::pg::varlena::{Varlena, argument, result};
use crate::text::measures::shingle_set;
use bitvec::prelude::*;
use neardup::Error;
use neardup::hash::split_mix;
use neardup::memory::{joined, with_room};
use neardup::minhash::{Signature, estimate};
use neardup::set::jaccard_at_least;
use neardup::shingle::{Key, Shingling};
use neardup::text::{Fold, Unit};
use pgrx::prelude::*;
use std::ffi::{CStr, CString};

/// A `_ball` argument.
pub struct Ball<'a>(Varlena<'a>);

argument!(Ball, "_ball");

/// The center and the bound of a ball.
pub enum Within<'a> {
    /// A signature and the minimum similarity, which may be [`EVERYTHING`].
    Signature(Signature<'a>, f64),
    /// A bit string and the maximum distance.
    Bits(BitCenter<'a>, u32),
    /// A set and the minimum containment or Jaccard similarity.
    Set(Vec<i64>, f64),
    /// A document and the minimum resemblance or containment.
    Document(DocumentCenter),
}

impl Within<'_> {
    /// Returns the Jaccard similarity of `value` and the center or, for bit strings, their Hamming distance. Returns
    /// None outside the bound, and for values that cannot be compared.
    ///
    /// # Safety
    /// `value` is of the center's type.
    pub unsafe fn nearness(&self, value: pg_sys::Datum) -> Option<f64> {
        let jaccard = |center: &[i64], set: &[i64], least| {
            jaccard_at_least(set, center, least, &mut check_interrupts)
        };
        match self {
            Self::Signature(center, threshold) => {
                let similarity = estimate(&StoredSignature::from_raw(value).read(), center);
                similarity.ok().filter(|similarity| similarity >= threshold)
            }
            Self::Bits(_, most) => {
                let distance = self.distance(value);
                distance.filter(|distance| *distance <= f64::from(*most))
            }
            Self::Set(center, share) => jaccard(center, &Bigints::from_raw(value).set(), *share),
            Self::Document(center) => {
                let set = shingle_set(&Text::from_raw(value), &center.shingling);
                jaccard(&center.set, &set, center.threshold)
            }
        }
    }

    /// Returns the result of the distance operator for `value` and the center. Returns None for sets and documents, and
    /// for values not comparable with the center, for which the operator fails.
    ///
    /// # Safety
    /// `value` is of the center's type.
    pub unsafe fn distance(&self, value: pg_sys::Datum) -> Option<f64> {
        match self {
            Self::Signature(center, _) => {
                match estimate(&StoredSignature::from_raw(value).read(), center) {
                    Err(Error::Incomparable { .. }) => None,
                    estimate => Some(1.0 - estimate.or_raise()),
                }
            }
            Self::Bits(center, _) => {
                let bits = Bits::from_raw(value);
                (bits.len() == center.len)
                    .then(|| neardup::hamming::distance(bits.bytes(), center.bytes).into())
            }
            _ => None,
        }
    }

    /// Converts `distance` to the result type of the operator for distances.
    pub fn distance_datum(&self, distance: f64) -> pg_sys::Datum {
        match self {
            Self::Bits(..) => pg_sys::Datum::from(distance as i32),
            _ => pg_sys::Datum::from(distance.to_bits()),
        }
    }

    /// Returns the short text form: a digest that identifies the center, and the bound.
    pub fn text(&self) -> String {
        match self {
            Self::Signature(center, threshold) => {
                let header = center.header;
                let content = match header.empty {
                    true => String::from("empty"),
                    false => digest(center.payload),
                };
                format!("<{header}:{content},{threshold}>")
            }
            Self::Bits(center, distance) => {
                format!("<{} bits:{},{distance}>", center.len, digest(center.bytes))
            }
            Self::Set(set, share) => {
                format!("<{} elements:{},{share}>", set.len(), digest_of_set(set))
            }
            Self::Document(center) => {
                let Shingling { k, unit, fold } = center.shingling;
                let (count, content) = (center.set.len(), digest_of_set(&center.set));
                let threshold = center.threshold;
                format!("<{count} shingles of {unit}:{k}:{fold}:{content},{threshold}>")
            }
        }
    }
}

fn digest(bytes: &[u8]) -> String {
    format!("{:016x}", Key::from_seed(0).token_hash(bytes))
}

fn digest_of_set(set: &[i64]) -> String {
    let digest = set
        .iter()
        .fold(0, |digest, &element| split_mix(digest ^ element as u64));
    format!("{digest:016x}")
}

/// The set of a center document, and the minimum resemblance or containment of documents in the ball.
pub struct DocumentCenter {
    pub threshold: f64,
    pub shingling: Shingling,
    pub set: Vec<i64>,
}

/// The bytes of a bit string, and its length in bits.
#[derive(Clone, Copy)]
pub struct BitCenter<'a> {
    pub bytes: &'a [u8],
    pub len: usize,
}

impl<'a> BitCenter<'a> {
    pub fn bits(&self) -> &'a BitSlice<u8, Msb0> {
        &self.bytes.view_bits()[..self.len]
    }
}

const OF_SIGNATURE: u8 = 0;
const OF_BITS: u8 = 1;
const OF_SET: u8 = 2;
const OF_DOCUMENT: u8 = 3;

/// The threshold of a ball that contains every signature, comparable or not. Occurs only in conditions that the planner
/// derives from bounds that it does not know.
pub const EVERYTHING: f64 = 0.0;

impl Ball<'_> {
    /// # Safety
    /// `datum` is a non-null datum of type _ball that outlives the value.
    pub unsafe fn from_raw(datum: pg_sys::Datum) -> Self {
        Self(Varlena::from_raw(datum))
    }

    /// Returns the center and the bound.
    ///
    /// # Errors
    /// ERROR `data_corrupted` if the bytes are not a ball.
    pub fn read(&self) -> Within<'_> {
        read(&self.0)
    }
}

/// Returns the center and the bound of the ball stored in `bytes`.
///
/// # Errors
/// ERROR `data_corrupted` if the bytes are not a ball.
pub fn read(bytes: &[u8]) -> Within<'_> {
    parse(bytes).unwrap_or_else(|| corrupt("_ball"))
}

fn parse(bytes: &[u8]) -> Option<Within<'_>> {
    let (kind, bytes) = bytes.split_last()?;
    let (head, rest) = bytes.split_first_chunk()?;
    let bound = f64::from_le_bytes(*head);
    match *kind {
        OF_SIGNATURE if bound == EVERYTHING || options::is_threshold(bound) => {
            Some(Within::Signature(Signature::from_bytes(rest).ok()?, bound))
        }
        OF_BITS => {
            let [distance, len] = *head.as_chunks().0 else {
                return None;
            };
            let [distance, len] = [distance, len].map(u32::from_le_bytes);
            let len = len as usize;
            let padding = rest.view_bits::<Msb0>().get(len..)?;
            let is_valid = distance <= i32::MAX as u32 && padding.len() < 8 && padding.not_any();
            is_valid.then_some(Within::Bits(BitCenter { bytes: rest, len }, distance))
        }
        OF_SET if options::is_threshold(bound) => Some(Within::Set(read_elements(rest)?, bound)),
        OF_DOCUMENT if options::is_threshold(bound) => {
            let (&[k0, k1, unit, fold, 0, 0, 0, 0], hashes) = rest.split_first_chunk()? else {
                return None;
            };
            let k = i64::from(u16::from_le_bytes([k0, k1]));
            let (unit, fold) = (Unit::from_repr(unit)?, Fold::from_repr(fold)?);
            Some(Within::Document(DocumentCenter {
                threshold: bound,
                shingling: Shingling::new(k, unit, fold).ok()?,
                set: read_elements(hashes)?,
            }))
        }
        _ => None,
    }
}

/// Returns the elements of a set, or None unless `bytes` are whole elements in ascending order.
fn read_elements(bytes: &[u8]) -> Option<Vec<i64>> {
    let (elements, rest) = bytes.as_chunks();
    let elements = elements.iter().map(|element| i64::from_le_bytes(*element));
    let is_valid = rest.is_empty() && elements.clone().is_sorted_by(|a, b| a < b);
    is_valid.then(|| collected(elements).or_raise())
}

/// Raises ERROR `data_corrupted` for a stored value that is not of type `name`.
pub fn corrupt(name: &str) -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
        &format!("invalid {name}"),
        "The stored value was not written by pg_neardup.",
    )
}

/// A new `_ball`, in its stored form.
pub struct NewBall(pub Vec<u8>);

result!(NewBall, "_ball");

impl NewBall {
    /// Returns the center and the bound.
    pub fn read(&self) -> Within<'_> {
        read(&self.0)
    }

    pub fn of_signature(center: &[u8], threshold: f64) -> Self {
        Self(joined(&[&threshold.to_le_bytes(), center, &[OF_SIGNATURE]]).or_raise())
    }

    pub fn of_bits(center: &[u8], bits: usize, distance: u32) -> Self {
        let numbers = [distance.to_le_bytes(), (bits as u32).to_le_bytes()];
        Self(joined(&[numbers.as_flattened(), center, &[OF_BITS]]).or_raise())
    }

    pub fn of_set(set: &[i64], share: f64) -> Self {
        Self::with_elements(&share.to_le_bytes(), set, OF_SET)
    }

    pub fn of_document(doc: &[u8], threshold: f64, shingling: &Shingling) -> Self {
        let set = shingle_set(doc, shingling);
        let [k0, k1] = (shingling.k as u16).to_le_bytes();
        let [unit, fold] = [shingling.unit as u8, shingling.fold as u8];
        let head = [threshold.to_le_bytes(), [k0, k1, unit, fold, 0, 0, 0, 0]];
        Self::with_elements(head.as_flattened(), &set, OF_DOCUMENT)
    }

    /// Returns a ball that consists of `head`, the elements of `set`, and the `kind` of the center.
    fn with_elements(head: &[u8], set: &[i64], kind: u8) -> Self {
        let mut bytes = with_room(head.len() + size_of_val(set) + 1).or_raise();
        bytes.try_extend_from_slice(head).or_raise();
        let elements = set.iter().flat_map(|element| element.to_le_bytes());
        bytes.try_extend(elements).or_raise();
        bytes.try_push(kind).or_raise();
        Self(bytes)
    }
}

/// Returns the ball in `text`, which [`ball_out`] wrote for other programs: the stored bytes in hexadecimal.
#[pg_extern(immutable, parallel_safe, strict)]
fn _ball_in(text: &CStr) -> NewBall {
    let digits = text.to_bytes().strip_prefix(b"\\x").unwrap_or_default();
    let mut ball = filled(0, digits.len() / 2).or_raise();
    match hex::decode_to_slice(digits, &mut ball) {
        Ok(()) if is_valid(&ball) => NewBall(ball),
        _ => reject_text("_ball", "Such a value is made by _ball(center, bound)."),
    }
}

/// Returns whether untrusted bytes are a ball. Also checks every slot of a signature.
fn is_valid(bytes: &[u8]) -> bool {
    match (parse(bytes), bytes) {
        (Some(Within::Signature(..)), [_, _, _, _, _, _, _, _, signature @ .., _]) => {
            Signature::from_foreign_bytes(signature).is_ok()
        }
        (ball, _) => ball.is_some(),
    }
}

/// Raises ERROR `feature_not_supported`: values of type `name` are made by functions, not read from text.
pub fn reject_text(name: &str, hint: &str) -> ! {
    unsupported(&format!("cannot accept a value of type {name}"), hint)
}

/// Returns a short text for people or, if it is sent to another server, one that [`_ball_in`] reads. postgres_fdw and
/// pg_dump are recognized by `extra_float_digits`, which they set to print floats exactly.
#[pg_extern(immutable, parallel_safe, strict, name = "_out")]
fn ball_out(ball: Ball<'_>) -> CString {
    // SAFETY: reads a setting of the backend.
    let is_sent = unsafe { pg_sys::extra_float_digits } >= 3;
    let text = match is_sent {
        true => {
            let mut text = filled(b'x', 2 + 2 * ball.0.len()).or_raise();
            text[0] = b'\\';
            hex::encode_to_slice(&*ball.0, &mut text[2..]).expect("two digits per byte");
            text
        }
        false => ball.read().text().into_bytes(),
    };
    CString::new(text).expect("the text form has no NUL")
}

pgrx::extension_sql!(
    r#"
CREATE TYPE _ball (
    INPUT = _ball_in, OUTPUT = _out,
    INTERNALLENGTH = VARIABLE, ALIGNMENT = int4, STORAGE = extended
);
"#,
    name = "ball_type",
    requires = [_ball_in, ball_out]
);
