//! Two lists whose elements are numbered together.

use super::pace::Pace;
use crate::{Result, collected};

/// Two lists as numbers. Elements that are equal, in the same list or across both, have equal numbers.
pub(super) struct Numbered {
    pub a: Vec<u32>,
    pub b: Vec<u32>,
    /// The number of distinct elements in both lists; every number is below it.
    pub distinct: usize,
}

impl Numbered {
    /// Numbers the distinct elements in ascending order. Time O(n log n).
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn new<T: Ord + Copy>([a, b]: [&[T]; 2], pace: &mut Pace) -> Result<Self> {
        let mut elements = collected(a.iter().chain(b).copied())?;
        pace.sort_by_key(&mut elements, |element| *element);
        elements.dedup();
        let mut numbers = |list: &[T]| {
            collected(list.iter().map(|element| {
                pace.steps(4);
                elements.partition_point(|other| other < element) as u32
            }))
        };
        Ok(Self {
            a: numbers(a)?,
            b: numbers(b)?,
            distinct: elements.len(),
        })
    }
}
