//! Work on all processors, most of it outside the interpreter's lock.
//!
//! Threads live as long as one call, because a pool would be lost in the children of a forking process.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

use neardup::Result;
use pyo3::prelude::*;

use crate::error::raised_at;

/// Number of bytes of documents that a thread takes together, about two hundred microseconds of work.
const BLOCK_BYTES: usize = 1 << 17;

/// Maximum number of documents that a thread takes together.
const BLOCK_DOCUMENTS: usize = 1 << 10;

/// Number of blocks for each processor that are prepared before threads ask for them.
const AHEAD: usize = 4;

/// The longest delay of Ctrl-C, in addition to a block.
const PATIENCE: Duration = Duration::from_millis(50);

/// A thread's unit of work: one document, or several.
pub trait Document {
    /// Returns the number of bytes.
    fn bytes(&self) -> usize;
}

/// Returns the values that `finish` makes from the result of `work` on each document, and None for None. `work` runs in
/// several threads without the interpreter's lock. Under the lock, documents are looked up and dropped, and results are
/// finished.
///
/// # Errors
/// The first error of a document's lookup or of `work`, in the order of blocks; any exception of a signal handler.
/// After an error, no more documents are looked up.
pub fn map<D: Document + Send, T: Send, R>(
    py: Python<'_>,
    mut documents: impl Iterator<Item = PyResult<Option<D>>>,
    work: impl Fn(&D) -> Result<T> + Sync,
    finish: impl Fn(T) -> PyResult<R>,
) -> PyResult<Vec<Option<R>>> {
    let (queue, work) = (&Queue::default(), &work);
    let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let mut finished = thread::scope(|scope| {
        let _end = End(queue);
        let mut signals = Signals::new(py);
        let (mut read, mut is_read, mut finished, mut helpers) = (0, false, Vec::new(), Vec::new());
        let mut max_helpers = processors - 1;
        loop {
            signals.check()?;
            match queue.next(if is_read { 0 } else { AHEAD * processors }) {
                Next::Finish(done) => {
                    let finish = |result: Option<T>| result.map(&finish).transpose();
                    let results = |results: Vec<_>| results.into_iter().map(finish).collect();
                    let results: PyResult<Vec<_>> = done.results.and_then(results);
                    is_read |= results.is_err();
                    finished.push((done.first, results));
                }
                Next::Read => match Block::next(read, &mut documents) {
                    Ok(None) => is_read = true,
                    Ok(Some(block)) => {
                        let is_busy = read > 0;
                        read += block.documents.len();
                        queue.push(block);
                        if is_busy && helpers.len() < max_helpers {
                            match Builder::new().spawn_scoped(scope, || queue.help(work)) {
                                Ok(helper) => helpers.push(helper),
                                // The system has no more threads: the present ones do the work.
                                Err(_) => max_helpers = helpers.len(),
                            }
                        }
                    }
                    Err(error) => {
                        is_read = true;
                        finished.push((read, Err(error)));
                    }
                },
                Next::Work(block) => py.detach(|| queue.done(block.run(work))),
                Next::End => break,
                // A helper that has ended has panicked; `scope` raises this again.
                Next::Wait if helpers.iter().any(|helper| helper.is_finished()) => break,
                Next::Wait => py.detach(|| queue.wait()),
            }
        }
        Ok::<_, PyErr>(finished)
    })?;
    finished.sort_unstable_by_key(|(first, _)| *first);
    let results = finished
        .into_iter()
        .map(|(_, results)| results)
        .collect::<PyResult<Vec<_>>>()?;
    Ok(results.into_iter().flatten().collect())
}

/// Checks for signals of the interpreter, at most once in [`PATIENCE`].
struct Signals<'py> {
    py: Python<'py>,
    last: Instant,
}

impl<'py> Signals<'py> {
    fn new(py: Python<'py>) -> Self {
        let last = Instant::now();
        Self { py, last }
    }

    fn check(&mut self) -> PyResult<()> {
        if self.last.elapsed() < PATIENCE {
            return Ok(());
        }
        self.last = Instant::now();
        self.py.check_signals()
    }
}

/// Consecutive documents.
struct Block<D> {
    /// The place of the first document among all documents.
    first: usize,
    documents: Vec<Option<D>>,
}

