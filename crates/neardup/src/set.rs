//! Sets of shingles: measures, and smaller sets chosen from them.
//!
//! A set is a sorted slice of distinct elements. The empty set is similar to nothing, not even to itself.

use crate::kernels::{Vectorize, active, vectorized};
use crate::{Grow, Result, collected, with_room};
use std::cmp::Ordering;
use std::collections::HashSet;

/// Number of elements, or of comparisons of elements, between two checks for interrupts.
const HEARTBEAT: usize = 1 << 16;

/// Turns `elements` into a set: sorts them and drops repetitions. O(n log n), with checks for interrupts where
/// `sort_unstable` could run for seconds without one.
pub fn sort_distinct<T: Ord>(elements: &mut Vec<T>, check: &mut dyn FnMut()) {
    sort(elements, check);
    if elements.len() <= HEARTBEAT {
        elements.dedup();
    } else {
        let mut beat = beat(check);
        elements.dedup_by(|a, b| {
            beat();
            a == b
        });
    }
}

/// Sorts `elements`, with checks for interrupts if there are many.
pub fn sort<T: Ord>(elements: &mut [T], check: &mut dyn FnMut()) {
    sort_by(elements, T::cmp, check);
}

/// Sorts `elements` by `compare`, with the checks of [`sort`].
pub fn sort_by<T>(
    elements: &mut [T],
    compare: impl Fn(&T, &T) -> Ordering,
    check: &mut dyn FnMut(),
) {
    if elements.len() <= HEARTBEAT {
        return elements.sort_unstable_by(compare);
    }
    let mut beat = beat(check);
    elements.sort_unstable_by(|a, b| {
        beat();
        compare(a, b)
    });
}

/// Returns a function that counts its calls and checks for interrupts at every [`HEARTBEAT`]th.
fn beat(check: &mut dyn FnMut()) -> impl FnMut() {
    let mut count = 0;
    move || {
        count += 1;
        if count == HEARTBEAT {
            count = 0;
            check();
        }
    }
}

/// If one set has at least this many times as many elements as the other, the elements of the smaller set are looked
/// up in the larger.
const MUCH_LARGER: usize = 32;

/// Returns the number of elements that `a` and `b` share.
pub fn intersection_size<T: Ord>(a: &[T], b: &[T], check: &mut dyn FnMut()) -> usize {
    let mut beat = beat(check);
    let (few, many) = if a.len() < b.len() { (a, b) } else { (b, a) };
    if many.len() / MUCH_LARGER > few.len() {
        let is_shared = |element: &&T| {
            beat();
            many.binary_search(element).is_ok()
        };
        return few.iter().filter(is_shared).count();
    }
    let (mut i, mut j, mut shared) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        beat();
        let order = a[i].cmp(&b[j]);
        i += usize::from(order != Ordering::Greater);
        j += usize::from(order != Ordering::Less);
        shared += usize::from(order == Ordering::Equal);
    }
    shared
}

/// Returns the number of shared elements divided by the number of all elements, or 0 if a set is empty.
pub fn jaccard<T: Ord>(a: &[T], b: &[T], check: &mut dyn FnMut()) -> f64 {
    let shared = intersection_size(a, b, check);
    shared as f64 / (a.len() + b.len() - shared).max(1) as f64
}

/// Number of elements of each set that are compared with each other in one step.
const BLOCK: usize = 8;

/// Number of steps between two tests of whether the sets can still share enough elements.
const STEPS: usize = 4;

/// Returns the [`jaccard`] similarity of two sets of hashes, or None if it is 0 or below `threshold`. Often stops
/// early.
pub fn jaccard_at_least(
    a: &[i64],
    b: &[i64],
    threshold: f64,
    check: &mut dyn FnMut(),
) -> Option<f64> {
    let both = a.len() + b.len();
    // Rounding changes this by less than one element.
    let least = (threshold / (1.0 + threshold) * both as f64) as usize;
    let shared = vectorized(SharedElements {
        a,
        b,
        least: least.saturating_sub(1),
        check,
    })?;
    if shared == 0 {
        return None;
    }
    let similarity = shared as f64 / (both - shared) as f64;
    (similarity >= threshold).then_some(similarity)
}

/// Counts the elements that two sets share; gives up (None) only if there are fewer than `least`. Each element of a
/// block is compared with every element of the other set's block. The block that ends first makes room for the next
/// (Inoue, Ohara, Taura, "Faster set intersection with SIMD instructions by reducing branch mispredictions", VLDB
/// 2014).
struct SharedElements<'a> {
    a: &'a [i64],
    b: &'a [i64],
    least: usize,
    check: &'a mut dyn FnMut(),
}

impl Vectorize for SharedElements<'_> {
    type Output = Option<usize>;

    #[inline(always)]
    fn run(self) -> Option<usize> {
        let Self { mut a, mut b, .. } = self;
        let (mut shared, mut step) = (0, 0);
        while let (Some(x), Some(y)) = (a.first_chunk(), b.first_chunk()) {
            if step % STEPS == 0 && shared + a.len().min(b.len()) < self.least {
                return None;
            }
            step += 1;
            if step % HEARTBEAT == 0 {
                (self.check)();
            }
            shared += equal_elements(x, y);
            let order = x[BLOCK - 1].cmp(&y[BLOCK - 1]);
            a = &a[BLOCK * usize::from(order != Ordering::Greater)..];
            b = &b[BLOCK * usize::from(order != Ordering::Less)..];
        }
        Some(shared + intersection_size(a, b, self.check))
    }
}

