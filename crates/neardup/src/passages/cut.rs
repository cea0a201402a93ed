//! A document without some of its characters.

use crate::memory::GrowText;
use crate::{Error, Result};
use std::ops::Range;

/// Returns the document without the characters of `spans`, with `replacement` in place of each span.
///
/// Spans count characters from 0, are in ascending order and do not overlap. Linear time. Calls `check` at least every
/// 64 Ki characters.
///
/// # Errors
/// `Invalid` if a span extends beyond the end of the document; `TooLarge` if the result has more than `most` bytes;
/// `OutOfMemory`.
pub fn cut(
    doc: &str,
    spans: impl Iterator<Item = Range<usize>>,
    replacement: &str,
    most: usize,
    check: &mut dyn FnMut(),
) -> Result<String> {
    let mut left = String::new();
    let mut keep = |text: &str| {
        if text.len() > most - left.len() {
            return Err(Error::TooLarge {
                message: format!("the document would have more than {most} bytes"),
                hint: "Cut fewer passages, or choose a shorter replacement.".into(),
            });
        }
        left.try_push_str(text)
    };
    let mut rest = doc.chars();
    let mut at = 0;
    for span in spans {
        let before = take(&mut rest, span.start - at, check).ok_or_else(|| beyond(doc, &span))?;
        take(&mut rest, span.len(), check).ok_or_else(|| beyond(doc, &span))?;
        keep(before)?;
        keep(replacement)?;
        at = span.end;
    }
    keep(rest.as_str())?;
    Ok(left)
}

/// Removes and returns the next `count` characters of `rest`, or returns None if there are fewer.
fn take<'d>(
    rest: &mut std::str::Chars<'d>,
    mut count: usize,
    check: &mut dyn FnMut(),
) -> Option<&'d str> {
    let all = rest.as_str();
    while count > 0 {
        check();
        let step = count.min(1 << 16);
        rest.nth(step - 1)?;
        count -= step;
    }
    Some(&all[..all.len() - rest.as_str().len()])
}

fn beyond(doc: &str, span: &Range<usize>) -> Error {
    let (characters, start, end) = (doc.chars().count(), span.start + 1, span.end + 1);
    Error::invalid(
        format!("span [{start},{end}) reaches outside the document"),
        format!("The document has {characters} characters, numbered from 1."),
    )
}
