//! Estimates of the rows that have enough of a query's keys for what they have themselves, by a part of
//! the keys: to find them all takes as long as the search itself.
#![allow(clippy::disallowed_methods, reason = "few keys, and few rows")]

use super::candidates::Found;
use super::find;
use super::meta::Meta;
use super::page::Index;
use super::rows::{self, Rows};
use super::segment::Stop;
use neardup::postings::Needed;

/// Numbers of keys that are looked up: the second where the first finds too few rows.
const KEYS: [usize; 2] = [8, 64];

/// Rows that are looked at in the row table.
const ROWS: usize = 1024;

/// Returns about how many rows have enough of the keys, and some of those that may be.
///
/// # Errors
/// `Restart` where a page has been reused.
pub fn estimate(
    index: &Index,
    meta: &Meta,
    keys: &[u32],
    needed: &Needed,
) -> Result<(f64, Vec<u64>), Stop> {
    let few = KEYS.map(|number| (keys.len() / number).max(1));
    for step in few {
        if step == 1 {
            break;
        }
        let part: Vec<u32> = keys.iter().copied().step_by(step).collect();
        let found = find::candidates(index, meta, &part, &Needed::Elements(1))?;
        if found.len() >= ROWS || step == few[1] {
            let table = Rows::new(*index, meta);
            return Ok(extrapolate(table, &found, (part.len(), keys.len()), needed));
        }
    }
    let found = find::candidates(index, meta, keys, needed)?;
    let rows = found.iter().map(|found| found.row).collect();
    Ok((found.len() as f64, rows))
}

/// Extrapolates from the rows that have one of `part` of `all` keys. A row that has `s` of all has one of
/// them with the probability `1 - (1 - part / all)^s`, and so stands for `1 / probability` rows.
fn extrapolate(
    mut table: Rows,
    found: &[Found],
    (part, all): (usize, usize),
    needed: &Needed,
) -> (f64, Vec<u64>) {
    let share = part as f64 / all as f64;
    let step = found.len().div_ceil(ROWS).max(1);
    let (mut count, mut likely) = (0.0, Vec::new());
    let some: Vec<Found> = found.iter().copied().step_by(step).collect();
    for here in some.chunk_by(|a, b| rows::page_of(a.row) == rows::page_of(b.row)) {
        let page = table.page(rows::page_of(here[0].row));
        for found in here {
            let entry = page
                .as_ref()
                .and_then(|page| rows::live_entry(page, found.row));
            let Some(entry) = entry else {
                continue;
            };
            let own = entry.keys as usize;
            let most = own.min(all);
            // Twice as many as are to be expected are not excluded.
            let shared = (2.0 * f64::from(found.shared) / share) as usize;
            if needed.is_reached(shared.min(most), own) {
                count += step as f64 / (1.0 - (1.0 - share).powf(most as f64));
                likely.push(found.row);
            }
        }
    }
    (count, likely)
}
