//! The rows that a refresh meets, by number, and the parameters of their signatures.

use crate::index::kind::Kind;
use crate::live::tracker::Tracker;
use crate::minhash::datum::StoredSignature;
use crate::pg::encoding::in_utf8;
use crate::pg::error::{OrRaise, raise};
use crate::pg::statement::{Connection, Tuple};
use neardup::cluster::live::{Move, NearCanonical};
use neardup::memory::{Grow, copied};
use neardup::minhash::Header;
use neardup::numbered::NumberedTexts;
use pgrx::{PgSqlErrorCode, pg_sys};
use std::collections::HashMap;

/// A row of the table, or one that was there.
#[derive(Default)]
pub struct TrackedRow {
    pub before: Option<Before>,
    pub after: After,
    /// It is in the queue.
    pub is_changed: bool,
}

/// A row of the clusters before a refresh.
pub struct Before {
    pub cluster: i64,
    pub standing: Standing,
}

/// The standing of a row among the others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Standing {
    /// No row can be near it: its value or its scope is NULL or empty.
    Alone,
    /// It belongs to a canonical row, itself for canonical rows.
    In(NearCanonical),
}

/// The outcome of a refresh for a row.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub enum After {
    /// It was not looked at.
    #[default]
    Same,
    Gone,
    There(Standing),
}

/// Rows by number and by key, a text in the database's encoding.
#[derive(Default)]
pub struct TrackedRows {
    rows: Vec<TrackedRow>,
    keys: NumberedTexts,
    /// Further texts of keys: values can be equal without being the same.
    aliases: HashMap<Vec<u8>, u32>,
    /// The keys as the clusters have them, where these are equal to a row's own and not the same.
    stored_keys: HashMap<u32, Vec<u8>>,
}

impl TrackedRows {
    /// Returns the number of a row, which is new where its key is.
    pub fn number(&mut self, key: &[u8]) -> u32 {
        if let Some(&number) = self.aliases.get(key) {
            return number;
        }
        let number = self.keys.number(key).or_raise();
        if number as usize == self.rows.len() {
            self.rows.try_push(TrackedRow::default()).or_raise();
        }
        number
    }

    /// Notes another text of a row's key.
    pub fn add_alias(&mut self, key: &[u8], number: u32) {
        self.aliases.try_reserve(1).or_raise();
        self.aliases.insert(copied(key).or_raise(), number);
    }

    pub fn get(&self, number: u32) -> &TrackedRow {
        &self.rows[number as usize]
    }

    pub fn get_mut(&mut self, number: u32) -> &mut TrackedRow {
        &mut self.rows[number as usize]
    }

    /// Returns all rows with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &TrackedRow)> {
        (0..).zip(&self.rows)
    }

    /// Returns the key of a row.
    pub fn key(&self, number: u32) -> &[u8] {
        self.keys.text(number)
    }

    /// Returns the key of a row as it is stored in the clusters.
    pub fn stored_key(&self, number: u32) -> &[u8] {
        let other = self.stored_keys.get(&number);
        other.map_or(self.key(number), Vec::as_slice)
    }

    /// Returns whether a row has the same key in the clusters.
    pub fn has_stored_key(&self, number: u32) -> bool {
        !self.stored_keys.contains_key(&number)
    }

    /// Notes the key of a row in the clusters.
    pub fn set_stored_key(&mut self, number: u32, stored: Option<&[u8]>) {
        if let Some(stored) = stored.filter(|stored| *stored != self.key(number)) {
            self.stored_keys.try_reserve(1).or_raise();
            let stored = copied(stored).or_raise();
            self.stored_keys.insert(number, stored);
        }
    }

    /// Notes cluster, canonical key, and similarity that a row had, from columns of a tuple that begin with
    /// `first`.
    pub fn set_before(&mut self, number: u32, tuple: &Tuple<'_>, first: usize) {
        let (Some(cluster), Some(canonical)) = (tuple.get::<i64>(first), tuple.text(first + 1))
        else {
            return;
        };
        let canonical = self.number(&canonical);
        let standing = match tuple.get(first + 2) {
            None if canonical == number => Standing::Alone,
            similarity => Standing::In(NearCanonical {
                canonical,
                similarity: similarity.unwrap_or(f64::NAN),
            }),
        };
        let before = Before { cluster, standing };
        self.get_mut(number).before.get_or_insert(before);
    }

    /// Notes that a row was canonical.
    pub fn set_canonical(&mut self, number: u32, cluster: i64) {
        let standing = Standing::In(NearCanonical::itself(number));
        let before = Before { cluster, standing };
        self.get_mut(number).before.get_or_insert(before);
    }

    /// Returns the change of a row that is not the same as before.
    pub fn change(&self, number: u32) -> Move {
        let row = self.get(number);
        Move {
            row: number,
            from: row.before.as_ref().map(|before| before.cluster),
            ceased: row.own_cluster(number).is_some() && !row.stays(number),
            canonical: row.after.canonical(number),
        }
    }

    /// Returns the number of a cluster whose canonical row stays.
    pub fn lasting_cluster(&self, canonical: u32) -> Option<i64> {
        let row = self.get(canonical);
        row.own_cluster(canonical).filter(|_| row.stays(canonical))
    }
}

