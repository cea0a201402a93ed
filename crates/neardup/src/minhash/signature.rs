//! The stored form of a signature, its text form, and the parameters that make two signatures comparable.
//!
//! Layout, little endian, after the varlena header:
//! `version u8 | unit u8 | k u16 | slots u16 | slot_bits u8 | flags u8 | seed_id u64 | slots...`.
//! Flags: bits 0 and 1 the fold, bit 7 an empty document, whose slots are all unfilled. Slots of
//! fewer than 8 bits are packed from the low end of each byte; unused bits of the last byte are 0.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros, reason = "at most MAX_SLOTS slots")]

use crate::shingle::{MAX_K, Shingling};
use crate::text::{Fold, Unit};
use crate::{Error, Result, quoted, with_room};
use base64::engine::general_purpose::STANDARD as BASE64;
use base64::{Engine, decoded_len_estimate};
use std::fmt;
use std::str::FromStr;
use strum::{Display, EnumString, FromRepr};

use super::{MAX_SLOTS, UNFILLED};

pub const VERSION: u8 = 1;
pub const HEADER_LEN: usize = 16;

/// Expected form of a signature as text.
pub const TEXT_FORM: &str =
    "The text form is minhash:1:<unit>:<k>:<fold>:<slots>x<bits>:<seed id>:<base64>.";

/// Expected form of a signature as bytes.
pub const BINARY_FORM: &str =
    "The binary form is a header of 16 bytes and the slots, as minhash_signature_send writes it.";

const FOLD_MASK: u8 = 0b0000_0011;
const EMPTY: u8 = 0b1000_0000;

/// Kind of the elements that a signature stands for. Codes are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Display, EnumString, FromRepr)]
#[strum(serialize_all = "lowercase", parse_err_ty = Error, parse_err_fn = unknown_unit)]
#[repr(u8)]
pub enum SignatureUnit {
    Word = 1,
    Char = 2,
    Stop = 3,
    /// Elements of a set, hashed.
    Set = 4,
    /// Lexemes of a tsvector.
    Lexeme = 5,
    /// Slots computed elsewhere.
    Imported = 6,
}

fn unknown_unit(name: &str) -> Error {
    Error::corrupt(format!("unknown unit {}", quoted(name)))
}

impl From<Unit> for SignatureUnit {
    fn from(unit: Unit) -> Self {
        match unit {
            Unit::Word => Self::Word,
            Unit::Char => Self::Char,
            Unit::Stop => Self::Stop,
        }
    }
}

/// All parts of a signature except its slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Header {
    pub unit: SignatureUnit,
    pub k: u16,
    pub slots: u16,
    pub slot_bits: u8,
    pub fold: Fold,
    pub empty: bool,
    pub seed_id: u64,
}

impl Header {
    /// Returns the header of a full-width signature of a document.
    pub fn of_document(shingling: &Shingling, slots: usize, seed_id: u64) -> Self {
        Self {
            fold: shingling.fold,
            ..Self::of_set(shingling.unit.into(), shingling.k, slots, seed_id)
        }
    }

    /// Returns the header of a full-width signature of elements other than this crate's shingles.
    pub fn of_set(unit: SignatureUnit, k: usize, slots: usize, seed_id: u64) -> Self {
        Self {
            unit,
            k: k as u16,
            slots: slots as u16,
            slot_bits: 32,
            fold: Fold::None,
            empty: false,
            seed_id,
        }
    }

    /// Returns the number of slots and the number of bits of each.
    #[inline]
    pub fn size(&self) -> (usize, u32) {
        (usize::from(self.slots), u32::from(self.slot_bits))
    }

    /// Returns the length of the slots in bytes.
    #[inline]
    pub fn payload_len(&self) -> usize {
        (usize::from(self.slots) * usize::from(self.slot_bits)).div_ceil(8)
    }

    /// Returns whether two signatures are comparable: whether their headers are equal except for `empty`.
    pub fn comparable(&self, other: &Self) -> bool {
        Self {
            empty: other.empty,
            ..*self
        } == *other
    }

    /// Checks that two signatures are comparable.
    ///
    /// # Errors
    /// `Incomparable`, naming both parameter sets, unless all parameters agree.
    pub fn check_comparable(&self, other: &Self) -> Result<()> {
        if self.comparable(other) {
            return Ok(());
        }
        Err(Error::Incomparable {
            message: "signatures made with different parameters cannot be compared".to_owned(),
            hint: format!(
                "One is {self}, the other {other} (unit:k:fold:slots x bits:seed id); make both with the same parameters."
            ),
        })
    }

