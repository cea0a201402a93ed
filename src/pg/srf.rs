//! Functions that return sets: arguments, and rows streamed into a tuplestore, which spills.

use crate::pg::error::raise;
use pgrx::{PgSqlErrorCode, pg_sys};

/// A call of a set-returning function.
pub struct Call {
    fcinfo: pg_sys::FunctionCallInfo,
}

impl Call {
    /// # Safety
    /// `fcinfo` is that of the running call.
    pub unsafe fn new(fcinfo: pg_sys::FunctionCallInfo) -> Self {
        Self { fcinfo }
    }

    /// # Errors
    /// ERROR `null_value_not_allowed` if it is NULL.
    pub fn argument(&self, number: usize, name: &str) -> pg_sys::Datum {
        match self.optional_argument(number) {
            Some(datum) => datum,
            None => raise(
                PgSqlErrorCode::ERRCODE_NULL_VALUE_NOT_ALLOWED,
                &format!("{name} must not be NULL"),
                "",
            ),
        }
    }

    /// An argument that may be NULL.
    pub fn optional_argument(&self, number: usize) -> Option<pg_sys::Datum> {
        // SAFETY: the call is running, and its function has that many arguments.
        unsafe { pgrx::fcinfo::pg_getarg_datum(self.fcinfo, number) }
    }

    /// The type of an argument, where it is polymorphic.
    pub fn argument_type(&self, number: i32) -> pg_sys::Oid {
        // SAFETY: the call is running.
        unsafe { pg_sys::get_fn_expr_argtype((*self.fcinfo).flinfo, number) }
    }

    /// The schema of the extension.
    pub fn schema(&self) -> pg_sys::Oid {
        // SAFETY: the call is running.
        unsafe { pg_sys::get_func_namespace((*(*self.fcinfo).flinfo).fn_oid) }
    }

    /// Begins the result.
    pub fn rows(&self) -> Rows {
        // SAFETY: the call is running; the function is declared to return a set of records.
        unsafe {
            pg_sys::InitMaterializedSRF(self.fcinfo, 0);
            let result = (*self.fcinfo).resultinfo.cast::<pg_sys::ReturnSetInfo>();
            Rows {
                store: (*result).setResult,
                descriptor: (*result).setDesc,
            }
        }
    }
}

/// The result of a set-returning function.
pub struct Rows {
    store: *mut pg_sys::Tuplestorestate,
    descriptor: pg_sys::TupleDesc,
}

impl Rows {
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
}
