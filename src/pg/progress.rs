//! The progress of a long job: for other sessions in pg_stat_activity, and with
//! `pg_neardup.progress` as NOTICEs.

use crate::pg::error::{check_interrupts, hold_interrupts};
use neardup::memory::joined;
use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting, notice, pg_sys};
use std::ffi::{CStr, c_char};
use std::time::{Duration, Instant};

static PROGRESS: GucSetting<bool> = GucSetting::<bool>::new(false);

/// Between two NOTICEs.
const PAUSE: Duration = Duration::from_secs(3);

/// Steps between two looks at the clock.
const STRIDE: u64 = 256;

/// Defines the setting and reserves its prefix, once when the library is loaded.
pub fn define_setting() {
    GucRegistry::define_bool_guc(
        c"pg_neardup.progress",
        c"Reports the progress of long jobs as NOTICEs.",
        c"Every few seconds: what is being done, the share done, and the time left.",
        &PROGRESS,
        GucContext::Userset,
        GucFlags::default(),
    );
    // It warns of settings that were made under the prefix before, and takes them back.
    // SAFETY: the prefix is NUL-terminated.
    hold_interrupts(|| unsafe { pg_sys::MarkGUCPrefixReserved(c"pg_neardup".as_ptr()) });
}

/// One stage of a job.
pub struct Progress {
    stage: &'static str,
    total: Option<u64>,
    done: u64,
    started: Instant,
    reported: Instant,
    activity: Option<Activity>,
}

impl Progress {
    /// Returns a stage of `total` steps, if their number is known.
    pub fn begin(stage: &'static str, total: Option<usize>) -> Self {
        let now = Instant::now();
        Self {
            stage,
            total: total.map(|total| total as u64),
            done: 0,
            started: now,
            reported: now,
            activity: None,
        }
    }

    /// Counts one step done, of at most as many as were announced. Lets a cancel through, and
    /// reports when it is time.
    pub fn step(&mut self) {
        self.done += 1;
        debug_assert!(self.total.is_none_or(|total| self.done <= total));
        if self.done.is_multiple_of(STRIDE) {
            self.look();
        }
    }

    /// Sets the number of steps done, and reports when it is time.
    pub fn reach(&mut self, done: usize) {
        self.done = done as u64;
        self.look();
    }

    /// Lets a cancel through within a step that takes long.
    pub fn look(&mut self) {
        check_interrupts();
        if self.reported.elapsed() >= PAUSE {
            self.reported = Instant::now();
            let message = self.message();
            self.activity
                .get_or_insert_with(Activity::begin)
                .show(&message);
            notice(&message);
        }
    }

    fn message(&self) -> String {
        match self.total {
            Some(total) => {
                let share = self.done as f64 / total.max(1) as f64;
                let left = self.started.elapsed().as_secs_f64() * (1.0 / share.max(1e-9) - 1.0);
                format!(
                    "{}: {:.0} % done, {left:.0} s left",
                    self.stage,
                    share * 100.0
                )
            }
            None if self.done == 0 => String::from(self.stage),
            None => format!("{}: {} rows", self.stage, self.done),
        }
    }
}

/// Sends a NOTICE to a client that has asked for progress.
pub fn notice(message: &str) {
    if PROGRESS.get() {
        hold_interrupts(|| notice!("{message}"));
    }
}

/// The activity of this session as others see it: the statement, behind a comment of ours. It is the
/// statement alone again when this goes.
struct Activity {
    query_id: u64,
}

impl Activity {
    fn begin() -> Self {
        // SAFETY: reads what this backend has reported.
        let query_id = unsafe { pg_sys::pgstat_get_my_query_id() } as u64;
        Self { query_id }
    }

    fn show(&self, message: &str) {
        // SAFETY: the statement is NUL-terminated where there is one; the setting is one of the server.
        let (statement, most) = unsafe {
            let statement = match pg_sys::debug_query_string {
                start if start.is_null() => &[],
                start => CStr::from_ptr(start).to_bytes(),
            };
            (statement, pg_sys::pgstat_track_activity_query_size as usize)
        };
        let shown = &statement[..statement.len().min(most)];
        let comment = format!("/* pg_neardup: {message} */ ");
        if let Ok(text) = joined(&[comment.as_bytes(), shown, b"\0"]) {
            self.report(text.as_ptr().cast());
        }
    }

    /// Reports a NUL-terminated text. The query's identifier stays.
    fn report(&self, text: *const c_char) {
        // SAFETY: PostgreSQL copies as much of the text as it keeps.
        unsafe {
            pg_sys::pgstat_report_activity(pg_sys::BackendState::STATE_RUNNING, text);
            pg_sys::pgstat_report_query_id(self.query_id as _, true);
        }
    }
}

impl Drop for Activity {
    fn drop(&mut self) {
        // SAFETY: a pointer that PostgreSQL keeps while the statement runs.
        let statement = unsafe { pg_sys::debug_query_string };
        if !statement.is_null() {
            self.report(statement);
        }
    }
}