    /// Returns the stored form of a signature with this header. It keeps the low `slot_bits` bits of the full-width
    /// `slots`.
    pub fn encode(&self, slots: &[u32]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_LEN + self.payload_len());
        bytes.extend_from_slice(&self.to_bytes());
        self.push_slots(slots, &mut bytes);
        bytes
    }

    /// Appends full-width `slots` as [`Self::encode`] stores them: [`Self::payload_len`] bytes.
    pub fn push_slots(&self, slots: &[u32], bytes: &mut Vec<u8>) {
        match self.slot_bits {
            32 => bytes.extend(slots.iter().flat_map(|slot| slot.to_le_bytes())),
            16 => bytes.extend(slots.iter().flat_map(|slot| (*slot as u16).to_le_bytes())),
            bits => {
                let mask = (1u32 << bits) - 1;
                let per_byte = usize::from(8 / bits);
                bytes.extend(slots.chunks(per_byte).map(|chunk| {
                    let pack = |byte: u32, (i, slot): (usize, &u32)| {
                        byte | (slot & mask) << (i * usize::from(bits))
                    };
                    chunk.iter().enumerate().fold(0, pack) as u8
                }));
            }
        }
    }

    /// Returns the header's bytes with `empty` cleared. Two signatures are comparable if and only if these bytes are
    /// equal.
    pub fn parameters(&self) -> [u8; HEADER_LEN] {
        let mut header = *self;
        header.empty = false;
        header.to_bytes()
    }

    fn to_bytes(self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[0] = VERSION;
        bytes[1] = self.unit as u8;
        bytes[2..4].copy_from_slice(&self.k.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.slots.to_le_bytes());
        bytes[6] = self.slot_bits;
        bytes[7] = self.fold as u8 | if self.empty { EMPTY } else { 0 };
        bytes[8..16].copy_from_slice(&self.seed_id.to_le_bytes());
        bytes
    }

    /// Reads the header of stored bytes, or the result of [`Self::parameters`].
    ///
    /// # Errors
    /// `Corrupt` if the bytes are not a valid header.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let Some(bytes) = bytes.first_chunk::<HEADER_LEN>() else {
            let found = bytes.len();
            return corrupt(format!("a header has {HEADER_LEN} bytes, {found} found"));
        };
        if bytes[0] != VERSION {
            return corrupt(format!("unknown version {}", bytes[0]));
        }
        if bytes[7] & !(FOLD_MASK | EMPTY) != 0 {
            return corrupt(format!("unknown flags {:#04x}", bytes[7]));
        }
        let fold = bytes[7] & FOLD_MASK;
        let fold = Fold::from_repr(fold)
            .ok_or_else(|| Error::corrupt(format!("unknown fold code {fold}")))?;
        let unit = SignatureUnit::from_repr(bytes[1])
            .ok_or_else(|| Error::corrupt(format!("unknown unit code {}", bytes[1])))?;
        let [k, slots] = [[bytes[2], bytes[3]], [bytes[4], bytes[5]]].map(u16::from_le_bytes);
        check_ranges(k, slots, bytes[6])?;
        Ok(Self {
            unit,
            k,
            slots,
            slot_bits: bytes[6],
            fold,
            empty: bytes[7] & EMPTY != 0,
            seed_id: u64::from_le_bytes(bytes[8..16].try_into().expect("8 bytes")),
        })
    }
}

/// Returns whether a slot can have `bits` bits: a power of two up to 32.
#[inline]
pub fn is_slot_bits(bits: u8) -> bool {
    matches!(bits, 1 | 2 | 4 | 8 | 16 | 32)
}

/// Checks the ranges of the parameters. Takes them one by one, because a [`Header`] in memory would be copied right
/// after its fields are written, a stall that takes a tenth of the time of `minhash_sim`.
#[inline]
fn check_ranges(k: u16, slots: u16, slot_bits: u8) -> Result<()> {
    if !(1..=MAX_K).contains(&usize::from(k)) {
        return corrupt(format!("k = {k} is out of range"));
    }
    if !(1..=MAX_SLOTS).contains(&usize::from(slots)) {
        return corrupt(format!("{slots} slots are not 1 to {MAX_SLOTS}"));
    }
    if !is_slot_bits(slot_bits) {
        let message = format!("{slot_bits} bits per slot are not 1, 2, 4, 8, 16 or 32");
        return corrupt(message);
    }
    Ok(())
}

fn corrupt<T>(message: impl Into<String>) -> Result<T> {
    Err(Error::corrupt(message))
}

/// Displays the parameters, for messages and the text form.
impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}:{}:{}x{}:{:016x}",
            self.unit, self.k, self.fold, self.slots, self.slot_bits, self.seed_id
        )
    }
}

/// A stored signature, borrowed and validated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature<'a> {
    pub header: Header,
    /// The bytes of the slots.
    pub payload: &'a [u8],
}

impl<'a> Signature<'a> {
    /// Reads stored bytes. Checks header and length, in constant time.
    ///
    /// # Errors
    /// `Corrupt` if the header or the length is not valid.
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self> {
        let header = Header::parse(bytes)?;
        let payload = &bytes[HEADER_LEN..];
        let (expected, found) = (header.payload_len(), payload.len());
        if found != expected {
            return corrupt(format!("{expected} bytes of slots expected, {found} found"));
        }
        Ok(Self { header, payload })
    }

