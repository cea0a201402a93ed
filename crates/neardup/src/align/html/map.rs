//! The map: both documents as bars, each common chunk as a ribbon from one to the other.

use super::{hue, longest};
use crate::Result;
use crate::align::alignment::Alignment;
use crate::html::Page;

/// Ribbons drawn, the longest chunks first: more would cover each other.
const RIBBONS: usize = 1000;

/// Width of the longer document's bar.
const WIDTH: f64 = 1000.0;

/// `words`: the lengths of both documents; `prefix`: what identifiers begin with.
///
/// # Errors
/// `OutOfMemory`.
pub(super) fn append(
    page: &mut Page,
    alignment: &Alignment,
    words: [usize; 2],
    prefix: &str,
) -> Result<()> {
    let longer = words[0].max(words[1]).max(1) as f64;
    let scale = |words: usize| words as f64 / longer * WIDTH;
    page.write(format_args!(
        "<svg class=\"map\" viewBox=\"0 0 1000 60\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"Where the \
         common chunks stand in the first document, above, and in the second, below\">\n\
         <rect width=\"{:.1}\" height=\"12\"/><rect y=\"48\" width=\"{:.1}\" height=\"12\"/>\n",
        scale(words[0]),
        scale(words[1])
    ));
    let chunks = &alignment.chunks;
    for i in longest(chunks, RIBBONS)? {
        let run = chunks[i];
        let [a, b] = [run.a, run.b].map(|start| {
            [start, start + run.words].map(|word| format!("{:.1}", scale(word as usize)))
        });
        let ([a0, a1], [b0, b1]) = (a, b);
        page.write(format_args!(
            "<a id=\"{prefix}m{i}\" href=\"#{prefix}a{i}\" tabindex=\"-1\"><path style=\"--h:{}\" d=\"M{a0} 0V12C{a0} 30 {b0} 30 {b0} 48V60H{b1}V48\
             C{b1} 30 {a1} 30 {a1} 12V0z\"/></a>\n",
            hue(i)
        ));
    }
    page.push("</svg>\n");
    Ok(())
}
