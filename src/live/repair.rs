//! A refresh that goes out from the rows in the queue.

use crate::index::am::foreseen::Foreseen;
use crate::live::ahead::{Ahead, MANY};
use crate::live::order::Comparison;
use crate::live::parameters::Parameters;
use crate::live::queries::{self, affected, neighbors, noted};
use crate::live::rows::{After, Rows};
use crate::live::shape::Shape;
use crate::pg::error::OrRaise;
use crate::pg::statement::{Connection, Snapshot, Statement, Tuple, text_array, text_datum};
use neardup::cluster::live::{Collection, Found, Nearness, Placed, repair};
use neardup::memory::{Grow, collected};
use pgrx::pg_sys;
use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::HashMap;

/// Canonical rows whose members one statement returns.
const BATCH: usize = 10_000;

/// Finds the affected rows, about `changed` of which are in the queue, and returns them with what
/// becomes of each, and the numbers of those that can be near others, in their order. Takes a search of
/// the index for each row that becomes canonical, and one for each that was canonical and is no longer.
///
/// # Errors
/// ERROR `invalid_parameter_value` where a changed row's signature was made with other parameters.
pub fn run(
    connection: &Connection,
    shape: &Shape,
    snapshot: &Snapshot,
    changed: i64,
) -> (Rows, Vec<u32>) {
    let members = queries::affected(shape, &queries::members_of(shape));
    let neighborhood = Neighborhood {
        comparison: Comparison::new(&shape.order),
        members: connection.prepare(&members, &[pg_sys::TEXTARRAYOID]),
        neighbors: connection.prepare(&queries::neighbors(shape), &[pg_sys::TEXTOID]),
        snapshot,
        rows: RefCell::default(),
    };
    let parameters = Parameters::known(connection, shape, snapshot);
    let mut ahead = Ahead::new(shape, changed);
    let noted = connection.prepare(&queries::noted(shape), &[]);
    neighborhood.note_changed(&noted, parameters, &mut ahead);
    let mut foreseen = Foreseen::new();
    ahead.find(&mut foreseen);
    let changed = queries::affected(shape, &queries::changed(shape));
    let mut found = neighborhood.search(&connection.prepare(&changed, &[]), None);
    for rows in neighborhood.changed_canonicals().chunks(BATCH) {
        if rows.len() as i64 >= MANY {
            neighborhood.foresee_members(connection, shape, rows, &mut foreseen);
        }
        found.try_extend(neighborhood.members_of(rows)).or_raise();
    }
    let placed = repair(&neighborhood, found).or_raise();
    let mut rows = neighborhood.rows.into_inner();
    placed.iter().for_each(|placed| note(&mut rows, placed));
    let order = collected(placed.iter().map(|placed| placed.row)).or_raise();
    (rows, order)
}

fn note(rows: &mut Rows, placed: &Placed) {
    let (canonical, similarity) = match placed.canonical {
        Some(near) => (near.canonical, near.similarity),
        None => (placed.row, 1.0),
    };
    rows.get_mut(placed.row).after = After::In {
        canonical,
        similarity: Some(similarity),
    };
}

/// The table under one snapshot, with its clusters of before.
struct Neighborhood<'a> {
    comparison: Comparison,
    members: Statement,
    neighbors: Statement,
    snapshot: &'a Snapshot,
    rows: RefCell<Rows>,
}

