//! SipHash-1-3 of short tokens (Aumasson, Bernstein, INDOCRYPT 2012). Takes half the time of the siphasher crate on
//! words, because it keeps no state for messages that arrive in parts.

use crate::hash::Key;

/// The longest short token, in bytes.
pub const LONGEST: usize = 63;

/// Returns the state before the first block.
#[inline(always)]
pub fn initial_state(key: &Key) -> [u64; 4] {
    let set = |half: u64, ascii: &[u8; 8]| half ^ u64::from_be_bytes(*ascii);
    [
        set(key.k0, b"somepseu"),
        set(key.k1, b"dorandom"),
        set(key.k0, b"lygenera"),
        set(key.k1, b"tedbytes"),
    ]
}

struct SipState {
    v: [u64; 4],
}

/// Returns the hash of a token of `len` bytes. `bytes` returns the 8 bytes at an offset as a little-endian number;
/// bytes after the token's end are arbitrary.
#[inline(always)]
pub fn hash(key: &Key, len: usize, bytes: impl Fn(usize) -> u64) -> u64 {
    let mut state = SipState::new(key);
    let (whole, rest) = (len & !7, len & 7);
    for place in (0..whole).step_by(8) {
        state.absorb(bytes(place));
    }
    let last = bytes(whole) & ((1 << (8 * rest)) - 1);
    state.absorb(last | (len as u64) << 56);
    state.finish()
}

impl SipState {
    #[inline(always)]
    fn new(key: &Key) -> Self {
        Self {
            v: initial_state(key),
        }
    }

    #[inline(always)]
    fn absorb(&mut self, block: u64) {
        self.v[3] ^= block;
        self.round();
        self.v[0] ^= block;
    }

    #[inline(always)]
    fn round(&mut self) {
        let [v0, v1, v2, v3] = self.v;
        let v0 = v0.wrapping_add(v1);
        let v2 = v2.wrapping_add(v3);
        let v1 = v1.rotate_left(13) ^ v0;
        let v3 = v3.rotate_left(16) ^ v2;
        let v0 = v0.rotate_left(32).wrapping_add(v3);
        let v2 = v2.wrapping_add(v1);
        let v1 = v1.rotate_left(17) ^ v2;
        let v3 = v3.rotate_left(21) ^ v0;
        self.v = [v0, v1, v2.rotate_left(32), v3];
    }

    #[inline(always)]
    fn finish(mut self) -> u64 {
        self.v[2] ^= 0xff;
        self.round();
        self.round();
        self.round();
        self.v.into_iter().fold(0, |hash, v| hash ^ v)
    }
}
