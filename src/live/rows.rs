//! The rows that a refresh examines, by number.

use crate::index::kind::Kind;
use crate::live::tracker::{Tracker, TrackerTable};
use crate::minhash::datum::StoredSignature;
use crate::pg::encoding::in_utf8;
use crate::pg::prelude::*;
use crate::pg::statement::Tuple;
use neardup::cluster::live::{Move, NearCanonical};
use neardup::minhash::Header;
use neardup::numbered::NumberedTexts;

/// A row that is in the table, or was there at the last refresh.
#[derive(Default)]
pub struct TrackedRow {
    pub before: Option<Before>,
    pub after: After,
    /// True if the row's key is in the queue.
    pub is_changed: bool,
}

/// The result of the last refresh for a row.
pub struct Before {
    pub cluster: i64,
    pub near: Option<NearCanonical>,
}

/// The result of this refresh for a row.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub enum After {
    /// The row was not examined.
    #[default]
    Same,
    Gone,
    /// The row belongs to this canonical row, which may be the row itself. None if no row can be near the row because
    /// its value is NULL or empty, or a scope column is NULL.
    There(Option<NearCanonical>),
}

/// Rows by number and by key. Keys are texts in the database's encoding.
#[derive(Default)]
pub struct TrackedRows {
    rows: Vec<TrackedRow>,
    keys: NumberedTexts,
}

impl TrackedRows {
    /// Returns the number of the row with this `key`. A new key gets a new number.
    pub fn number(&mut self, key: &[u8]) -> u32 {
        let number = self.keys.number(key).or_raise();
        if number as usize == self.rows.len() {
            self.rows.try_push(TrackedRow::default()).or_raise();
        }
        number
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

    /// Returns the key of row `number`.
    pub fn key(&self, number: u32) -> &[u8] {
        self.keys.text(number)
    }

    /// Sets the former cluster, canonical key and similarity of row `number`, from column `first` and the next two of
    /// `tuple`. Changes nothing if they are set already, or if cluster or canonical key is NULL.
    pub fn set_before(&mut self, number: u32, tuple: &Tuple<'_>, first: usize) {
        let found = tuple.get::<i64>(first).zip(tuple.text(first + 1));
        if let Some((cluster, canonical)) = found {
            let canonical = self.number(&canonical);
            let similarity = tuple.get(first + 2);
            let near = (similarity.is_some() || canonical != number).then(|| NearCanonical {
                canonical,
                similarity: similarity.unwrap_or(f64::NAN),
            });
            let before = Before { cluster, near };
            self.get_mut(number).before.get_or_insert(before);
        }
    }

    /// Records that the key of row `number` had the different but equal text `former` before, so that the row's cluster
    /// is written again.
    pub fn rename(&mut self, number: u32, former: &[u8]) {
        let former = self.number(former);
        let before = self.get_mut(number).before.as_mut();
        if let Some(near) = before.and_then(|before| before.near.as_mut()) {
            near.similarity = f64::NAN;
            if near.canonical == former {
                near.canonical = number;
            }
        }
    }

    /// Records that row `number` was the canonical row of `cluster`.
    pub fn set_canonical(&mut self, number: u32, cluster: i64) {
        let near = Some(NearCanonical::itself(number));
        let before = Before { cluster, near };
        self.get_mut(number).before.get_or_insert(before);
    }

    /// Returns the change of row `number`, which was examined.
    pub fn change(&self, number: u32) -> Move {
        let row = self.get(number);
        Move {
            row: number,
            from: row.before.as_ref().map(|before| before.cluster),
            ceased: row.own_cluster(number).is_some() && !row.stays(number),
            canonical: row.after.canonical(number),
        }
    }

    /// Returns the number that the cluster of `canonical` keeps, or None if it gets a new number.
    pub fn lasting_cluster(&self, canonical: u32) -> Option<i64> {
        let row = self.get(canonical);
        row.own_cluster(canonical).filter(|_| row.stays(canonical))
    }
}

impl After {
    /// Returns the canonical row of row `number`, which is the row itself if it stands alone. Returns None if it is
    /// gone or was not examined.
    pub fn canonical(self, number: u32) -> Option<u32> {
        match self {
            Self::There(near) => Some(near.map_or(number, |near| near.canonical)),
            Self::Same | Self::Gone => None,
        }
    }
}

impl TrackedRow {
    /// Returns whether the row, numbered `number`, was canonical.
    pub fn was_canonical(&self, number: u32) -> bool {
        let near = self.before.as_ref().and_then(|before| before.near);
        near.is_some_and(|near| near.canonical == number)
    }

    /// Returns whether the row, numbered `number`, is canonical.
    pub fn is_canonical(&self, number: u32) -> bool {
        matches!(self.after, After::There(Some(near)) if near.canonical == number)
    }

    /// Returns whether the row, numbered `number`, is unchanged and belongs to no other row.
    fn stays(&self, number: u32) -> bool {
        let canonical = self.after.canonical(number);
        let is_own = self.after == After::Same || canonical == Some(number);
        is_own && !self.is_changed
    }

    /// Returns the former cluster of the row, numbered `number`, if the row was its canonical row or stood alone.
    /// Returns None otherwise.
    fn own_cluster(&self, number: u32) -> Option<i64> {
        let before = self.before.as_ref()?;
        let is_own = before.near.is_none_or(|near| near.canonical == number);
        is_own.then_some(before.cluster)
    }
}

/// Raises the error for `key`, which two rows have.
///
/// # Errors
/// ERROR `unique_violation`.
pub fn duplicate_key(key: &[u8]) -> ! {
    let key = in_utf8(key);
    raise(
        PgSqlErrorCode::ERRCODE_UNIQUE_VIOLATION,
        &format!("key {key} identifies two rows of the tracked table"),
        "The key of a tracker must be unique: delete or change one of the two rows, or track with another key.",
    )
}

/// Parameters of the signatures seen so far, None before the first one.
#[derive(Default)]
pub struct TrackedParameters(Option<Header>);

impl TrackedParameters {
    /// Returns the parameters of the signatures in the canonical rows table, or none if it has no signatures.
    pub fn known(connection: &Connection, tracker: &Tracker) -> Self {
        let mut parameters = Self::default();
        if tracker.measure.kind != Kind::Minhash {
            return parameters;
        }
        let canonical = tracker.table(TrackerTable::Canonical);
        let any = format!("SELECT ca.kept FROM {canonical} ca LIMIT 1");
        let any = connection.prepare_kept(&any, &[]);
        let kept_type = tracker.measure.kept_type();
        any.run(&[], &mut |row| {
            parameters.check(row.value(1, kept_type)).or_raise()
        });
        parameters
    }

    /// Checks `signature`, which may be NULL or empty. Returns an error if its parameters differ from the parameters of
    /// earlier signatures.
    pub fn check(&mut self, signature: Option<pg_sys::Datum>) -> Result<(), neardup::Error> {
        // SAFETY: the datum is a signature; its row outlives the borrow.
        let header = |datum| unsafe { StoredSignature::from_raw(datum).read().header };
        match signature.map(header).filter(|header| !header.empty) {
            Some(header) => self.0.get_or_insert(header).check_comparable(&header),
            None => Ok(()),
        }
    }
}
