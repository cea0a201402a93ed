//! The end of a process, in a process of its own.

use helpers::{Limits, abandon, in_order};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// After `abandon` no work is done, although the leader has not returned.
#[test]
fn nobody_works_any_more() {
    let steps = AtomicUsize::new(0);
    let is_abandoned = AtomicBool::new(false);
    let feeder = || {
        in_order(
            Limits {
                helpers: 2,
                bytes: 1000,
            },
            &mut || {},
            &|_: (), check| {
                loop {
                    check();
                    steps.fetch_add(1, Ordering::SeqCst);
                }
            },
            &mut |(), ()| {},
            |line| {
                (0..4).for_each(|_| line.put((), (), 1));
                while steps.load(Ordering::SeqCst) == 0 {
                    thread::sleep(Duration::from_millis(1));
                }
                abandon();
                let after = steps.load(Ordering::SeqCst);
                thread::sleep(Duration::from_millis(50));
                assert_eq!(steps.load(Ordering::SeqCst), after);
                is_abandoned.store(true, Ordering::SeqCst);
                panic!("the process ends");
            },
        );
    };
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(feeder));
    assert!(ended.is_err() && is_abandoned.load(Ordering::SeqCst));
}
