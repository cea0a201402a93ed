//! The rows near others: the table under one snapshot, with its clusters of before.

use crate::live::budget::Budget;
use crate::live::order::{OrderComparison, OrderPlace};
use crate::live::queries::{self, canonicals, known, neighbors};
use crate::live::rows::{After, Standing, TrackedParameters, TrackedRows, duplicate_key};
use crate::live::tracker::Tracker;
use crate::minhash::incomparable::Quiet;
use crate::pg::error::OrRaise;
use crate::pg::statement::{Connection, Statement, Tuple, text_datum};
use neardup::cluster::live::{AffectedRow, ClusteredRows, NearCanonical, Placed, repair};
use neardup::memory::{Grow, collected};
use pgrx::pg_sys;
use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::HashMap;

/// The table under one snapshot, with its clusters of before.
struct Neighborhood<'a> {
    tracker: &'a Tracker,
    comparison: OrderComparison,
    members: Statement<'a>,
    canonicals: Statement<'a>,
    neighbors: Statement<'a>,
    rows: RefCell<TrackedRows>,
    /// The places of rows in the order, where they matter.
    places: RefCell<HashMap<u32, OrderPlace>>,
    budget: &'a Budget,
    /// The number of lookups. Once the budget is spent, nothing is looked up, and what is found does not count.
    lookups: Cell<usize>,
}

impl<'a> Neighborhood<'a> {
    fn new(connection: &'a Connection, tracker: &'a Tracker, budget: &'a Budget) -> Self {
        let of_key = |sql: &str| connection.prepare_kept(sql, &[pg_sys::TEXTOID]);
        Self {
            tracker,
            comparison: OrderComparison::new(&tracker.order),
            members: of_key(&queries::known(tracker, &queries::members(tracker))),
            canonicals: of_key(&queries::canonicals(tracker)),
            neighbors: of_key(&queries::neighbors(tracker)),
            rows: RefCell::default(),
            places: RefCell::default(),
            budget,
            lookups: Cell::new(0),
        }
    }

    /// Returns the changed rows, and the unchanged ones that belonged to changed canonical rows, if they can be near
    /// others. Notes the outcome of the rest.
    ///
    /// # Errors
    /// ERROR `invalid_parameter_value` for a signature made with other parameters than those before.
    fn affected(&self, connection: &Connection) -> Vec<AffectedRow> {
        let mut affected = self.read_changed(connection);
        for canonical in self.changed_canonicals() {
            affected
                .try_extend(self.read_members(canonical, affected.len()))
                .or_raise();
        }
        self.search(affected)
    }

    /// Returns the changed rows that can be near others.
    fn read_changed(&self, connection: &Connection) -> Vec<u32> {
        let tracker = self.tracker;
        let mut parameters = TrackedParameters::known(connection, tracker);
        let changed = queries::known(tracker, &queries::changed(tracker));
        let changed = connection.prepare_kept(&changed, &[]);
        let mut near = Vec::new();
        changed.run(&[], &mut |tuple| {
            let rows = &mut *self.rows.borrow_mut();
            let number = note_changed(rows, tuple);
            parameters.check(tuple.datum(known::SIGNATURE));
            near.try_extend(self.read_known(rows, number, tuple))
                .or_raise();
        });
        near
    }

    /// Returns the changed rows that were canonical.
    fn changed_canonicals(&self) -> Vec<u32> {
        let rows = self.rows.borrow();
        let changed = rows.iter().filter(|(_, row)| row.is_changed);
        let were = changed.filter(|(number, row)| row.was_canonical(*number));
        collected(were.map(|(number, _)| number)).or_raise()
    }

    /// Returns the unchanged rows that belonged to a canonical one and can be near others, for which `to_come` rows
    /// wait already.
    fn read_members(&self, canonical: u32, to_come: usize) -> Vec<u32> {
        let mut near = Vec::new();
        self.look_up(&self.members, canonical, to_come, &mut |tuple| {
            let Some(key) = tuple.text(known::KEY) else {
                return;
            };
            let rows = &mut *self.rows.borrow_mut();
            let number = rows.number(&key);
            // One that is in the queue is found there.
            if !rows.get(number).is_changed {
                rows.set_before(number, tuple, known::BEFORE);
                near.try_extend(self.read_known(rows, number, tuple))
                    .or_raise();
            }
        });
        near
    }

