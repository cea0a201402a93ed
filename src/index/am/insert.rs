//! Insertion of a row.

use super::hold;
use super::large;
use super::log::{self, LogRoom};
use super::meta::Meta;
use super::page::{Index, PAYLOAD_LEN};
use super::rows::RowEntry;
use crate::index::classes::{RowKeys, ValueParameters};
use crate::pg::error::check_interrupts;
use neardup::postings;
use pgrx::memcxt::PgMemoryContexts;
use pgrx::prelude::*;

/// Implements `aminsert`.
#[pg_guard]
#[expect(clippy::too_many_arguments, reason = "PostgreSQL's interface")]
pub unsafe extern "C-unwind" fn insert(
    relation: pg_sys::Relation,
    values: *mut pg_sys::Datum,
    is_null: *mut bool,
    tid: pg_sys::ItemPointer,
    _heap: pg_sys::Relation,
    _check_unique: pg_sys::IndexUniqueCheck::Type,
    _unchanged: bool,
    info: *mut pg_sys::IndexInfo,
) -> bool {
    // PostgreSQL calls this with an open index of this access method and a row's values.
    let index = Index::new(relation);
    let mut keys = Vec::new();
    let row_keys = row_keys(relation, info);
    let (values, is_null) = row_keys.row(values, is_null);
    let (parameters, size) = row_keys.keys(values, is_null, &mut keys);
    let entry = RowEntry::new(*tid, size);
    insert_row(&index, &entry, &keys, parameters.as_ref());
    false
}

/// Returns the [`RowKeys`] of the index, cached for the duration of the statement.
///
/// # Safety
/// PostgreSQL inserts rows into the open index `relation` with the description `info`.
unsafe fn row_keys<'i>(relation: pg_sys::Relation, info: *mut pg_sys::IndexInfo) -> &'i RowKeys {
    // The context of `info` lives as long as `info`, and the index stays open in the meantime.
    let info = &mut *info;
    if info.ii_AmCache.is_null() {
        let keys = RowKeys::of_index(relation);
        let mut context = PgMemoryContexts::For(info.ii_Context);
        info.ii_AmCache = context.leak_and_drop_on_delete(keys).cast();
    }
    &*info.ii_AmCache.cast()
}

fn insert_row(index: &Index, entry: &RowEntry, keys: &[u32], parameters: Option<&ValueParameters>) {
    let is_large = !postings::log::fits_empty(PAYLOAD_LEN, keys.len());
    loop {
        if !is_large
            && let Some(meta) = Meta::recall(index)
            && parameters.is_none_or(|parameters| meta.knows(parameters))
            && log::append(index, meta, entry, keys).is_some()
        {
            return;
        }
        let meta = Meta::read(index);
        hold::point("insert_reads_metapage");
        if let Some(parameters) = parameters
            && !meta.knows(parameters)
        {
            let (mut page, mut meta) = Meta::lock(index);
            if meta.add_parameters(parameters) {
                meta.store(index, &mut page);
            }
            continue;
        }
        if is_large {
            return large::insert(index, entry, keys);
        }
        meta.remember(index);
        if log::append(index, &meta, entry, keys).is_some() {
            return;
        }
        check_interrupts();
        hold::point("insert_finds_no_room");
        match log::make_room(index, keys.len()) {
            LogRoom::Made => {}
            LogRoom::NewPage => super::merge::help(index),
            LogRoom::Full => super::merge::wait_for_room(index),
        }
    }
}
