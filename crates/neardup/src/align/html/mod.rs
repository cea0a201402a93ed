//! Two documents side by side, and one beside several, as HTML pages without scripts.

mod column;
mod comparison;
mod pages;
mod side_by_side;

pub(crate) use comparison::{AlignedPair, Look};
pub use pages::{MAX_PAGE_INPUT, diff_html, diff_html_of_several};
pub(crate) use side_by_side::{Difference, SideBySide};
