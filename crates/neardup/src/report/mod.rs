//! A report of the near-duplicates of a collection: one page of HTML, without a script.

mod census;
mod chart;
mod timeline;

pub use census::{Census, CensusRow, Facts};
pub use timeline::Date;

use crate::Result;
use crate::align::{AlignedPair, Difference, Look, SideBySide, explain};
use crate::html::{HtmlPage, HtmlText, Number, Percent, ThreeDecimals, beginning};
use crate::numbered::NumberedTexts;
use askama::Template;
use census::{CensusGroup, DocumentTally};
use chart::Chart;
use std::cell::{Cell, RefCell};
use timeline::Timeline;

/// Groups that a report can show, at most.
pub const MAX_GROUPS: usize = 10_000;

/// Members of a group that a report shows, at most.
pub const MEMBERS: usize = 20;

/// Bytes from which on a page has no further side-by-side views, and no further groups.
const VIEW_BYTES: usize = 16 << 20;
const PAGE_BYTES: usize = 32 << 20;

/// Bytes of a document that are shown side by side, at most, and of both documents that are explained.
const VIEWED: usize = 32 << 10;
const EXPLAINED: usize = 2 << 20;

/// Bytes shown of a canonical document at the head of its group, and of a key or source.
const BEGINNING: usize = 280;
const KEY: usize = 120;

/// Sources in the table of sources.
const SOURCES: usize = 50;

/// A side-by-side view marks common runs of at least this many words.
const MIN_WORDS: u32 = 5;

/// A collection and the settings of its report.
pub struct CollectionReport<'r> {
    pub title: &'r [u8],
    pub threshold: f64,
    pub census: &'r Census,
    /// The names of sources, by number.
    pub sources: &'r NumberedTexts,
    /// Groups that are shown, at most.
    pub groups: usize,
    /// Returns the date of a day, counted from 1 January 2000.
    pub date_of: fn(i32) -> Date,
}

/// The documents of a report.
pub trait ReportDocuments {
    /// Returns the key and the text of a row. Groups are read in order, the canonical document first.
    ///
    /// # Errors
    /// `OutOfMemory`.
    fn read(&mut self, row: u32) -> Result<[Vec<u8>; 2]>;

    /// Checks for interrupts; called now and then, and may unwind.
    fn check(&mut self);
}

impl CollectionReport<'_> {
    /// Returns the number of groups that the page shows if there is room for all of them.
    pub fn shown_groups(&self) -> usize {
        self.groups.min(self.census.group_count() as usize)
    }

    /// Returns a complete page.
    ///
    /// # Errors
    /// `OutOfMemory`, and errors of `documents`.
    pub fn page(&self, documents: &mut dyn ReportDocuments) -> Result<String> {
        let Self {
            census, threshold, ..
        } = self;
        let mut by_source = census.by_source()?;
        if by_source.iter().all(|(source, _)| source.is_none()) {
            by_source.clear();
        }
        let documents = RefCell::new(documents);
        let page = HtmlPage::default();
        page.render(&Writing {
            report: self,
            page: &page,
            groups: census.group_count(),
            charts: [census.sizes(), census.similarities(*threshold)],
            by_source,
            timeline: Timeline::new(census, self.date_of)?,
            largest: census.largest(self.groups, MEMBERS)?,
            check: &|| documents.borrow_mut().check(),
            documents: &documents,
            shown: Cell::default(),
            views: Cell::default(),
            left_out: Cell::default(),
            min_words: MIN_WORDS,
            names: ["the canonical document", "the member"],
        })
    }

    fn source(&self, number: &u32) -> &[u8] {
        self.sources.text(*number)
    }
}

