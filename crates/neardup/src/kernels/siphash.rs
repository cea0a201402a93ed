//! SipHash-1-3 of short tokens, several at a time (Aumasson, Bernstein, INDOCRYPT 2012). The compiler makes
//! vectors of the lanes, one a token.

use crate::hash::Key;
use std::array::from_fn;

/// The longest short token, in bytes.
pub const LONGEST: u64 = 63;

/// Returns the hashes of tokens, given their lengths; that of one beyond [`LONGEST`] bytes means nothing.
/// `bytes` returns 16 bytes of each from a place on, whatever follows the token.
#[inline(always)]
pub fn hash<'b, const LANES: usize>(
    key: &Key,
    lengths: &[u64; LANES],
    bytes: impl Fn(usize) -> [&'b [u8; 16]; LANES],
) -> [u64; LANES] {
    let set = |half: u64, ascii: &[u8; 8]| [half ^ u64::from_be_bytes(*ascii); LANES];
    let mut states = [
        set(key.k0, b"somepseu"),
        set(key.k1, b"dorandom"),
        set(key.k0, b"lygenera"),
        set(key.k1, b"tedbytes"),
    ];
    let longest = lengths
        .iter()
        .fold(0, |longest, length| *length.max(&longest));
    for place in (0..=longest.min(LONGEST)).step_by(16) {
        let bytes = bytes(place as usize);
        for (half, place) in [place, place + 8].into_iter().enumerate() {
            // To look is not worth while for several tokens.
            if LANES > 1 || place <= longest {
                let block = |bytes: &[u8; 16]| u64::from_le_bytes(bytes.as_chunks().0[half]);
                absorb(&mut states, lengths, place, &bytes.map(block));
            }
        }
    }
    finish(&states)
}

/// Absorbs the blocks at a place of those tokens that have one there.
#[inline(always)]
fn absorb<const LANES: usize>(
    states: &mut [[u64; LANES]; 4],
    lengths: &[u64; LANES],
    place: u64,
    blocks: &[u64; LANES],
) {
    for lane in 0..LANES {
        let left = lengths[lane] as i64 - place as i64;
        let bits = (8 * left) as u64;
        let behind = if bits < 64 { u64::MAX << bits } else { 0 };
        let end = if left < 8 { lengths[lane] << 56 } else { 0 };
        let block = blocks[lane] & !behind | end;
        let before = from_fn(|i| states[i][lane]);
        let [v0, v1, v2, v3] = before;
        let [v0, v1, v2, v3] = round([v0, v1, v2, v3 ^ block]);
        let after = [v0 ^ block, v1, v2, v3];
        for i in 0..4 {
            let is_there = place == 0 || left >= 0;
            states[i][lane] = if is_there { after[i] } else { before[i] };
        }
    }
}

#[inline(always)]
fn finish<const LANES: usize>(states: &[[u64; LANES]; 4]) -> [u64; LANES] {
    from_fn(|lane| {
        let [v0, v1, v2, v3] = from_fn(|i| states[i][lane]);
        let last = round(round(round([v0, v1, v2 ^ 0xff, v3])));
        last.into_iter().fold(0, |hash, v| hash ^ v)
    })
}

#[inline(always)]
fn round([v0, v1, v2, v3]: [u64; 4]) -> [u64; 4] {
    let v0 = v0.wrapping_add(v1);
    let v2 = v2.wrapping_add(v3);
    let v1 = v1.rotate_left(13) ^ v0;
    let v3 = v3.rotate_left(16) ^ v2;
    let v0 = v0.rotate_left(32).wrapping_add(v3);
    let v2 = v2.wrapping_add(v1);
    let v1 = v1.rotate_left(17) ^ v2;
    let v3 = v3.rotate_left(21) ^ v0;
    [v0, v1, v2.rotate_left(32), v3]
}
