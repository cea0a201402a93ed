//! Counts scans in the cumulative statistics of an index, pg_stat_all_indexes.

use pgrx::pg_sys;

/// Counts scans of an index, and rows that they read in addition to those that they return, like the macros
/// pgstat_count_index_scan and pgstat_count_index_tuples.
///
/// # Safety
/// `relation` is open.
pub unsafe fn count(relation: pg_sys::Relation, scans: i64, rows: i64) {
    let relation = &mut *relation;
    if !relation.pgstat_enabled {
        return;
    }
    if relation.pgstat_info.is_null() {
        pg_sys::pgstat_assoc_relation(relation);
    }
    let info = &mut *relation.pgstat_info;
    #[cfg(feature = "pg15")]
    let (all_scans, all_rows) = (
        &mut info.t_counts.t_numscans,
        &mut info.t_counts.t_tuples_returned,
    );
    #[cfg(not(feature = "pg15"))]
    let (all_scans, all_rows) = (&mut info.counts.numscans, &mut info.counts.tuples_returned);
    *all_scans += scans;
    *all_rows += rows;
}
