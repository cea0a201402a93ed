//! The access method `neardup`: an index that finds the rows that share at least T keys with a query.
//!
//! A new row goes into the row table ([`rows`]), which maps it to its place in the heap, and with its keys into the log
//! ([`log`]). Pages of the log become segments, which are sorted postings (key, row), and adjacent segments are merged
//! ([`merge`]). A row too large for the log becomes a segment at once ([`large`]). A scan ([`scan`]) looks up its keys
//! in the log and in all segments, and then the places of the rows found. VACUUM ([`vacuum`]) blanks dead rows in the
//! row table, and drops their postings when there are many. The metapage ([`meta`]) records where everything begins.
//! `neardup::postings` defines the payloads of the log's and the segments' pages.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "reserved in advance, or one entry per key of a row, row of a page or of the log, or segment"
)]

mod ahead;
mod build;
mod candidates;
mod check;
mod cost;
mod fetch;
mod find;
pub mod hold;
mod insert;
mod large;
mod log;
pub mod lookup;
mod matches;
mod merge;
mod meta;
mod open;
mod options;
mod order;
mod page;
pub mod planned;
mod recent;
mod rows;
mod scan;
mod segment;
mod stats;
mod stop;
mod table;
mod vacuum;

pub use meta::Mean;

use crate::index::classes;
use crate::pg::call::finfo;
use pgrx::prelude::*;

/// Returns the handler of the access method.
///
/// # Safety
/// Only PostgreSQL calls it.
#[pg_guard]
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn neardup_handler_wrapper(
    _call: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    // SAFETY: the node is new.
    let mut routine =
        unsafe { PgBox::<pg_sys::IndexAmRoutine>::alloc_node(pg_sys::NodeTag::T_IndexAmRoutine) };
    routine.amstrategies = classes::STRATEGIES;
    routine.amsupport = classes::FUNCTIONS;
    routine.amoptsprocnum = classes::OPTIONS_FUNCTION;
    routine.amcanorderbyop = true;
    routine.amcanmulticol = true;
    // Every row is indexed, even NULL, so a scan without conditions is complete.
    routine.amoptionalkey = true;
    routine.amusemaintenanceworkmem = true;
    routine.amparallelvacuumoptions =
        (pg_sys::VACUUM_OPTION_PARALLEL_BULKDEL | pg_sys::VACUUM_OPTION_PARALLEL_CLEANUP) as u8;
    routine.amkeytype = pg_sys::InvalidOid;
    routine.ambuild = Some(build::build);
    routine.ambuildempty = Some(build::build_empty);
    routine.aminsert = Some(insert::insert);
    routine.ambulkdelete = Some(vacuum::bulk_delete);
    routine.amvacuumcleanup = Some(vacuum::cleanup);
    routine.amcostestimate = Some(cost::estimate);
    routine.amoptions = Some(options::options);
    routine.ambuildphasename = Some(build::phase_name);
    routine.amvalidate = Some(options::validate);
    routine.ambeginscan = Some(scan::begin_scan);
    routine.amrescan = Some(scan::rescan);
    routine.amgettuple = Some(scan::get_tuple);
    routine.amgetbitmap = Some(scan::get_bitmap);
    routine.amendscan = Some(scan::end_scan);
    pg_sys::Datum::from(routine.into_pg())
}

/// Returns whether an index is of this access method, whatever its name, judging by its cost function.
///
/// # Safety
/// `index` is the planner's description of an index.
pub unsafe fn is_ours(index: *const pg_sys::IndexOptInfo) -> bool {
    let estimate = (*index).amcostestimate;
    estimate.is_some_and(|estimate| estimate as usize == cost::estimate as *const () as usize)
}

finfo!(pg_finfo_neardup_handler_wrapper);

pgrx::extension_sql_file!(
    "../../../sql/index/neardup.sql",
    name = "neardup_access_method"
);
