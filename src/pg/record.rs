//! Composite results: the OUT parameters of a function.

use pgrx::callconv::{BoxRet, FcInfo};
use pgrx::datum::Datum;
use pgrx::{IntoHeapTuple, pg_sys};

/// The values of a function's OUT parameters, a tuple in their order. The function is declared in SQL.
pub struct Record<T>(pub T);

// SAFETY: the datum is a palloc'd tuple of the row type that PostgreSQL expects of the call.
unsafe impl<T: IntoHeapTuple> BoxRet for Record<T> {
    unsafe fn box_into<'fcx>(self, fcinfo: &mut FcInfo<'fcx>) -> Datum<'fcx> {
        // SAFETY: the call's own information; as many values as the row type has columns.
        unsafe {
            let mut row_type = std::ptr::null_mut();
            let kind = pg_sys::get_call_result_type(
                fcinfo.as_mut_ptr(),
                std::ptr::null_mut(),
                &raw mut row_type,
            );
            assert!(
                kind == pg_sys::TypeFuncClass::TYPEFUNC_COMPOSITE,
                "the function has several OUT parameters"
            );
            let row = self.0.into_heap_tuple(pg_sys::BlessTupleDesc(row_type));
            fcinfo.return_raw_datum(pg_sys::HeapTupleHeaderGetDatum((*row).t_data))
        }
    }
}
