//! Pieces of work in a line, and their results in the same order.

use crate::threads::{Working, spawn, stop_if};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

/// The time between two polls of a waiting leader.
const PAUSE: Duration = Duration::from_millis(10);

/// Number of pieces in line for each thread: enough to keep it busy while the leader does something else.
const PIECES: usize = 4;

/// The work on one piece, in any thread. It calls its second argument often. That call does not return once the job is
/// over.
pub type Work<'a, P, R> = dyn Fn(P, &mut dyn FnMut()) -> R + Sync + 'a;

/// The limits of a line.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Number of helpers in addition to the leader.
    pub helpers: usize,
    /// Maximum number of bytes of the pieces in line, unless a single piece has more.
    pub bytes: usize,
}

/// Works on pieces with the help of other threads.
///
/// `feed` puts pieces into the line, each with a tag that stays with the leader. `take` gets the tag and the result of
/// every piece, in the order in which they were put, no matter how many threads there are. The leader calls `poll`
/// often. `feed`, `take` and `poll` may unwind, which ends the helpers first.
///
/// # Panics
/// If `work` panics in any thread, the leader resumes that panic.
pub fn in_order<P: Send, R: Send, T>(
    limits: Limits,
    poll: &mut dyn FnMut(),
    work: &Work<'_, P, R>,
    take: &mut dyn FnMut(T, R),
    feed: impl FnOnce(&mut Line<'_, '_, '_, P, R, T>),
) {
    let shared = Shared::new();
    thread::scope(|scope| {
        let helpers = Helpers {
            shared: &shared,
            started: RefCell::new(Vec::new()),
        };
        let mut line = Line {
            scope,
            shared: &shared,
            helpers: &helpers,
            limits,
            poll,
            work,
            take,
            waiting: VecDeque::new(),
            bytes: 0,
        };
        feed(&mut line);
        line.finish();
    });
}

/// The state that the leader and its helpers share.
struct Shared<P, R> {
    state: Mutex<State<P, R>>,
    is_over: AtomicBool,
    has_piece: Condvar,
    has_result: Condvar,
}

struct State<P, R> {
    /// Pieces that nobody works on yet, with their numbers.
    pieces: VecDeque<(usize, P)>,
    /// The results of piece number `first` and the pieces after it; None for a piece that has no result yet.
    results: VecDeque<Option<thread::Result<R>>>,
    first: usize,
}

impl<P, R> Shared<P, R> {
    fn new() -> Self {
        Self {
            state: Mutex::new(State {
                pieces: VecDeque::new(),
                results: VecDeque::new(),
                first: 0,
            }),
            is_over: AtomicBool::new(false),
            has_piece: Condvar::new(),
            has_result: Condvar::new(),
        }
    }

    /// Returns the state. No thread panics while it holds the lock.
    fn state(&self) -> MutexGuard<'_, State<P, R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works on pieces until the job is over.
    fn help(&self, work: &Work<'_, P, R>) {
        while let Some((number, piece)) = self.next_piece() {
            let Some(working) = Working::begin() else {
                return;
            };
            let mut stop = || stop_if(&self.is_over);
            let result = catch_unwind(AssertUnwindSafe(|| work(piece, &mut stop)));
            drop(working);
            self.state().put_result(number, result);
            self.has_result.notify_one();
        }
    }

    /// Waits for a piece. Returns None when the job is over.
    fn next_piece(&self) -> Option<(usize, P)> {
        let mut state = self.state();
        loop {
            if self.is_over.load(Ordering::Relaxed) {
                return None;
            }
            if let Some(piece) = state.pieces.pop_front() {
                return Some(piece);
            }
            state = self
                .has_piece
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl<P, R> State<P, R> {
    fn put_result(&mut self, number: usize, result: thread::Result<R>) {
        let place = number - self.first;
        self.results[place] = Some(result);
    }

    /// Returns the first result, if it is available.
    fn pop_result(&mut self) -> Option<thread::Result<R>> {
        let result = self.results.front_mut()?.take()?;
        self.results.pop_front();
        self.first += 1;
        Some(result)
    }
}

/// The helpers of a job. They are joined when this is dropped, even if the leader unwinds.
struct Helpers<'a, 'scope, P, R> {
    shared: &'a Shared<P, R>,
    started: RefCell<Vec<ScopedJoinHandle<'scope, ()>>>,
}

impl<P, R> Helpers<'_, '_, P, R> {
    fn count(&self) -> usize {
        self.started.borrow().len()
    }
}

impl<P, R> Drop for Helpers<'_, '_, P, R> {
    fn drop(&mut self) {
        let state = self.shared.state();
        self.shared.is_over.store(true, Ordering::Relaxed);
        drop(state);
        self.shared.has_piece.notify_all();
        for helper in self.started.get_mut().drain(..) {
            // A panic of the work is its result.
            drop(helper.join());
        }
    }
}

/// The leader's end of the line.
pub struct Line<'a, 'scope, 'env, P, R, T> {
    scope: &'scope Scope<'scope, 'env>,
    shared: &'scope Shared<P, R>,
    helpers: &'a Helpers<'a, 'scope, P, R>,
    limits: Limits,
    poll: &'a mut dyn FnMut(),
    work: &'scope Work<'env, P, R>,
    take: &'a mut dyn FnMut(T, R),
    /// The tags and sizes in bytes of the pieces whose results have not been taken.
    waiting: VecDeque<(T, usize)>,
    /// The total number of bytes of these pieces.
    bytes: usize,
}

impl<P: Send, R: Send, T> Line<'_, '_, '_, P, R, T> {
    /// Puts a piece of `bytes` bytes into the line, and takes results if the line has grown too long.
    pub fn put(&mut self, tag: T, piece: P, bytes: usize) {
        while !self.waiting.is_empty() && self.bytes + bytes > self.limits.bytes {
            self.take_first();
        }
        self.enqueue(tag, piece, bytes);
        while self.waiting.len() > PIECES * (self.helpers.count() + 1) || self.limits.helpers == 0 {
            if self.waiting.is_empty() {
                break;
            }
            self.take_first();
        }
    }

    fn enqueue(&mut self, tag: T, piece: P, bytes: usize) {
        let mut state = self.shared.state();
        let number = state.first + state.results.len();
        state.pieces.push_back((number, piece));
        state.results.push_back(None);
        let idle = state.pieces.len() > 1;
        drop(state);
        self.waiting.push_back((tag, bytes));
        self.bytes += bytes;
        if idle && self.helpers.count() < self.limits.helpers {
            self.start_helper();
        }
        self.shared.has_piece.notify_one();
    }

    /// Starts a helper. If none can be started, does not try again.
    fn start_helper(&mut self) {
        let (shared, work) = (self.shared, self.work);
        match spawn(self.scope, move || shared.help(work)) {
            Some(helper) => self.helpers.started.borrow_mut().push(helper),
            None => self.limits.helpers = self.helpers.count(),
        }
    }

    fn finish(&mut self) {
        while !self.waiting.is_empty() {
            self.take_first();
        }
    }

    /// Takes the first result, and works on pieces until that is available.
    fn take_first(&mut self) {
        let result = loop {
            (self.poll)();
            let mut state = self.shared.state();
            if let Some(result) = state.pop_result() {
                break result;
            }
            match state.pieces.pop_front() {
                Some((number, piece)) => {
                    drop(state);
                    let result = (self.work)(piece, self.poll);
                    self.shared.state().put_result(number, Ok(result));
                }
                None => {
                    let waited = self.shared.has_result.wait_timeout(state, PAUSE);
                    drop(waited.unwrap_or_else(PoisonError::into_inner));
                }
            }
        };
        let result = result.unwrap_or_else(|panic| resume_unwind(panic));
        let (tag, bytes) = self.waiting.pop_front().expect("a result has a tag");
        self.bytes -= bytes;
        (self.take)(tag, result);
    }
}
