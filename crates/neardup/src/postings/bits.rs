//! Numbers of a fixed width in bits, packed beginning with the lowest bit of the first byte.

use crate::kernels::first_bytes;

/// Maximum number of numbers packed at once: one block.
pub const BLOCK: usize = 64;

/// Number of bytes of a block of 32-bit numbers, the widest.
const LONGEST: usize = BLOCK * 32 / 8;

/// Number of bytes of a buffer in which a 64-bit word can begin at any byte of a block.
const PADDED: usize = LONGEST + 8;

/// Returns the width in bits of the widest number, given `ored`, the bitwise OR of all numbers.
pub fn width(ored: u32) -> u32 {
    u32::BITS - ored.leading_zeros()
}

pub fn packed_len(numbers: usize, width: u32) -> usize {
    (numbers * width as usize).div_ceil(8)
}

/// Appends `numbers`, at most [`BLOCK`] of them and each below 2^`width`, to `out`.
pub fn pack(numbers: &[u32], width: u32, out: &mut Vec<u8>) {
    let mut bytes = [0; PADDED];
    let (mut at, mut pending, mut bits) = (0, 0, 0);
    for &number in numbers {
        pending |= u64::from(number) << bits;
        bits += width;
        // Writes whole words: the next word overwrites the bits of the last incomplete byte.
        bytes[at..at + 8].copy_from_slice(&pending.to_le_bytes());
        at += (bits / 8) as usize;
        pending >>= bits / 8 * 8;
        bits %= 8;
    }
    out.extend_from_slice(&bytes[..packed_len(numbers.len(), width)]);
}

/// Returns the number of `width` bits, at most 32, that begins at bit `bit`. Reads zeros after the end of `bytes`.
#[inline]
pub fn number_in(bytes: &[u8], bit: u32, width: u32) -> u32 {
    let at = (bit / 8) as usize;
    let word = match bytes.get(at..at + 8) {
        Some(word) => u64::from_le_bytes(word.try_into().expect("8 bytes")),
        None => last_word(bytes.get(at..).unwrap_or_default()),
    };
    (word >> (bit % 8) & ((1 << width) - 1)) as u32
}

#[cold]
fn last_word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(first_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_follow_one_another_from_the_lowest_bit() {
        let mut bytes = Vec::new();
        pack(&[1, 2, 3, 4, 5], 3, &mut bytes);
        assert_eq!(bytes, [0b1101_0001, 0b0101_1000]);
    }

    proptest! {
        #[test]
        fn numbers_come_back(width in 0u32..=32, numbers in prop::collection::vec(any::<u32>(), 0..=BLOCK)) {
            let mask = ((1u64 << width) - 1) as u32;
            let numbers: Vec<u32> = numbers.iter().map(|number| number & mask).collect();
            let mut bytes = Vec::new();
            pack(&numbers, width, &mut bytes);
            prop_assert_eq!(bytes.len(), packed_len(numbers.len(), width));
            for (i, number) in (0..).zip(&numbers) {
                prop_assert_eq!(number_in(&bytes, i * width, width), *number);
            }
        }
    }
}
