//! The rights with which a function works.

use pgrx::pg_sys;
use std::ffi::CStr;

/// The rights of the owner of a table, with which functions of the owner's are called: they must not
/// run with the caller's.
pub struct OwnerRights {
    caller: pg_sys::Oid,
    context: i32,
    settings: i32,
}

impl OwnerRights {
    /// Takes these rights until [`Self::resign`] or the end of the transaction.
    pub fn assume(owner: pg_sys::Oid) -> Self {
        let mut caller = pg_sys::InvalidOid;
        let mut context = 0;
        // SAFETY: an ERROR ends the transaction, which restores all three.
        unsafe {
            pg_sys::GetUserIdAndSecContext(&mut caller, &mut context);
            let restricted = pg_sys::SECURITY_RESTRICTED_OPERATION as i32;
            pg_sys::SetUserIdAndSecContext(owner, context | restricted);
            Self {
                caller,
                context,
                settings: pg_sys::NewGUCNestLevel(),
            }
        }
    }

    /// Changes a setting as long as the rights last.
    pub fn set(&self, name: &CStr, value: &CStr) {
        // SAFETY: the strings are NUL-terminated; `resign` or an ERROR takes the setting back.
        unsafe {
            pg_sys::set_config_option(
                name.as_ptr(),
                value.as_ptr(),
                pg_sys::GucContext::PGC_USERSET,
                pg_sys::GucSource::PGC_S_SESSION,
                pg_sys::GucAction::GUC_ACTION_SAVE,
                true,
                0,
                false,
            );
        }
    }

    pub fn resign(self) {
        // SAFETY: what `assume` has read is set again.
        unsafe {
            pg_sys::AtEOXact_GUC(false, self.settings);
            pg_sys::SetUserIdAndSecContext(self.caller, self.context);
        }
    }
}

/// Returns whether the current role owns a relation, or has the rights of its owner.
pub fn owns(relation: pg_sys::Oid) -> bool {
    // SAFETY: looks the relation up in the catalog.
    unsafe {
        let role = pg_sys::GetUserId();
        #[cfg(feature = "pg15")]
        return pg_sys::pg_class_ownercheck(relation, role);
        #[cfg(not(feature = "pg15"))]
        return pg_sys::object_ownercheck(pg_sys::RelationRelationId, relation, role);
    }
}
