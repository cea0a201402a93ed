//! The life of a helper.

use nix::sys::signal::{SigSet, SigmaskHow};
use std::any::Any;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{Builder, Scope, ScopedJoinHandle, sleep};
use std::time::Duration;

/// Number of bytes that must be free for a helper to start: for its stack, and for the C library's data of a thread.
/// With less, no helper is started, because the C library might end the process.
const HEADROOM: usize = STACK + (1 << 20);

/// Number of bytes of a helper's stack.
const STACK: usize = 1 << 21;

/// Set when the process is about to end.
static IS_ABANDONED: AtomicBool = AtomicBool::new(false);

/// Number of pieces that are being worked on.
static WORKING: AtomicUsize = AtomicUsize::new(0);

/// Ends all work, and waits until no helper accesses memory anymore: for a process that is about to end without
/// unwinding its stack. No work can be done afterward.
pub fn abandon() {
    IS_ABANDONED.store(true, Ordering::SeqCst);
    while WORKING.load(Ordering::SeqCst) > 0 {
        sleep(Duration::from_millis(1));
    }
}

/// Starts a helper with all signals blocked. Returns None if there is not enough memory for one.
pub(crate) fn spawn<'scope>(
    scope: &'scope Scope<'scope, '_>,
    body: impl FnOnce() + Send + 'scope,
) -> Option<ScopedJoinHandle<'scope, ()>> {
    Vec::<u8>::new().try_reserve_exact(HEADROOM).ok()?;
    // A new thread has the signal mask of the thread that starts it, so no handler of the server ever runs in it.
    let before = SigSet::all()
        .thread_swap_mask(SigmaskHow::SIG_SETMASK)
        .ok()?;
    let helper = Builder::new()
        .name(String::from("neardup"))
        .stack_size(STACK);
    let started = helper.spawn_scoped(scope, body).ok();
    let restored = before.thread_set_mask();
    debug_assert!(restored.is_ok());
    started
}

/// A piece that is being worked on, as [`abandon`] counts them.
pub(crate) struct Working;

impl Working {
    /// Returns None when no more work may be done.
    pub fn begin() -> Option<Self> {
        WORKING.fetch_add(1, Ordering::SeqCst);
        let working = Self;
        (!IS_ABANDONED.load(Ordering::SeqCst)).then_some(working)
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        WORKING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The payload of the panic that ends a helper whose work is no longer needed.
struct Stopped;

/// Ends the work of a helper when the job is over.
pub(crate) fn stop_if(is_over: &AtomicBool) {
    if is_over.load(Ordering::Relaxed) || IS_ABANDONED.load(Ordering::Relaxed) {
        resume_unwind(Box::new(Stopped) as Box<dyn Any + Send>);
    }
}