/// Returns how many elements two blocks of distinct elements share. Compilers turn this form into vector
/// comparisons.
#[inline(always)]
fn equal_elements(a: &[i64; BLOCK], b: &[i64; BLOCK]) -> usize {
    let mut less = [0i64; BLOCK];
    for x in a {
        for lane in 0..BLOCK {
            less[lane] -= i64::from(*x == b[lane]);
        }
    }
    less.iter().sum::<i64>().unsigned_abs() as usize
}

/// Returns the share of `a` that is also in `b`, or 0 if a set is empty.
pub fn containment<T: Ord>(a: &[T], b: &[T], check: &mut dyn FnMut()) -> f64 {
    intersection_size(a, b, check) as f64 / a.len().max(1) as f64
}

/// Returns whether a set with `shared` of its `members` elements in another set reaches a containment of `threshold`.
/// Every exact lookup of containment uses this comparison, with or without an index. False if `members` is 0.
#[inline]
pub fn reaches(shared: usize, members: usize, threshold: f64) -> bool {
    members > 0 && shared as f64 / members as f64 >= threshold
}

/// Returns the [`containment`] of `a` in `b`, or None below `threshold`.
pub fn containment_at_least<T: Ord>(
    a: &[T],
    b: &[T],
    threshold: f64,
    check: &mut dyn FnMut(),
) -> Option<f64> {
    let shared = intersection_size(a, b, check);
    reaches(shared, a.len(), threshold).then(|| shared as f64 / a.len() as f64)
}

/// Collects the distinct elements of a stream. Removes repeats whenever the buffer reaches twice the size that it had
/// after the last removal, or `FIRST_LIMIT` if that is more.
pub(crate) struct Distinct {
    elements: Vec<i64>,
    /// The buffer size at which repeats are removed.
    limit: usize,
}

impl Distinct {
    const FIRST_LIMIT: usize = 1 << 20;

    pub fn new() -> Self {
        Self {
            elements: Vec::new(),
            limit: Self::FIRST_LIMIT,
        }
    }

    pub fn extend(
        &mut self,
        elements: impl IntoIterator<Item = i64>,
        check: &mut dyn FnMut(),
    ) -> Result<()> {
        self.elements.try_extend(elements)?;
        if self.elements.len() >= self.limit {
            sort_distinct(&mut self.elements, check);
            self.limit = (2 * self.elements.len()).max(Self::FIRST_LIMIT);
        }
        Ok(())
    }

    pub fn into_sorted(mut self, check: &mut dyn FnMut()) -> Vec<i64> {
        sort_distinct(&mut self.elements, check);
        self.elements
    }
}

/// Returns the elements of `set` that are 0 modulo `modulus`. Whether an element is sampled does not depend on the set,
/// so samples of two sets overlap as the sets do (Broder, "On the resemblance and containment of documents", SEQUENCES
/// 1997).
///
/// # Errors
/// `OutOfMemory`.
pub fn shingle_sample(set: &[i64], modulus: i32, check: &mut dyn FnMut()) -> Result<Vec<i64>> {
    let mut beat = beat(check);
    let is_sampled = |hash: &&i64| {
        beat();
        *hash % i64::from(modulus) == 0
    };
    collected(set.iter().filter(is_sampled).copied())
}

/// Returns the minimum of the elements of `set` in every residue class modulo `buckets`, in ascending order.
///
/// # Errors
/// `OutOfMemory`.
pub fn bucket_sketch(set: &[i64], buckets: i32, check: &mut dyn FnMut()) -> Result<Vec<i64>> {
    let mut beat = beat(check);
    let (mut taken, mut minima) = (HashSet::new(), Vec::new());
    for &hash in set {
        beat();
        taken.try_reserve(1)?;
        if taken.insert(hash.rem_euclid(i64::from(buckets))) {
            minima.try_push(hash)?;
        }
    }
    Ok(minima)
}

/// Returns the hashes of all runs of `size` consecutive elements of `set`, or the hash of the whole set if it is
/// smaller. `size` is at least 1. Two sets share a hash if they have a run of `size` elements in common (Broder,
/// Glassman, Manasse, Zweig, "Syntactic clustering of the web", WWW 1997).
///
/// # Errors
/// `OutOfMemory`.
pub fn supershingles(set: &[i64], size: usize, check: &mut dyn FnMut()) -> Result<Vec<i64>> {
    if set.is_empty() {
        return Ok(Vec::new());
    }
    let elements = collected(set.iter().map(|hash| *hash as u64))?;
    let size = size.min(elements.len());
    let mut hashes = with_room(elements.len())?;
    for start in (0..=elements.len() - size).step_by(HEARTBEAT) {
        check();
        let end = elements.len().min(start + HEARTBEAT + size - 1);
        active().combine_windows(&elements[start..end], size, &mut hashes);
    }
    let mut supershingles = collected(hashes.into_iter().map(|hash| hash as i64))?;
    sort_distinct(&mut supershingles, check);
    Ok(supershingles)
}