    /// Reads untrusted bytes. Also checks every slot.
    ///
    /// # Errors
    /// `Corrupt` if the bytes are not a valid signature.
    pub fn from_foreign_bytes(bytes: &'a [u8]) -> Result<Self> {
        let signature = Self::from_bytes(bytes)?;
        let header = signature.header;
        let bits = usize::from(header.slots) * usize::from(header.slot_bits);
        let padding = match (bits % 8, signature.payload.last()) {
            (0, _) | (_, None) => 0,
            (used, Some(last)) => last >> used,
        };
        if padding != 0 {
            return corrupt("bits are set after the last slot");
        }
        if header.empty {
            let unfilled = UNFILLED >> (32 - u32::from(header.slot_bits));
            if signature.slots().any(|slot| slot != unfilled) {
                return corrupt("an empty document with filled slots");
            }
        } else if header.slot_bits == 32 && header.unit != SignatureUnit::Imported {
            let end = crate::hash::slot::first_code(2 * usize::from(header.slots));
            if signature.slots().any(|slot| slot >= end) {
                return corrupt("a slot beyond the last round");
            }
        }
        Ok(signature)
    }

    /// Returns the stored bytes for the text form `minhash:1:word:3:case:128x32:<seed id>:<base64>`. In it, `empty`
    /// stands for the slots of an empty document.
    ///
    /// # Errors
    /// `Corrupt`, naming the part that was found and the expected one.
    pub fn parse_text(text: &str) -> Result<Vec<u8>> {
        let text = text.trim();
        if !text.starts_with("minhash:") {
            return corrupt(format!("{} does not begin with \"minhash:\"", quoted(text)));
        }
        let fields: Vec<&str> = text.split(':').take(9).collect();
        let [_, version, unit, k, fold, size, seed_id, slots] = fields[..] else {
            let found = text.split(':').count();
            let message = format!("8 fields separated by colons expected, {found} found");
            return corrupt(message);
        };
        if version != VERSION.to_string() {
            return corrupt(format!("unknown version {}", quoted(version)));
        }
        let (count, bits) = size.split_once('x').unwrap_or((size, ""));
        let header = Header {
            unit: unit.parse()?,
            k: parse_number(k, "k")?,
            slots: parse_number(count, "number of slots")?,
            slot_bits: parse_number(bits, "bits of a slot")?,
            fold: fold
                .parse()
                .map_err(|_| Error::corrupt(format!("unknown fold {}", quoted(fold))))?,
            empty: slots == "empty",
            seed_id: parse_seed_id(seed_id)?,
        };
        check_ranges(header.k, header.slots, header.slot_bits)?;
        if header.empty {
            return Ok(header.encode(&vec![UNFILLED; usize::from(header.slots)]));
        }
        let mut bytes = with_room(HEADER_LEN + decoded_len_estimate(slots.len()))?;
        bytes.extend_from_slice(&header.to_bytes());
        BASE64
            .decode_vec(slots, &mut bytes)
            .map_err(|error| Error::corrupt(format!("the slots are not base64: {error}")))?;
        Signature::from_foreign_bytes(&bytes)?;
        Ok(bytes)
    }

    /// Returns the slots, widened to 32 bits.
    pub fn slots(&self) -> impl ExactSizeIterator<Item = u32> + 'a {
        let payload = self.payload;
        let bits = usize::from(self.header.slot_bits);
        (0..usize::from(self.header.slots)).map(move |i| match bits {
            32 => u32::from_le_bytes(payload[4 * i..4 * i + 4].try_into().expect("4 bytes")),
            16 => u32::from(u16::from_le_bytes([payload[2 * i], payload[2 * i + 1]])),
            _ => {
                let bit = i * bits;
                u32::from(payload[bit / 8]) >> (bit % 8) & ((1 << bits) - 1)
            }
        })
    }
}

/// Displays the text form.
impl fmt::Display for Signature<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "minhash:{VERSION}:{}:", self.header)?;
        if self.header.empty {
            f.write_str("empty")
        } else {
            f.write_str(&BASE64.encode(self.payload))
        }
    }
}

fn parse_number<N: FromStr>(digits: &str, what: &str) -> Result<N> {
    digits
        .parse()
        .ok()
        .filter(|_| digits.bytes().all(|b| b.is_ascii_digit()))
        .ok_or_else(|| Error::corrupt(format!("bad {what} {}", quoted(digits))))
}

fn parse_seed_id(digits: &str) -> Result<u64> {
    u64::from_str_radix(digits, 16)
        .ok()
        .filter(|_| digits.len() == 16 && digits.bytes().all(|b| b.is_ascii_hexdigit()))
        .ok_or_else(|| Error::corrupt(format!("bad seed id {}", quoted(digits))))
}