    /// Returns a row that can be near others; notes the outcome of one that cannot, or is gone.
    fn read_known(&self, rows: &mut TrackedRows, number: u32, tuple: &Tuple<'_>) -> Option<u32> {
        if tuple.datum(known::PRESENT_KEY).is_none() {
            rows.get_mut(number).after = After::Gone;
            return None;
        }
        self.set_place(number, tuple, known::PLACE);
        let joins = tuple.get(known::JOINS) == Some(true);
        if !joins {
            rows.get_mut(number).after = After::There(Standing::Alone);
        }
        joins.then_some(number)
    }

    /// Notes the place of a row, from columns of a tuple that begin with `first`.
    fn set_place(&self, number: u32, tuple: &Tuple<'_>, first: usize) {
        let places = &mut *self.places.borrow_mut();
        places.try_reserve(1).or_raise();
        // SAFETY: the statement has the order's values in these columns.
        let place = || unsafe { self.comparison.place(tuple, first) };
        places.entry(number).or_insert_with(place);
    }

    /// Visits the rows that a statement returns for the key of a row, unless the budget is spent.
    fn look_up(
        &self,
        statement: &Statement<'_>,
        row: u32,
        to_come: usize,
        visit: &mut dyn FnMut(&Tuple<'_>),
    ) {
        let done = self.lookups.get();
        if !self.budget.is_spent(done, to_come) {
            let key = text_datum(self.rows.borrow().key(row));
            statement.run(&[Some(key)], visit);
            self.lookups.set(done + 1);
        }
    }

    /// Returns rows, each with the unchanged canonical rows near it.
    fn search(&self, rows: Vec<u32>) -> Vec<AffectedRow> {
        let mut found = Vec::new();
        for (&row, to_come) in rows.iter().zip((0..rows.len()).rev()) {
            let mut canonicals = Vec::new();
            self.look_up(&self.canonicals, row, to_come + 1, &mut |tuple| {
                canonicals.try_extend(self.read_canonical(tuple)).or_raise();
            });
            found.try_push(searched(row, canonicals)).or_raise();
        }
        found
    }

    /// Returns a row that was canonical, near another one; None if it is changed.
    fn read_canonical(&self, tuple: &Tuple<'_>) -> Option<NearCanonical> {
        let rows = &mut *self.rows.borrow_mut();
        let near = NearCanonical {
            canonical: rows.number(&tuple.text(canonicals::KEY)?),
            similarity: tuple.get(canonicals::SIMILARITY)?,
        };
        let cluster = tuple.get(canonicals::CLUSTER)?;
        self.note_canonical(rows, near, cluster, tuple, canonicals::PLACE)
    }

    /// Returns a row that was canonical unless it is changed; notes its cluster and its place, which the tuple has
    /// from column `place` on.
    fn note_canonical(
        &self,
        rows: &mut TrackedRows,
        near: NearCanonical,
        cluster: i64,
        tuple: &Tuple<'_>,
        place: usize,
    ) -> Option<NearCanonical> {
        if rows.get(near.canonical).is_changed {
            return None;
        }
        self.set_place(near.canonical, tuple, place);
        rows.set_canonical(near.canonical, cluster);
        Some(near)
    }

    /// Returns a row near another one, with its similarity to that.
    fn read_neighbor(&self, tuple: &Tuple<'_>) -> Option<(AffectedRow, f64)> {
        let rows = &mut *self.rows.borrow_mut();
        let number = rows.number(&tuple.text(neighbors::KEY)?);
        self.set_place(number, tuple, neighbors::PLACES);
        rows.set_before(number, tuple, neighbors::BEFORE);
        let mut found = searched(number, Vec::new());
        let row = rows.get(number);
        if !row.is_changed {
            found.was_canonical = row.was_canonical(number);
            let near = self.read_own_canonical(rows, number, tuple);
            found.canonicals.try_extend(near).or_raise();
        }
        Some((found, tuple.get(neighbors::SIMILARITY)?))
    }

    /// Returns the unchanged canonical row that an unchanged row belonged to.
    fn read_own_canonical(
        &self,
        rows: &mut TrackedRows,
        number: u32,
        tuple: &Tuple<'_>,
    ) -> Option<NearCanonical> {
        let Standing::In(near) = rows.get(number).before.as_ref()?.standing else {
            return None;
        };
        let cluster = tuple.get(neighbors::CANONICAL_CLUSTER)?;
        let place = neighbors::PLACES + self.tracker.order.terms.len();
        let is_other = near.canonical != number;
        is_other.then(|| self.note_canonical(rows, near, cluster, tuple, place))?
    }
}

/// Notes a row that is in the queue, under all texts that its key has, and returns its number.
///
/// # Errors
/// ERROR `unique_violation` for a key of two rows.
fn note_changed(rows: &mut TrackedRows, tuple: &Tuple<'_>) -> u32 {
    let noted = tuple.text(known::KEY).unwrap_or_default();
    let stored = tuple.text(known::STORED_KEY);
    let present = tuple.text(known::PRESENT_KEY);
    let key = present.as_ref().or(stored.as_ref()).unwrap_or(&noted);
    let number = rows.number(key);
    if rows.get(number).is_changed {
        duplicate_key(key);
    }
    for other in [Some(&noted), stored.as_ref()].into_iter().flatten() {
        if other != key {
            rows.add_alias(other, number);
        }
    }
    rows.get_mut(number).is_changed = true;
    rows.set_before(number, tuple, known::BEFORE);
    rows.set_stored_key(number, stored.as_deref());
    number
}

/// Returns a row that was not canonical, with the canonical rows near it.
fn searched(row: u32, canonicals: Vec<NearCanonical>) -> AffectedRow {
    AffectedRow {
        row,
        was_canonical: false,
        canonicals,
    }
}

impl ClusteredRows for Neighborhood<'_> {
    fn compare(&self, a: u32, b: u32) -> Ordering {
        let places = self.places.borrow();
        let place = |number: u32| places.get(&number).expect("its place is known");
        // SAFETY: the values are copies of the order's.
        unsafe { self.comparison.compare(place(a), place(b)) }
    }

