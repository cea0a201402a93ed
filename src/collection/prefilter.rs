//! A cheap test that tells most rows apart.

use neardup::kernels::active;

/// Fields of a few bits each: rows that are alike have at least `equal` of them in common.
#[derive(Debug, Clone, Copy)]
pub struct Test {
    pub fields: usize,
    pub bits: u32,
    pub equal: usize,
}

impl Test {
    /// Returns how many bytes the fields of a row take.
    pub fn bytes(&self) -> usize {
        (self.fields * self.bits as usize).div_ceil(8)
    }
}

/// The fields of rows, in memory.
pub struct Prefilter {
    test: Test,
    packed: Vec<u8>,
}

impl Prefilter {
    /// Returns a filter of the fields of all rows, one behind the other.
    pub fn new(test: Test, packed: Vec<u8>) -> Self {
        Self { test, packed }
    }

    /// Returns whether two rows have enough equal fields to be worth a closer look.
    pub fn passes(&self, a: u32, b: u32) -> bool {
        let bytes = self.test.bytes();
        let of = |row: u32| &self.packed[row as usize * bytes..][..bytes];
        active().count_equal(of(a), of(b), self.test.fields, self.test.bits) >= self.test.equal
    }
}
