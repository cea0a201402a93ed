//! Progress of work that takes time.

use std::time::Duration;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};

/// Returns a progress bar with `steps` steps.
pub fn bar(steps: u64, what: &str) -> Result<ProgressBar> {
    let style = "{bar:30} {pos}/{len} {eta:>4} left  {wide_msg}";
    let bar = ProgressBar::new(steps).with_style(ProgressStyle::with_template(style)?);
    bar.set_message(what.to_string());
    bar.enable_steady_tick(Duration::from_millis(200));
    Ok(bar)
}

/// Returns a clock for work that takes time.
pub fn waiting(what: &str) -> Result<ProgressBar> {
    let style = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}")?;
    let bar = ProgressBar::new_spinner().with_style(style);
    bar.set_message(what.to_string());
    bar.enable_steady_tick(Duration::from_millis(200));
    Ok(bar)
}

/// Returns a progress bar for bytes to read.
pub fn bytes(total: u64) -> Result<ProgressBar> {
    let style = "{bar:40} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
    Ok(ProgressBar::new(total).with_style(ProgressStyle::with_template(style)?))
}
