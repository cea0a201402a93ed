//! PostgreSQL's `bit` and `varbit` as slices and vectors of the bitvec crate, whose `BitSlice<u8, Msb0>` has the same
//! layout.

use crate::pg::error::{OrRaise, corrupted};
use crate::pg::varlena::{Varlena, argument, result};
use bitvec::prelude::*;
use neardup::memory::joined;
use pgrx::pg_sys;

/// Number of bytes before the bits, which hold the number of bits as an int4.
const COUNT_LEN: usize = size_of::<i32>();

/// A `bit` or `varbit` argument.
pub struct Bits<'a>(Varlena<'a>);

impl Bits<'_> {
    /// Reads a datum of type `bit` or `varbit`.
    ///
    /// # Safety
    /// `datum` is a non-null datum of type bit or varbit that outlives the value.
    ///
    /// # Errors
    /// ERROR `data_corrupted` if the number of bits does not match the number of bytes.
    pub unsafe fn from_raw(datum: pg_sys::Datum) -> Self {
        let bits = Self(Varlena::from_raw(datum));
        let bytes = bits.0.len().checked_sub(COUNT_LEN);
        if bytes.is_none_or(|bytes| bytes != bits.len().div_ceil(8)) {
            corrupted("invalid bit string: its length does not match its bytes");
        }
        bits
    }

    /// Returns the stored form: the number of bits as an int4, then the bytes.
    pub fn stored(&self) -> &[u8] {
        &self.0
    }

    /// Returns the number of bits.
    pub fn len(&self) -> usize {
        // The value may be stored unaligned.
        self.0
            .first_chunk::<COUNT_LEN>()
            .map_or(usize::MAX, |len| i32::from_ne_bytes(*len) as usize)
    }

    /// Returns the bits, eight to a byte, the highest bit first. Unused bits of the last byte are 0.
    pub fn bytes(&self) -> &[u8] {
        &self.0[COUNT_LEN..]
    }

    pub fn as_bitslice(&self) -> &BitSlice<u8, Msb0> {
        &self.bytes().view_bits()[..self.len()]
    }
}

argument!(Bits, "bit");

/// A new `varbit`: the number of bits as an int4, then the bytes.
pub struct NewVarbit(Vec<u8>);

impl NewVarbit {
    /// Makes a value of `bits` bits from `bytes`, eight to a byte, the highest bit first. Unused bits of the last byte
    /// are 0.
    pub fn new(bytes: &[u8], bits: usize) -> Self {
        Self(joined(&[&(bits as i32).to_ne_bytes(), bytes]).or_raise())
    }
}

result!(NewVarbit, "varbit");

/// A new `bit`, with the layout of [`NewVarbit`].
pub struct NewBits(Vec<u8>);

impl NewBits {
    pub fn new(mut bits: BitVec<u8, Msb0>) -> Self {
        bits.set_uninitialized(false);
        let count = bits.len() as i32;
        Self(joined(&[&count.to_ne_bytes(), bits.as_raw_slice()]).or_raise())
    }
}

result!(NewBits, "bit");
