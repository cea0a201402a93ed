//! `near_dup_report`: the near-duplicates of a query on a page.

use crate::collection::documents::{self as collection, DocumentKind, share_of_work_mem_bytes};
use crate::collection::matches::Matches;
use crate::collection::reading::Collection;
use crate::collection::rows::RowKind;
use crate::index::kind::Bound;
use crate::options;
use crate::pg::call::Call;
use crate::pg::catalog::{is_text, type_named};
use crate::pg::encoding::Utf8;
use crate::pg::error::{OrRaise, check_interrupts, invalid, wrong_type};
use crate::pg::progress::Progress;
use crate::pg::query::{CheckedColumn, Query, QueryRow};
use crate::pg::spool::Records;
use crate::pg::text::{NewText, Text};
use neardup::memory::{Grow, collected, copied, filled};
use neardup::numbered::NumberedTexts;
use neardup::report::{self, Census, CollectionReport, Date, Facts, MAX_GROUPS, ReportDocuments};
use neardup::shingle::Shingling;
use pgrx::prelude::*;
use std::ffi::CStr;

/// Implements `near_dup_report(key, query, threshold, title, groups, params)`.
///
/// # Errors
/// As `near_dup_clusters`; `datatype_mismatch` also for a query without documents, or with columns of
/// other names.
#[pg_extern(sql = false)]
fn near_dup_report(fcinfo: pg_sys::FunctionCallInfo) -> NewText {
    // SAFETY: the call is running; the argument is declared as text.
    let (call, title) = unsafe {
        let call = Call::new(fcinfo);
        let title = Text::from_raw(call.argument(3, "title"));
        (call, title)
    };
    let threshold = options::threshold_argument(&call, 2);
    let groups = call.argument(4, "groups").value() as i32;
    let groups = options::within("groups", groups, 0, MAX_GROUPS as i32) as usize;
    let mut rows = ReportRows::new();
    let (census, stored) = rows.read(&call, threshold);
    let ReportRows {
        keys,
        compared,
        sources,
        ..
    } = rows;
    let report = CollectionReport {
        title: &title,
        threshold,
        census: &census,
        sources: &sources,
        groups,
        date_of,
    };
    let mut documents = Shown {
        keys,
        compared,
        stored,
        census: &census,
        progress: Progress::begin("showing groups", Some(report.shown_groups())),
        buffer: Vec::new(),
    };
    NewText(report.page(&mut documents).or_raise().into_bytes())
}

/// Returns the date of a day, counted from 1 January 2000.
fn date_of(day: i32) -> Date {
    let (mut year, mut month, mut of_month) = (0, 0, 0);
    let julian = day.saturating_add(pg_sys::POSTGRES_EPOCH_JDATE as i32);
    // SAFETY: the function only computes, and writes its results.
    unsafe { pg_sys::j2date(julian, &mut year, &mut month, &mut of_month) };
    Date {
        year,
        month: month as u8,
        day: of_month as u8,
    }
}

/// The columns of the query.
struct ReportColumns {
    key: CheckedColumn,
    signature: Option<CheckedColumn>,
    document: CheckedColumn,
    source: Option<CheckedColumn>,
    day: Option<CheckedColumn>,
    canonical: Option<CheckedColumn>,
    similarity: Option<CheckedColumn>,
}

/// The rows of the query: their counts, and their keys.
struct ReportRows {
    facts: Vec<Facts>,
    /// The keys as text in UTF-8.
    keys: Records,
    /// The numbers of the rows that are compared.
    compared: Vec<u32>,
    sources: NumberedTexts,
}

impl ReportRows {
    fn new() -> Self {
        Self {
            facts: Vec::new(),
            keys: Records::new(share_of_work_mem_bytes()),
            compared: Vec::new(),
            sources: NumberedTexts::default(),
        }
    }

    /// Reads all rows, and returns their clusters, and the documents of those that are compared.
    fn read(&mut self, call: &Call, threshold: f64) -> (Census, Option<collection::Documents>) {
        let key_type = call.argument_type(0);
        let signature_type = type_named(call.schema(), c"minhash_signature");
        let query = Query::open(call, 1, "query");
        let columns = check_columns(&query, key_type, signature_type);
        let output = KeyOutput::of(key_type);
        if let (Some(canonical), Some(similarity)) = (columns.canonical, columns.similarity) {
            return self.read_clusters(query, &columns, [canonical, similarity], &output);
        }
        let bound = Bound::Resemblance(threshold, Shingling::default());
        let mut collection = Collection::of_bound(pg_sys::INT8OID, bound, signature_type);
        let (kind, value) = match columns.signature {
            Some(signature) => (RowKind::Signature(Some(DocumentKind::Text)), signature),
            None => (RowKind::Document(DocumentKind::Text), columns.document),
        };
        collection.gather(kind, |take| {
            query.for_each("reading", &mut |row| {
                let number = self.facts.len() as i64;
                take(
                    number.into_datum(),
                    row.get(value),
                    row.get(columns.document),
                );
                self.push(row, &columns, &output.text(row.get(columns.key)));
            });
        });
        let mut matches = Matches::of(collection);
        let census = self.census(matches.as_mut());
        (census, matches.and_then(Matches::into_documents))
    }

