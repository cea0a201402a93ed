//! The numbers of clusters, which last while rows come and go.

use crate::Result;
use crate::memory::{Grow, collected};
use std::cmp::Reverse;
use std::collections::HashMap;

/// A row whose cluster may have changed, or its canonical row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    pub row: u32,
    /// The number of the cluster that the row was in; None for a new row.
    pub from: Option<i64>,
    /// The number of the cluster whose canonical row it was, if it has changed, is gone, or is canonical no
    /// more.
    pub ceased: Option<i64>,
    /// The canonical row that it belongs to now, itself for a canonical row; None for a row that is
    /// gone.
    pub canonical: Option<u32>,
}

/// A kind of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// A cluster began with this canonical row, of no other cluster's rows.
    Created,
    /// A row came into a cluster, from another or anew.
    Joined,
    /// A row is in no cluster any more.
    Left,
    /// A cluster ended, and most of its rows are in another, whose canonical row this is.
    Merged,
    /// A cluster began with this canonical row, most of its rows having been in another.
    Split,
    /// A cluster has this canonical row now, and had another one before.
    NewCanonical,
}

/// An event of a cluster or a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    pub kind: EventKind,
    pub from: Option<i64>,
    pub to: Option<i64>,
    pub row: u32,
    /// The canonical row that a new one replaced; otherwise the row itself.
    pub replaced: u32,
}

impl Event {
    fn new(kind: EventKind, from: Option<i64>, to: Option<i64>, row: u32) -> Self {
        Self {
            kind,
            from,
            to,
            row,
            replaced: row,
        }
    }
}

/// Numbers of the clusters of affected rows.
#[derive(Debug, Default)]
pub struct ClusterNumbers {
    /// The number of the cluster of every canonical row that an affected row belongs to.
    pub of_canonical: HashMap<u32, i64>,
    /// The events, clusters before rows.
    pub events: Vec<Event>,
    /// The lowest number that was never used.
    pub next: i64,
}

/// Returns the numbers of the clusters that the rows are in now, and the events of clusters. `moves` come in the
/// order of the rows.
///
/// A cluster keeps its number while its canonical row stays. The number of a ceased cluster goes to
/// the new cluster that has most of its rows, of equals to the earliest; of several numbers that go
/// to one cluster it takes the one that most of its rows had, of equals the lowest. Others end. New
/// clusters that take none have numbers from `next` on, in their order.
///
/// `kept` returns the number of a canonical row that was canonical before, and unchanged since.
///
/// # Errors
/// `OutOfMemory`.
pub fn number(
    moves: &[Move],
    next: i64,
    kept: &dyn Fn(u32) -> Option<i64>,
) -> Result<ClusterNumbers> {
    let mut numbers = ClusterNumbers {
        next,
        ..ClusterNumbers::default()
    };
    let ceased = pairs(moves.iter().filter_map(|row| Some((row.ceased?, row.row))))?;
    let fresh = numbers.add_kept(moves, kept)?;
    numbers.add_fresh(moves, &ceased, &fresh)?;
    numbers.add_merged(moves, &ceased)?;
    numbers.add_rows(moves, next)?;
    Ok(numbers)
}

impl ClusterNumbers {
    /// Notes the clusters whose canonical rows stay; returns the other canonical rows in order.
    fn add_kept(&mut self, moves: &[Move], kept: &dyn Fn(u32) -> Option<i64>) -> Result<Vec<u32>> {
        let mut fresh = Vec::new();
        for (row, canonical) in moves
            .iter()
            .filter_map(|row| Some((row.row, row.canonical?)))
        {
            match kept(canonical) {
                Some(number) => {
                    self.of_canonical.try_reserve(1)?;
                    self.of_canonical.insert(canonical, number);
                }
                None => fresh.try_extend((row == canonical).then_some(row))?,
            }
        }
        Ok(fresh)
    }

