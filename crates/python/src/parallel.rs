//! Work on all processors, most of it outside of the interpreter's lock.
//!
//! Threads live as long as one call: a pool would be lost in the children of a process that forks.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use neardup::Result;
use pyo3::prelude::*;

use crate::error::raised_at;

/// Bytes of documents that a thread takes at once, about a hundred microseconds of work.
const BLOCK_BYTES: usize = 1 << 16;

/// Documents that a thread takes at once, at most.
const BLOCK_DOCUMENTS: usize = 1 << 10;

/// The longest wait of Ctrl-C, besides a block.
const PATIENCE: Duration = Duration::from_millis(50);

/// Returns what `finish` makes of the result of `work` on each document, None for None. `work` runs in
/// several threads without the interpreter's lock, while documents are looked up, and results finished,
/// under it.
///
/// # Errors
/// The first error of a document's lookup or of `work`, and any exception of a signal handler.
pub fn map<'a, T: Send, R>(
    py: Python<'_>,
    mut documents: impl Iterator<Item = PyResult<Option<&'a [u8]>>>,
    work: impl Fn(&[u8]) -> Result<T> + Sync,
    finish: impl Fn(T) -> R,
) -> PyResult<Vec<Option<R>>> {
    let (queue, work) = (&Queue::default(), &work);
    let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let mut finished = thread::scope(|scope| {
        let _end = End(queue);
        let mut signals = Signals::new(py);
        let (mut blocks, mut first, mut helpers) = (0, 0, Vec::new());
        while let Some(block) = Block::next(first, &mut documents)? {
            signals.check()?;
            first += block.documents.len();
            blocks += 1;
            queue.lock().waiting.push_back(block);
            queue.changed.notify_one();
            if (2..=processors).contains(&blocks) {
                helpers.push(scope.spawn(|| queue.help(work)));
            }
        }
        let mut finished = Vec::with_capacity(blocks);
        while finished.len() < blocks {
            signals.check()?;
            match queue.next() {
                Next::Finish(first, results) => {
                    let results = results?.into_iter().map(|result| result.map(&finish));
                    finished.push((first, results.collect::<Vec<_>>()));
                }
                Next::Work(block) => py.detach(|| queue.done(block.run(work))),
                // A helper that ended has panicked, which `scope` raises again.
                Next::Wait if helpers.iter().any(|helper| helper.is_finished()) => break,
                Next::Wait => py.detach(|| queue.wait()),
            }
        }
        Ok::<_, PyErr>(finished)
    })?;
    finished.sort_unstable_by_key(|(first, _)| *first);
    Ok(finished
        .into_iter()
        .flat_map(|(_, results)| results)
        .collect())
}

/// Looks for signals of the interpreter now and then.
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

/// Documents that follow each other.
struct Block<'a> {
    /// The place of the first among all.
    first: usize,
    documents: Vec<Option<&'a [u8]>>,
}

/// The place of the first document of a block, and the results of all.
type Done<T> = (usize, PyResult<Vec<Option<T>>>);

impl<'a> Block<'a> {
    /// Returns the next block of documents, None after the last.
    fn next(
        first: usize,
        documents: &mut impl Iterator<Item = PyResult<Option<&'a [u8]>>>,
    ) -> PyResult<Option<Self>> {
        let (mut block, mut bytes) = (Vec::new(), 0);
        for document in documents {
            let document = document?;
            bytes += document.map_or(0, <[u8]>::len);
            block.push(document);
            if bytes >= BLOCK_BYTES || block.len() >= BLOCK_DOCUMENTS {
                break;
            }
        }
        let documents = block;
        Ok((!documents.is_empty()).then_some(Self { first, documents }))
    }

    fn run<T>(self, work: &impl Fn(&[u8]) -> Result<T>) -> Done<T> {
        let one = |(item, document): (usize, Option<&[u8]>)| {
            let result = document.map(work).transpose();
            result.map_err(|error| raised_at(item, error))
        };
        let results = (self.first..).zip(self.documents).map(one);
        (self.first, results.collect())
    }
}

/// Blocks that wait for a thread, and results that wait for the interpreter's lock.
struct Queue<'a, T> {
    state: Mutex<State<'a, T>>,
    changed: Condvar,
}

struct State<'a, T> {
    waiting: VecDeque<Block<'a>>,
    done: Vec<Done<T>>,
    is_ended: bool,
}

/// The next thing for the thread that holds the interpreter's lock.
enum Next<'a, T> {
    Finish(usize, PyResult<Vec<Option<T>>>),
    Work(Block<'a>),
    Wait,
}

impl<T> Default for Queue<'_, T> {
    fn default() -> Self {
        let state = State {
            waiting: VecDeque::new(),
            done: Vec::new(),
            is_ended: false,
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }
}

impl<'a, T> Queue<'a, T> {
    fn lock(&self) -> MutexGuard<'_, State<'a, T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> Next<'a, T> {
        let mut state = self.lock();
        if let Some((first, results)) = state.done.pop() {
            return Next::Finish(first, results);
        }
        state.waiting.pop_front().map_or(Next::Wait, Next::Work)
    }

    /// Waits for a result, or as long as signals may.
    fn wait(&self) {
        let state = self.lock();
        let waited = self
            .changed
            .wait_timeout_while(state, PATIENCE, |state| state.done.is_empty());
        drop(waited);
    }

    fn done(&self, done: Done<T>) {
        self.lock().done.push(done);
        self.changed.notify_all();
    }

    /// Works on blocks until the end.
    fn help(&self, work: &impl Fn(&[u8]) -> Result<T>) {
        let is_idle = |state: &mut State<'a, T>| state.waiting.is_empty() && !state.is_ended;
        loop {
            let waited = self.changed.wait_while(self.lock(), is_idle);
            let mut state = waited.unwrap_or_else(PoisonError::into_inner);
            if state.is_ended {
                return;
            }
            let block = state.waiting.pop_front();
            drop(state);
            if let Some(block) = block {
                self.done(block.run(work));
            }
        }
    }
}

/// Ends a queue's helpers when it is dropped.
struct End<'q, 'a, T>(&'q Queue<'a, T>);

impl<T> Drop for End<'_, '_, T> {
    fn drop(&mut self) {
        self.0.lock().is_ended = true;
        self.0.changed.notify_all();
    }
}
