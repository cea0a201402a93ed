//! The window of time within which rows are compared, and the partitions in its reach.

use crate::pg::prelude::*;
use crate::pg::relation::ColumnType;
use crate::pg::slot::get;
use std::ffi::CStr;

/// 24 hours, in microseconds.
pub const DAY: i64 = 86_400 * 1_000_000;

/// A window of time. Near rows differ by at most `most` in column `number`. Dates are counted in days, because years
/// beyond 294276 have no microseconds; other times are counted in microseconds.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    pub number: i16,
    /// The type of the column: date, timestamp or timestamptz.
    base: pg_sys::Oid,
    most: i64,
}

/// A time span, counted as its [`Window`] does. Both ends are included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub first: i64,
    pub last: i64,
}

impl Span {
    pub const ALWAYS: Self = Self {
        first: i64::MIN,
        last: i64::MAX,
    };

    pub const NEVER: Self = Self {
        first: i64::MAX,
        last: i64::MIN,
    };

    /// Returns whether the spans overlap.
    pub fn meets(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// Returns the smallest span that contains both spans.
    pub fn with(self, other: Self) -> Self {
        Self {
            first: self.first.min(other.first),
            last: self.last.max(other.last),
        }
    }
}

impl Window {
    /// Returns the window of `most` microseconds, in whole days for dates, in column `number` of `table`.
    ///
    /// # Errors
    /// ERROR `datatype_mismatch` unless the column is of type date, timestamp or timestamptz.
    pub fn new(table: &Relation, number: i16, most: i64) -> Self {
        let type_ = ColumnType::of(table.oid(), number).type_;
        // SAFETY: looks the type up in the catalog.
        let base = unsafe { pg_sys::getBaseType(type_) };
        use pg_sys::{DATEOID, TIMESTAMPOID, TIMESTAMPTZOID};
        if !matches!(base, DATEOID | TIMESTAMPOID | TIMESTAMPTZOID) {
            wrong_type(
                "near_dup_guard needs a point in time in the column of within",
                "within= names a column of type date, timestamp or timestamptz.",
            );
        }
        let most = if base == DATEOID { most / DAY } else { most };
        Self { number, base, most }
    }

    /// Returns the time span of rows that can be near the row in `slot`, or None if the column is NULL or infinite.
    ///
    /// # Safety
    /// The slot holds a row of the table.
    pub unsafe fn around(&self, slot: *mut pg_sys::TupleTableSlot) -> Option<Span> {
        let moment = self.of_row(slot)?;
        Some(Span {
            first: moment.saturating_sub(self.most),
            last: moment.saturating_add(self.most),
        })
    }

    /// Returns whether the time of the row in `slot` is in `span`.
    ///
    /// # Safety
    /// The same as for [`Self::around`].
    pub unsafe fn is_in(&self, slot: *mut pg_sys::TupleTableSlot, span: Span) -> bool {
        let moment = self.of_row(slot);
        moment.is_some_and(|moment| (span.first..=span.last).contains(&moment))
    }

    /// Returns the time of the row in `slot`, or None if the time is NULL or infinite.
    ///
    /// # Safety
    /// The same as for [`Self::around`].
    unsafe fn of_row(&self, slot: *mut pg_sys::TupleTableSlot) -> Option<i64> {
        let moment = self.moment(get(slot, self.number)?);
        (![i64::MIN, i64::MAX].contains(&moment)).then_some(moment)
    }

    /// Returns whether `table` is partitioned by ranges of the window's column alone, in the order of time.
    ///
    /// # Safety
    /// The window belongs to the table.
    unsafe fn decides(&self, table: pg_sys::Oid) -> bool {
        const CACHE: i32 = pg_sys::SysCacheIdentifier::PARTRELID as i32;
        /// The columns partstrat, partnatts, partattrs, partclass of `pg_partitioned_table`.
        const COLUMNS: [i16; 4] = [2, 3, 5, 6];
        /// PARTITION_STRATEGY_RANGE, which is an enum since PostgreSQL 16.
        const BY_RANGE: u8 = b'r';
        // A partition key has at least one column.
        let tuple = pg_sys::SearchSysCache1(CACHE, table.into());
        if tuple.is_null() {
            return false;
        }
        let [strategy, count, columns, classes] = COLUMNS.map(|column| {
            let mut is_null = false;
            pg_sys::SysCacheGetAttr(CACHE, tuple, column, &mut is_null)
        });
        let columns = columns.cast_mut_ptr::<pg_sys::int2vector>();
        let classes = classes.cast_mut_ptr::<pg_sys::oidvector>();
        let btree = pg_sys::TYPECACHE_BTREE_OPFAMILY as i32;
        let by_time = (*pg_sys::lookup_type_cache(self.base, btree)).btree_opf;
        let decides = strategy.value() as u8 == BY_RANGE
            && count.value() == 1
            && (*columns).values.as_slice(1)[0] == self.number
            && pg_sys::get_opclass_family((*classes).values.as_slice(1)[0]) == by_time;
        pg_sys::ReleaseSysCache(tuple);
        decides
    }

