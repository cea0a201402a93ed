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
use neardup::report::{self, Census, Document, MAX_GROUPS, MEMBERS, Report};
use pgrx::prelude::*;
use std::collections::HashMap;
use std::ffi::CStr;

/// Implements `near_dup_report(key, query, threshold, title, groups)`.
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
    let mut facts = Facts::new();
    let collection = facts.read(&call, threshold);
    let unread = collection.without.len() as u64;
    let mut matches = Matches::of(collection);
    let census = facts.census(matches.as_mut());
    let report = Report::new(&title, threshold, &census, &facts.sources, unread).or_raise();
    let page = match matches {
        Some(mut matches) => facts.show_groups(report, &census, &mut matches, groups),
        None => report.finish(&census).or_raise(),
    };
    NewText(page.into_bytes())
}

/// The columns of the query.
struct Columns {
    key: CheckedColumn,
    signature: CheckedColumn,
    document: CheckedColumn,
    source: Option<CheckedColumn>,
    day: Option<CheckedColumn>,
}

/// The properties of a compared row beside its signature and its document.
struct Fact {
    bytes: u32,
    source: Option<u32>,
    day: Option<i32>,
}

/// The properties of all rows, in their order.
struct Facts {
    facts: Vec<Fact>,
    /// Keys as text, in UTF-8.
    keys: Records,
    sources: Vec<Vec<u8>>,
    numbers: HashMap<Vec<u8>, u32>,
}

impl Facts {
    fn new() -> Self {
        Self {
            facts: Vec::new(),
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
        let query = Query::open(call.argument(1, "query"));
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
            if let (true, Some(document)) = (collection.rows() > number, document) {
                self.push_key(row.get(columns.key), output);
                // SAFETY: the column is of type text or one of those that are stored as it is.
                let bytes = unsafe { Text::from_raw(document) }.len() as u32;
                self.push_fact(row, &columns, bytes);
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

    fn push_fact(&mut self, row: &Row<'_>, columns: &Columns, bytes: u32) {
        let source = columns.source.and_then(|column| row.get(column));
        let day = columns.day.and_then(|column| row.get(column));
        let fact = Fact {
            bytes,
            // SAFETY: the column is of type text or one of those that are stored as it is.
            source: source.map(|datum| self.source_number(&unsafe { Text::from_raw(datum) })),
            // The first and the last number stand for infinity.
            day: day
                .map(|datum| datum.value() as i32)
                .filter(|day| !matches!(*day, i32::MIN | i32::MAX)),
        };
        self.facts.try_push(fact).or_raise();
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
    fn census(&self, matches: Option<&mut Matches>) -> Census {
        let mut rows = with_room(self.facts.len()).or_raise();
        let mut count = |[row, canonical]: [Option<pg_sys::Datum>; 2], similarity: f64| {
            let [row, canonical] =
                [row, canonical].map(|datum| datum.map_or(0, |datum| datum.value()));
            debug_assert_eq!(row, rows.len());
            let Fact { bytes, source, day } = self.facts[row];
            let row = report::Row {
                canonical: canonical as u32,
                similarity,
                bytes,
                source,
                day,
            };
            rows.try_push(row).or_raise();
        };
        if let Some(matches) = matches {
            matches.for_each_in_star(&mut count);
        }
        Census::new(rows).or_raise()
    }

    fn show_groups(
        &mut self,
        mut report: Report,
        census: &Census,
        matches: &mut Matches,
        groups: usize,
    ) -> String {
        let largest = census.largest(groups, MEMBERS).or_raise();
        let mut progress = Progress::begin("showing groups", Some(largest.len()));
        let mut buffer = Vec::new();
        for group in &largest {
            progress.step();
            let own = self.shown(group.canonical, matches, &mut buffer);
            if !report.begin_group(&self.document(&own, census, group.canonical), group) {
                continue;
            }
            for &member in &group.members {
                check_interrupts();
                let other = self.shown(member, matches, &mut buffer);
                let canonical = self.document(&own, census, group.canonical);
                let other = self.document(&other, census, member);
                let similarity = census.row(member).similarity;
                report
                    .member(&canonical, &other, similarity, &mut || progress.look())
                    .or_raise();
            }
            report.end_group();
        }
        report.finish(census).or_raise()
    }

    /// Returns key and text of a row.
    fn shown(&mut self, row: u32, matches: &mut Matches, buffer: &mut Vec<u8>) -> [Vec<u8>; 2] {
        let key = copied(self.keys.read(row as usize, buffer)).or_raise();
        [key, matches.document(row)]
    }

    fn document<'d>(
        &'d self,
        [key, text]: &'d [Vec<u8>; 2],
        census: &Census,
        row: u32,
    ) -> Document<'d> {
        let row = census.row(row);
        Document {
            key,
            source: row.source.map(|source| &*self.sources[source as usize]),
            day: row.day,
            text,
        }
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
