//! Numbers of a fixed width in bits, one after another from the lowest bit of the first byte.

/// Numbers in a block, and so the most that are packed at once.
pub const BLOCK: usize = 64;

const WIDEST: usize = BLOCK * 32 / 8;

/// Room for a 64-bit word that begins at any byte of the widest block.
const PADDED: usize = WIDEST + 8;

/// Bits that the largest of some numbers takes, given by all of them or-ed together.
pub fn width(ored: u32) -> u32 {
    u32::BITS - ored.leading_zeros()
}

pub fn packed_len(numbers: usize, width: u32) -> usize {
    (numbers * width as usize).div_ceil(8)
}

/// Appends numbers below 2^`width`, at most [`BLOCK`] of them.
pub fn pack(numbers: &[u32], width: u32, out: &mut Vec<u8>) {
    let mut bytes = [0; PADDED];
    for (i, &number) in numbers.iter().enumerate() {
        let (at, shift) = place(i, width);
        let word = word(&bytes, at) | u64::from(number) << shift;
        bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }
    out.extend_from_slice(&bytes[..packed_len(numbers.len(), width)]);
}

/// The numbers of a block of `width` (at most 32) bits each; 0 beyond those that `packed` holds.
///
/// Without a branch in the loop: one load, shift and mask a number, whatever the width.
#[inline]
pub fn unpack(packed: &[u8], width: u32, out: &mut [u32; BLOCK]) {
    let mut bytes = [0; PADDED];
    bytes[..packed.len()].copy_from_slice(packed);
    let mask = (1u64 << width) - 1;
    for (i, number) in out.iter_mut().enumerate() {
        let (at, shift) = place(i, width);
        *number = (word(&bytes, at) >> shift & mask) as u32;
    }
}

/// First byte of number `i`, and its lowest bit in there.
#[inline]
fn place(i: usize, width: u32) -> (usize, u32) {
    let bit = i as u32 * width;
    // The remainder changes nothing, but shows the compiler that every access is within bounds.
    ((bit / 8) as usize % WIDEST, bit % 8)
}

#[inline]
fn word(bytes: &[u8; PADDED], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
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
            let mut out = [7; BLOCK];
            unpack(&bytes, width, &mut out);
            prop_assert_eq!(&out[..numbers.len()], &numbers[..]);
            prop_assert!(out[numbers.len()..].iter().all(|number| *number == 0));
        }
    }
}
