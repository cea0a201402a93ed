//! Validation of operator classes.

use crate::index::classes::PREDICATE_FUNCTION;
use crate::pg::catalog;
use crate::pg::error::hold_interrupts;
use pgrx::prelude::*;

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
