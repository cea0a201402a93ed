//! Storage parameters of an index: there are none.

use pgrx::prelude::*;
use std::cell::Cell;

thread_local! {
    static KIND: Cell<Option<pg_sys::relopt_kind::Type>> = const { Cell::new(None) };
}

/// Implements `amoptions`: refuses every parameter.
#[pg_guard]
pub unsafe extern "C-unwind" fn options(
    options: pg_sys::Datum,
    validate: bool,
) -> *mut pg_sys::bytea {
    let kind = KIND.get().unwrap_or_else(|| {
        // SAFETY: registers a kind of parameters for this backend.
        let kind = unsafe { pg_sys::add_reloption_kind() };
        KIND.set(Some(kind));
        kind
    });
    // SAFETY: PostgreSQL calls this with the parameters of an index.
    unsafe {
        pg_sys::build_reloptions(
            options,
            validate,
            kind,
            size_of::<pg_sys::StdRdOptions>(),
            std::ptr::null(),
            0,
        )
        .cast()
    }
}