    /// Returns `value`, a value of the column, in days or microseconds. Infinite values become the limits of the type.
    fn moment(&self, value: pg_sys::Datum) -> i64 {
        match (self.base == pg_sys::DATEOID, value.value() as i32) {
            (false, _) => value.value() as i64,
            (true, i32::MIN) => i64::MIN,
            (true, i32::MAX) => i64::MAX,
            (true, day) => day.into(),
        }
    }
}

/// Returns the partitions of `table`, each with the time span of the partition's rows. The time span is `span` unless
/// the table is partitioned by the window's column alone.
pub fn partitions(
    table: &Relation,
    window: Option<Window>,
    span: Span,
) -> Vec<(pg_sys::Oid, Span)> {
    // SAFETY: the table is open and partitioned, and the window belongs to it.
    unsafe {
        // Reads catalogs, which may renew the list of partitions, and so comes first.
        let window = window.filter(|window| window.decides(table.oid()));
        let all = table.partitions().into_iter();
        let mut all: Vec<_> = all.map(|partition| (partition, span)).collect();
        let bounds = (*pg_sys::RelationGetPartitionDesc(table.as_ptr(), true)).boundinfo;
        let Some((window, bounds)) = window.zip(bounds.as_ref()) else {
            return all;
        };
        let moment = |bound: usize| match **bounds.kind.add(bound) {
            pg_sys::PartitionRangeDatumKind::PARTITION_RANGE_DATUM_MINVALUE => i64::MIN,
            pg_sys::PartitionRangeDatumKind::PARTITION_RANGE_DATUM_MAXVALUE => i64::MAX,
            _ => window.moment(**bounds.datums.add(bound)),
        };
        // A partition contains the times from the previous bound to its own bound, which is excluded.
        for place in 1..bounds.ndatums as usize {
            let partition = *bounds.indexes.add(place);
            if partition >= 0 {
                let last = match moment(place) {
                    i64::MAX => i64::MAX,
                    end => end.saturating_sub(1),
                };
                all[partition as usize].1 = Span {
                    first: span.first.max(moment(place - 1)),
                    last: span.last.min(last),
                };
            }
        }
        all
    }
}

/// Returns the interval in `text`, in microseconds.
///
/// # Errors
/// The errors of the type's input function, and of [`microseconds`].
pub fn microseconds_in(text: &CStr) -> i64 {
    let (function, text) = (pg_sys::F_INTERVAL_IN.into(), text.as_ptr().cast_mut());
    // SAFETY: the input function of intervals, which copies what it needs.
    let interval = unsafe { pg_sys::OidInputFunctionCall(function, text, pg_sys::InvalidOid, -1) };
    // SAFETY: it is an interval.
    unsafe { microseconds(interval) }
}

/// Returns `interval` in microseconds.
///
/// # Errors
/// ERROR `invalid_parameter_value` if `interval` has months or is negative.
///
/// # Safety
/// `interval` is of type interval.
pub unsafe fn microseconds(interval: pg_sys::Datum) -> i64 {
    let pg_sys::Interval { time, day, month } = *interval.cast_mut_ptr();
    let days = i64::from(day).checked_mul(DAY);
    let most = days.and_then(|days| days.checked_add(time));
    match most {
        Some(most) if month == 0 && most >= 0 => most,
        _ => invalid(
            "by is not a nonnegative interval without months",
            "Months differ in length: give days, of 24 hours each, as in interval '30 days'.",
        ),
    }
}
