//! Order, ends and failures of jobs with helpers.

use helpers::{Limits, Line, in_order};
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ThreadId};
use std::time::Duration;

fn limits(helpers: usize) -> Limits {
    Limits {
        helpers,
        bytes: 1000,
    }
}

/// Works on pieces 0 to `pieces`, each of which takes a while, and returns tags and results.
fn squares(limits: Limits, pieces: u64, threads: &Mutex<HashSet<ThreadId>>) -> Vec<(u64, u64)> {
    let mut taken = Vec::new();
    in_order(
        limits,
        &mut || {},
        &|piece: u64, check| {
            check();
            threads.lock().unwrap().insert(thread::current().id());
            thread::sleep(Duration::from_micros(piece * 7919 % 500));
            piece * piece
        },
        &mut |tag, result| taken.push((tag, result)),
        |line| (0..pieces).for_each(|piece| line.put(piece, piece, 1)),
    );
    taken
}

#[test]
fn results_come_in_order() {
    let expected: Vec<_> = (0..200).map(|n| (n, n * n)).collect();
    for helpers in [0, 1, 2, 4] {
        let threads = Mutex::new(HashSet::new());
        assert_eq!(squares(limits(helpers), 200, &threads), expected);
        let used = threads.into_inner().unwrap().len();
        assert!(used <= helpers + 1, "{used} threads with {helpers} helpers");
        assert!(helpers == 0 || used > 1, "nobody helped");
    }
}

#[test]
fn a_single_piece_needs_no_helper() {
    let threads = Mutex::new(HashSet::new());
    squares(limits(4), 1, &threads);
    assert!(
        threads
            .into_inner()
            .unwrap()
            .contains(&thread::current().id())
    );
}

#[test]
fn pieces_in_line_are_limited_by_their_bytes() {
    let most = AtomicUsize::new(0);
    let waiting = AtomicUsize::new(0);
    in_order(
        limits(2),
        &mut || {},
        &|_: (), _| {},
        &mut |(), ()| {
            waiting.fetch_sub(1, Ordering::Relaxed);
        },
        |line| {
            for _ in 0..100 {
                line.put((), (), 400);
                let now = 1 + waiting.fetch_add(1, Ordering::Relaxed);
                most.fetch_max(now, Ordering::Relaxed);
            }
        },
    );
    assert_eq!(most.into_inner(), 2);
}

/// Runs a job that fails, and asserts that it leaves no thread running.
fn assert_fails(feed: impl FnOnce(&mut Line<'_, '_, '_, u64, (), ()>), panics_at: u64) {
    let working = AtomicUsize::new(0);
    let failed = catch_unwind(AssertUnwindSafe(|| {
        in_order(
            limits(3),
            &mut || {},
            &|piece: u64, check| {
                struct Count<'a>(&'a AtomicUsize);
                impl Drop for Count<'_> {
                    fn drop(&mut self) {
                        self.0.fetch_sub(1, Ordering::SeqCst);
                    }
                }
                working.fetch_add(1, Ordering::SeqCst);
                let _count = Count(&working);
                assert!(piece != panics_at, "piece {panics_at} fails");
                if piece == u64::MAX {
                    loop {
                        check();
                    }
                }
            },
            &mut |(), ()| {},
            feed,
        );
    }));
    let panic = failed.unwrap_err();
    let message = panic.downcast_ref::<String>().unwrap();
    assert!(message.contains("fails"), "{message}");
    assert_eq!(working.load(Ordering::SeqCst), 0);
}

#[test]
fn a_panic_in_a_helper_is_the_leaders() {
    assert_fails(|line| (0..100).for_each(|piece| line.put((), piece, 1)), 37);
}

#[test]
fn helpers_end_when_the_leader_fails() {
    assert_fails(
        |line| {
            for piece in [1, 2, u64::MAX, u64::MAX] {
                line.put((), piece, 1);
            }
            thread::sleep(Duration::from_millis(20));
            let helpers = 3;
            panic!("the leader of {helpers} helpers fails");
        },
        77,
    );
}
