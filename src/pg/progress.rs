//! `pg_neardup.progress`: how far a long job has come.

use crate::pg::error::{check_interrupts, hold_interrupts};
use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting, notice, pg_sys};
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

    /// Lets a cancel through within a step that takes long.
    pub fn look(&mut self) {
        check_interrupts();
        if PROGRESS.get() && self.reported.elapsed() >= PAUSE {
            self.reported = Instant::now();
            self.report();
        }
    }

    fn report(&self) {
        let message = match self.total {
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
        };
        hold_interrupts(|| notice!("{message}"));
    }
}
