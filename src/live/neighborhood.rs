//! Searches for the rows around changed rows, under one snapshot.

use crate::live::budget::Budget;
use crate::live::order::OrderPlace;
use crate::live::queries::{self, canonicals, known, neighbors};
use crate::live::rows::{After, TrackedParameters, TrackedRows, duplicate_key};
use crate::live::tracker::Tracker;
use crate::minhash::incomparable::Quiet;
use crate::pg::prelude::*;
use crate::pg::statement::{Statement, Tuple, text_datum};
use neardup::cluster::live::{AffectedRow, ClusteredRows, NearCanonical, Placed, repair};
use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::time::Instant;

/// The tracked table under one snapshot, with the clusters that the last refresh left.
struct Neighborhood<'a> {
    tracker: &'a Tracker,
    /// Looks up a row by its key. The next three statements look up other rows by the key of a row.
    known: Statement<'a>,
    members: Statement<'a>,
    canonicals: Statement<'a>,
    neighbors: Statement<'a>,
    parameters: RefCell<TrackedParameters>,
    rows: RefCell<TrackedRows>,
    /// Places of the compared rows in the order.
    places: RefCell<HashMap<u32, OrderPlace>>,
    /// Rows known to have no neighbors.
    alone: RefCell<HashSet<u32>>,
    /// Once it is spent, no row is looked up and the result is discarded.
    budget: &'a Budget,
}

impl<'a> Neighborhood<'a> {
    fn new(connection: &'a Connection, tracker: &'a Tracker, budget: &'a Budget) -> Self {
        let lookup = |sql: &str| connection.prepare_kept(sql, &[pg_sys::TEXTOID]);
        Self {
            tracker,
            known: lookup(&queries::itself(tracker)),
            members: lookup(&queries::members(tracker)),
            canonicals: lookup(&queries::canonicals(tracker)),
            neighbors: lookup(&queries::neighbors(tracker)),
            parameters: RefCell::new(TrackedParameters::known(connection, tracker)),
            rows: RefCell::default(),
            places: RefCell::default(),
            alone: RefCell::default(),
            budget,
        }
    }

    /// Returns the changed rows and the unchanged members of changed canonical rows, if they can be near others. Each
    /// comes with the unchanged canonical rows near it. Sets the outcome of rows that are gone or cannot be near
    /// others.
    ///
    /// # Errors
    /// ERROR `unique_violation` if two rows have the same key.
    fn affected(&self, connection: &Connection) -> Vec<AffectedRow> {
        let changed = self.read_queue(connection);
        let mut affected = Vec::new();
        // A row with no canonical row near it becomes canonical, which takes a search for its neighbors. That search
        // comes first as long as such rows have no neighbors, so that the first rows predict the time of the others.
        let mut are_strangers = true;
        let since = Instant::now();
        for (done, &row) in changed.iter().enumerate() {
            self.budget.predict(since, done, changed.len() - done);
            let present = self.read_known(&self.known, row);
            let found = self.search(present);
            if are_strangers && found.iter().any(|found| found.canonicals.is_empty()) {
                are_strangers = self.has_no_neighbors(row);
            }
            affected.try_extend(found).or_raise();
        }
        for &canonical in &changed {
            if self.rows.borrow().get(canonical).was_canonical(canonical) {
                affected.try_extend(self.read_members(canonical)).or_raise();
            }
        }
        affected
    }

    /// Returns whether no other row is near `row`. If so, adds `row` to `alone`.
    fn has_no_neighbors(&self, row: u32) -> bool {
        let mut is_alone = true;
        self.look_up(&self.neighbors, row, &mut |_| is_alone = false);
        let mut alone = self.alone.borrow_mut();
        alone.try_reserve(1).or_raise();
        is_alone && alone.insert(row)
    }

