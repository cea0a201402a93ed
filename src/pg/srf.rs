//! Composite results, and functions that return sets. Rows are streamed into a tuplestore, which spills to disk.

use crate::pg::call::Call;
use crate::pg::conversion::before_nul;
use crate::pg::settings::Settings;
use pgrx::callconv::{BoxRet, FcInfo};
use pgrx::datum::Datum;
use pgrx::{IntoHeapTuple, pg_sys};

/// The least work_mem that can be set, in kB.
const LEAST_WORK_MEM: usize = 64;

impl Call {
    /// Begins the result, with the row type that the query expects, and returns it. Looking up the row type would take
    /// half a kilobyte per call, freed only when the query ends.
    pub fn rows(&self) -> ResultRows {
        // SAFETY: the call is running; the function is declared to return a set of records.
        unsafe {
            pg_sys::InitMaterializedSRF(self.fcinfo(), pg_sys::MAT_SRF_USE_EXPECTED_DESC);
            let result = (*self.fcinfo()).resultinfo.cast::<pg_sys::ReturnSetInfo>();
            ResultRows {
                store: (*result).setResult,
                descriptor: (*result).setDesc,
            }
        }
    }

    /// Begins the result as [`Self::rows`] does, and keeps `bytes` of its rows in memory instead of a whole work_mem, but
    /// at least 64 kB.
    pub fn rows_within(&self, bytes: usize) -> ResultRows {
        let kilobytes = (bytes >> 10).max(LEAST_WORK_MEM).to_string();
        let settings = Settings::begin();
        settings.set(c"work_mem", &before_nul(kilobytes.as_bytes()));
        let rows = self.rows();
        settings.restore();
        rows
    }
}

/// The result of a set-returning function.
pub struct ResultRows {
    store: *mut pg_sys::Tuplestorestate,
    descriptor: pg_sys::TupleDesc,
}

impl ResultRows {
    /// Appends a row. The values have the types of the declared columns.
    pub fn put<const N: usize>(&mut self, values: [Option<pg_sys::Datum>; N]) {
        let mut datums = values.map(|value| value.unwrap_or(pg_sys::Datum::null()));
        let mut nulls = values.map(|value| value.is_none());
        // SAFETY: store and descriptor live as long as the call.
        unsafe {
            debug_assert_eq!((*self.descriptor).natts as usize, N);
            pg_sys::tuplestore_putvalues(
                self.store,
                self.descriptor,
                datums.as_mut_ptr(),
                nulls.as_mut_ptr(),
            );
        }
    }

    /// Appends a row as [`Self::put`] does, and frees the values in `freed`, which are new and passed by reference.
    pub fn put_and_free<const N: usize>(
        &mut self,
        values: [Option<pg_sys::Datum>; N],
        freed: &[Option<pg_sys::Datum>],
    ) {
        self.put(values);
        for datum in freed.iter().flatten() {
            // SAFETY: the row has a copy.
            unsafe { pg_sys::pfree(datum.cast_mut_ptr()) };
        }
    }

    /// Removes all rows.
    pub fn clear(&mut self) {
        // SAFETY: the store lives as long as the call.
        unsafe { pg_sys::tuplestore_clear(self.store) };
    }
}

/// The values of a function's OUT parameters, as a tuple in their order. The function is declared in SQL.
pub struct Record<T>(pub T);

// SAFETY: the datum is a palloc'd tuple of the row type that PostgreSQL expects of the call.
unsafe impl<T: IntoHeapTuple> BoxRet for Record<T> {
    unsafe fn box_into<'fcx>(self, fcinfo: &mut FcInfo<'fcx>) -> Datum<'fcx> {
        let mut row_type = std::ptr::null_mut();
        let (call, no_type) = (fcinfo.as_mut_ptr(), std::ptr::null_mut());
        let kind = pg_sys::get_call_result_type(call, no_type, &raw mut row_type);
        assert!(
            kind == pg_sys::TypeFuncClass::TYPEFUNC_COMPOSITE,
            "the function has several OUT parameters"
        );
        let row = self.0.into_heap_tuple(pg_sys::BlessTupleDesc(row_type));
        fcinfo.return_raw_datum(pg_sys::HeapTupleHeaderGetDatum((*row).t_data))
    }
}
