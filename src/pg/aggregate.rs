//! The states that aggregates keep between rows, in the aggregate's own memory context.

use crate::pg::call::Call;
use crate::pg::error::unsupported;
use pgrx::{Internal, pg_sys};
use std::mem::MaybeUninit;

/// Returns a new state in the memory context of the aggregate that `call` belongs to. `make` gets this context, in
/// which it allocates everything that the state refers to.
///
/// # Safety
/// The state needs no drop.
///
/// # Errors
/// ERROR `feature_not_supported` outside an aggregate; `hint` names the function to call instead.
pub unsafe fn new_state<'a, T>(
    call: &Call,
    hint: &str,
    make: impl FnOnce(pg_sys::MemoryContext) -> T,
) -> &'a mut T {
    let mut context = std::ptr::null_mut();
    if pg_sys::AggCheckCallContext(call.fcinfo(), &raw mut context) == 0 {
        unsupported("the function was called outside an aggregate", hint);
    }
    let room = pg_sys::MemoryContextAlloc(context, size_of::<T>()).cast::<T>();
    room.write(make(context));
    &mut *room
}

/// Allocates an array of `len` copies of `value` in a memory context.
///
/// # Safety
/// The context outlives every use of the array.
pub unsafe fn array<'a, T: Copy>(
    context: pg_sys::MemoryContext,
    len: usize,
    value: T,
) -> &'a mut [T] {
    let start = pg_sys::MemoryContextAlloc(context, len * size_of::<T>());
    let room = std::slice::from_raw_parts_mut(start.cast::<MaybeUninit<T>>(), len);
    room.fill(MaybeUninit::new(value));
    room.assume_init_mut()
}

/// Returns the state that an argument points to, or None before the first row.
pub fn state<'a, T>(argument: Internal) -> Option<&'a mut T> {
    let datum = argument.unwrap()?;
    // SAFETY: arguments of type internal cannot be written in SQL; here they come from [`internal`].
    unsafe { datum.cast_mut_ptr::<T>().as_mut() }
}

/// Returns a state as the result of a function.
pub fn internal<T>(state: Option<&mut T>) -> Internal {
    state
        .map(|state| pg_sys::Datum::from(std::ptr::from_mut(state)))
        .into()
}
