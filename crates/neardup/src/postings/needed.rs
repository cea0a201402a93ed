//! How many of a query's keys a row must have.

use super::LogQuery;
use crate::bands::occurrence::{Minimum, minima};
use crate::bands::{Levels, MOST_KEYS, Occurrence, RowSize};
use crate::set::reaches;

/// The number of a query's keys that every match has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Needed {
    /// Keys count only at their own places, as in bands.
    Bands(Occurrence),
    /// A number above 0; keys count in any order, as the elements of sets.
    Elements(usize),
    /// `share` (above 0) times the row's own number of elements. These must be among the query's `members` elements. A
    /// row that has keys for a sample of its elements needs `sampled` keys (above 0).
    OwnShare {
        share: f64,
        members: usize,
        sampled: usize,
    },
    /// `similarity` times the number of elements in the union of the row and the query; at least `least` (above 0). The
    /// query has `members` elements. With `levels`, rows and query can have keys for samples of their elements.
    Resembling {
        similarity: f64,
        members: usize,
        least: usize,
        levels: Option<Levels>,
    },
}

impl Needed {
    /// Returns the minimum number of keys, above 0, that every match has.
    pub fn least(&self) -> usize {
        match *self {
            Self::Bands(occurrence) => occurrence.needed,
            Self::Elements(least) | Self::Resembling { least, .. } => least.max(1),
            Self::OwnShare { .. } => 1,
        }
    }

    /// Returns the minima for matches among `keys` keys of a query; see [`Occurrence::minima`].
    pub fn minima(&self, keys: usize) -> [Minimum; 2] {
        match self {
            Self::Bands(occurrence) => occurrence.minima,
            _ => minima(keys, self.least()),
        }
    }

    /// Returns whether the number of keys that a row needs depends on the row's own number of keys.
    pub fn depends_on_row(&self) -> bool {
        matches!(self, Self::OwnShare { .. } | Self::Resembling { .. })
    }

    /// Returns the minimum number of keys, 1 or more, that a row of this `size` must share, or None if no such row
    /// matches.
    pub fn of_row(&self, size: RowSize) -> Option<usize> {
        let own = size.count();
        let (nearly, reaches): (f64, &dyn Fn(usize) -> bool) = match *self {
            Self::Bands(_) | Self::Elements(_) => return Some(self.least()),
            Self::OwnShare { share, .. } => (share * own as f64, &move |shared| {
                reaches(shared, own, share)
            }),
            Self::Resembling {
                similarity,
                members,
                ..
            } => {
                let nearly = similarity / (1.0 + similarity) * (own + members) as f64;
                (nearly, &move |shared| {
                    let all = (own + members).saturating_sub(shared).max(1);
                    reaches(shared, all, similarity)
                })
            }
        };
        // The product may be rounded the wrong way.
        let nearly = nearly as usize;
        let mut near = nearly.saturating_sub(1)..=nearly.saturating_add(2);
        let exact = near.find(|&shared| reaches(shared))?.max(1);
        if exact > own && own < RowSize::MOST {
            return None;
        }
        match self {
            Self::OwnShare { members, .. } | Self::Resembling { members, .. }
                if exact > *members =>
            {
                None
            }
            Self::OwnShare { sampled, .. } if size.level() > 0 => Some(*sampled),
            Self::Resembling {
                members,
                levels: Some(levels),
                ..
            } => levels.shared(size.level(), exact, *members),
            _ => Some(exact),
        }
    }

    /// Returns [`Self::of_row`] as a function that remembers its results for rows that are not sampled.
    pub fn of_rows(self) -> impl FnMut(RowSize) -> Option<u32> {
        const NEVER: u32 = u32::MAX;
        // 0 if the number is not known yet.
        let mut known = [0; MOST_KEYS + 1];
        move |size| {
            let compute = || self.of_row(size).map_or(NEVER, |needed| needed as u32);
            let needed = match known.get_mut(size.count()) {
                Some(known) if size.level() == 0 => {
                    if *known == 0 {
                        *known = compute();
                    }
                    *known
                }
                _ => compute(),
            };
            (needed != NEVER).then_some(needed)
        }
    }

    /// Returns whether a row of this `size` that shares `shared` keys has enough of them.
    pub fn is_reached(&self, shared: usize, size: RowSize) -> bool {
        self.of_row(size).is_some_and(|needed| shared >= needed)
    }

    /// Returns the approximate share of a query's `keys` keys that a row has if it just matches. Rows have `own`
    /// keys themselves, on average.
    pub fn share(&self, keys: usize, own: f64) -> f64 {
        let all = keys.max(1) as f64;
        match *self {
            Self::Bands(occurrence) => occurrence.typical_share,
            Self::Elements(needed) => needed as f64 / all,
            Self::OwnShare { share, .. } => share * own.min(all) / all,
            Self::Resembling { similarity, .. } => 2.0 * similarity / (1.0 + similarity),
        }
    }

    /// Returns the greatest share of a query's `keys` keys that a row can have, with `own` as for [`Self::share`].
    pub fn greatest_share(&self, keys: usize, own: f64) -> f64 {
        match self {
            Self::OwnShare { .. } => (own / keys.max(1) as f64).min(1.0),
            _ => 1.0,
        }
    }

    /// Returns a query that compares `keys` with rows of the log.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn log_query(&self, keys: &[u32]) -> crate::Result<LogQuery> {
        match self {
            Self::Bands(_) => LogQuery::places(keys),
            Self::Elements(_) | Self::OwnShare { .. } | Self::Resembling { .. } => {
                LogQuery::set(keys)
            }
        }
    }
}
