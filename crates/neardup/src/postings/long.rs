//! Lists of frequent keys in one segment: read as a whole, or searched for candidates.

use super::count::{CountedRow, RowCounts};
use super::cursor::Cursor;
use super::key_list::KeyList;
use super::part::SegmentPart;
use super::walk::Leaves;
use super::{Damaged, Pages, Posting};

/// Adds the rows of `list` in the segment of `part` to `counts`, until these are full.
pub(super) fn scan<P: Pages>(
    pages: &mut P,
    part: &SegmentPart,
    list: &KeyList,
    counts: &mut RowCounts,
) -> Result<(), P::Error> {
    let Some((first, last)) = part.range(list.key) else {
        return Ok(());
    };
    let mut leaves = Leaves::seek(pages, part.segment, first)?;
    let mut run: Vec<u32> = Vec::new();
    while leaves.next().is_some_and(|leaf| leaf.first <= last) {
        leaves.visit(pages, |leaf| {
            run.clear();
            run.try_reserve(leaf.len()).map_err(crate::Error::from)?;
            leaf.visit(first, last, &mut |numbers| {
                for number in numbers {
                    let offset = part.group_offset(*number)?;
                    if run.last().is_some_and(|last| *last >= offset) {
                        return Err(Damaged("postings of a leaf page out of order"));
                    }
                    run.push(offset);
                }
                Ok(true)
            })?;
            Ok(())
        })?;
        counts.add(&run, list.weight)?;
        if counts.is_full() {
            return Ok(());
        }
    }
    Ok(())
}

/// Adds the weight of `list` to the `candidates` that the list contains in the segment of `part`.
pub(super) fn probe<P: Pages>(
    pages: &mut P,
    part: &SegmentPart,
    list: &KeyList,
    candidates: &mut [CountedRow],
) -> Result<(), P::Error> {
    let Some((first, last)) = part.range(list.key) else {
        return Ok(());
    };
    let posting_of = |candidate: &CountedRow| {
        let offset = candidate.offset.checked_sub(part.shift)?;
        Some(Posting {
            key: list.key,
            offset,
        })
    };
    let below =
        |candidate: &CountedRow| posting_of(candidate).is_none_or(|posting| posting < first);
    let above =
        |candidate: &CountedRow| posting_of(candidate).is_some_and(|posting| posting > last);
    let start = candidates.partition_point(below);
    let end = candidates.partition_point(|candidate| !above(candidate));
    let mut left = candidates.get_mut(start..end).unwrap_or_default();
    while let Some(target) = left.first().and_then(posting_of) {
        let mut leaves = Leaves::seek(pages, part.segment, target)?;
        let looked_up = leaves.visit(pages, |leaf| {
            let mut cursor = Cursor::new(&leaf, target)?;
            let leaf_last = leaf.last()?;
            let mut looked_up = 0;
            for candidate in left.iter_mut() {
                let posting = posting_of(candidate).filter(|posting| *posting <= leaf_last);
                let Some(posting) = posting else {
                    break;
                };
                cursor.visit(posting, posting, &mut |_| {
                    candidate.count += list.weight;
                    Ok(false)
                })?;
                looked_up += 1;
            }
            Ok(looked_up)
        })?;
        // Candidates between this leaf's last posting and the next leaf are on neither leaf.
        let Some(next) = leaves.next() else {
            return Ok(());
        };
        let passed = |candidate: &CountedRow| posting_of(candidate) < Some(next.first);
        let passed = left.partition_point(passed).max(looked_up.unwrap_or(0));
        if passed == 0 {
            return Err(Damaged("entries of a directory out of order").into());
        }
        left = &mut left[passed..];
    }
    Ok(())
}
