//! Composite results: the OUT parameters of a function.

use pgrx::callconv::{BoxRet, FcInfo};
use pgrx::datum::Datum;
use pgrx::pg_sys;

/// The values of a function's OUT parameters, in their order. The function is declared in SQL.
pub struct Record<const N: usize>(pub [pg_sys::Datum; N]);

impl<const N: usize> Record<N> {
    /// Of OUT parameters that are all float8.
    pub fn of_floats(values: [f64; N]) -> Self {
        Self(values.map(|value| pg_sys::Datum::from(value.to_bits())))
    }
}

// SAFETY: the datum is a palloc'd tuple of the row type that PostgreSQL expects of the call.
unsafe impl<const N: usize> BoxRet for Record<N> {
    unsafe fn box_into<'fcx>(mut self, fcinfo: &mut FcInfo<'fcx>) -> Datum<'fcx> {
        let mut nulls = [false; N];
        // SAFETY: the call's own information; as many values as the row type has columns.
        unsafe {
            let mut row_type = std::ptr::null_mut();
            let kind = pg_sys::get_call_result_type(
                fcinfo.as_mut_ptr(),
                std::ptr::null_mut(),
                &raw mut row_type,
            );
            assert!(
                kind == pg_sys::TypeFuncClass::TYPEFUNC_COMPOSITE
                    && (*row_type).natts as usize == N,
                "the OUT parameters are those that the function returns"
            );
            let row_type = pg_sys::BlessTupleDesc(row_type);
            let row = pg_sys::heap_form_tuple(row_type, self.0.as_mut_ptr(), nulls.as_mut_ptr());
            fcinfo.return_raw_datum(pg_sys::HeapTupleHeaderGetDatum((*row).t_data))
        }
    }
}

pgrx::impl_sql_translatable!(Record<3>, "record");
pgrx::impl_sql_translatable!(Record<4>, "record");
