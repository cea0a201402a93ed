//! `near_dup_report`: the near-duplicates of a query on a page.

use crate::collection::documents::share_of_work_mem_bytes;
use crate::collection::matches::Matches;
use crate::collection::reading::Collection;
use crate::options;
use crate::pg::call::Call;
use crate::pg::catalog::{is_text, type_named};
use crate::pg::error::{OrRaise, check_interrupts, or_out_of_memory, raise};
use crate::pg::progress::Progress;
use crate::pg::query::{CheckedColumn, Query, Row};
use crate::pg::spool::Records;
use crate::pg::text::{NewText, Text, Utf8};
use neardup::memory::{Grow, copied, with_room};
use neardup::report::{self, Census, Date, Documents, Facts, MAX_GROUPS, Report};
use pgrx::prelude::*;
use std::collections::HashMap;
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
    let mut rows = Rows::new();
    let collection = rows.read(&call, threshold);
    let mut matches = Matches::of(collection);
    let census = rows.census(matches.as_mut());
    let Rows { keys, sources, .. } = rows;
    let report = Report {
        title: &title,
        threshold,
        census: &census,
        sources: &sources,
        groups,
        date_of,
    };
    let mut documents = Stored {
        keys,
        matches,
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
struct Columns {
    key: CheckedColumn,
    signature: CheckedColumn,
    document: CheckedColumn,
    source: Option<CheckedColumn>,
    day: Option<CheckedColumn>,
}

/// The rows of the query: what is counted of them, and their keys.
struct Rows {
    /// Of the rows that are compared, in their order, and of the others.
    facts: Vec<Facts>,
    uncompared: Vec<Facts>,
    /// Keys of the rows that are compared, as text in UTF-8.
    keys: Records,
    sources: Vec<Vec<u8>>,
    numbers: HashMap<Vec<u8>, u32>,
}

impl Rows {
    fn new() -> Self {
        Self {
            facts: Vec::new(),
            uncompared: Vec::new(),
            keys: Records::new(share_of_work_mem_bytes()),
            sources: Vec::new(),
            numbers: HashMap::new(),
        }
    }

    /// Reads all rows; those of the collection have numbers as keys.
    fn read(&mut self, call: &Call, threshold: f64) -> Collection {
        let key_type = call.argument_type(0);
        let signature_type = type_named(call.schema(), c"minhash_signature");
        let mut collection = Collection::with_texts(signature_type, threshold);
        let query = Query::open(call, 1, "query");
        let columns = check_columns(&query, key_type, signature_type);
        let (mut output, mut is_varlena) = (pg_sys::InvalidOid, false);
        // SAFETY: the type exists.
        unsafe { pg_sys::getTypeOutputInfo(key_type, &mut output, &mut is_varlena) };
        let mut progress = Progress::reading("reading", &query);
        query.for_each(&mut |row| {
            progress.step();
            let number = collection.rows();
            let document = row.get(columns.document);
            let key = i64::from(number).into_datum();
            collection.push(key, row.get(columns.signature), document);
            let facts = self.facts_of(row, &columns);
            if collection.rows() > number {
                self.push_key(row.get(columns.key), output);
                self.facts.try_push(facts).or_raise();
            } else {
                self.uncompared.try_push(facts).or_raise();
            }
        });
        collection
    }

    fn push_key(&mut self, key: Option<pg_sys::Datum>, output: pg_sys::Oid) {
        let Some(key) = key else {
            return self.keys.push(b"NULL");
        };
        // SAFETY: the value is of the type of the output function, which returns a new string.
        unsafe {
            let text = pg_sys::OidOutputFunctionCall(output, key);
            self.keys.push(&Utf8::new(CStr::from_ptr(text).to_bytes()));
            pg_sys::pfree(text.cast());
        }
    }

    fn facts_of(&mut self, row: &Row<'_>, columns: &Columns) -> Facts {
        let source = columns.source.and_then(|column| row.get(column));
        let day = columns.day.and_then(|column| row.get(column));
        // SAFETY: the columns are of type text or one of those that are stored as it is.
        let text = |datum| unsafe { Text::from_raw(datum) };
        Facts {
            bytes: row
                .get(columns.document)
                .map_or(0, |document| text(document).len() as u32),
            source: source.map(|source| self.source_number(&text(source))),
            // The first and the last number stand for infinity.
            day: day
                .map(|datum| datum.value() as i32)
                .filter(|day| !matches!(*day, i32::MIN | i32::MAX)),
        }
    }

    fn source_number(&mut self, source: &[u8]) -> u32 {
        if let Some(number) = self.numbers.get(source) {
            return *number;
        }
        let number = self.sources.len() as u32;
        self.sources.try_push(copied(source).or_raise()).or_raise();
        or_out_of_memory(self.numbers.try_reserve(1));
        self.numbers.insert(copied(source).or_raise(), number);
        number
    }

    /// Counts the star clusters.
    fn census(&mut self, matches: Option<&mut Matches>) -> Census {
        let mut rows = with_room(self.facts.len()).or_raise();
        let mut count = |[row, canonical]: [Option<pg_sys::Datum>; 2], similarity: f64| {
            let [row, canonical] =
                [row, canonical].map(|datum| datum.map_or(0, |datum| datum.value()));
            debug_assert_eq!(row, rows.len());
            let row = report::Row {
                canonical: canonical as u32,
                similarity,
                facts: self.facts[row],
            };
            rows.try_push(row).or_raise();
        };
        if let Some(matches) = matches {
            matches.for_each_in_star(&mut count);
        }
        Census::new(rows, std::mem::take(&mut self.uncompared)).or_raise()
    }
}

/// Documents that are read where the search has stored them.
struct Stored<'s> {
    keys: Records,
    /// None without documents.
    matches: Option<Matches>,
    census: &'s Census,
    progress: Progress,
    buffer: Vec<u8>,
}

