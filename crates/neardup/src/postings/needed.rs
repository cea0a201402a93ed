//! How many of a query's keys a row must have.

use super::LogQuery;
use crate::bands::Occurrence;
use crate::bands::occurrence::{Minimum, minima};
use crate::set::reaches;

/// The number of a row's own keys above which it is not known exactly.
pub const MOST_OWN: usize = u16::MAX as usize;

/// How many of a query's keys every match has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Needed {
    /// Keys count at their own places, as in bands.
    Bands(Occurrence),
    /// A number above 0; keys count in any order, as the elements of sets.
    Elements(usize),
    /// The number that is this share, above 0, of the row's own elements.
    OwnShare(f64),
    /// The number, at least `least` (above 0), that is the share `similarity` of the elements that row and query
    /// have together; the query has `members` elements.
    Resembling {
        similarity: f64,
        members: usize,
        least: usize,
    },
}

impl Needed {
    /// Returns the number of keys, above 0, that every match has at least.
    pub fn least(&self) -> usize {
        match *self {
            Self::Bands(occurrence) => occurrence.needed(),
            Self::Elements(least) | Self::Resembling { least, .. } => least.max(1),
            Self::OwnShare(_) => 1,
        }
    }

    /// Returns the minima for matches among `keys` keys of a query; see [`Occurrence::minima`].
    pub fn minima(&self, keys: usize) -> [Minimum; 2] {
        match self {
            Self::Bands(occurrence) => occurrence.minima(),
            _ => minima(keys, self.least()),
        }
    }

    /// Returns whether the number of keys that a row needs depends on the row's own number of keys.
    pub fn depends_on_row(&self) -> bool {
        matches!(self, Self::OwnShare(_) | Self::Resembling { .. })
    }

    /// Returns the least number of keys, 1 or more, that a row of `own` keys must share; None if it has too few.
    /// [`MOST_OWN`] keys stand for as many or more.
    pub fn of_row(&self, own: usize) -> Option<usize> {
        let nearly = match *self {
            Self::Bands(_) | Self::Elements(_) => self.least() as f64,
            Self::OwnShare(share) => share * own as f64,
            Self::Resembling {
                similarity,
                members,
                ..
            } => similarity / (1.0 + similarity) * (own + members) as f64,
        };
        // The product may be rounded the wrong way.
        let nearly = nearly as usize;
        let least = self.least();
        let of_row = (nearly.saturating_sub(1)..=nearly.saturating_add(2))
            .map(|shared| shared.max(least))
            .find(|&shared| self.is_reached(shared, own))?;
        (of_row <= own || own >= MOST_OWN).then_some(of_row)
    }

    /// Returns whether a row has enough of the keys: it shares `shared` of them, which is at least [`Self::least`],
    /// and has at least `own` keys itself.
    pub fn is_reached(&self, shared: usize, own: usize) -> bool {
        match *self {
            Self::Bands(_) | Self::Elements(_) => true,
            Self::OwnShare(share) => reaches(shared, own, share),
            Self::Resembling {
                similarity,
                members,
                ..
            } => {
                let all = (own + members).saturating_sub(shared).max(1);
                reaches(shared, all, similarity)
            }
        }
    }

    /// Returns the approximate share of a query's `keys` keys that a row has if it just matches. Rows have `own`
    /// keys themselves, on average.
    pub fn share(&self, keys: usize, own: f64) -> f64 {
        let all = keys.max(1) as f64;
        match *self {
            Self::Bands(occurrence) => occurrence.typical_share(),
            Self::Elements(needed) => needed as f64 / all,
            Self::OwnShare(share) => share * own.min(all) / all,
            Self::Resembling { similarity, .. } => 2.0 * similarity / (1.0 + similarity),
        }
    }

    /// Returns the greatest share of a query's `keys` keys that a row can have, with `own` as for [`Self::share`].
    pub fn greatest_share(&self, keys: usize, own: f64) -> f64 {
        match self {
            Self::OwnShare(_) => (own / keys.max(1) as f64).min(1.0),
            _ => 1.0,
        }
    }

    /// Returns the keys in the form in which rows of the log are compared with them.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn log_query(&self, keys: &[u32]) -> crate::Result<LogQuery> {
        match self {
            Self::Bands(_) => LogQuery::places(keys),
            Self::Elements(_) | Self::OwnShare(_) | Self::Resembling { .. } => LogQuery::set(keys),
        }
    }
}
