//! Boilerplate: shingles that many documents of a collection share.

use crate::options;
use crate::pg::arrays::NewBigints;
use crate::pg::catalog::is_text;
use crate::pg::error::{OrRaise, check_interrupts, raise};
use crate::pg::query::{CheckedColumn, Column, Query};
use crate::pg::sort::BigintSort;
use crate::pg::text::Text;
use neardup::memory::Grow;
use neardup::shingle::{Key, shingle_hashes};
use pgrx::prelude::*;

/// Returns the hashes of the shingles that at least `min_documents` documents of the query have,
/// sorted. They are counted by sorting, within `work_mem`.
///
/// # Errors
/// `invalid_parameter_value` for `min_documents` below 1 and for bad options;
/// `datatype_mismatch` unless the query gives one column of text.
#[pg_extern(volatile, parallel_unsafe, strict, cost = 1000000)]
fn common_shingles(
    query: Text<'_>,
    min_documents: i32,
    k: default!(i32, 3),
    unit: default!(Text<'_>, "'word'"),
    fold: default!(Text<'_>, "'case'"),
    seed: default!(i64, 0),
) -> NewBigints {
    let least = options::within("min_documents", min_documents, 1, i32::MAX);
    let shingling = options::shingling(k, &unit, &fold);
    let key = Key::from_seed(seed);
    let mut sort = BigintSort::begin();
    let query = Query::open(query.stored());
    let document = check_columns(&query.columns());
    query.for_each(&mut |row| {
        if let Some(doc) = row.get(document) {
            // SAFETY: the column is of type text or one of those that are stored as it is.
            let doc = unsafe { Text::from_raw(doc) };
            let hashes = shingle_hashes(&doc, &shingling, &key, &mut check_interrupts);
            for hash in hashes.or_raise() {
                sort.put(hash);
            }
        }
    });
    let mut common = Vec::new();
    let mut last = None;
    let mut documents = 0;
    for hash in sort.sorted() {
        documents = if last == Some(hash) { documents + 1 } else { 1 };
        last = Some(hash);
        if documents == least {
            common.try_push(hash).or_raise();
        }
    }
    NewBigints(common)
}

fn check_columns(columns: &[Column]) -> CheckedColumn {
    let [document] = columns else {
        raise(
            PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
            &format!("the query has {} columns instead of one", columns.len()),
            "Its only column is the document.",
        );
    };
    document
        .if_base_type(is_text)
        .unwrap_or_else(|| document.mismatch(pg_sys::TEXTOID, "only", "document"))
}

pgrx::extension_sql_file!(
    "../../sql/text/boilerplate.sql",
    name = "boilerplate",
    requires = [common_shingles]
);