impl Neighborhood<'_> {
    /// Notes which rows are in the queue, under all texts that their keys have.
    ///
    /// # Errors
    /// ERROR `invalid_parameter_value` for a signature made with other parameters than those before.
    fn note_changed(&self, noted: &Statement, mut parameters: Parameters, ahead: &mut Ahead) {
        let rows = &mut *self.rows.borrow_mut();
        noted.run(Some(self.snapshot), &[], &mut |tuple| {
            let noted = tuple.text(noted::KEY).unwrap_or_default();
            let stored = tuple.text(noted::STORED_KEY);
            let present = tuple.text(noted::PRESENT_KEY);
            let key = present.as_ref().or(stored.as_ref()).unwrap_or(&noted);
            let number = rows.number(key);
            rows.add_alias(&noted, number);
            if let Some(stored) = &stored {
                rows.add_alias(stored, number);
            }
            rows.get_mut(number).is_changed = true;
            rows.set_before(number, tuple, noted::BEFORE);
            rows.set_stored_key(number, stored.as_deref());
            parameters.check(tuple.datum(noted::SIGNATURE));
            ahead.add(tuple, noted::BALL);
        });
    }

    /// Returns the changed rows that were canonical.
    fn changed_canonicals(&self) -> Vec<u32> {
        let rows = self.rows.borrow();
        let mut canonicals = Vec::new();
        let changed = rows.iter().filter(|(_, row)| row.is_changed);
        let were = changed.filter(|(number, row)| row.was_canonical(*number));
        let numbers = were.map(|(number, _)| number);
        canonicals.try_extend(numbers).or_raise();
        canonicals
    }

    /// Finds what the searches around the members of canonical rows will ask for.
    fn foresee_members(
        &self,
        connection: &Connection,
        shape: &Shape,
        canonicals: &[u32],
        foreseen: &mut Foreseen,
    ) {
        let balls = queries::balls(shape, &queries::members_of(shape));
        let balls = connection.prepare(&balls, &[pg_sys::TEXTARRAYOID]);
        let arguments = [Some(self.keys(canonicals))];
        let mut ahead = Ahead::new(shape, canonicals.len() as i64);
        balls.run(Some(self.snapshot), &arguments, &mut |tuple| {
            ahead.add(tuple, 1);
        });
        ahead.find(foreseen);
    }

    /// Returns the keys of rows as an array.
    fn keys(&self, numbers: &[u32]) -> pg_sys::Datum {
        let rows = self.rows.borrow();
        text_array(numbers.iter().map(|row| &rows.get(*row).key[..]))
    }

    /// Returns the unchanged rows that belonged to canonical ones.
    fn members_of(&self, canonicals: &[u32]) -> Vec<Found> {
        self.search(&self.members, Some(canonicals))
    }

    /// Runs a query of [`queries::affected`], about the members of rows or about the changed rows.
    /// Returns those that can be near others, and notes what becomes of the rest.
    fn search(&self, statement: &Statement, members_of: Option<&[u32]>) -> Vec<Found> {
        let arguments = members_of.map(|canonicals| Some(self.keys(canonicals)));
        let mut found: Vec<Found> = Vec::new();
        let mut places: HashMap<u32, usize> = HashMap::new();
        statement.run(Some(self.snapshot), arguments.as_slice(), &mut |tuple| {
            let Some(row) = self.read_affected(tuple, members_of.is_none()) else {
                return;
            };
            let place = *places.entry(row).or_insert_with(|| {
                let new = Found {
                    row,
                    was_canonical: false,
                    canonicals: Vec::new(),
                };
                found.try_push(new).or_raise();
                found.len() - 1
            });
            let near = self.read_canonical(tuple);
            found[place].canonicals.try_extend(near).or_raise();
        });
        found
    }

    /// Returns the number of a row that can be near others; notes one that cannot, or is gone. A member
    /// that is in the queue is found there.
    fn read_affected(&self, tuple: &Tuple<'_>, is_changed: bool) -> Option<u32> {
        let rows = &mut *self.rows.borrow_mut();
        let number = rows.number(&tuple.text(affected::KEY)?);
        if rows.get(number).is_changed != is_changed {
            return None;
        }
        rows.set_before(number, tuple, affected::BEFORE);
        if tuple.datum(affected::PRESENT_KEY).is_none() {
            rows.get_mut(number).after = After::Gone;
            return None;
        }
        rows.set_place(number, &self.comparison, tuple, affected::PLACES);
        if tuple.get(affected::JOINS) == Some(true) {
            return Some(number);
        }
        rows.get_mut(number).after = After::In {
            canonical: number,
            similarity: None,
        };
        None
    }

    /// Returns the unchanged canonical row near an affected one.
    fn read_canonical(&self, tuple: &Tuple<'_>) -> Option<Nearness> {
        let rows = &mut *self.rows.borrow_mut();
        let canonical = rows.number(&tuple.text(affected::CANONICAL)?);
        let cluster = tuple.get(affected::CANONICAL_CLUSTER)?;
        let place = affected::PLACES + self.comparison.len();
        if rows.get(canonical).is_changed {
            return None;
        }
        rows.set_place(canonical, &self.comparison, tuple, place);
        rows.set_canonical(canonical, cluster);
        Some(Nearness {
            canonical,
            similarity: tuple.get(affected::SIMILARITY)?,
        })
    }

    /// Returns a row near one that becomes canonical, with its similarity to that.
    fn read_neighbor(&self, tuple: &Tuple<'_>) -> Option<(Found, f64)> {
        let rows = &mut *self.rows.borrow_mut();
        let number = rows.number(&tuple.text(neighbors::KEY)?);
        rows.set_place(number, &self.comparison, tuple, neighbors::PLACES);
        rows.set_before(number, tuple, neighbors::BEFORE);
        let mut found = Found {
            row: number,
            was_canonical: false,
            canonicals: Vec::new(),
        };
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
        rows: &mut Rows,
        number: u32,
        tuple: &Tuple<'_>,
    ) -> Option<Nearness> {
        let before = rows.get(number).before.as_ref()?;
        let (canonical, similarity) = (before.canonical, before.similarity?);
        let cluster = tuple.get(neighbors::CANONICAL_CLUSTER)?;
        if canonical == number || rows.get(canonical).is_changed {
            return None;
        }
        let place = neighbors::PLACES + self.comparison.len();
        rows.set_place(canonical, &self.comparison, tuple, place);
        rows.set_canonical(canonical, cluster);
        Some(Nearness {
            canonical,
            similarity,
        })
    }
}

impl Collection for Neighborhood<'_> {
    fn compare(&self, a: u32, b: u32) -> Ordering {
        let rows = self.rows.borrow();
        let place = |number: u32| rows.get(number).place.as_ref().expect("its place is known");
        // SAFETY: the values are copies of the order's.
        unsafe { self.comparison.compare(place(a), place(b)) }
    }

    fn members(&self, canonical: u32) -> neardup::Result<Vec<Found>> {
        Ok(self.members_of(&[canonical]))
    }

    fn neighbors(&self, row: u32) -> neardup::Result<Vec<(Found, f64)>> {
        let mut found = Vec::new();
        let argument = Some(text_datum(&self.rows.borrow().get(row).key));
        self.neighbors
            .run(Some(self.snapshot), &[argument], &mut |tuple| {
                found.try_extend(self.read_neighbor(tuple)).or_raise();
            });
        Ok(found)
    }
}
