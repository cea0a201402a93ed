//! Weighted sums of bit positions, for any processor.

/// Planes of a count: plane p holds bit p of the counts of all 64 positions.
const PLANES: usize = 13;

/// The most words that [`count`] takes.
const MAX_WORDS: usize = (1 << PLANES) - 1;

/// Adds to the sum of every position, from the lowest bit, the weights of the words that set it.
#[inline]
pub fn add_where_set(words: &[u64], weights: &[i64], sums: &mut [i64; 64]) {
    for (word, weight) in words.iter().zip(weights) {
        for (bit, sum) in sums.iter_mut().enumerate() {
            *sum += weight & ((word >> bit & 1) as i64).wrapping_neg();
        }
    }
}

/// Adds one weight for every word by `add`, which adds a plane as it would a word: counting bits
/// first spares most of the work.
#[inline]
pub fn add_planes(words: &[u64], weight: i64, mut add: impl FnMut(&[u64], &[i64])) {
    for words in words.chunks(MAX_WORDS) {
        let used = PLANES.min(words.len().ilog2() as usize + 1);
        let weights: [i64; PLANES] = std::array::from_fn(|plane| weight << plane);
        add(&count(words)[..used], &weights[..used]);
    }
}

/// Returns how many words have each bit set, in planes. A tree of carry-save adders
/// (Harley and Seal; Warren, "Hacker's Delight", section 5-1) takes 5 operations a word for all 64
/// positions.
fn count(words: &[u64]) -> [u64; PLANES] {
    let mut planes = [0; PLANES];
    let (eights, rest) = words.as_chunks::<8>();
    for words in eights {
        add8(&mut planes, *words);
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    add8(&mut planes, last);
    planes
}

#[inline]
fn add8(planes: &mut [u64; PLANES], words: [u64; 8]) {
    let [ones, twos, fours, above @ ..] = planes;
    let [a, b, c, d, e, f, g, h] = words;
    let (a, b) = (add3(ones, a, b), add3(ones, c, d));
    let (c, d) = (add3(ones, e, f), add3(ones, g, h));
    let (a, b) = (add3(twos, a, b), add3(twos, c, d));
    let mut carry = add3(fours, a, b);
    for plane in above {
        (*plane, carry) = (*plane ^ carry, *plane & carry);
    }
}

/// Adds two words to a plane and returns the carries.
#[inline]
fn add3(plane: &mut u64, a: u64, b: u64) -> u64 {
    let half = *plane ^ a;
    let carry = (*plane & a) | (half & b);
    *plane = half ^ b;
    carry
}
