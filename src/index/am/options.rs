//! Options of an index, and the validation of operator classes.

use crate::index::classes::PREDICATE_FUNCTION;
use crate::pg::catalog;
use crate::pg::error::hold_interrupts;
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

/// Implements `amvalidate`: a class compares values, or is one of equality, for any element.
#[pg_guard]
pub unsafe extern "C-unwind" fn validate(class: pg_sys::Oid) -> bool {
    // SAFETY: PostgreSQL calls this with an existing class.
    let (family, type_) = unsafe {
        let family = pg_sys::get_opclass_family(class);
        (family, pg_sys::get_opclass_input_type(class))
    };
    let is_valid = type_ == pg_sys::ANYELEMENTOID
        || catalog::support_function(family, type_, PREDICATE_FUNCTION as i16).is_some();
    if !is_valid {
        hold_interrupts(|| {
            pgrx::info!("operator class {class:?} needs support function {PREDICATE_FUNCTION}");
        });
    }
    is_valid
}