    fn members(&self, canonical: u32) -> neardup::Result<Vec<AffectedRow>> {
        Ok(self.search(self.read_members(canonical, 0)))
    }

    fn neighbors(&self, row: u32) -> neardup::Result<Vec<(AffectedRow, f64)>> {
        let mut near = Vec::new();
        self.look_up(&self.neighbors, row, 0, &mut |tuple| {
            near.try_extend(self.read_neighbor(tuple)).or_raise();
        });
        Ok(near)
    }
}

/// Returns the affected rows with the outcome of each, and their numbers in the order; rows that stand alone or are
/// gone come last. Returns None if the budget does not suffice, or a row has changed that is not in the queue.
/// Searches the index for each changed row, for each that becomes canonical, and for the members of each that is no
/// longer canonical.
///
/// # Errors
/// ERROR `invalid_parameter_value` where a changed row's signature was made with other parameters,
/// `unique_violation` for a key of two rows.
pub fn repaired(
    connection: &Connection,
    tracker: &Tracker,
    budget: &Budget,
) -> Option<(TrackedRows, Vec<u32>)> {
    // Canonical rows may all have other parameters than a row that is looked up.
    let _quiet = Quiet::begin();
    let neighborhood = Neighborhood::new(connection, tracker, budget);
    let placed = repair(&neighborhood, neighborhood.affected(connection)).or_raise()?;
    if budget.was_spent() {
        return None;
    }
    let mut rows = neighborhood.rows.into_inner();
    let others = rows.iter().filter(|(_, row)| row.after != After::Same);
    let mut others = collected(others.map(|(number, _)| number)).or_raise();
    others.sort_unstable_by_key(|number| rows.key(*number));
    for &Placed { row, canonical } in &placed {
        let near = canonical.unwrap_or(NearCanonical::itself(row));
        rows.get_mut(row).after = After::There(Standing::In(near));
    }
    let mut order = collected(placed.iter().map(|placed| placed.row)).or_raise();
    order.try_extend(others).or_raise();
    Some((rows, order))
}
