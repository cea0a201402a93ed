//! Two documents side by side, and one beside several, as HTML pages without scripts.

mod column;
mod comparison;
pub(crate) mod difference;
mod look;
mod map;
mod several;

pub(crate) use comparison::Comparison;
pub(crate) use look::Look;
pub use several::diff_html_of_several;

use super::chunks::valid_min_words;
use super::pace::Pace;
use super::tiling::Run;
use crate::html::Page;
use crate::memory::collected;
use crate::shingle::{Key, Shingling, shingle_hashes};
use crate::text::{Fold, Unit};
use crate::{Error, Result, set};
use std::cmp::Reverse;

/// Bytes of all documents together, at most: a page has up to 35 bytes for one of theirs.
pub const MAX_PAGE_INPUT: usize = 1 << 24;

/// Chunks whose other occurrence lights up under the pointer: each needs a rule of its own, and
/// browsers grow slow with thousands. All chunks link to each other.
const HOVERED: usize = 300;

/// Returns a complete page: figures on top, a map of the common chunks, then both documents, each
/// chunk of at least `min_words` words in its own color on both sides and linked to its other
/// occurrence, words that only one side has marked. Nothing in the documents survives as markup.
///
/// Time O(n log n).
///
/// # Errors
/// `Invalid` if `min_words` is below 1, `TooLarge` above [`MAX_PAGE_INPUT`] bytes, `OutOfMemory`.
pub fn diff_html(a: &[u8], b: &[u8], min_words: i64, check: &mut dyn FnMut()) -> Result<String> {
    let min_words = valid_min_words(min_words)?;
    check_bytes(a.len() + b.len())?;
    let resemblance = resemblance(a, b, check)?;
    let pace = &mut Pace::new(check);
    let comparison = Comparison::new([a, b], min_words, pace)?;
    let look = Look {
        prefix: "",
        level: 2,
        names: [b"A", b"B"],
    };
    let mut page = Page::new(4096 + 2 * (a.len() + b.len()))?;
    head(&mut page, &comparison)?;
    page.push("<header>\n");
    figures(&mut page, &comparison, resemblance);
    comparison.write_map(&mut page, &look)?;
    legend(&mut page, min_words, ["A", "B"]);
    page.push("</header>\n<main>\n");
    comparison.write_documents(&mut page, &look, pace);
    page.push("</main>\n</body>\n</html>\n");
    page.finish()
}

/// # Errors
/// `TooLarge` above [`MAX_PAGE_INPUT`] bytes.
fn check_bytes(bytes: usize) -> Result<()> {
    if bytes <= MAX_PAGE_INPUT {
        return Ok(());
    }
    Err(Error::TooLarge {
        message: format!("the documents have more than {MAX_PAGE_INPUT} bytes"),
        hint: format!(
            "All documents together may have up to {MAX_PAGE_INPUT} bytes, each counted as often as it is shown."
        ),
    })
}

/// Returns the resemblance of sets of three-word shingles, the default of all measures on shingles.
fn resemblance(a: &[u8], b: &[u8], check: &mut dyn FnMut()) -> Result<f64> {
    let shingling = Shingling::new(3, Unit::Word, Fold::Case)?;
    let key = Key::from_seed(0);
    let a = shingle_hashes(a, &shingling, &key, check)?;
    let b = shingle_hashes(b, &shingling, &key, check)?;
    Ok(set::jaccard(&a, &b, check))
}

fn head(page: &mut Page, comparison: &Comparison<'_>) -> Result<()> {
    page.begin(b"Two documents side by side");
    page.push(include_str!("pair.css"));
    for i in longest(&comparison.alignment.chunks, HOVERED)? {
        page.write(format_args!(
            "body:has(#b{i}:hover,#m{i}:hover) #a{i},body:has(#a{i}:hover,#m{i}:hover) #b{i}\
             {{box-shadow:0 0 0 2px hsl(var(--h) var(--s) var(--edge))}}\n"
        ));
    }
    page.push("</style>\n</head>\n<body>\n");
    Ok(())
}

fn figures(page: &mut Page, comparison: &Comparison<'_>, resemblance: f64) {
    let found = comparison.similarity();
    let alignment = &comparison.alignment;
    let moved = alignment.in_order.iter().filter(|kept| !**kept).count();
    page.push("<dl>\n");
    for (title, name, value) in [
        (
            "common words / words of the longer document",
            "S<sub>L</sub>",
            percent(found.s_l()),
        ),
        (
            "common words / words of both, common ones counted once",
            "S<sub>J</sub>",
            percent(found.s_j()),
        ),
        (
            "shingles of three words, common / all",
            "resemblance",
            percent(resemblance),
        ),
        (
            "words in common chunks",
            "common words",
            found.common.to_string(),
        ),
        (
            "common runs of words",
            "chunks",
            alignment.chunks.len().to_string(),
        ),
        (
            "chunks that stand in another order",
            "moved",
            moved.to_string(),
        ),
    ] {
        page.write(format_args!(
            "<div title=\"{title}\"><dt>{name}</dt><dd>{value}</dd></div>\n"
        ));
    }
    page.push("</dl>\n");
}

/// Writes what the colors mean.
pub(crate) fn legend(page: &mut Page, min_words: u32, [a, b]: [&str; 2]) {
    page.write(format_args!(
        "<p class=\"legend\"><span class=\"c\" style=\"--h:205\">common run of {min_words} words or more</span> \
         <span class=\"c m\" style=\"--h:205\">moved</span> <del>only in {a}</del> <ins>only in {b}</ins></p>\n"
    ));
}

fn percent(share: f64) -> String {
    format!("{:.1}&nbsp;%", share * 100.0)
}

/// Returns the numbers of the longest chunks, at most `count`, the longest first.
///
/// # Errors
/// `OutOfMemory`.
fn longest(chunks: &[Run], count: usize) -> Result<Vec<usize>> {
    let mut longest = collected(0..chunks.len())?;
    longest.sort_unstable_by_key(|&i| (Reverse(chunks[i].words), i));
    longest.truncate(count);
    Ok(longest)
}

/// Returns the color of a chunk, an angle on the color wheel: steps of the golden angle keep any
/// number of neighbors apart.
fn hue(chunk: usize) -> u32 {
    (chunk as f64 * 137.508 + 205.0) as u32 % 360
}
