//! White space in units of characters.

use crate::text::{Fold, WordClass};

/// Collapses white space to one space and trims it, unless the text is to be taken as it is.
pub(super) struct Spaces {
    is_collapsing: bool,
    is_begun: bool,
    is_pending: bool,
}

impl Spaces {
    pub fn new(fold: Fold) -> Self {
        Self {
            is_collapsing: fold != Fold::None,
            is_begun: false,
            is_pending: false,
        }
    }

    /// Returns whether a space comes now, and the character that comes behind it.
    #[inline]
    pub fn next(&mut self, c: char, class: WordClass) -> (bool, Option<char>) {
        if self.is_collapsing && class == WordClass::Space {
            self.is_pending = self.is_begun;
            return (false, None);
        }
        self.is_begun = true;
        (std::mem::take(&mut self.is_pending), Some(c))
    }
}
