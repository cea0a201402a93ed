//! The rows that a refresh meets, by number, and the parameters of their signatures.

use crate::index::kind::Kind;
use crate::live::order::{OrderComparison, OrderPlace};
use crate::live::shape::Shape;
use crate::minhash::datum::StoredSignature;
use crate::pg::error::{OrRaise, or_out_of_memory};
use crate::pg::statement::{Connection, Tuple};
use neardup::memory::{Grow, copied};
use neardup::minhash::Header;
use pgrx::pg_sys;
use std::collections::HashMap;

/// A row of the table, or one that was there.
#[derive(Default)]
pub struct TrackedRow {
    /// Its key as text, in the database's encoding.
    pub key: Vec<u8>,
    /// Its place in the order, where that matters.
    pub place: Option<OrderPlace>,
    pub before: Option<Before>,
    /// The key as the clusters have it, where it is equal to this one and not the same.
    stored_key: Option<Vec<u8>>,
    pub after: After,
    /// It is in the queue.
    pub is_changed: bool,
}

/// A row of the clusters before a refresh.
pub struct Before {
    pub cluster: i64,
    /// Itself for canonical rows and rows that stand alone.
    pub canonical: u32,
    /// None for a row that stands alone.
    pub similarity: Option<f64>,
}

/// The place of a row after a refresh.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub enum After {
    /// It was not looked at.
    #[default]
    Same,
    Gone,
    In {
        canonical: u32,
        similarity: Option<f64>,
    },
}

/// Rows by number and by key.
#[derive(Default)]
pub struct TrackedRows {
    rows: Vec<TrackedRow>,
    numbers: HashMap<Vec<u8>, u32>,
}

impl TrackedRows {
    /// Returns the number of a row, which is new where its key is.
    pub fn number(&mut self, key: &[u8]) -> u32 {
        if let Some(&number) = self.numbers.get(key) {
            return number;
        }
        let number = self.rows.len() as u32;
        let row = TrackedRow {
            key: copied(key).or_raise(),
            ..TrackedRow::default()
        };
        self.rows.try_push(row).or_raise();
        self.add_alias(key, number);
        number
    }

    /// Notes another text of a row's key: values can be equal without being the same.
    pub fn add_alias(&mut self, key: &[u8], number: u32) {
        or_out_of_memory(self.numbers.try_reserve(1));
        self.numbers.insert(copied(key).or_raise(), number);
    }

    pub fn get(&self, number: u32) -> &TrackedRow {
        &self.rows[number as usize]
    }

    pub fn get_mut(&mut self, number: u32) -> &mut TrackedRow {
        &mut self.rows[number as usize]
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns all rows with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &TrackedRow)> {
        (0..).zip(&self.rows)
    }

    /// Notes the place of a row, from columns of a tuple that begin with `first`.
    pub fn set_place(
        &mut self,
        number: u32,
        comparison: &OrderComparison,
        tuple: &Tuple<'_>,
        first: usize,
    ) {
        // SAFETY: the statement has the order's values in these columns.
        let place = || unsafe { comparison.place(tuple, first) };
        self.get_mut(number).place.get_or_insert_with(place);
    }

    /// Notes cluster, canonical key, and similarity that a row had, from columns of a tuple that begin with
    /// `first`.
    pub fn set_before(&mut self, number: u32, tuple: &Tuple<'_>, first: usize) {
        let (Some(cluster), Some(canonical)) = (tuple.get::<i64>(first), tuple.text(first + 1))
        else {
            return;
        };
        let canonical = self.number(&canonical);
        let row = self.get_mut(number);
        row.before.get_or_insert(Before {
            cluster,
            canonical,
            similarity: tuple.get(first + 2),
        });
    }

    /// Notes the key of a row in the clusters, where it differs from the row's own.
    pub fn set_stored_key(&mut self, number: u32, stored: Option<&[u8]>) {
        let row = self.get_mut(number);
        let stored = stored.filter(|stored| *stored != row.key);
        row.stored_key = stored.map(|stored| copied(stored).or_raise());
    }

    /// Notes that a row was canonical.
    pub fn set_canonical(&mut self, number: u32, cluster: i64) {
        self.get_mut(number).before.get_or_insert(Before {
            cluster,
            canonical: number,
            similarity: Some(1.0),
        });
    }
}

impl TrackedRow {
    /// Returns whether the row, of this number, was the canonical row of others or could have been.
    pub fn was_canonical(&self, number: u32) -> bool {
        let before = self.before.as_ref();
        before.is_some_and(|before| before.canonical == number && before.similarity.is_some())
    }

    /// Returns whether the row, of this number, is the canonical row of others or could be.
    pub fn is_canonical(&self, number: u32) -> bool {
        matches!(self.after, After::In { canonical, similarity: Some(_) } if canonical == number)
    }

    /// Returns the number that a cluster had from the row, of this number.
    pub fn own_cluster(&self, number: u32) -> Option<i64> {
        let before = self.before.as_ref();
        let own = before.filter(|before| before.canonical == number);
        own.map(|before| before.cluster)
    }

    /// Returns the key as it is stored in the clusters.
    pub fn stored_key(&self) -> &[u8] {
        self.stored_key.as_deref().unwrap_or(&self.key)
    }

    /// Returns whether the row has the same key in the clusters.
    pub fn has_stored_key(&self) -> bool {
        self.stored_key.is_none()
    }
}

/// The parameters of the signatures met so far; none before the first one.
#[derive(Default, Clone, Copy)]
pub struct TrackedParameters(Option<Header>);

impl TrackedParameters {
    /// Returns the parameters of the rows that a tracker knows.
    pub fn known(connection: &Connection, shape: &Shape) -> Self {
        let mut parameters = Self::default();
        if shape.tracker.measure.kind != Kind::Minhash {
            return parameters;
        }
        let any = format!("SELECT ca.kept FROM {} ca LIMIT 1", shape.canonical());
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
