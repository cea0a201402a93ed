//! Pages of HTML: no script, nothing from elsewhere, and no markup but ours.

mod escape;
mod page;

pub(crate) use page::Page;

/// For a page that scrolls as a whole: headings, tables, folded parts.
pub(crate) const SECTIONS: &str = include_str!("sections.css");