    /// Returns the rows in the queue. Gives up the search if a key in it is NULL, because then any row may have
    /// changed.
    fn read_queue(&self, connection: &Connection) -> Vec<u32> {
        let mut changed = Vec::new();
        let queue = connection.prepare_kept(&queries::queue(self.tracker), &[]);
        queue.read_while(&[], &mut |_, tuple| {
            match tuple.text(1) {
                Some(key) => {
                    let rows = &mut *self.rows.borrow_mut();
                    let number = rows.number(&key);
                    rows.get_mut(number).is_changed = true;
                    changed.try_push(number).or_raise();
                }
                None => self.budget.give_up(),
            }
            self.budget.step()
        });
        changed
    }

    /// Returns the unchanged members of `canonical` that can be near others, each with the unchanged canonical rows
    /// near it.
    fn read_members(&self, canonical: u32) -> Vec<AffectedRow> {
        let members = self.read_known(&self.members, canonical);
        self.search(members)
    }

    /// Returns the rows that `lookup` finds for the key of `row` and that can be near others: the row itself, or its
    /// unchanged members. Sets the former cluster and canonical row of each row found, and the outcome of rows that are
    /// gone or cannot be near others. Gives up the search if a key has different texts, or a signature has parameters
    /// other than the known ones.
    fn read_known(&self, lookup: &Statement<'_>, row: u32) -> Vec<u32> {
        let (mut found, mut last) = (Vec::new(), None);
        self.look_up(lookup, row, &mut |tuple| {
            let rows = &mut *self.rows.borrow_mut();
            let [key, stored, present] = [known::KEY, known::STORED_KEY, known::PRESENT_KEY]
                .map(|column| tuple.text(column));
            // Equal keys can have different texts.
            let differs = |other: &Option<Vec<u8>>| other.is_some() && *other != key;
            if differs(&stored) || differs(&present) {
                return self.budget.give_up();
            }
            let Some(key) = key else { return };
            let number = rows.number(&key);
            if last.replace(number) == Some(number) {
                duplicate_key(&key);
            }
            // A changed member is looked up by its own key.
            if number != row && rows.get(number).is_changed {
                return;
            }
            rows.set_before(number, tuple, known::BEFORE);
            if present.is_none() {
                rows.get_mut(number).after = After::Gone;
                return;
            }
            let joins = tuple.get(known::JOINS) == Some(true);
            if !joins {
                rows.get_mut(number).after = After::There(None);
            }
            let signature = tuple.value(known::SIGNATURE, self.tracker.value.type_.type_);
            // All rows may have been signed anew since the last refresh.
            if self.parameters.borrow_mut().check(signature).is_err() {
                return self.budget.give_up();
            }
            self.set_place(number, tuple, known::PLACE);
            found.try_extend(joins.then_some(number)).or_raise();
        });
        found
    }

    /// Sets the place of row `number` from column `first` and the following columns of `tuple`.
    fn set_place(&self, number: u32, tuple: &Tuple<'_>, first: usize) {
        let places = &mut *self.places.borrow_mut();
        places.try_reserve(1).or_raise();
        let place = || self.tracker.order.place(tuple, first);
        places.entry(number).or_insert_with(place);
    }

