//! Two documents side by side, and one beside several, as HTML pages without scripts.

mod column;
mod comparison;
mod pages;

pub(crate) use comparison::{Comparison, Difference, Look, SideBySide};
pub use pages::{MAX_PAGE_INPUT, diff_html, diff_html_of_several};
