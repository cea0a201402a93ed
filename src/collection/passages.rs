//! Passages that stand in several places of a collection.

use crate::collection::reading::share_of_work_mem_bytes;
use crate::pg::call::Call;
use crate::pg::catalog::is_text;
use crate::pg::error::{OrRaise, check_interrupts, raise};
use crate::pg::progress::Progress;
use crate::pg::query::{CheckedColumn, Column, Query, work_mem_bytes};
use crate::pg::spool::{Records, TemporaryFile};
use crate::pg::text::Text;
use crate::pg::value::Keys;
use neardup::passages::{Candidates, Fingerprints, Passages, Place, WordPlaces, min_words};
use neardup::text::Fold;
use pgrx::PgSqlErrorCode;
use pgrx::prelude::*;

/// `repeated_passages(key, query, min_words, fold)`.
///
/// # Errors
/// `invalid_parameter_value` for `min_words` or `fold` out of range, `datatype_mismatch` for columns
/// of other types, `program_limit_exceeded` for too many repeats.
#[pg_extern(sql = false)]
fn repeated_passages(fcinfo: pg_sys::FunctionCallInfo) {
    // SAFETY: the call is running; the last argument is declared as text.
    let (call, fold) = unsafe {
        let call = Call::new(fcinfo);
        let fold = Text::from_raw(call.argument(3, "fold"));
        (call, fold)
    };
    let least = call.argument(2, "min_words").value() as i32;
    let least = min_words(i64::from(least)).or_raise();
    let fold: Fold = fold.name().parse().or_raise();
    let mut documents = Documents::new(call.argument_type(0));
    let fingerprints = documents.read(call.argument(1, "query"), least, fold);
    let candidates = fingerprints.repeated(&mut check_interrupts).or_raise();
    let passages = documents.passages(candidates);
    documents.put_places(&passages, fold, &call);
}

/// The keys and documents of a query. Rows without a document are left out.
struct Documents {
    key_type: pg_sys::Oid,
    keys: Keys,
    /// The documents in UTF-8.
    records: Records,
}

impl Documents {
    fn new(key_type: pg_sys::Oid) -> Self {
        Self {
            key_type,
            keys: Keys::new(key_type),
            records: Records::new(share_of_work_mem_bytes()),
        }
    }

    fn read(
        &mut self,
        query: pg_sys::Datum,
        min_words: usize,
        fold: Fold,
    ) -> Fingerprints<TemporaryFile> {
        let mut fingerprints = Fingerprints::new(min_words, fold, work_mem_bytes()).or_raise();
        let query = Query::open(query);
        let [key, document] = check_columns(&query.columns(), self.key_type);
        let mut progress = Progress::begin("reading", None);
        query.for_each(&mut |row| {
            progress.step();
            let Some(doc) = row.get(document) else {
                return;
            };
            // SAFETY: the column is of type text or one of those that are stored as it is.
            let doc = unsafe { Text::from_raw(doc) };
            fingerprints.add(&doc, &mut || progress.look()).or_raise();
            self.keys.push(row.get(key));
            self.records.push(&doc);
        });
        fingerprints
    }

    /// Reads the documents once more.
    fn passages(&mut self, mut candidates: Candidates<TemporaryFile>) -> Passages {
        let mut buffer = Vec::new();
        let mut progress = Progress::begin("finding windows", Some(self.records.len()));
        for number in 0..self.records.len() {
            progress.step();
            let doc = self.records.read(number, &mut buffer);
            candidates.add(doc, &mut || progress.look()).or_raise();
        }
        candidates.passages(&mut check_interrupts).or_raise()
    }

    fn put_places(&mut self, passages: &Passages, fold: Fold, call: &Call) {
        let mut rows = call.rows();
        let mut buffer = Vec::new();
        let mut held: Option<(usize, WordPlaces)> = None;
        let mut progress = Progress::begin("listing places", Some(self.records.len()));
        let mut visit = |place: &Place| {
            check_interrupts();
            if held.as_ref().is_none_or(|held| held.0 != place.document) {
                let before = held.take().map_or(0, |held| held.0);
                (before..place.document).for_each(|_| progress.step());
                let doc = self.records.read(place.document, &mut buffer);
                let words = WordPlaces::new(doc, fold, &mut || progress.look())?;
                held = Some((place.document, words));
            }
            let (_, words) = held.as_ref().expect("the document's words are held");
            let characters = words.characters(place.word, place.words);
            rows.put([
                i64::from(place.passage).into_datum(),
                self.keys.get(place.document as u32),
                (characters.start as i32 + 1).into_datum(),
                (characters.len() as i32).into_datum(),
                (place.words as i32).into_datum(),
                i64::from(place.occurrences).into_datum(),
                i64::from(place.documents).into_datum(),
            ]);
            Ok(())
        };
        passages
            .for_each(&mut check_interrupts, &mut visit)
            .or_raise();
    }
}

fn check_columns(columns: &[Column], key_type: pg_sys::Oid) -> [CheckedColumn; 2] {
    let problem = match columns {
        [key, document] => {
            let key = key.of_type(key_type, "first", "key");
            if let Some(document) = document.if_base_type(is_text) {
                return [key, document];
            }
            format!(
                "the second column of the query is of type {}",
                document.type_name()
            )
        }
        _ => format!("the query yields {} columns", columns.len()),
    };
    raise(
        PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
        &problem,
        "Valid are two columns: key and document, a text.",
    )
}

pgrx::extension_sql_file!(
    "../../sql/collection/passages.sql",
    name = "passages",
    requires = []
);