impl Documents for Stored<'_> {
    fn read(&mut self, row: u32) -> neardup::Result<[Vec<u8>; 2]> {
        if self.census.row(row).canonical == row {
            self.progress.step();
        }
        check_interrupts();
        let key = copied(self.keys.read(row as usize, &mut self.buffer))?;
        let matches = self.matches.as_mut();
        Ok([
            key,
            matches.map_or(Vec::new(), |matches| matches.document(row)),
        ])
    }

    fn check(&mut self) {
        self.progress.look();
    }
}

fn check_columns(query: &Query, key_type: pg_sys::Oid, signature_type: pg_sys::Oid) -> Columns {
    let columns = query.columns();
    let [key, signature, document, others @ ..] = columns.as_slice() else {
        wrong_columns(&format!("the query yields {} columns", columns.len()));
    };
    let mut checked = Columns {
        key: key.of_type(key_type, "first", "key"),
        signature: signature.of_type(signature_type, "second", "signature"),
        document: document
            .if_base_type(is_text)
            .unwrap_or_else(|| document.mismatch(pg_sys::TEXTOID, "third", "document")),
        source: None,
        day: None,
    };
    for (place, column) in (3..).zip(others) {
        let name = query.column_name(place);
        let wrong_type = || -> CheckedColumn {
            let type_name = column.type_name();
            wrong_columns(&format!("column \"{name}\" is of type {type_name}"))
        };
        match name.as_str() {
            "source" => {
                checked.source = Some(column.if_base_type(is_text).unwrap_or_else(wrong_type));
            }
            "day" => {
                let date = column.if_type(pg_sys::DATEOID);
                checked.day = Some(date.unwrap_or_else(wrong_type));
            }
            _ => wrong_columns(&format!(
                "the query yields a column {}",
                neardup::quoted(&name)
            )),
        }
    }
    checked
}

fn wrong_columns(message: &str) -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
        message,
        "Valid are the key, the signature (minhash_signature), the document (text), and columns named source (text) and day (date).",
    )
}

pgrx::extension_sql_file!(
    "../../sql/collection/report.sql",
    name = "report",
    requires = []
);
