//! One document beside several others, on one page.

use super::comparison::Comparison;
use super::look::Look;
use super::{check_bytes, difference, legend, percent, resemblance};
use crate::Result;
use crate::align::chunks::valid_min_words;
use crate::align::pace::Pace;
use crate::html::{Page, SECTIONS};
use crate::memory::Grow;

/// Returns a complete page: a table of the other documents, then each of them beside the first, folded
/// but for the first one. An element that is NULL is counted and not shown. Nothing in the documents
/// survives as markup.
///
/// Time O(n log n) of each pair.
///
/// # Errors
/// `Invalid` if `min_words` is below 1, `TooLarge` above [`super::MAX_PAGE_INPUT`] bytes, where the first
/// document counts once for each other one; `OutOfMemory`.
pub fn diff_html_of_several(
    a: &[u8],
    others: &[Option<&[u8]>],
    min_words: i64,
    check: &mut dyn FnMut(),
) -> Result<String> {
    let min_words = valid_min_words(min_words)?;
    let present = || {
        (1..)
            .zip(others)
            .filter_map(|(number, b)| Some((number, (*b)?)))
    };
    check_bytes(present().map(|(_, b)| a.len() + b.len()).sum())?;
    let mut compared = Vec::new();
    for (number, b) in present() {
        let pace = &mut Pace::new(check);
        compared.try_push((number, b, Comparison::new([a, b], min_words, pace)?))?;
    }
    let mut page = Page::default();
    page.begin(b"One document beside others");
    page.push(SECTIONS);
    page.write(format_args!(
        "</style>\n</head>\n<body>\n<header>\n<h1>One document beside {}</h1>\n",
        match compared.len() {
            1 => "another".to_string(),
            count => format!("{count} others"),
        }
    ));
    legend(&mut page, min_words, ["the first", "the second"]);
    page.push("</header>\n<main>\n");
    if !compared.is_empty() {
        page.push(TABLE);
    }
    for (number, b, comparison) in &compared {
        let resemblance = percent(resemblance(a, b, check)?);
        let common = comparison.similarity().common;
        page.write(format_args!(
            "<tr><th scope=\"row\"><a href=\"#d{number}\">{number}</a></th>\
             <td class=\"n\">{resemblance}</td><td class=\"n\">{common}</td><td>"
        ));
        let explanation = comparison.explain(&mut Pace::new(check))?;
        difference::append(&mut page, &explanation, ["the document", "this one"]);
        page.push("</td></tr>\n");
    }
    if !compared.is_empty() {
        page.push("</tbody>\n</table>\n");
    }
    for (nth, (number, _, comparison)) in compared.iter().enumerate() {
        let open = if nth == 0 { " open" } else { "" };
        page.write(format_args!(
            "<section aria-labelledby=\"d{number}\">\n<h2 id=\"d{number}\">Document {number}</h2>\n\
             <details{open}><summary>Side by side</summary>\n"
        ));
        let (prefix, name) = (format!("d{number}"), format!("Document {number}"));
        let look = Look {
            prefix: &prefix,
            level: 3,
            names: [b"The document", name.as_bytes()],
        };
        comparison.write(&mut page, &look, &mut Pace::new(check))?;
        page.push("</details>\n</section>\n");
    }
    page.push("</main>\n</body>\n</html>\n");
    page.finish()
}

const TABLE: &str = "<table>\n<caption>How each of them differs from the document</caption>\n<thead><tr>\
    <th scope=\"col\">Document</th><th scope=\"col\" class=\"n\">Resemblance</th>\
    <th scope=\"col\" class=\"n\">Common words</th><th scope=\"col\">Difference</th></tr></thead>\n<tbody>\n";