/// The results of a block, and its documents, which only the thread with the interpreter's lock may drop.
struct Done<D, T> {
    first: usize,
    results: PyResult<Vec<Option<T>>>,
    _documents: Vec<Option<D>>,
}

impl<D: Document> Block<D> {
    /// Returns the next block of documents, or None after the last.
    fn next(
        first: usize,
        documents: &mut impl Iterator<Item = PyResult<Option<D>>>,
    ) -> PyResult<Option<Self>> {
        let (mut block, mut bytes) = (Vec::new(), 0);
        for document in documents {
            let document = document?;
            bytes += document.as_ref().map_or(0, D::bytes);
            block.push(document);
            if bytes >= BLOCK_BYTES || block.len() >= BLOCK_DOCUMENTS {
                break;
            }
        }
        let documents = block;
        Ok((!documents.is_empty()).then_some(Self { first, documents }))
    }

    fn run<T>(self, work: &impl Fn(&D) -> Result<T>) -> Done<D, T> {
        let one = |(item, document): (usize, &Option<D>)| {
            let result = document.as_ref().map(work).transpose();
            result.map_err(|error| raised_at(item, error))
        };
        let results = (self.first..).zip(&self.documents).map(one).collect();
        Done {
            first: self.first,
            results,
            _documents: self.documents,
        }
    }
}

/// Blocks that wait for a thread, and results that wait for the interpreter's lock.
struct Queue<D, T> {
    state: Mutex<State<D, T>>,
    changed: Condvar,
}

struct State<D, T> {
    waiting: VecDeque<Block<D>>,
    working: usize,
    done: Vec<Done<D, T>>,
    is_ended: bool,
}

/// The next step of the thread that holds the interpreter's lock.
enum Next<D, T> {
    Finish(Done<D, T>),
    Read,
    Work(Block<D>),
    Wait,
    End,
}

impl<D, T> Default for Queue<D, T> {
    fn default() -> Self {
        let state = State {
            waiting: VecDeque::new(),
            working: 0,
            done: Vec::new(),
            is_ended: false,
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }
}

impl<D: Document, T> Queue<D, T> {
    fn lock(&self) -> MutexGuard<'_, State<D, T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, block: Block<D>) {
        self.lock().waiting.push_back(block);
        self.changed.notify_one();
    }

    /// Returns the next step. At most `ahead` blocks may wait.
    fn next(&self, ahead: usize) -> Next<D, T> {
        let mut state = self.lock();
        if let Some(done) = state.done.pop() {
            return Next::Finish(done);
        }
        if state.waiting.len() < ahead {
            return Next::Read;
        }
        match state.take() {
            Some(block) => Next::Work(block),
            None if state.working > 0 => Next::Wait,
            None => Next::End,
        }
    }

    /// Waits for a result, but no longer than a signal may be delayed.
    fn wait(&self) {
        let state = self.lock();
        let waited = self
            .changed
            .wait_timeout_while(state, PATIENCE, |state| state.done.is_empty());
        drop(waited);
    }

    fn done(&self, done: Done<D, T>) {
        let mut state = self.lock();
        state.working -= 1;
        state.done.push(done);
        self.changed.notify_all();
    }

    /// Works on blocks until the end.
    fn help(&self, work: &impl Fn(&D) -> Result<T>) {
        let is_idle = |state: &mut State<D, T>| state.waiting.is_empty() && !state.is_ended;
        loop {
            let waited = self.changed.wait_while(self.lock(), is_idle);
            let mut state = waited.unwrap_or_else(PoisonError::into_inner);
            if state.is_ended {
                return;
            }
            let block = state.take();
            drop(state);
            if let Some(block) = block {
                self.done(block.run(work));
            }
        }
    }
}

impl<D, T> State<D, T> {
    fn take(&mut self) -> Option<Block<D>> {
        let block = self.waiting.pop_front();
        self.working += usize::from(block.is_some());
        block
    }
}

/// Ends a queue's helpers when it is dropped.
struct End<'q, D: Document, T>(&'q Queue<D, T>);

impl<D: Document, T> Drop for End<'_, D, T> {
    fn drop(&mut self) {
        self.0.lock().is_ended = true;
        self.0.changed.notify_all();
    }
}
