//! The types that vector paths load and store.

/// Arrays of integers of `BYTES` bytes.
///
/// # Safety
/// The type has this size and no padding, and every bit pattern is a valid value.
pub unsafe trait Lanes<const BYTES: usize> {}

// SAFETY: 64 bytes.
unsafe impl Lanes<64> for [u8; 64] {}
// SAFETY: 32 x 2 bytes.
unsafe impl Lanes<64> for [u16; 32] {}
// SAFETY: 16 x 4 bytes.
unsafe impl Lanes<64> for [u32; 16] {}
// SAFETY: 8 x 8 bytes.
unsafe impl Lanes<64> for [u64; 8] {}
// SAFETY: 32 bytes.
unsafe impl Lanes<32> for [u8; 32] {}
// SAFETY: 8 x 2 x 2 bytes.
unsafe impl Lanes<32> for [[u16; 2]; 8] {}
// SAFETY: 8 x 4 bytes.
unsafe impl Lanes<32> for [u32; 8] {}
// SAFETY: 4 x 8 bytes.
unsafe impl Lanes<32> for [u64; 4] {}
// SAFETY: 16 bytes.
unsafe impl Lanes<16> for [u8; 16] {}
// SAFETY: 4 x 2 x 2 bytes.
unsafe impl Lanes<16> for [[u16; 2]; 4] {}
