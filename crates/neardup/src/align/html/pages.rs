//! The pages of `diff_html`.

use super::comparison::{AlignedPair, Look};
use super::side_by_side::{Difference, SideBySide};
use crate::align::chunks::{Similarity, valid_min_words};
use crate::html::{HtmlPage, HtmlText, Number, Percent};
use crate::memory::{Grow, collected, with_room};
use crate::shingle::{Key, Shingling, shingle_hashes};
use crate::text::{Fold, Unit};
use crate::{Error, Result, set};
use askama::Template;
use std::cell::RefCell;

/// Bytes of all documents together, at most: a page has up to 35 bytes for each of theirs.
pub const MAX_PAGE_INPUT: usize = 1 << 24;

/// Chunks whose other occurrence is highlighted under the pointer. Each needs a rule of its own, and browsers get
/// slow with thousands. All chunks link to each other.
const HOVERED: usize = 300;

/// Two documents, each in a pane of its own.
#[derive(Template)]
#[template(path = "diff.html")]
struct TwoDocuments<'t> {
    sides: SideBySide<'t>,
    hovered: Vec<usize>,
    figures: Similarity,
    resemblance: f64,
    chunks: u64,
    moved: u64,
    min_words: u32,
    /// The names of the documents in the legend.
    names: [&'static str; 2],
}

/// Returns a complete page: figures, a map of the common chunks, and both documents. Each chunk of at least
/// `min_words` words is numbered and linked to its other occurrence; words that only one side has are marked.
/// Nothing in the documents acts as markup.
///
/// Time O(n log n).
///
/// # Errors
/// `Invalid` if `min_words` is below 1, `TooLarge` above [`MAX_PAGE_INPUT`] bytes, `OutOfMemory`.
pub fn diff_html(a: &[u8], b: &[u8], min_words: i64, check: &mut dyn FnMut()) -> Result<String> {
    let min_words = valid_min_words(min_words)?;
    check_bytes(a.len() + b.len())?;
    let resemblance = resemblance(a, b, check)?;
    let check = RefCell::new(check);
    let check = || (check.borrow_mut())();
    let comparison = AlignedPair::new([a, b], min_words, &check)?;
    let look = Look {
        prefix: String::new(),
        level: 2,
        names: [HtmlText::new(b"A"), HtmlText::new(b"B")],
        notes: [""; 2],
        is_panes: true,
    };
    let in_order = &comparison.alignment.in_order;
    let page = TwoDocuments {
        sides: SideBySide::new(&comparison, look)?,
        hovered: comparison.longest(HOVERED)?,
        figures: comparison.similarity(),
        resemblance,
        chunks: in_order.len() as u64,
        moved: in_order.iter().filter(|kept| !**kept).count() as u64,
        min_words,
        names: ["A", "B"],
    };
    HtmlPage::default().render(&page)
}

/// One document beside others.
#[derive(Template)]
#[template(path = "several.html")]
struct Several<'s> {
    others: Vec<Other<'s>>,
    min_words: u32,
    names: [&'static str; 2],
}

struct Other<'o> {
    number: usize,
    resemblance: f64,
    comparison: AlignedPair<'o>,
}

impl Other<'_> {
    fn difference(&self) -> Result<Difference> {
        Ok(Difference {
            explanation: self.comparison.explain()?,
            names: ["the document", "this one"],
        })
    }

    fn sides<'s>(&'s self, prefix: &str, name: &'s str) -> Result<SideBySide<'s>> {
        let look = Look {
            prefix: prefix.into(),
            level: 3,
            names: [
                HtmlText::new(b"The document"),
                HtmlText::new(name.as_bytes()),
            ],
            notes: [""; 2],
            is_panes: false,
        };
        SideBySide::new(&self.comparison, look)
    }
}

/// Returns a complete page with each of the other documents beside the first; all but the first pair are folded.
/// NULL elements are counted and not shown. Nothing in the documents acts as markup.
///
/// Time O(n log n) for each pair.
///
/// # Errors
/// `Invalid` if `min_words` is below 1; `TooLarge` above [`MAX_PAGE_INPUT`] bytes, where the first document counts
/// once for each other one; `OutOfMemory`.
pub fn diff_html_of_several(
    a: &[u8],
    others: &[Option<&[u8]>],
    min_words: i64,
    check: &mut dyn FnMut(),
) -> Result<String> {
    let min_words = valid_min_words(min_words)?;
    let present = (1..).zip(others);
    let present = collected(present.filter_map(|(number, b)| Some((number, (*b)?))))?;
    check_bytes(present.iter().map(|(_, b)| a.len() + b.len()).sum())?;
    let check = RefCell::new(check);
    let check = || (check.borrow_mut())();
    let mut others = with_room(present.len())?;
    for (number, b) in present {
        others.try_push(Other {
            number,
            resemblance: resemblance(a, b, &mut || check())?,
            comparison: AlignedPair::new([a, b], min_words, &check)?,
        })?;
    }
    HtmlPage::default().render(&Several {
        others,
        min_words,
        names: ["the first", "the second"],
    })
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

/// Returns the resemblance of the sets of three-word shingles, the default of all measures on shingles.
fn resemblance(a: &[u8], b: &[u8], check: &mut dyn FnMut()) -> Result<f64> {
    let shingling = Shingling::new(3, Unit::Word, Fold::Case)?;
    let key = Key::from_seed(0);
    let a = shingle_hashes(a, &shingling, &key, check)?;
    let b = shingle_hashes(b, &shingling, &key, check)?;
    Ok(set::jaccard(&a, &b, check))
}
