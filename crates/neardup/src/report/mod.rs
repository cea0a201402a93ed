//! A report of the near-duplicates of a collection: one page of HTML, without a script.

mod calendar;
mod census;
mod chart;

pub use census::{Census, Days, Group, Period, Row, Tally};

use crate::Result;
use crate::align::{Comparison, Explanation, Look, Pace, beginning, difference, explain, legend};
use crate::html::{Page, SECTIONS};
use census::date_name;
use chart::{Bar, Chart};

/// Groups that a report can show.
pub const MAX_GROUPS: usize = 10_000;

/// Members of a group that it shows.
pub const MEMBERS: usize = 20;

/// Bytes from which on a page has no further side-by-side views, and no further groups.
const VIEW_BYTES: usize = 16 << 20;
const PAGE_BYTES: usize = 32 << 20;

/// Bytes of a document that are shown side by side, and of both that are explained.
const VIEWED: usize = 32 << 10;
const EXPLAINED: usize = 2 << 20;

/// Bytes of a canonical document that stand at the head of its group, and of a key.
const BEGINNING: usize = 280;
const KEY: usize = 120;

/// Sources in the table of sources.
const SOURCES: usize = 50;

/// Common runs of words from which on a side-by-side view marks them.
const MIN_WORDS: u32 = 5;

/// A document as a report shows it.
#[derive(Debug, Clone, Copy)]
pub struct Document<'d> {
    pub key: &'d [u8],
    pub source: Option<&'d [u8]>,
    pub day: Option<i32>,
    pub text: &'d [u8],
}

/// A report as far as it is written.
pub struct Report {
    page: Page,
    /// Groups begun.
    groups: usize,
    /// Side-by-side views written, and left out.
    views: usize,
    views_left_out: usize,
    groups_left_out: usize,
}

