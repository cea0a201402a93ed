//! Index options, and the validation of operator classes.

use crate::index::classes::PREDICATE_FUNCTION;
use crate::pg::catalog;
use crate::pg::error::{hold_interrupts, invalid};
use pgrx::prelude::*;

/// Implements `amoptions`: rejects every parameter.
///
/// # Errors
/// ERROR `invalid_parameter_value` if there are any.
#[pg_guard]
pub unsafe extern "C-unwind" fn options(
    options: pg_sys::Datum,
    validate: bool,
) -> *mut pg_sys::bytea {
    if validate && !options.is_null() {
        invalid(
            "neardup indexes have no storage parameters",
            "Parameters belong to the operator class of the last column: USING neardup (body text_ops (k = 5)).",
        );
    }
    std::ptr::null_mut()
}

/// Implements `amvalidate`: a class is valid if it has the support function that compares values, or if it is for
/// equality, with type `anyelement`.
#[pg_guard]
pub unsafe extern "C-unwind" fn validate(class: pg_sys::Oid) -> bool {
    // PostgreSQL calls this with an existing class.
    let family = pg_sys::get_opclass_family(class);
    let type_ = pg_sys::get_opclass_input_type(class);
    let is_valid = type_ == pg_sys::ANYELEMENTOID
        || catalog::support_function(family, type_, PREDICATE_FUNCTION as i16).is_some();
    if !is_valid {
        hold_interrupts(|| {
            pgrx::info!("operator class {class:?} needs support function {PREDICATE_FUNCTION}");
        });
    }
    is_valid
}