    /// Numbers the clusters of new canonical rows, which come in order. `ceased` has the canonical rows of clusters
    /// that ceased.
    fn add_fresh(
        &mut self,
        moves: &[Move],
        ceased: &HashMap<i64, u32>,
        fresh: &[u32],
    ) -> Result<()> {
        let place_of: HashMap<u32, u32> = pairs(fresh.iter().copied().zip(0..))?;
        let shared = moves
            .iter()
            .filter_map(|row| Some((row.from?, *place_of.get(&row.canonical?)?)));
        let shared = counted(shared)?;
        let origins = shared
            .iter()
            .map(|&((from, place), rows)| (place, rows, from));
        let origins = largest(origins)?;
        let claims = largest_parts(&shared).filter(|(from, ..)| ceased.contains_key(from));
        let taken = largest(claims.map(|(from, place, rows)| (place, rows, from)))?;
        for (place, &row) in (0..).zip(fresh) {
            let to = match taken.get(&place) {
                Some(&to) => {
                    let replaced = ceased[&to];
                    let event = Event::new(EventKind::NewCanonical, None, Some(to), row);
                    let event = (replaced != row).then_some(Event { replaced, ..event });
                    self.events.try_extend(event)?;
                    to
                }
                None => {
                    let from = origins.get(&place).copied();
                    let kind = from.map_or(EventKind::Created, |_| EventKind::Split);
                    let event = Event::new(kind, from, Some(self.next), row);
                    self.events.try_push(event)?;
                    self.next += 1;
                    self.next - 1
                }
            };
            self.of_canonical.try_reserve(1)?;
            self.of_canonical.insert(row, to);
        }
        Ok(())
    }

    /// Notes the clusters that ended while some of their rows are still there.
    fn add_merged(&mut self, moves: &[Move], ceased: &HashMap<i64, u32>) -> Result<()> {
        let lasting: HashMap<i64, u32> = pairs(self.of_canonical.iter().map(|(&c, &n)| (n, c)))?;
        let has_ended = |from: &i64| ceased.contains_key(from) && !lasting.contains_key(from);
        let moved = moves.iter().filter_map(|row| {
            let from = row.from.filter(has_ended)?;
            Some((from, self.of_canonical[&row.canonical?]))
        });
        for (from, to, _) in largest_parts(&counted(moved)?) {
            let event = Event::new(EventKind::Merged, Some(from), Some(to), lasting[&to]);
            self.events.try_push(event)?;
        }
        Ok(())
    }

    /// Notes the rows that came and went. The canonical row of a cluster that began came with it.
    fn add_rows(&mut self, moves: &[Move], first_new: i64) -> Result<()> {
        for &Move {
            row,
            from,
            canonical,
            ..
        } in moves
        {
            let to = canonical.map(|canonical| self.of_canonical[&canonical]);
            let began = canonical == Some(row) && to >= Some(first_new);
            if from != to && !began {
                let kind = to.map_or(EventKind::Left, |_| EventKind::Joined);
                self.events.try_push(Event::new(kind, from, to, row))?;
            }
        }
        Ok(())
    }
}

/// Returns for each old cluster the new one that has most of its rows, of equals the lowest, and the number of these
/// rows. `shared` has the numbers of rows that an old and a new cluster share, sorted.
fn largest_parts<T: Ord + Copy>(shared: &[((i64, T), u64)]) -> impl Iterator<Item = (i64, T, u64)> {
    let of_each = shared.chunk_by(|a, b| a.0.0 == b.0.0);
    of_each.filter_map(|parts| {
        let largest = parts
            .iter()
            .min_by_key(|((_, to), rows)| (Reverse(*rows), *to));
        largest.map(|&((from, to), rows)| (from, to, rows))
    })
}

/// Returns for each new cluster, by its place, the old one with the most rows, of equals the lowest, of those given with
/// the numbers of rows that both share.
fn largest(shared: impl Iterator<Item = (u32, u64, i64)>) -> Result<HashMap<u32, i64>> {
    let mut sorted = collected(shared.map(|(place, rows, from)| (place, Reverse(rows), from)))?;
    sorted.sort_unstable();
    sorted.dedup_by_key(|(place, ..)| *place);
    pairs(sorted.into_iter().map(|(place, _, from)| (place, from)))
}

/// Returns the distinct elements, sorted, with how often each occurs.
fn counted<T: Ord + Copy>(elements: impl Iterator<Item = T>) -> Result<Vec<(T, u64)>> {
    let mut sorted = collected(elements)?;
    sorted.sort_unstable();
    let mut counts = Vec::new();
    for same in sorted.chunk_by(|a, b| a == b) {
        counts.try_push((same[0], same.len() as u64))?;
    }
    Ok(counts)
}

/// Returns a map of the pairs, whose first elements differ.
fn pairs<K: std::hash::Hash + Eq, V>(
    elements: impl Iterator<Item = (K, V)>,
) -> Result<HashMap<K, V>> {
    let mut map = HashMap::new();
    for (key, value) in elements {
        map.try_reserve(1)?;
        map.insert(key, value);
    }
    Ok(map)
}