impl Report {
    /// Writes the head of the page, and all figures. `unread`: documents that were not compared, since
    /// they have no word, or no signature.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn new(
        title: &[u8],
        threshold: f64,
        census: &Census,
        sources: &[Vec<u8>],
        unread: u64,
    ) -> Result<Self> {
        let mut page = Page::default();
        page.begin(title);
        page.push(SECTIONS);
        page.push("</style>\n</head>\n<body>\n<header>\n<h1 dir=\"auto\">");
        page.text(title);
        page.push("</h1>\n");
        let (by_source, by_day) = (census.by_source()?, census.by_day()?);
        let has_sources = by_source.iter().any(|(source, _)| source.is_some());
        summary(&mut page, threshold, census, unread);
        page.push("<nav aria-label=\"Contents\"><ul>");
        for (id, name, is_there) in [
            (
                "figures",
                "Groups and similarities",
                census.group_count() > 0,
            ),
            ("sources", "By source", has_sources),
            ("days", "By day", by_day.is_some()),
            ("groups", "Largest groups", census.group_count() > 0),
        ] {
            if is_there {
                page.write(format_args!("<li><a href=\"#{id}\">{name}</a></li>"));
            }
        }
        page.push("</ul></nav>\n</header>\n<main>\n");
        if census.group_count() > 0 {
            figures(&mut page, threshold, census);
        }
        if has_sources {
            sources_table(&mut page, &by_source, sources);
        }
        if let Some(days) = by_day {
            days_chart(&mut page, &days);
        }
        if census.group_count() > 0 {
            page.push(
                "<section aria-labelledby=\"groups\">\n<h2 id=\"groups\">Largest groups</h2>\n",
            );
            page.write(format_args!(
                "<p>A group is a canonical document and the documents for which it stands. Of each group the {MEMBERS} \
                 least similar members are shown.</p>\n"
            ));
            legend(
                &mut page,
                MIN_WORDS,
                ["the canonical document", "the member"],
            );
        }
        Ok(Self {
            page,
            groups: 0,
            views: 0,
            views_left_out: 0,
            groups_left_out: 0,
        })
    }

    /// Begins a group of so many documents; returns false if the page is too long for it, and for
    /// those after it.
    pub fn begin_group(&mut self, canonical: &Document<'_>, group: &Group) -> bool {
        if self.page.len() > PAGE_BYTES {
            self.groups_left_out += 1;
            return false;
        }
        self.groups += 1;
        let (number, documents) = (self.groups, grouped(group.documents.into()));
        let page = &mut self.page;
        page.write(format_args!(
            "<section class=\"group\" aria-labelledby=\"g{number}\">\n<h3 id=\"g{number}\">Group {number}: {documents} documents</h3>\n\
             <p>Canonical: <b>"
        ));
        key(page, canonical.key);
        page.push("</b>");
        origin(page, canonical);
        page.push("</p>\n<p class=\"begin\" dir=\"auto\">");
        page.text(beginning(canonical.text, BEGINNING));
        page.push(if canonical.text.len() > BEGINNING {
            "&hellip;"
        } else {
            ""
        });
        page.push("</p>\n<table>\n<caption>");
        let members = group.documents as usize - 1;
        match group.members.len() {
            shown if shown < members => page.write(format_args!(
                "The {shown} least similar of {} members",
                grouped(members as u64)
            )),
            _ => page.push("Members, the least similar first"),
        }
        page.push(
            "</caption>\n<thead><tr><th scope=\"col\">Document</th><th scope=\"col\" class=\"n\">Similarity</th>\
             <th scope=\"col\">Difference</th></tr></thead>\n<tbody>\n",
        );
        true
    }

    /// Writes a member of the group, with its differences, and the side-by-side view folded.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn member(
        &mut self,
        canonical: &Document<'_>,
        member: &Document<'_>,
        similarity: f64,
        check: &mut dyn FnMut(),
    ) -> Result<()> {
        let page = &mut self.page;
        page.push("<tr><th scope=\"row\">");
        key(page, member.key);
        origin(page, member);
        page.write(format_args!(
            "</th><td class=\"n\">{similarity:.3}</td><td>"
        ));
        let docs = [canonical.text, member.text];
        let shown = docs.map(|doc| beginning(doc, VIEWED));
        let is_whole = shown == docs;
        let is_viewed = page.len() <= VIEW_BYTES && docs[0] != docs[1];
        let pace = &mut Pace::new(check);
        let comparison = match is_viewed || is_whole {
            true => Some(Comparison::new(shown, MIN_WORDS, pace)?),
            false => None,
        };
        match &comparison {
            Some(comparison) if is_whole => difference_cell(page, &comparison.explain(pace)?),
            _ if docs[0].len() + docs[1].len() <= EXPLAINED => {
                difference_cell(page, &explain(docs[0], docs[1], check)?);
            }
            _ => page.push("too long to be compared here"),
        }
        page.push("</td></tr>\n");
        if docs[0] == docs[1] {
            return Ok(());
        }
        match comparison {
            Some(comparison) if is_viewed => {
                self.view(&comparison, [canonical, member], is_whole, check)
            }
            _ => {
                self.views_left_out += 1;
                Ok(())
            }
        }
    }

    fn view(
        &mut self,
        comparison: &Comparison<'_>,
        documents: [&Document<'_>; 2],
        is_whole: bool,
        check: &mut dyn FnMut(),
    ) -> Result<()> {
        self.views += 1;
        let page = &mut self.page;
        page.push(
            "<tr class=\"view\"><td colspan=\"3\"><details><summary>Side by side</summary>\n",
        );
        if !is_whole {
            page.write(format_args!(
                "<p>The first {} kB of each document.</p>\n",
                VIEWED >> 10
            ));
        }
        let prefix = format!("v{}", self.views);
        let look = Look {
            prefix: &prefix,
            level: 4,
            names: documents.map(|document| beginning(document.key, KEY)),
        };
        comparison.write(page, &look, &mut Pace::new(check))?;
        page.push("</details></td></tr>\n");
        Ok(())
    }

    pub fn end_group(&mut self) {
        self.page.push("</tbody>\n</table>\n</section>\n");
    }

    /// Ends the page; says what it leaves out of `census`.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn finish(mut self, census: &Census) -> Result<String> {
        let all = census.group_count();
        let page = &mut self.page;
        if all > 0 {
            page.push("</section>\n");
        }
        page.push("</main>\n<footer>\n");
        if all > self.groups as u64 {
            let shown = grouped(self.groups as u64);
            page.write(format_args!(
                "<p>{shown} of {} groups are shown.</p>\n",
                grouped(all)
            ));
        }
        if self.groups_left_out > 0 {
            page.write(format_args!(
                "<p>{} groups did not fit: a page ends at about {} MB.</p>\n",
                grouped(self.groups_left_out as u64),
                PAGE_BYTES >> 20
            ));
        }
        if self.views_left_out > 0 {
            page.write(format_args!(
                "<p>{} members have no side-by-side view, which are for the first {} MB of a page: see diff_html.</p>\n",
                grouped(self.views_left_out as u64),
                VIEW_BYTES >> 20
            ));
        }
        page.push("<p>Made by near_dup_report of pg_neardup.</p>\n</footer>\n</body>\n</html>\n");
        self.page.finish()
    }
}

fn summary(page: &mut Page, threshold: f64, census: &Census, unread: u64) {
    let total = census.total();
    let documents = total.documents + unread;
    if documents == 0 {
        return page.push("<p>There are no documents.</p>\n");
    }
    page.write(format_args!(
        "<p>Documents of a similarity of at least {threshold} are near-duplicates.</p>\n<dl>\n"
    ));
    for (name, value) in [
        ("documents", grouped(documents)),
        ("groups of near-duplicates", grouped(census.group_count())),
        (
            "redundant documents",
            format!(
                "{} ({})",
                grouped(total.redundant),
                share(total.redundant, documents)
            ),
        ),
        (
            "redundant bytes",
            format!(
                "{} ({})",
                grouped(total.redundant_bytes),
                share(total.redundant_bytes, total.bytes)
            ),
        ),
    ] {
        page.write(format_args!("<div><dt>{name}</dt><dd>{value}</dd></div>\n"));
    }
    page.push("</dl>\n");
    if unread > 0 {
        page.write(format_args!(
            "<p>Not compared, without a word or a signature: {}.</p>\n",
            grouped(unread)
        ));
    }
    if census.group_count() == 0 {
        page.push("<p>No two documents are near-duplicates.</p>\n");
    }
}

