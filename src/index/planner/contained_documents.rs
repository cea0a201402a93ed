//! `near_contained` of documents as the planner sees it: a condition between their sets, which an index on
//! `shingle_hashes` of one of them serves.

use crate::pg::catalog::{function_beside, is_function};
use crate::pg::nodes::{elements, new_call, new_collated_call, new_constant};
use crate::text::measures::near_contained_documents_wrapper;
use pgrx::pg_sys;

/// Returns `near_contained(shingle_hashes(a, ...), shingle_hashes(b, ...), threshold)`.
///
/// # Safety
/// The request is the planner's.
pub unsafe fn condition_of_sets(
    request: &pg_sys::SupportRequestSimplify,
) -> Option<*mut pg_sys::Node> {
    const TEXT: pg_sys::Oid = pg_sys::TEXTOID;
    const SETS: pg_sys::Oid = pg_sys::INT8ARRAYOID;
    // SAFETY: the planner's nodes are valid while it plans.
    unsafe {
        let (root, call) = (request.root, &*request.fcall);
        let function = call.funcid;
        if !is_function(function, near_contained_documents_wrapper) {
            return None;
        }
        let [a, b, threshold, k, unit, fold] = elements(call.args)?;
        // They come twice.
        if [k, unit, fold]
            .into_iter()
            .any(|node| pg_sys::contain_volatile_functions(node))
        {
            return None;
        }
        let types = [TEXT, pg_sys::INT4OID, TEXT, TEXT, pg_sys::INT8OID];
        let shingle_hashes = function_beside(function, c"shingle_hashes", &types)?;
        let types = [SETS, SETS, pg_sys::FLOAT8OID];
        let near_contained = function_beside(function, c"near_contained", &types)?;
        let set = |document: *mut pg_sys::Node| {
            let seed = new_constant(pg_sys::INT8OID, 0i64.into());
            // As in the expression of an index on the column, which may have a collation of its own.
            let collation = pg_sys::exprCollation(document);
            let arguments = [document, k, unit, fold, seed];
            new_collated_call(root, shingle_hashes, arguments, collation)
        };
        Some(new_call(root, near_contained, [set(a), set(b), threshold]))
    }
}
