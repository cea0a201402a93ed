//! The rows near others: the table under one snapshot, with its clusters of before.

use crate::index::am::foreseen::{FEW, Foreseen};
use crate::live::ahead::{ALONE, Ahead};
use crate::live::order::{OrderComparison, OrderPlace};
use crate::live::queries::{self, canonicals, known, neighbors};
use crate::live::rows::{After, Standing, TrackedParameters, TrackedRows};
use crate::live::shape::Shape;
use crate::pg::error::OrRaise;
use crate::pg::statement::{Connection, Statement, Tuple, text_array};
use neardup::cluster::live::{AffectedRow, ClusteredRows, NearCanonical, Placed, repair};
use neardup::memory::{Grow, collected, filled};
use pgrx::pg_sys;
use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::HashMap;

/// Rows around which one statement looks.
const BATCH: usize = 1000;

/// Canonical rows whose members one statement returns.
const CANONICALS: usize = 10_000;

/// The table under one snapshot, with its clusters of before.
pub struct Neighborhood<'a> {
    connection: &'a Connection,
    shape: &'a Shape,
    comparison: OrderComparison,
    members: Statement<'a>,
    canonicals: Statement<'a>,
    neighbors: Statement<'a>,
    foreseen: Foreseen,
    rows: RefCell<TrackedRows>,
    /// The places of rows in the order, where they matter.
    places: RefCell<HashMap<u32, OrderPlace>>,
    /// The rows near others, with their similarity, where they have been read before they were asked
    /// for.
    near: RefCell<HashMap<u32, Vec<(AffectedRow, f64)>>>,
}

impl<'a> Neighborhood<'a> {
    pub fn new(connection: &'a Connection, shape: &'a Shape) -> Self {
        let of_keys = |sql: &str| connection.prepare_kept(sql, &[pg_sys::TEXTARRAYOID]);
        Self {
            connection,
            shape,
            comparison: OrderComparison::new(&shape.order),
            members: of_keys(&queries::known(shape, &queries::members_of(shape))),
            canonicals: of_keys(&queries::canonicals(shape)),
            neighbors: of_keys(&queries::neighbors(shape)),
            foreseen: Foreseen::new(),
            rows: RefCell::default(),
            places: RefCell::default(),
            near: RefCell::default(),
        }
    }

    /// Returns the changed rows, about `count`, and the unchanged ones that belonged to changed canonical
    /// rows, if they can be near others; None if they are more than `most`. Notes the outcome of the rest.
    ///
    /// # Errors
    /// ERROR `invalid_parameter_value` for a signature made with other parameters than those before.
    pub fn affected(&self, count: i64, most: usize) -> Option<Vec<AffectedRow>> {
        let mut ahead = Ahead::new(self.shape, count);
        self.read_changed(&mut ahead);
        for canonicals in self.changed_canonicals().chunks(CANONICALS) {
            self.read_members(canonicals, &mut ahead);
        }
        (ahead.len() <= most).then(|| self.search(ahead))
    }

    /// Adds the changed rows to the rows to be searched around.
    fn read_changed(&self, ahead: &mut Ahead) {
        let shape = self.shape;
        let mut parameters = TrackedParameters::known(self.connection, shape);
        let changed = queries::known(shape, &queries::changed(shape));
        let changed = self.connection.prepare_kept(&changed, &[]);
        changed.run(&[], &mut |tuple| {
            let rows = &mut *self.rows.borrow_mut();
            let number = note_changed(rows, tuple);
            parameters.check(tuple.datum(known::SIGNATURE));
            self.read_known(rows, number, tuple, ahead);
        });
    }

    /// Returns the changed rows that were canonical.
    fn changed_canonicals(&self) -> Vec<u32> {
        let rows = self.rows.borrow();
        let changed = rows.iter().filter(|(_, row)| row.is_changed);
        let were = changed.filter(|(number, row)| row.was_canonical(*number));
        collected(were.map(|(number, _)| number)).or_raise()
    }

    /// Adds the unchanged rows that belonged to canonical ones to the rows to be searched around.
    fn read_members(&self, canonicals: &[u32], ahead: &mut Ahead) {
        let arguments = [Some(self.keys(canonicals))];
        self.members.run(&arguments, &mut |tuple| {
            let Some(key) = tuple.text(known::KEY) else {
                return;
            };
            let rows = &mut *self.rows.borrow_mut();
            let number = rows.number(&key);
            // One that is in the queue is found there.
            if !rows.get(number).is_changed {
                rows.set_before(number, tuple, known::BEFORE);
                self.read_known(rows, number, tuple, ahead);
            }
        });
    }

    /// Adds a row that can be near others to the rows to be searched around; notes the outcome of one that
    /// cannot, or is gone.
    fn read_known(
        &self,
        rows: &mut TrackedRows,
        number: u32,
        tuple: &Tuple<'_>,
        ahead: &mut Ahead,
    ) {
        if tuple.datum(known::PRESENT_KEY).is_none() {
            rows.get_mut(number).after = After::Gone;
            return;
        }
        let place = known::BALLS + 2 + self.shape.scope.len();
        self.set_place(number, tuple, place);
        if tuple.get(known::JOINS) == Some(true) {
            return ahead.add(number, tuple, known::BALLS);
        }
        rows.get_mut(number).after = After::There(Standing::Alone);
    }

