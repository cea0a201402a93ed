//! Weighted sums of bit positions.

/// Number of bit planes of a count: plane p holds bit p of the counts of all 64 positions.
const PLANES: usize = 13;

/// Maximum number of words that [`count`] takes.
const MAX_WORDS: usize = (1 << PLANES) - 1;

/// Number of words counted side by side, so that the compiler uses vectors.
const LANES: usize = 8;

/// For each bit position, adds to its sum in `sums` the weights of the words in which that bit is set. `sums[0]`
/// belongs to the lowest bit.
#[inline(always)]
pub fn add_where_set(words: &[u64], weights: &[i64], sums: &mut [i64; 64]) {
    for (word, weight) in words.iter().zip(weights) {
        for (bit, sum) in sums.iter_mut().enumerate() {
            *sum += weight & ((word >> bit & 1) as i64).wrapping_neg();
        }
    }
}

/// Does the same as [`add_where_set`], with `weight` for every word. Counting the bits first saves most of the work.
#[inline(always)]
pub fn add_weight(words: &[u64], weight: i64, sums: &mut [i64; 64]) {
    for words in words.chunks(MAX_WORDS) {
        let used = words.len().ilog2() as usize + 1;
        let weights: [i64; PLANES] = std::array::from_fn(|plane| weight << plane);
        add_where_set(&count(words)[..used], &weights[..used], sums);
    }
}

/// Returns how many words set each bit, in planes. A tree of carry-save adders (Harley and Seal; Warren, "Hacker's
/// Delight", section 5-1) takes 5 operations per word for all 64 positions.
#[inline(always)]
fn count(words: &[u64]) -> [u64; PLANES] {
    let mut side_by_side = [[0; LANES]; PLANES];
    let (blocks, rest) = words.as_chunks::<{ 8 * LANES }>();
    for block in blocks {
        add8(&mut side_by_side, block.as_chunks().0);
    }
    let mut planes = [[0]; PLANES];
    let used = (8 * blocks.len())
        .checked_ilog2()
        .map_or(0, |bit| bit as usize + 1);
    for (plane, lanes) in side_by_side[..used].iter().enumerate() {
        add8(&mut planes[plane..], &lanes.map(|word| [word]));
    }
    for words in rest.chunks(8) {
        let mut eight = [[0]; 8];
        eight.as_flattened_mut()[..words.len()].copy_from_slice(words);
        add8(&mut planes, &eight);
    }
    planes.map(|[word]| word)
}

/// Adds eight `words` to the counts in `planes`. There must be at least three planes.
#[inline(always)]
fn add8<const N: usize>(planes: &mut [[u64; N]], words: &[[u64; N]]) {
    let ([ones, twos, fours, above @ ..], [a, b, c, d, e, f, g, h]) = (planes, words) else {
        unreachable!("eight words, and planes for their count");
    };
    let (a, b) = (add3(ones, a, b), add3(ones, c, d));
    let (c, d) = (add3(ones, e, f), add3(ones, g, h));
    let (a, b) = (add3(twos, &a, &b), add3(twos, &c, &d));
    let mut carry = add3(fours, &a, &b);
    for plane in above {
        for (word, carry) in plane.iter_mut().zip(&mut carry) {
            (*word, *carry) = (*word ^ *carry, *word & *carry);
        }
    }
}

/// Adds `a` and `b` to `plane`, and returns the carries.
#[inline(always)]
fn add3<const N: usize>(plane: &mut [u64; N], a: &[u64; N], b: &[u64; N]) -> [u64; N] {
    std::array::from_fn(|lane| {
        let (word, a, b) = (plane[lane], a[lane], b[lane]);
        let half = word ^ a;
        plane[lane] = half ^ b;
        word & a | half & b
    })
}
