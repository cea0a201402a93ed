//! Pages of a merge's inputs that are no longer needed.

use super::directory::DirectoryEntry;
use super::walk::read_directory;
use super::{Directory, Pages, Posting, Segment};
use crate::memory::collected;

/// Calls `found` with the block of every page of a merge's input that was needed while the split was `from`, and is no
/// longer needed at `to`. At the end of the merge, `to` is `None` and no page is needed. Both splits count offsets from
/// the input's first row ([`super::split_of_input`]).
///
/// A page is needed until a later page of its level begins at or before the split. Reads only the directory pages on
/// the way from one split to the other.
///
/// # Errors
/// The errors of `pages`; damaged pages; `OutOfMemory`.
pub fn passed<P: Pages>(
    pages: &mut P,
    segment: &Segment,
    from: Posting,
    to: Option<Posting>,
    found: &mut impl FnMut(u32),
) -> Result<(), P::Error> {
    if segment.postings == 0 {
        return Ok(());
    }
    let root = (DirectoryEntry::of_root(segment), None);
    visit(pages, segment, (from, to), root, segment.depth, found)
}

/// Calls `found` as [`passed`] does, for `page` of `level` and the pages below it between the two splits. The next page
/// of the level begins at `end`; None if there is no next page.
fn visit<P: Pages>(
    pages: &mut P,
    segment: &Segment,
    (from, to): (Posting, Option<Posting>),
    (page, end): (DirectoryEntry, Option<Posting>),
    level: u8,
    found: &mut impl FnMut(u32),
) -> Result<(), P::Error> {
    if level > 0 {
        pages.interrupt()?;
        let look = |directory: Directory| {
            let first = directory.child_of(from);
            let last = to.map_or(directory.children(), |to| directory.child_of(to));
            let child = |i| {
                let next = directory.get(i + 1).map(|next| next.first);
                Some((directory.get(i)?, next.or(end)))
            };
            Ok(collected((first..=last).filter_map(child))?)
        };
        for child in read_directory(pages, segment, level, page, look)? {
            visit(pages, segment, (from, to), child, level - 1, found)?;
        }
    }
    let is_passed = match (end, to) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(end), Some(to)) => end <= to,
    };
    if is_passed && end.is_none_or(|end| end > from) {
        found(page.block);
    }
    Ok(())
}
