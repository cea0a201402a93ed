//! S-curves as text.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a drawing of WIDTH times HEIGHT"
)]

use super::curve::s_curve;
use crate::{Error, Result};
use std::fmt::Write;

const WIDTH: usize = 61;
const HEIGHT: usize = 21;
const MARKS: &[u8] = b"*ox#@%&=~^";

/// The most curves in one plot.
pub const MAX_CURVES: usize = MARKS.len();

/// Draws the probability of sharing a band over Jaccard similarity, one curve for each (bands,
/// rows), and a legend with the similarity at which each curve reaches one half. Where curves meet,
/// the first is seen.
///
/// # Errors
/// `Invalid` for no curve, more than [`MAX_CURVES`], and numbers below 1.
pub fn lsh_plot(curves: &[(i32, i32)]) -> Result<String> {
    if curves.is_empty() || curves.len() > MAX_CURVES {
        return Err(Error::invalid(
            format!("{} curves cannot be plotted", curves.len()),
            format!("Valid are 1 to {MAX_CURVES} pairs of bands and rows."),
        ));
    }
    if let Some((bands, rows)) = curves.iter().find(|(b, r)| *b < 1 || *r < 1) {
        return Err(Error::invalid(
            format!("{bands} bands of {rows} rows cannot be plotted"),
            "Valid numbers of bands and rows begin with 1.",
        ));
    }
    let mut canvas = vec![[b' '; WIDTH]; HEIGHT];
    for (&(bands, rows), &mark) in curves.iter().zip(MARKS) {
        draw(&mut canvas, bands.into(), rows.into(), mark);
    }
    Ok(frame(&canvas) + &legend(curves).join("\n"))
}

/// Draws one curve. A steep step from one column to the next is filled.
fn draw(canvas: &mut [[u8; WIDTH]], bands: f64, rows: f64, mark: u8) {
    let height_at = |column: usize| {
        let similarity = column as f64 / (WIDTH - 1) as f64;
        let probability = s_curve(similarity, bands, rows);
        (probability * (HEIGHT - 1) as f64).round() as usize
    };
    let mut previous = 0;
    for (column, height) in (0..WIDTH).map(height_at).enumerate() {
        for y in height.min(previous + 1)..=height {
            let cell = &mut canvas[HEIGHT - 1 - y][column];
            if *cell == b' ' {
                *cell = mark;
            }
        }
        previous = height;
    }
}

fn frame(canvas: &[[u8; WIDTH]]) -> String {
    let mut text = String::from("probability of sharing a band\n");
    for (line, cells) in canvas.iter().enumerate() {
        let label = match line % 4 {
            0 => format!("{:.1}", 1.0 - line as f64 / (HEIGHT - 1) as f64),
            _ => String::new(),
        };
        let cells = String::from_utf8_lossy(cells);
        let _ = writeln!(text, "{:>3} |{}", label, cells.trim_end());
    }
    let _ = writeln!(text, "    +{}", "-".repeat(WIDTH));
    let ticks: Vec<String> = (0..=10)
        .map(|i| format!("{:.1}", f64::from(i) / 10.0))
        .collect();
    let _ = writeln!(text, "    {}  Jaccard similarity", ticks.join("   "));
    text
}

fn legend(curves: &[(i32, i32)]) -> Vec<String> {
    curves
        .iter()
        .zip(MARKS)
        .map(|(&(bands, rows), &mark)| {
            let half = half_point(bands.into(), rows.into());
            let mark = char::from(mark);
            format!("    {mark} {bands} x {rows} (bands x rows), one half at {half:.2}")
        })
        .collect()
}

/// Returns the similarity at which the curve reaches one half: the inverse of [`s_curve`].
fn half_point(bands: f64, rows: f64) -> f64 {
    (-(0.5f64.ln() / bands).exp_m1()).powf(1.0 / rows)
}
