//! `near_dup_index_stats`: statistics about the contents of an index.

use super::log;
use super::meta::Meta;
use super::open::Opened;
use super::page::BLOCK_LEN;
use super::rows::RowTable;
use super::vacuum::Dead;
use crate::pg::call::Call;
use crate::pg::error::check_interrupts;
use neardup::postings::policy;
use pgrx::prelude::*;

/// Implements `near_dup_index_stats(index)`. Reads the row table.
///
/// # Errors
/// `wrong_object_type` if the relation is not a neardup index, `insufficient_privilege` unless the caller owns the
/// index or is a member of pg_stat_scan_tables.
#[pg_extern(sql = false)]
fn near_dup_index_stats(call: Call) {
    let opened = Opened::new(call.oid(0, "index"));
    let index = opened.index();
    let meta = Meta::read(&index);
    let (mut dead, mut purges) = (0, 0);
    for segment in meta.segments() {
        let (_, live) = Dead::read(&index, &meta, segment);
        dead += segment.rows.saturating_sub(live);
        purges += usize::from(policy::is_to_be_purged(segment.rows, live));
    }
    let mut table = RowTable::new(index, &meta);
    let (mut live, mut rows) = (0, Vec::new());
    for place in table.places(&meta) {
        check_interrupts();
        table.read_page(place, &mut rows);
        live += rows.len() as i64;
    }
    let log_rows = log::end(&index, &meta) - meta.log_start;
    call.rows().put([
        live.into_datum(),
        (dead as i64).into_datum(),
        (log_rows as i64).into_datum(),
        (meta.segments().len() as i32).into_datum(),
        (meta.merges().len() as i32).into_datum(),
        (i64::from(index.blocks()) * BLOCK_LEN as i64).into_datum(),
        next_vacuum(&meta, purges).into_datum(),
    ]);
}

fn next_vacuum(meta: &Meta, purges: usize) -> String {
    let crowded = policy::crowded(meta.segments(), policy::VACUUM_TIMES);
    let log_pages = meta.log().len().saturating_sub(1);
    let steps = [
        ("write", purges, "segments anew"),
        ("end", meta.merges().len(), "merges"),
        ("empty", log_pages, "pages of the log"),
        ("merge", crowded.map_or(0, |range| range.len()), "segments"),
    ];
    let steps = steps.into_iter().filter(|(_, count, _)| *count > 0);
    let steps = steps.map(|(verb, count, noun)| format!("{verb} {count} {noun}"));
    match steps.collect::<Vec<_>>() {
        none if none.is_empty() => "nothing".to_owned(),
        steps => steps.join(", "),
    }
}

pgrx::extension_sql_file!(
    "../../../sql/index/neardup_functions.sql",
    name = "neardup_functions"
);
