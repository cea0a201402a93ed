//! The appearance of a comparison on its page.

/// The appearance of a comparison on its page.
pub(crate) struct Look<'l> {
    /// The prefix of its elements' identifiers: no two comparisons of a page share one.
    pub prefix: &'l str,
    /// The level of the headings over the documents.
    pub level: u8,
    pub names: [&'l [u8]; 2],
}
