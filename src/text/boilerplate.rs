//! Boilerplate: shingles that many documents of a collection share, found and left out.

use crate::options;
use crate::pg::arrays::NewBigints;
use crate::pg::datum::{NewSignature, Text};
use crate::pg::error::{check_interrupts, raise};
use crate::pg::query::{Column, Query};
use crate::pg::sort::BigintSort;
use neardup::minhash::{Header, Sketch};
use neardup::shingle::{Key, for_each_block, shingle_hashes};
use pgrx::memcxt::PgMemoryContexts;
use pgrx::prelude::*;
use std::collections::HashSet;

/// The hashes of the shingles that at least `min_documents` documents of the query have, sorted.
/// They are counted by sorting, within `work_mem`.
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
    check_columns(&query.columns());
    query.for_each(&mut |row| {
        if let Some(doc) = row.get(0) {
            // SAFETY: the column is of type text or one of those that are stored as it is.
            let doc = unsafe { Text::from_raw(doc) };
            for hash in shingle_hashes(&doc, &shingling, &key, &mut check_interrupts) {
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
            common.push(hash);
        }
    }
    NewBigints(common)
}

fn check_columns(columns: &[Column]) {
    const TEXTS: [pg_sys::Oid; 3] = [pg_sys::TEXTOID, pg_sys::VARCHAROID, pg_sys::BPCHAROID];
    let [document] = columns else {
        raise(
            PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
            &format!("the query has {} columns instead of one", columns.len()),
            "Its only column is the document.",
        );
    };
    if !TEXTS.contains(&document.base_type()) {
        document.check_type(pg_sys::TEXTOID, "only", "document");
    }
}

/// The signature of a document without the shingles in `boilerplate`, comparable with those of
/// `minhash`. A document that is all boilerplate is empty.
///
/// # Errors
/// As `minhash`.
#[pg_extern(immutable, parallel_safe, strict, cost = 1000)]
#[allow(clippy::too_many_arguments)]
fn minhash_excluding(
    doc: Text<'_>,
    boilerplate: Array<'_, i64>,
    k: default!(i32, 3),
    unit: default!(Text<'_>, "'word'"),
    fold: default!(Text<'_>, "'case'"),
    slots: default!(i32, 128),
    seed: default!(i64, 0),
    fcinfo: pg_sys::FunctionCallInfo,
) -> NewSignature {
    let shingling = options::shingling(k, &unit, &fold);
    let mut sketch = Sketch::new(options::slots(slots));
    let key = Key::from_seed(seed);
    with_set(&boilerplate, fcinfo, |excluded| {
        let mut kept = Vec::new();
        for_each_block(&doc, &shingling, &key, &mut |hashes| {
            check_interrupts();
            kept.clear();
            kept.extend(hashes.iter().filter(|hash| !excluded.contains(*hash)));
            sketch.add(&kept);
        });
    });
    let header = Header::of_document(&shingling, sketch.slots().len(), key.id());
    NewSignature(sketch.encode(header))
}

/// Hands on the set of the elements; where the argument is the same in all calls of a query, it is
/// made once.
fn with_set(
    elements: &Array<'_, i64>,
    fcinfo: pg_sys::FunctionCallInfo,
    then: impl FnOnce(&HashSet<u64>),
) {
    let make = || -> HashSet<u64> { elements.iter().flatten().map(|hash| hash as u64).collect() };
    // SAFETY: PostgreSQL passes the call's own information, whose `fn_extra` only this function
    // sets, to a value that lives as long as it.
    unsafe {
        let call = &mut *(*fcinfo).flinfo;
        if call.fn_extra.is_null() {
            if !pg_sys::get_fn_expr_arg_stable(call, 1) {
                return then(&make());
            }
            let set = PgMemoryContexts::For(call.fn_mcxt).leak_and_drop_on_delete(make());
            call.fn_extra = set.cast();
        }
        then(&*call.fn_extra.cast::<HashSet<u64>>());
    }
}

pgrx::extension_sql_file!(
    "../../sql/text/boilerplate.sql",
    name = "boilerplate",
    requires = ["signature", common_shingles, minhash_excluding]
);
