//! Exceptions of clusters that are computed anew.
//!
//! The clusters are computed as if there were no exceptions first. Then the members of canonical rows that they must
//! not belong to are placed again, and the rows around them, as after a change.

use crate::live::queries::{self, neighbors};
use crate::live::rows::{After, Standing, TrackedRows};
use crate::live::tracker::Tracker;
use crate::pg::error::OrRaise;
use crate::pg::names;
use crate::pg::statement::{Connection, Statement, text_datum};
use neardup::cluster::live::{AffectedRow, ClusteredRows, NearCanonical, repair};
use neardup::memory::{Grow, filled};
use pgrx::pg_sys;
use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::HashMap;

/// The rows with the clusters that they would have without exceptions.
struct Excepting<'a> {
    rows: RefCell<&'a mut TrackedRows>,
    /// The places of rows in the order, by number.
    places: Vec<u32>,
    /// The members of canonical rows.
    members: HashMap<u32, Vec<u32>>,
    /// The rows that must not belong to their canonical rows, sorted.
    excepted: Vec<u32>,
    neighbors: Statement<'a>,
}

/// Places rows by the exceptions. `order` has the rows in their order.
pub fn apply(connection: &Connection, tracker: &Tracker, rows: &mut TrackedRows, order: &[u32]) {
    let Some(exceptions) = tracker.tables.exceptions.map(names::relation) else {
        return;
    };
    let pairs = format!(
        "SELECT {}::pg_catalog.text, {}::pg_catalog.text
         FROM {exceptions} e JOIN {base} x ON {} JOIN {base} y ON {}",
        tracker.key_of("x"),
        tracker.key_of("y"),
        tracker.equal(&tracker.key_of("x"), "e.a"),
        tracker.equal(&tracker.key_of("y"), "e.b"),
        base = tracker.base(),
    );
    let mut excepted = Vec::new();
    connection.prepare(&pairs, &[]).run(&[], &mut |tuple| {
        let Some(pair) = tuple.text(1).zip(tuple.text(2)) else {
            return;
        };
        let (x, y) = (rows.number(&pair.0), rows.number(&pair.1));
        let belongs =
            |row: u32, to: u32| rows.get(row).after.canonical(row) == Some(to) && row != to;
        let member = [(x, y), (y, x)]
            .into_iter()
            .find(|(row, to)| belongs(*row, *to));
        excepted.try_extend(member.map(|(row, _)| row)).or_raise();
    });
    excepted.sort_unstable();
    excepted.dedup();
    if excepted.is_empty() {
        return;
    }
    let excepting = Excepting::new(connection, tracker, rows, order, excepted);
    let mut affected = Vec::new();
    for &row in &excepting.excepted {
        affected.try_push(excepting.searched(row)).or_raise();
    }
    let placed = repair(&excepting, affected).or_raise();
    for placed in placed.expect("rows belong to earlier ones") {
        let near = placed
            .canonical
            .unwrap_or(NearCanonical::itself(placed.row));
        rows.get_mut(placed.row).after = After::There(Standing::In(near));
    }
}

impl<'a> Excepting<'a> {
    fn new(
        connection: &'a Connection,
        tracker: &Tracker,
        rows: &'a mut TrackedRows,
        order: &[u32],
        excepted: Vec<u32>,
    ) -> Self {
        let mut places = filled(0, rows.iter().count()).or_raise();
        let mut members: HashMap<u32, Vec<u32>> = HashMap::new();
        for (place, &row) in (0..).zip(order) {
            places[row as usize] = place;
            let canonical = rows.get(row).after.canonical(row);
            if let Some(canonical) = canonical.filter(|canonical| *canonical != row) {
                members.try_reserve(1).or_raise();
                members
                    .entry(canonical)
                    .or_default()
                    .try_push(row)
                    .or_raise();
            }
        }
        let neighbors = connection.prepare_kept(&queries::neighbors(tracker), &[pg_sys::TEXTOID]);
        Self {
            rows: RefCell::new(rows),
            places,
            members,
            excepted,
            neighbors,
        }
    }

    /// Returns whether a row is canonical without exceptions.
    fn is_canonical(&self, row: u32) -> bool {
        self.rows.borrow().get(row).is_canonical(row)
    }

    /// Returns the rows near a row that are no exceptions, with their similarity.
    fn near(&self, row: u32) -> Vec<NearCanonical> {
        let mut near = Vec::new();
        let key = text_datum(self.rows.borrow().key(row));
        self.neighbors.run(&[Some(key)], &mut |tuple| {
            let found = tuple
                .text(neighbors::KEY)
                .zip(tuple.get(neighbors::SIMILARITY));
            let found = found.map(|(key, similarity)| NearCanonical {
                canonical: self.rows.borrow_mut().number(&key),
                similarity,
            });
            near.try_extend(found).or_raise();
        });
        near
    }

    /// Returns a member with the canonical rows near it.
    fn searched(&self, row: u32) -> AffectedRow {
        let mut canonicals = self.near(row);
        canonicals.retain(|near| self.is_canonical(near.canonical));
        AffectedRow {
            row,
            was_canonical: false,
            canonicals,
        }
    }
}

impl ClusteredRows for Excepting<'_> {
    fn compare(&self, a: u32, b: u32) -> Ordering {
        self.places[a as usize].cmp(&self.places[b as usize])
    }

    fn members(&self, canonical: u32) -> neardup::Result<Vec<AffectedRow>> {
        let mut found = Vec::new();
        for &row in self.members.get(&canonical).into_iter().flatten() {
            found.try_push(self.searched(row))?;
        }
        Ok(found)
    }

    fn neighbors(&self, row: u32) -> neardup::Result<Vec<(AffectedRow, f64)>> {
        let mut found = Vec::new();
        for near in self.near(row) {
            let other = near.canonical;
            let mut canonicals = Vec::new();
            if let After::There(Standing::In(own)) = self.rows.borrow().get(other).after
                && own.canonical != other
                && self.excepted.binary_search(&other).is_err()
            {
                canonicals.try_push(own)?;
            }
            let affected = AffectedRow {
                row: other,
                was_canonical: self.is_canonical(other),
                canonicals,
            };
            found.try_push((affected, near.similarity))?;
        }
        Ok(found)
    }
}