impl Standing {
    /// Returns the canonical row of the row with this number, itself for a row that stands alone.
    pub fn canonical(self, number: u32) -> u32 {
        match self {
            Self::Alone => number,
            Self::In(near) => near.canonical,
        }
    }

    /// Returns the similarity to the canonical row; None for a row that stands alone.
    pub fn similarity(self) -> Option<f64> {
        match self {
            Self::Alone => None,
            Self::In(near) => Some(near.similarity),
        }
    }

    /// Returns whether a row of this number is the canonical row of others or could be.
    fn is_canonical(self, number: u32) -> bool {
        matches!(self, Self::In(near) if near.canonical == number)
    }
}

impl After {
    /// Returns the canonical row of a row of this number that has been looked at; None if it is gone.
    pub fn canonical(self, number: u32) -> Option<u32> {
        match self {
            Self::There(standing) => Some(standing.canonical(number)),
            Self::Same | Self::Gone => None,
        }
    }
}

impl TrackedRow {
    /// Returns whether the row, numbered `number`, was the canonical row of others or could have been.
    pub fn was_canonical(&self, number: u32) -> bool {
        let before = self.before.as_ref();
        before.is_some_and(|before| before.standing.is_canonical(number))
    }

    /// Returns whether the row, numbered `number`, is the canonical row of others or could be.
    pub fn is_canonical(&self, number: u32) -> bool {
        matches!(self.after, After::There(standing) if standing.is_canonical(number))
    }

    /// Returns whether the row, numbered `number`, is unchanged and belongs to no other.
    fn stays(&self, number: u32) -> bool {
        let is_own = match self.after {
            After::Same => true,
            after => after.canonical(number) == Some(number),
        };
        is_own && !self.is_changed
    }

    /// Returns the number of the cluster whose canonical row was the row, numbered `number`.
    fn own_cluster(&self, number: u32) -> Option<i64> {
        let before = self.before.as_ref();
        let own = before.filter(|before| before.standing.canonical(number) == number);
        own.map(|before| before.cluster)
    }
}

/// # Errors
/// ERROR `unique_violation`.
pub fn duplicate_key(key: &[u8]) -> ! {
    raise(
        PgSqlErrorCode::ERRCODE_UNIQUE_VIOLATION,
        &format!("key {} names two rows of the tracked table", in_utf8(key)),
        "The key of a tracker names each row: delete or change one of the two, or track by another key.",
    )
}

/// The parameters of the signatures met so far; none before the first one.
#[derive(Default, Clone, Copy)]
pub struct TrackedParameters(Option<Header>);

impl TrackedParameters {
    /// Returns the parameters of the rows that a tracker knows.
    pub fn known(connection: &Connection, tracker: &Tracker) -> Self {
        let mut parameters = Self::default();
        if tracker.measure.kind != Kind::Minhash {
            return parameters;
        }
        let any = format!("SELECT ca.kept FROM {} ca LIMIT 1", tracker.canonical());
        let any = connection.prepare_kept(&any, &[]);
        any.run(&[], &mut |row| parameters.check(row.datum(1)));
        parameters
    }

    /// Checks a signature, which may be NULL or empty.
    ///
    /// # Errors
    /// ERROR `invalid_parameter_value` if it was made with other parameters than those before.
    pub fn check(&mut self, signature: Option<pg_sys::Datum>) {
        let Some(datum) = signature else { return };
        // SAFETY: the datum is a signature; its row outlives the borrow.
        let stored = unsafe { StoredSignature::from_raw(datum) };
        let header = stored.read().header;
        if !header.empty {
            let known = self.0.get_or_insert(header);
            known.check_comparable(&header).or_raise();
        }
    }
}
