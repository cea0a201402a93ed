//! Progress of a long job, shown to other sessions in pg_stat_activity and, with `neardup.progress`, as NOTICEs.

use crate::pg::error::{check_interrupts, hold_interrupts};
use neardup::memory::joined;
use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting, notice, pg_sys};
use std::ffi::{CStr, c_char};
use std::time::{Duration, Instant};

static PROGRESS: GucSetting<bool> = GucSetting::<bool>::new(false);

/// Time between two reports to other sessions.
const PAUSE: Duration = Duration::from_secs(1);

/// Number of reports to other sessions per NOTICE.
const REPORTS: u64 = 3;

/// Maximum number of steps between two looks at the clock, and the time that the steps in between should take.
const STRIDE: u64 = 256;
const LOOK: Duration = Duration::from_millis(1);

/// Defines the setting and reserves its prefix. Called once, when the library is loaded.
pub fn define_setting() {
    GucRegistry::define_bool_guc(
        c"neardup.progress",
        c"Reports the progress of long jobs as NOTICEs.",
        c"Every few seconds: what is being done, how much of it is done, and the time left.",
        &PROGRESS,
        GucContext::Userset,
        GucFlags::default(),
    );
    // Warns about settings already made under the prefix, and removes them.
    // SAFETY: the prefix is NUL-terminated.
    hold_interrupts(|| unsafe { pg_sys::MarkGUCPrefixReserved(c"neardup".as_ptr()) });
}

/// One stage of a job.
pub struct Progress {
    stage: &'static str,
    /// The number of steps, and whether it is exact.
    total: (u64, bool),
    done: u64,
    /// The step at which to look at the clock next, and the number of steps between two looks.
    next_look: u64,
    stride: u64,
    started: Instant,
    looked: Instant,
    reported: Instant,
    reports: u64,
    activity: Option<Activity>,
}

impl Progress {
    /// Begins a stage of `total` steps, and reports it.
    pub fn begin(stage: &'static str, total: usize) -> Self {
        let mut progress = Self::new(stage, (total as u64, true));
        progress.show();
        progress
    }

    /// Begins a stage of about `total` steps, and reports it. 0 stands for an unknown number.
    pub fn about(stage: &'static str, total: f64) -> Self {
        let mut progress = Self::new(stage, (total as u64, false));
        progress.show();
        progress
    }

    /// Begins the only stage of a short job, of about `total` steps. Reports nothing unless it takes long.
    pub fn of_call(stage: &'static str, total: usize) -> Self {
        Self::new(stage, (total as u64, false))
    }

    fn new(stage: &'static str, total: (u64, bool)) -> Self {
        let now = Instant::now();
        Self {
            stage,
            total,
            done: 0,
            next_look: 1,
            stride: 1,
            started: now,
            looked: now,
            reported: now,
            reports: 0,
            activity: None,
        }
    }

    /// Counts one step. There must be no more steps than announced. Lets a pending cancel take effect, and reports when
    /// it is time.
    pub fn step(&mut self) {
        self.done += 1;
        if self.done < self.next_look {
            return;
        }
        debug_assert!(!self.total.1 || self.done <= self.total.0);
        let before = self.looked;
        self.look();
        self.stride = match self.looked - before {
            quick if quick < LOOK => (2 * self.stride).min(STRIDE),
            _ => (self.stride / 2).max(1),
        };
        self.next_look = self.done + self.stride;
    }

    /// Sets the number of steps done, and reports when it is time.
    pub fn reach(&mut self, done: usize) {
        self.done = done as u64;
        self.look();
    }

    /// Lets a pending cancel take effect within a long step, and reports when it is time.
    pub fn look(&mut self) {
        check_interrupts();
        self.looked = Instant::now();
        if self.looked - self.reported >= PAUSE {
            self.reported = self.looked;
            self.reports += 1;
            let message = self.show();
            if self.reports.is_multiple_of(REPORTS) {
                notice(&message);
            }
        }
    }

    /// Reports to other sessions, and returns the report.
    fn show(&mut self) -> String {
        let message = self.message();
        self.activity
            .get_or_insert_with(Activity::begin)
            .show(&message);
        message
    }

    fn message(&self) -> String {
        let Self { stage, done, .. } = self;
        let (total, is_certain) = self.total;
        if !is_certain && total < (*done).max(1) {
            return format!("{stage}: {done}");
        }
        let about = if is_certain { "" } else { "about " };
        let mut message = format!("{stage}: {done} of {about}{total}");
        if *done > 0 {
            let each = self.started.elapsed().as_secs_f64() / *done as f64;
            message += &format!(", {:.0} s left", each * (total - done) as f64);
        }
        message
    }
}

/// Returns an iterator over `items` that counts each as a step of `stage`.
pub fn over<T>(
    stage: &'static str,
    items: impl ExactSizeIterator<Item = T>,
) -> impl Iterator<Item = T> {
    let mut progress = Progress::begin(stage, items.len());
    items.inspect(move |_| progress.step())
}

/// Sends `message` as a NOTICE if `neardup.progress` is on.
pub fn notice(message: &str) {
    if PROGRESS.get() {
        hold_interrupts(|| notice!("{message}"));
    }
}

/// The activity of this session as other sessions see it: the statement, preceded by a comment. Dropping it shows the
/// statement alone again.
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
        // SAFETY: the statement is NULL or NUL-terminated; the setting is only read.
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

    /// Reports a NUL-terminated text. Keeps the query's identifier.
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
        // SAFETY: PostgreSQL keeps the pointer valid while the statement runs.
        let statement = unsafe { pg_sys::debug_query_string };
        if !statement.is_null() {
            self.report(statement);
        }
    }
}
