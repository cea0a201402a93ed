//! Scans in the cumulative statistics of an index, pg_stat_all_indexes.

use pgrx::pg_sys;

/// Counts a scan in the statistics of the index: pgstat_count_index_scan.
///
/// # Safety
/// The relation is open.
pub unsafe fn count_scan(relation: pg_sys::Relation) {
    // SAFETY: vouched for by the caller.
    if let Some(counts) = unsafe { counts(relation) } {
        #[cfg(feature = "pg15")]
        {
            counts.t_numscans += 1;
        }
        #[cfg(not(feature = "pg15"))]
        {
            counts.numscans += 1;
        }
    }
}

/// Counts rows that a scan reads beside those that it returns, in idx_tup_read of
/// pg_stat_all_indexes: pgstat_count_index_tuples.
///
/// # Safety
/// The relation is open.
pub unsafe fn count_rows(relation: pg_sys::Relation, rows: usize) {
    // SAFETY: vouched for by the caller.
    if let Some(counts) = unsafe { counts(relation) } {
        #[cfg(feature = "pg15")]
        {
            counts.t_tuples_returned += rows as i64;
        }
        #[cfg(not(feature = "pg15"))]
        {
            counts.tuples_returned += rows as i64;
        }
    }
}

/// Returns the statistics of a relation; None where they are not kept.
///
/// # Safety
/// The relation is open.
unsafe fn counts<'r>(relation: pg_sys::Relation) -> Option<&'r mut pg_sys::PgStat_TableCounts> {
    // SAFETY: vouched for by the caller.
    unsafe {
        let relation = &mut *relation;
        if !relation.pgstat_enabled {
            return None;
        }
        if relation.pgstat_info.is_null() {
            pg_sys::pgstat_assoc_relation(relation);
        }
        #[cfg(feature = "pg15")]
        let counts = &mut (*relation.pgstat_info).t_counts;
        #[cfg(not(feature = "pg15"))]
        let counts = &mut (*relation.pgstat_info).counts;
        Some(counts)
    }
}