    /// Reads rows whose clusters are known; those without similarity are not compared.
    fn read_clusters(
        &mut self,
        query: Query,
        columns: &ReportColumns,
        [canonical, similarity]: [CheckedColumn; 2],
        output: &KeyOutput,
    ) -> (Census, Option<collection::Documents>) {
        let mut documents = collection::Documents::new(DocumentKind::Text);
        let mut rows: Vec<report::CensusRow> = Vec::new();
        let (mut canonicals, mut row_of, mut record) =
            (NumberedTexts::default(), Vec::new(), Vec::new());
        query.for_each("reading", &mut |row| {
            let [key, canonical] = [columns.key, canonical].map(|key| output.text(row.get(key)));
            let number = self.facts.len() as u32;
            let facts = self.push(row, columns, &key);
            let Some(similarity) = row.get(similarity) else {
                return;
            };
            self.compared.try_push(number).or_raise();
            let group = canonicals.number(&canonical).or_raise();
            if group as usize == row_of.len() {
                row_of.try_push(None).or_raise();
            }
            if key == canonical {
                row_of[group as usize] = Some(rows.len() as u32);
            }
            record.clear();
            if let Some(document) = row.get(columns.document) {
                // SAFETY: the column's type has been checked; the row outlives the borrow.
                unsafe { DocumentKind::Text.push_record(document, &mut record) };
            }
            documents.push(&record);
            let row = report::CensusRow {
                canonical: group,
                similarity: f64::from_bits(similarity.value() as u64),
                facts,
            };
            rows.try_push(row).or_raise();
        });
        for row in &mut rows {
            let group = row.canonical as usize;
            row.canonical = row_of[group].unwrap_or_else(|| {
                let key = str::from_utf8(canonicals.text(group as u32)).unwrap_or_default();
                invalid(
                    &format!("the query yields no row {key}, which is the canonical row of others"),
                    "Let it yield all rows of a cluster.",
                )
            });
        }
        (self.census_of(rows), Some(documents))
    }

    /// Counts a row, and keeps its key.
    fn push(&mut self, row: &QueryRow<'_>, columns: &ReportColumns, key: &[u8]) -> Facts {
        let facts = self.facts_of(row, columns);
        self.keys.push(key);
        self.facts.try_push(facts).or_raise();
        facts
    }

    fn facts_of(&mut self, row: &QueryRow<'_>, columns: &ReportColumns) -> Facts {
        let source = columns.source.and_then(|column| row.get(column));
        let day = columns.day.and_then(|column| row.get(column));
        // SAFETY: the columns are of type text or one of those that are stored as it is.
        let text = |datum| unsafe { Text::from_raw(datum) };
        Facts {
            bytes: row
                .get(columns.document)
                .map_or(0, |document| text(document).len() as u32),
            source: source.map(|source| self.sources.number(&text(source)).or_raise()),
            // The first and the last number stand for infinity.
            day: day
                .map(|datum| datum.value() as i32)
                .filter(|day| !matches!(*day, i32::MIN | i32::MAX)),
        }
    }

    /// Counts the star clusters.
    fn census(&mut self, matches: Option<&mut Matches>) -> Census {
        let mut rows = Vec::new();
        // The places of rows among those that are compared.
        let mut places = filled(0, self.facts.len()).or_raise();
        let mut count = |ends: [Option<pg_sys::Datum>; 2], similarity: f64| {
            let [row, canonical] = ends.map(|datum| datum.map_or(0, |datum| datum.value()));
            places[row] = rows.len() as u32;
            self.compared.try_push(row as u32).or_raise();
            let row = report::CensusRow {
                canonical: places[canonical],
                similarity,
                facts: self.facts[row],
            };
            rows.try_push(row).or_raise();
        };
        if let Some(matches) = matches {
            matches.for_each_in_star(&mut count);
        }
        self.census_of(rows)
    }