    /// Notes the place of a row, from columns of a tuple that begin with `first`.
    fn set_place(&self, number: u32, tuple: &Tuple<'_>, first: usize) {
        let places = &mut *self.places.borrow_mut();
        places.try_reserve(1).or_raise();
        // SAFETY: the statement has the order's values in these columns.
        let place = || unsafe { self.comparison.place(tuple, first) };
        places.entry(number).or_insert_with(place);
    }

    /// Returns the keys of rows as an array.
    fn keys(&self, numbers: &[u32]) -> pg_sys::Datum {
        let rows = self.rows.borrow();
        text_array(numbers.iter().map(|row| rows.key(*row)))
    }

    /// Returns rows, each with the unchanged canonical rows near it. Reads all neighbors of rows that have
    /// few, since most of them will be asked for.
    fn search(&self, ahead: Ahead) -> Vec<AffectedRow> {
        let counted = ahead.find(&self.foreseen, self.connection);
        let rows = |wanted: &dyn Fn(usize) -> bool| {
            let wanted = counted.iter().filter(|(_, count)| wanted(*count));
            collected(wanted.map(|(row, _)| *row)).or_raise()
        };
        let mut found = Vec::new();
        let near = &mut *self.near.borrow_mut();
        near.try_reserve(counted.len()).or_raise();
        for row in rows(&|count| count == ALONE) {
            found.try_push(searched(row, Vec::new())).or_raise();
            near.insert(row, Vec::new());
        }
        for rows in rows(&|count| count != ALONE && count <= FEW).chunks(BATCH) {
            for (&row, neighbors) in rows.iter().zip(self.read_neighbors(rows)) {
                let canonicals = neighbors.iter().filter(|(near, _)| near.was_canonical);
                let canonicals = canonicals.map(|(near, similarity)| NearCanonical {
                    canonical: near.row,
                    similarity: *similarity,
                });
                let canonicals = collected(canonicals).or_raise();
                found.try_push(searched(row, canonicals)).or_raise();
                near.insert(row, neighbors);
            }
        }
        for rows in rows(&|count| count > FEW).chunks(BATCH) {
            let number = canonicals::NUMBER;
            let read = self.read_near(&self.canonicals, rows, number, |tuple| {
                self.read_canonical(tuple)
            });
            let searched = rows.iter().zip(read);
            let searched = searched.map(|(&row, canonicals)| self::searched(row, canonicals));
            found.try_extend(searched).or_raise();
        }
        found
    }

    /// Returns for each of some rows the results of `read` for a statement's rows; the column `number` of
    /// these is the place of the row that they belong to, from 1 on.
    fn read_near<T: Clone>(
        &self,
        statement: &Statement<'_>,
        near: &[u32],
        number: usize,
        read: impl Fn(&Tuple<'_>) -> Option<T>,
    ) -> Vec<Vec<T>> {
        let mut found = filled(Vec::new(), near.len()).or_raise();
        let arguments = [Some(self.keys(near))];
        statement.run(&arguments, &mut |tuple| {
            let number: i64 = tuple
                .get(number)
                .expect("elements of an array are numbered");
            let of = &mut found[number as usize - 1];
            of.try_extend(read(tuple)).or_raise();
        });
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

    /// Returns the rows near each of some rows, with their similarity to it.
    fn read_neighbors(&self, near: &[u32]) -> Vec<Vec<(AffectedRow, f64)>> {
        self.read_near(&self.neighbors, near, neighbors::NUMBER, |tuple| {
            self.read_neighbor(tuple)
        })
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
        let place = neighbors::PLACES + self.comparison.len();
        let is_other = near.canonical != number;
        is_other.then(|| self.note_canonical(rows, near, cluster, tuple, place))?
    }
}

/// Notes a row that is in the queue, under all texts that its key has, and returns its number.
fn note_changed(rows: &mut TrackedRows, tuple: &Tuple<'_>) -> u32 {
    let noted = tuple.text(known::KEY).unwrap_or_default();
    let stored = tuple.text(known::STORED_KEY);
    let present = tuple.text(known::PRESENT_KEY);
    let key = present.as_ref().or(stored.as_ref()).unwrap_or(&noted);
    let number = rows.number(key);
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
        let mut ahead = Ahead::new(self.shape, 1);
        self.read_members(&[canonical], &mut ahead);
        Ok(self.search(ahead))
    }

    fn neighbors(&self, row: u32) -> neardup::Result<Vec<(AffectedRow, f64)>> {
        if let Some(near) = self.near.borrow_mut().remove(&row) {
            return Ok(near);
        }
        Ok(self.read_neighbors(&[row]).pop().unwrap_or_default())
    }
}

/// Returns the affected rows with the outcome of each, and their numbers in the order; rows that stand alone or are
/// gone come last. Returns None if more than `most` rows are affected, or a row has changed that is not in the
/// queue, which has about `changed` rows. Searches the index for each row that becomes canonical, and for each
/// that is no longer canonical; after many changes for each affected row, all together.
///
/// # Errors
/// ERROR `invalid_parameter_value` where a changed row's signature was made with other parameters.
pub fn repaired(
    connection: &Connection,
    shape: &Shape,
    changed: i64,
    most: usize,
) -> Option<(TrackedRows, Vec<u32>)> {
    let neighborhood = Neighborhood::new(connection, shape);
    let placed = repair(&neighborhood, neighborhood.affected(changed, most)?).or_raise()?;
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
