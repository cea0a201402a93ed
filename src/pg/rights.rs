//! Runs with the rights of table owners, and checks rights.

use crate::pg::settings::Settings;
use pgrx::pg_sys;
use std::ffi::CStr;

/// The rights of a table's owner, assumed to call the owner's functions. The owner's functions must not run with the
/// caller's rights, nor find functions on the caller's search_path.
pub struct OwnerRights {
    caller: pg_sys::Oid,
    context: i32,
    settings: Settings,
}

impl OwnerRights {
    /// Assumes the rights of `owner`, and a search_path of only pg_catalog and pg_temp, until [`Self::resign`] or the
    /// end of the transaction.
    pub fn assume(owner: pg_sys::Oid) -> Self {
        let mut caller = pg_sys::InvalidOid;
        let mut context = 0;
        // SAFETY: an ERROR ends the transaction, which restores both.
        unsafe {
            pg_sys::GetUserIdAndSecContext(&mut caller, &mut context);
            let restricted = pg_sys::SECURITY_RESTRICTED_OPERATION as i32;
            pg_sys::SetUserIdAndSecContext(owner, context | restricted);
        }
        let settings = Settings::begin();
        settings.set(c"search_path", c"pg_catalog, pg_temp");
        Self {
            caller,
            context,
            settings,
        }
    }

    /// Changes a setting until [`Self::resign`].
    pub fn set(&self, name: &CStr, value: &CStr) {
        self.settings.set(name, value);
    }

    pub fn resign(self) {
        self.settings.restore();
        // SAFETY: restores what `assume` has read.
        unsafe { pg_sys::SetUserIdAndSecContext(self.caller, self.context) };
    }
}

/// Checks that the current role owns `table`.
///
/// # Errors
/// ERROR `insufficient_privilege` otherwise.
pub fn check_owner(table: pg_sys::Oid) {
    if !owns(table) {
        raise_not_owner(pg_sys::ObjectType::OBJECT_TABLE, table);
    }
}

/// Raises ERROR `insufficient_privilege` for a relation of a `kind` that the current role does not own.
pub fn raise_not_owner(kind: pg_sys::ObjectType::Type, relation: pg_sys::Oid) {
    let result = pg_sys::AclResult::ACLCHECK_NOT_OWNER;
    // SAFETY: raises the ERROR; the name is NUL-terminated.
    unsafe { pg_sys::aclcheck_error(result, kind, pg_sys::get_rel_name(relation)) };
}

/// Returns whether `role` has USAGE on `schema`.
pub fn may_use(role: pg_sys::Oid, schema: pg_sys::Oid) -> bool {
    let usage = pg_sys::ACL_USAGE as pg_sys::AclMode;
    // SAFETY: looks the schema up in the catalog.
    unsafe {
        #[cfg(feature = "pg15")]
        let result = pg_sys::pg_namespace_aclcheck(schema, role, usage);
        #[cfg(not(feature = "pg15"))]
        let result = pg_sys::object_aclcheck(pg_sys::NamespaceRelationId, schema, role, usage);
        result == pg_sys::AclResult::ACLCHECK_OK
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