    /// Returns the counts of the rows that are compared, and of the others.
    fn census_of(&self, rows: Vec<report::CensusRow>) -> Census {
        let mut compared = self.compared.iter().copied().peekable();
        let others = (0..)
            .zip(&self.facts)
            .filter_map(|(number, facts)| compared.next_if_eq(&number).is_none().then_some(*facts));
        Census::new(rows, collected(others).or_raise()).or_raise()
    }
}

/// The output function of the keys' type.
struct KeyOutput(pg_sys::Oid);

impl KeyOutput {
    fn of(key_type: pg_sys::Oid) -> Self {
        let (mut output, mut is_varlena) = (pg_sys::InvalidOid, false);
        // SAFETY: the type exists.
        unsafe { pg_sys::getTypeOutputInfo(key_type, &mut output, &mut is_varlena) };
        Self(output)
    }

    /// Returns a key, of the type of the output function, as text in UTF-8.
    fn text(&self, key: Option<pg_sys::Datum>) -> Vec<u8> {
        let Some(key) = key else {
            return copied(b"NULL").or_raise();
        };
        // SAFETY: the value is of the type of the output function, which returns a new string.
        unsafe {
            let text = pg_sys::OidOutputFunctionCall(self.0, key);
            let copy = copied(&Utf8::new(CStr::from_ptr(text).to_bytes())).or_raise();
            pg_sys::pfree(text.cast());
            copy
        }
    }
}

/// Documents that are read where they were stored.
struct Shown<'s> {
    keys: Records,
    /// The numbers of the rows.
    compared: Vec<u32>,
    /// None without documents.
    stored: Option<collection::Documents>,
    census: &'s Census,
    progress: Progress,
    buffer: Vec<u8>,
}

impl ReportDocuments for Shown<'_> {
    fn read(&mut self, row: u32) -> neardup::Result<[Vec<u8>; 2]> {
        if self.census.row(row).canonical == row {
            self.progress.step();
        }
        check_interrupts();
        let number = self.compared[row as usize] as usize;
        let key = copied(self.keys.read(number, &mut self.buffer))?;
        let mut document = Vec::new();
        if let Some(stored) = &mut self.stored {
            stored.read(row, &mut self.buffer, &mut document);
        }
        Ok([key, document])
    }

    fn check(&mut self) {
        self.progress.look();
    }
}

fn check_columns(
    query: &Query,
    key_type: pg_sys::Oid,
    signature_type: pg_sys::Oid,
) -> ReportColumns {
    let columns = query.columns();
    let [key, second, others @ ..] = columns.as_slice() else {
        wrong_columns(&format!("the query yields {} columns", columns.len()));
    };
    let (document, signature, others) = match (second.if_base_type(is_text), others) {
        (Some(document), _) => (document, None, others),
        (None, [document, others @ ..]) => {
            let Some(signature) = second.if_type(signature_type) else {
                second.reject("second", VALID);
            };
            (document.of_documents("third"), Some(signature), others)
        }
        (None, []) => wrong_columns("the query yields no document"),
    };
    let first = columns.len() - others.len();
    let mut checked = ReportColumns {
        key: key.of_type(key_type, "first", "key"),
        signature,
        document,
        source: None,
        day: None,
        canonical: None,
        similarity: None,
    };
    for (place, column) in (first..).zip(others) {
        let name = query.column_name(place);
        let (place, found) = match name.as_str() {
            "source" => (&mut checked.source, column.if_base_type(is_text)),
            "day" => (&mut checked.day, column.if_type(pg_sys::DATEOID)),
            "canonical" => (&mut checked.canonical, column.if_type(key_type)),
            "similarity" => (&mut checked.similarity, column.if_type(pg_sys::FLOAT8OID)),
            _ => {
                let name = neardup::quoted(&name);
                wrong_columns(&format!("the query yields a column {name}"))
            }
        };
        *place = Some(found.unwrap_or_else(|| {
            let type_name = column.type_name();
            wrong_columns(&format!("column \"{name}\" is of type {type_name}"))
        }));
    }
    if checked.canonical.is_some() != checked.similarity.is_some() {
        wrong_columns("of the columns canonical and similarity the query yields one");
    }
    checked
}

fn wrong_columns(message: &str) -> ! {
    wrong_type(message, VALID)
}

const VALID: &str = "Valid are the key, perhaps the signature (minhash_signature), the document (text), and columns named source (text) and day (date), and of known clusters canonical (of the key's type) and similarity (double precision).";

pgrx::extension_sql_file!("../../sql/collection/report.sql", name = "report");
