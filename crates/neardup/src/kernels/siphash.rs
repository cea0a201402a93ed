//! SipHash-1-3 of short tokens (Aumasson, Bernstein, INDOCRYPT 2012), without the state that the
//! siphasher crate keeps for messages that come in parts: half its time on words.

use crate::hash::Key;

/// The longest short token, in bytes: two blocks, of which the second has room for the length.
pub const LONGEST: usize = 15;

struct State {
    v: [u64; 4],
}

/// Returns the hash of the first `len` of these bytes, from the lowest, at most [`LONGEST`]; for
/// more it means nothing.
#[inline(always)]
pub fn hash(key: &Key, bytes: u128, len: usize) -> u64 {
    let bytes = bytes & ((1 << (8 * (len % 16))) - 1);
    let end = (len as u64) << 56;
    let (first, second) = (bytes as u64, (bytes >> 64) as u64);
    let mut state = State::new(key);
    if len < 8 {
        state.absorb(first | end);
    } else {
        state.absorb(first);
        state.absorb(second | end);
    }
    state.finish()
}

impl State {
    #[inline(always)]
    fn new(key: &Key) -> Self {
        let set = |half: u64, ascii: &[u8; 8]| half ^ u64::from_be_bytes(*ascii);
        Self {
            v: [
                set(key.k0, b"somepseu"),
                set(key.k1, b"dorandom"),
                set(key.k0, b"lygenera"),
                set(key.k1, b"tedbytes"),
            ],
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
