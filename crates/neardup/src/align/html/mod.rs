//! Two documents side by side, as one HTML page without scripts.

mod column;
mod escape;
mod map;
mod page;

use super::alignment::Alignment;
use super::chunks::{Similarity, valid_min_words};
use super::pace::Pace;
use super::tiling::Run;
use super::words::Words;
use crate::shingle::{Key, Shingling, shingle_hashes};
use crate::text::{Fold, Unit};
use crate::{Error, Result, set};
use column::Column;
use page::{Page, longest};

/// Bytes of both documents together, at most: a page has up to 35 bytes for one of theirs.
pub const MAX_PAGE_INPUT: usize = 1 << 24;

/// Chunks whose other occurrence lights up under the pointer: each needs a rule of its own, and
/// browsers grow slow with thousands. All chunks link to each other.
const HOVERED: usize = 300;

/// A complete page: figures on top, a map of the common chunks, then both documents, each chunk of
/// at least `min_words` words in its own color on both sides and linked to its other occurrence,
/// words that only one side has marked. Nothing in the documents survives as markup.
///
/// Time O(n log n).
///
/// # Errors
/// `Invalid` if `min_words` is below 1, `TooLarge` above [`MAX_PAGE_INPUT`] bytes, `OutOfMemory`.
pub fn diff_html(a: &[u8], b: &[u8], min_words: i64, check: &mut dyn FnMut()) -> Result<String> {
    let min_words = valid_min_words(min_words)?;
    if a.len() + b.len() > MAX_PAGE_INPUT {
        return Err(Error::TooLarge {
            message: format!("the documents have more than {MAX_PAGE_INPUT} bytes"),
            hint: format!("Both documents together may have up to {MAX_PAGE_INPUT} bytes."),
        });
    }
    let resemblance = resemblance(a, b, check)?;
    let pace = &mut Pace::new(check);
    let words = Words::new(a, b, pace)?;
    let alignment = Alignment::new(&words, min_words, pace)?;
    let mut page = Page::new(4096 + 2 * (a.len() + b.len()))?;
    page.head(&alignment.chunks)?;
    page.figures(&words, &alignment, resemblance, min_words)?;
    page.push("<main>\n");
    Column::new(&mut page, &alignment, 0).write(a, &words.a, pace);
    Column::new(&mut page, &alignment, 1).write(b, &words.b, pace);
    page.push("</main>\n</body>\n</html>\n");
    page.finish()
}

/// Of sets of three-word shingles, the default of all measures on shingles.
fn resemblance(a: &[u8], b: &[u8], check: &mut dyn FnMut()) -> Result<f64> {
    let shingling = Shingling::new(3, Unit::Word, Fold::Case)?;
    let key = Key::from_seed(0);
    let a = shingle_hashes(a, &shingling, &key, check)?;
    let b = shingle_hashes(b, &shingling, &key, check)?;
    Ok(set::jaccard(&a, &b, check))
}

impl Page {
    fn head(&mut self, chunks: &[Run]) -> Result<()> {
        self.push(concat!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
            "<meta http-equiv=\"Content-Security-Policy\" ",
            "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n",
            "<title>Two documents side by side</title>\n<style>\n",
            include_str!("page.css")
        ));
        for i in longest(chunks, HOVERED)? {
            self.write(format_args!(
                "body:has(#b{i}:hover,#m{i}:hover) #a{i},body:has(#a{i}:hover,#m{i}:hover) #b{i}\
                 {{box-shadow:0 0 0 2px hsl(var(--h) var(--s) var(--edge))}}\n"
            ));
        }
        self.push("</style>\n</head>\n<body>\n");
        Ok(())
    }

    fn figures(
        &mut self,
        words: &Words,
        alignment: &Alignment,
        resemblance: f64,
        min_words: u32,
    ) -> Result<()> {
        let (a, b) = (words.a.len(), words.b.len());
        let found = Similarity {
            common: alignment.chunks.iter().map(|run| run.words as usize).sum(),
            longer: a.max(b),
            shorter: a.min(b),
        };
        let moved = alignment.in_order.iter().filter(|kept| !**kept).count();
        self.push("<header>\n<dl>\n");
        let percent = |share: f64| format!("{:.1}&nbsp;%", share * 100.0);
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
            self.write(format_args!(
                "<div title=\"{title}\"><dt>{name}</dt><dd>{value}</dd></div>\n"
            ));
        }
        self.push("</dl>\n");
        map::append(self, alignment, [a, b])?;
        self.write(format_args!(
            "<p><span class=\"c\" style=\"--h:205\">common run of {min_words} words or more</span> \
             <span class=\"c m\" style=\"--h:205\">moved</span> <del>only in A</del> <ins>only in B</ins></p>\n</header>\n"
        ));
        Ok(())
    }
}
