//! The reasons why reading an index ends early.

use super::page::{Index, raise_corrupted};
use crate::pg::error::out_of_memory;
use neardup::postings::Damaged;

/// The reason why a search or a merge ended early.
pub enum Stop {
    /// The page of this block is not the one that the metapage leads to: it has been reused in the meantime, or is
    /// damaged.
    Restart(u32),
    /// A page is damaged. Its block, if known, and the reason.
    Damaged(Option<u32>, &'static str),
    OutOfMemory,
}

impl From<Damaged> for Stop {
    fn from(Damaged(reason): Damaged) -> Self {
        Self::Damaged(None, reason)
    }
}

/// Page readers fail only for lack of memory.
impl From<neardup::Error> for Stop {
    fn from(_: neardup::Error) -> Self {
        Self::OutOfMemory
    }
}

impl Stop {
    /// Returns a function that adds `block` to errors about damaged pages.
    pub fn at<E: Into<Self>>(block: u32) -> impl Fn(E) -> Self {
        move |stop| match stop.into() {
            Self::Damaged(None, reason) => Self::Damaged(Some(block), reason),
            stop => stop,
        }
    }

    /// Ends the statement with an ERROR. Reports `Restart` as damage: the caller knows that nobody has reused a page.
    pub fn raise(self, index: &Index) -> ! {
        match self {
            Self::Restart(block) => {
                let reason = "another page is in the place of this one";
                raise_corrupted(index, Some(block), reason)
            }
            Self::Damaged(block, reason) => raise_corrupted(index, block, reason),
            Self::OutOfMemory => out_of_memory(),
        }
    }
}
