//! Functions that return sets: rows streamed into a tuplestore, which spills.

use crate::pg::call::Call;
use pgrx::pg_sys;

impl Call {
    /// Begins the result. Its row type is the one that the query expects: to look it up takes half a
    /// kilobyte for every call, which is not freed before the query ends.
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
}

/// The result of a set-returning function.
pub struct ResultRows {
    store: *mut pg_sys::Tuplestorestate,
    descriptor: pg_sys::TupleDesc,
}

impl ResultRows {
    /// Appends a row; the values have the types of the declared columns.
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

    /// Takes all rows back.
    pub fn clear(&mut self) {
        // SAFETY: the store lives as long as the call.
        unsafe { pg_sys::tuplestore_clear(self.store) };
    }
}
