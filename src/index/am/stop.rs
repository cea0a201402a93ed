//! Why reading an index ended early.

use super::page::{Index, raise_corrupted};
use crate::pg::error::out_of_memory;
use neardup::postings::Damaged;

/// Why a search or a merge ended early.
#[derive(Debug)]
pub enum Stop {
    /// The page of a block is not the one that the metapage leads to: reused meanwhile, or damaged.
    Restart(u32),
    /// A page is damaged; which one, if known.
    Damaged(Option<u32>, &'static str),
    OutOfMemory,
}

impl From<Damaged> for Stop {
    fn from(Damaged(reason): Damaged) -> Self {
        Self::Damaged(None, reason)
    }
}

/// A reader of pages has too little memory.
impl From<neardup::Error> for Stop {
    fn from(_: neardup::Error) -> Self {
        Self::OutOfMemory
    }
}

impl Stop {
    /// Returns a function that says that damage is on the page of a block.
    pub fn at<E: Into<Self>>(block: u32) -> impl Fn(E) -> Self {
        move |stop| match stop.into() {
            Self::Damaged(None, reason) => Self::Damaged(Some(block), reason),
            stop => stop,
        }
    }

    /// Ends the statement. A `Restart` is an error here, because nobody has reused a page.
    pub fn raise(self, index: &Index) -> ! {
        match self {
            Self::Restart(block) => {
                let reason = "another page is where this one should be";
                raise_corrupted(index, Some(block), reason)
            }
            Self::Damaged(block, reason) => raise_corrupted(index, block, reason),
            Self::OutOfMemory => out_of_memory(),
        }
    }
}
