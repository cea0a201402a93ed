//! Validation of operator classes.

use crate::index::classes::{FUNCTIONS, KIND_FUNCTION};
use crate::pg::catalog;
use crate::pg::error::hold_interrupts;
use pgrx::prelude::*;

/// The index's `amvalidate`: every class has its kind, and its strategies are known.
#[pg_guard]
pub unsafe extern "C-unwind" fn validate(class: pg_sys::Oid) -> bool {
    // SAFETY: PostgreSQL calls this with an existing class.
    let (family, type_) = unsafe {
        let family = pg_sys::get_opclass_family(class);
        (family, pg_sys::get_opclass_input_type(class))
    };
    let kind = catalog::support_function(family, type_, KIND_FUNCTION as i16);
    if kind.is_none() {
        hold_interrupts(|| {
            pgrx::info!(
                "operator class {class:?} lacks support function {KIND_FUNCTION} of {FUNCTIONS}"
            );
        });
    }
    kind.is_some()
}