/// A report while it is written.
#[derive(Template)]
#[template(path = "report.html")]
struct Writing<'w, 'd> {
    report: &'w CollectionReport<'w>,
    page: &'w HtmlPage,
    groups: u64,
    charts: [Chart; 2],
    by_source: Vec<(Option<u32>, DocumentTally)>,
    timeline: Option<Timeline>,
    largest: Vec<CensusGroup>,
    documents: &'w RefCell<&'d mut dyn ReportDocuments>,
    check: &'w dyn Fn(),
    /// Groups written so far, side-by-side views, and members without a view.
    shown: Cell<u64>,
    views: Cell<u64>,
    left_out: Cell<u64>,
    min_words: u32,
    /// The names of the documents in the legend.
    names: [&'static str; 2],
}

struct ReportDocument {
    key: Vec<u8>,
    text: Vec<u8>,
    facts: Facts,
    similarity: f64,
}

impl ReportDocument {
    fn name(&self) -> HtmlText<'_> {
        HtmlText::cut(&self.key, KEY)
    }
}

/// A member of a group and its canonical document.
struct ComparedPair<'p> {
    /// None if the documents are too long.
    difference: Option<Difference>,
    /// The parts that are shown side by side.
    view: Option<AlignedPair<'p>>,
}

/// Source and day of a document, after its key.
#[derive(Template)]
#[template(
    ext = "html",
    source = "{% if let Some(source) = source %} <small><bdi>{{ source }}</bdi></small>{% endif %}\
              {% if let Some(date) = date %} <small>{{ date }}</small>{% endif %}"
)]
struct Origin<'o> {
    source: Option<HtmlText<'o>>,
    date: Option<Date>,
}

impl askama::filters::HtmlSafe for Origin<'_> {}

impl Writing<'_, '_> {
    /// Returns the groups one by one, as long as there is room for them.
    fn groups(&self) -> impl Iterator<Item = &CensusGroup> {
        let groups = self.largest.iter();
        groups
            .take_while(|_| self.page.len() <= PAGE_BYTES)
            .inspect(|_| self.shown.update(|shown| shown + 1))
    }

    fn read(&self, row: &u32) -> Result<ReportDocument> {
        let [key, text] = self.documents.borrow_mut().read(*row)?;
        let row = self.report.census.row(*row);
        Ok(ReportDocument {
            key,
            text,
            facts: row.facts,
            similarity: row.similarity,
        })
    }

    fn origin(&self, document: &ReportDocument) -> Origin<'_> {
        let Facts { source, day, .. } = document.facts;
        let name = |source: u32| HtmlText::cut(self.report.source(&source), KEY);
        Origin {
            source: source.map(name),
            date: day.map(self.report.date_of),
        }
    }

    /// Compares a member of a group with its canonical document.
    ///
    /// # Errors
    /// `OutOfMemory`.
    fn pair<'p>(
        &'p self,
        canonical: &'p ReportDocument,
        member: &'p ReportDocument,
    ) -> Result<ComparedPair<'p>> {
        let docs = [&*canonical.text, &*member.text];
        let shown = docs.map(|doc| beginning(doc, VIEWED));
        let (is_whole, differ) = (shown == docs, docs[0] != docs[1]);
        let is_viewed = differ && self.page.len() <= VIEW_BYTES;
        let view = match is_viewed || is_whole {
            true => Some(AlignedPair::new(shown, MIN_WORDS, self.check)?),
            false => None,
        };
        let explanation = match &view {
            Some(view) if is_whole => Some(view.explain()?),
            _ if docs[0].len() + docs[1].len() <= EXPLAINED => {
                Some(explain(docs[0], docs[1], &mut || (self.check)())?)
            }
            _ => None,
        };
        let names = ["the canonical document", "this one"];
        self.left_out
            .update(|count| count + u64::from(differ && !is_viewed));
        Ok(ComparedPair {
            difference: explanation.map(|explanation| Difference { explanation, names }),
            view: view.filter(|_| is_viewed),
        })
    }

    fn sides<'s>(
        &'s self,
        view: &'s AlignedPair<'s>,
        canonical: &'s ReportDocument,
        member: &'s ReportDocument,
    ) -> Result<SideBySide<'s>> {
        self.views.update(|views| views + 1);
        let documents = [canonical, member];
        let note = |document: &ReportDocument| match document.text.len() > VIEWED {
            true => " in the first 32 kB",
            false => "",
        };
        let look = Look {
            prefix: format!("v{}", self.views.get()),
            level: 5,
            names: documents.map(ReportDocument::name),
            notes: documents.map(note),
            is_panes: false,
        };
        SideBySide::new(view, look)
    }
}
