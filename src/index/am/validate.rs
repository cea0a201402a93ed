//! Validation of operator classes.

use crate::index::classes::{HASH_FUNCTION, KIND_FUNCTION};
use crate::pg::catalog;
use crate::pg::error::hold_interrupts;
use pgrx::prelude::*;

/// Implements `amvalidate`: every class either compares values or hashes them.
#[pg_guard]
pub unsafe extern "C-unwind" fn validate(class: pg_sys::Oid) -> bool {
    // SAFETY: PostgreSQL calls this with an existing class.
    let (family, type_) = unsafe {
        let family = pg_sys::get_opclass_family(class);
        (family, pg_sys::get_opclass_input_type(class))
    };
    let has = |number| catalog::support_function(family, type_, number as i16).is_some();
    let is_valid = has(KIND_FUNCTION) != has(HASH_FUNCTION);
    if !is_valid {
        hold_interrupts(|| {
            pgrx::info!(
                "operator class {class:?} needs support function {KIND_FUNCTION} or {HASH_FUNCTION}"
            );
        });
    }
    is_valid
}