#[allow(clippy::disallowed_methods, reason = "as many as classes")]
fn figures(page: &mut Page, threshold: f64, census: &Census) {
    page.push(
        "<section aria-labelledby=\"figures\">\n<h2 id=\"figures\">Groups and similarities</h2>\n<div class=\"charts\">\n",
    );
    let bar = |(label, all): (String, u64)| Bar {
        label,
        all,
        part: 0,
    };
    let sizes = census.sizes().into_iter();
    let sizes: Vec<Bar> = sizes
        .map(|(name, count)| bar((name.to_string(), count)))
        .collect();
    let similarities: Vec<Bar> = census
        .similarities(threshold)
        .into_iter()
        .map(bar)
        .collect();
    for chart in [
        Chart {
            title: "Groups by number of documents",
            columns: ["Documents", "Groups", ""],
            bars: &sizes,
        },
        Chart {
            title: "Redundant documents by similarity to the canonical one",
            columns: ["Similarity from", "Documents", ""],
            bars: &similarities,
        },
    ] {
        chart.write(page);
    }
    page.push("</div>\n</section>\n");
}

fn sources_table(page: &mut Page, by_source: &[(Option<u32>, Tally)], sources: &[Vec<u8>]) {
    page.push(
        "<section aria-labelledby=\"sources\">\n<h2 id=\"sources\">By source</h2>\n<table>\n\
         <caption>Those with the most redundant documents first</caption>\n<thead><tr><th scope=\"col\">Source</th>\
         <th scope=\"col\" class=\"n\">Documents</th><th scope=\"col\" class=\"n\">Redundant</th>\
         <th scope=\"col\" class=\"n\">Redundant bytes</th></tr></thead>\n<tbody>\n",
    );
    for (source, tally) in by_source.iter().take(SOURCES) {
        page.push("<tr><th scope=\"row\">");
        match source.and_then(|source| sources.get(source as usize)) {
            Some(name) => key(page, name),
            None => page.push("<small>none</small>"),
        }
        page.write(format_args!(
            "</th><td class=\"n\">{}</td><td class=\"n\">{} ({})</td><td class=\"n\">{}</td></tr>\n",
            grouped(tally.documents),
            grouped(tally.redundant),
            share(tally.redundant, tally.documents),
            grouped(tally.redundant_bytes)
        ));
    }
    page.push("</tbody>\n</table>\n");
    if by_source.len() > SOURCES {
        let more = by_source.len() - SOURCES;
        page.write(format_args!(
            "<p>{} further sources are left out.</p>\n",
            grouped(more as u64)
        ));
    }
    page.push("</section>\n");
}

#[allow(clippy::disallowed_methods, reason = "as many as bars")]
fn days_chart(page: &mut Page, days: &Days) {
    let (title, column) = match days.period {
        Period::Day => ("Documents by day", "Day"),
        Period::Month => ("Documents by month", "Month"),
        Period::Year => ("Documents by year", "Year"),
    };
    let bar = |(label, tally): &(String, Tally)| Bar {
        label: label.clone(),
        all: tally.documents,
        part: tally.redundant,
    };
    let bars: Vec<Bar> = days.bars.iter().map(bar).collect();
    page.push("<section aria-labelledby=\"days\">\n<h2 id=\"days\">By day</h2>\n");
    page.push("<p>The marked part of a bar counts the redundant documents.</p>\n");
    Chart {
        title,
        columns: [column, "Documents", "Redundant"],
        bars: &bars,
    }
    .write(page);
    if days.earlier > 0 {
        page.write(format_args!(
            "<p>{} earlier documents are left out.</p>\n",
            grouped(days.earlier)
        ));
    }
    page.push("</section>\n");
}

fn share(of: u64, all: u64) -> String {
    format!("{:.1}&nbsp;%", 100.0 * of as f64 / all.max(1) as f64)
}

fn key(page: &mut Page, key: &[u8]) {
    page.name(beginning(key, KEY));
    page.push(if key.len() > KEY { "&hellip;" } else { "" });
}

/// Writes source and day, if the document has them.
fn origin(page: &mut Page, document: &Document<'_>) {
    if let Some(source) = document.source {
        page.push(" <small>");
        key(page, source);
        page.push("</small>");
    }
    if let Some(day) = document.day {
        page.write(format_args!(" <small>{}</small>", date_name(day)));
    }
}

fn difference_cell(page: &mut Page, explanation: &Explanation) {
    difference::append(page, explanation, ["the canonical document", "this one"]);
}

/// Returns a number with commas between thousands.
#[allow(clippy::disallowed_methods, reason = "at most 20 digits")]
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn commas_between_thousands() {
        let cases = [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
        ];
        for (number, text) in cases {
            assert_eq!(grouped(number), text);
        }
    }
}