    /// Calls `visit` for the rows that `lookup` returns for the key of `row`, until the budget is spent.
    fn look_up(&self, lookup: &Statement<'_>, row: u32, visit: &mut dyn FnMut(&Tuple<'_>)) {
        if !self.budget.step() {
            return;
        }
        let key = text_datum(self.rows.borrow().key(row));
        lookup.read_while(&[Some(key)], &mut |_, tuple| {
            visit(tuple);
            self.budget.step()
        });
    }

    /// Returns `rows`, each with the unchanged canonical rows near it.
    fn search(&self, rows: Vec<u32>) -> Vec<AffectedRow> {
        let mut found = Vec::new();
        let since = Instant::now();
        for (done, &row) in rows.iter().enumerate() {
            self.budget.predict(since, done, rows.len() - done);
            let mut near = Vec::new();
            self.look_up(&self.canonicals, row, &mut |tuple| {
                let rows = &mut *self.rows.borrow_mut();
                let key = tuple.text(canonicals::KEY).expect("it is not NULL");
                let canonical = NearCanonical {
                    canonical: rows.number(&key),
                    similarity: tuple.get(canonicals::SIMILARITY).unwrap_or(f64::NAN),
                };
                let unchanged = self.note_canonical(rows, canonical, tuple, canonicals::CLUSTER);
                near.try_extend(unchanged).or_raise();
            });
            found.try_push(searched(row, near)).or_raise();
        }
        found
    }

    /// Returns `near` if its row was canonical and is unchanged, otherwise None. Before it returns `near`, it sets the
    /// row's cluster from `column` of `tuple`, and its place from the following columns.
    fn note_canonical(
        &self,
        rows: &mut TrackedRows,
        near: NearCanonical,
        tuple: &Tuple<'_>,
        column: usize,
    ) -> Option<NearCanonical> {
        let cluster = tuple.get(column)?;
        if rows.get(near.canonical).is_changed {
            return None;
        }
        self.set_place(near.canonical, tuple, column + 1);
        rows.set_canonical(near.canonical, cluster);
        Some(near)
    }

    /// Returns the neighbor in `tuple`, and its similarity to the row that was looked up. Returns None if the key or
    /// the similarity is NULL.
    fn read_neighbor(&self, tuple: &Tuple<'_>) -> Option<(AffectedRow, f64)> {
        let rows = &mut *self.rows.borrow_mut();
        let number = rows.number(&tuple.text(neighbors::KEY)?);
        self.set_place(number, tuple, neighbors::PLACE);
        rows.set_before(number, tuple, neighbors::BEFORE);
        let mut found = searched(number, Vec::new());
        let row = rows.get(number);
        if !row.is_changed {
            found.was_canonical = row.was_canonical(number);
            let near = row.before.as_ref().and_then(|before| before.near);
            let cluster = neighbors::PLACE + self.tracker.order.terms.len();
            let near = near.filter(|near| near.canonical != number);
            let near = near.and_then(|near| self.note_canonical(rows, near, tuple, cluster));
            found.canonicals.try_extend(near).or_raise();
        }
        Some((found, tuple.get(neighbors::SIMILARITY)?))
    }
}

/// Returns `row`, with `canonicals` near it, as an affected row that was not canonical.
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
        self.tracker.order.compare(place(a), place(b))
    }

    fn members(&self, canonical: u32) -> neardup::Result<Vec<AffectedRow>> {
        Ok(self.read_members(canonical))
    }

    fn neighbors(&self, row: u32) -> neardup::Result<Vec<(AffectedRow, f64)>> {
        let mut near = Vec::new();
        if self.alone.borrow().contains(&row) {
            return Ok(near);
        }
        self.look_up(&self.neighbors, row, &mut |tuple| {
            near.try_extend(self.read_neighbor(tuple)).or_raise();
        });
        Ok(near)
    }
}

/// Returns the rows with their outcomes, and the numbers of the affected rows in the tracker's order; rows that stand
/// alone or are gone come last, sorted by key. Returns None if `budget` is spent, or if a row that is not in the queue
/// changed. Searches for the canonical rows near each changed row, the neighbors of each row that becomes canonical,
/// and the members of each row that is no longer canonical.
///
/// # Errors
/// ERROR `unique_violation` if two rows have the same key.
pub fn repaired(
    connection: &Connection,
    tracker: &Tracker,
    budget: &Budget,
) -> Option<(TrackedRows, Vec<u32>)> {
    // Signatures that cannot be compared make the search give up.
    let _quiet = Quiet::begin();
    let neighborhood = Neighborhood::new(connection, tracker, budget);
    let placed = repair(&neighborhood, neighborhood.affected(connection)).or_raise()?;
    if budget.is_spent() {
        return None;
    }
    let mut rows = neighborhood.rows.into_inner();
    let others = rows.iter().filter(|(_, row)| row.after != After::Same);
    let mut others = collected(others.map(|(number, _)| number)).or_raise();
    others.sort_unstable_by_key(|number| rows.key(*number));
    for &Placed { row, canonical } in &placed {
        let near = canonical.unwrap_or(NearCanonical::itself(row));
        rows.get_mut(row).after = After::There(Some(near));
    }
    let mut order = collected(placed.iter().map(|placed| placed.row)).or_raise();
    order.try_extend(others).or_raise();
    Some((rows, order))
}
