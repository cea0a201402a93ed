//! Work on all processors, outside of the interpreter's lock.
//!
//! Threads live as long as one call: a pool would be lost in the children of a process that forks.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use neardup::Result;
use pyo3::prelude::*;

use crate::error::raised_at;

/// Bytes of documents that a thread takes at once, about a hundred microseconds of work.
const BLOCK_BYTES: usize = 1 << 16;

/// Documents that a thread takes at once, at most.
const BLOCK_DOCUMENTS: usize = 1 << 10;

/// The longest wait of Ctrl-C, besides the end of a document.
const PATIENCE: Duration = Duration::from_millis(50);

/// Returns the result of `work` on each document, None for None.
///
/// # Errors
/// The first that `work` returns; what a signal handler raises.
pub fn map<T: Send>(
    py: Python<'_>,
    documents: &[Option<&[u8]>],
    work: impl Fn(&[u8]) -> Result<T> + Sync,
) -> PyResult<Vec<Option<T>>> {
    let queue = Queue::new(documents);
    let work = &work;
    let (mut done, error) = py.detach(|| {
        thread::scope(|scope| {
            let helpers: Vec<_> = (1..queue.threads())
                .map(|_| scope.spawn(|| queue.work_off(work, || Ok(()))))
                .collect();
            let mut last = Instant::now();
            let mut done = queue.work_off(work, || {
                if last.elapsed() < PATIENCE {
                    return Ok(());
                }
                last = Instant::now();
                Python::attach(|py| py.check_signals())
            });
            for helper in helpers {
                done.extend(helper.join().unwrap_or_else(|panic| {
                    std::panic::resume_unwind(panic);
                }));
            }
            (done, queue.take_error())
        })
    });
    if let Some(error) = error {
        return Err(error);
    }
    done.sort_unstable_by_key(|(block, _)| *block);
    Ok(done.into_iter().flat_map(|(_, results)| results).collect())
}

/// The results of one block of documents, and its number.
type Done<T> = (usize, Vec<Option<T>>);

/// Blocks of documents that wait for a thread.
struct Queue<'a> {
    documents: &'a [Option<&'a [u8]>],
    blocks: Vec<Range<usize>>,
    next: AtomicUsize,
    is_stopped: AtomicBool,
    error: Mutex<Option<PyErr>>,
}

impl<'a> Queue<'a> {
    fn new(documents: &'a [Option<&'a [u8]>]) -> Self {
        let mut blocks = Vec::new();
        let (mut start, mut bytes) = (0, 0);
        for (i, document) in documents.iter().enumerate() {
            bytes += document.map_or(0, <[u8]>::len);
            if bytes >= BLOCK_BYTES || i + 1 - start >= BLOCK_DOCUMENTS {
                blocks.push(start..i + 1);
                (start, bytes) = (i + 1, 0);
            }
        }
        if start < documents.len() {
            blocks.push(start..documents.len());
        }
        Self {
            documents,
            blocks,
            next: AtomicUsize::new(0),
            is_stopped: AtomicBool::new(false),
            error: Mutex::new(None),
        }
    }

    fn threads(&self) -> usize {
        let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        processors.min(self.blocks.len())
    }

    /// Works on blocks until none is left or a thread has failed. `check` is called after each.
    fn work_off<T>(
        &self,
        work: &impl Fn(&[u8]) -> Result<T>,
        mut check: impl FnMut() -> PyResult<()>,
    ) -> Vec<Done<T>> {
        let mut done = Vec::new();
        while !self.is_stopped.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(block) = self.blocks.get(number) else {
                break;
            };
            let one = |item: usize| {
                let result = self.documents[item].map(work).transpose();
                result.map_err(|error| raised_at(item, error))
            };
            let results: PyResult<Vec<Option<T>>> = block.clone().map(one).collect();
            match results.and_then(|results| {
                check()?;
                Ok(results)
            }) {
                Ok(results) => done.push((number, results)),
                Err(error) => self.stop(error),
            }
        }
        done
    }

    fn stop(&self, error: PyErr) {
        self.is_stopped.store(true, Ordering::Relaxed);
        if let Ok(mut first) = self.error.lock() {
            first.get_or_insert(error);
        }
    }

    fn take_error(&self) -> Option<PyErr> {
        self.error.lock().ok().and_then(|mut error| error.take())
    }
}
