//! The numbers of clusters, which persist while rows are inserted and deleted.

use crate::{Grow, Result, collected, filled};
use std::cmp::Reverse;
use std::collections::HashMap;
use strum::{Display, IntoStaticStr};

/// A row whose cluster, or the canonical row of its cluster, may have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    pub row: u32,
    /// The number of the cluster that the row was in; None for a new row.
    pub from: Option<i64>,
    /// True if the row was the canonical row of this cluster, and was changed or deleted or is no longer canonical.
    pub ceased: bool,
    /// The canonical row that the row belongs to now; the row itself if it is canonical; None for a deleted row.
    pub canonical: Option<u32>,
}

/// A kind of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum EventKind {
    /// A cluster began with this canonical row, and none of its rows were in another cluster before.
    Created,
    /// A row joined a cluster: a row of another cluster, or a new row.
    Joined,
    /// A row left a cluster, and is in none now.
    Left,
    /// A cluster ended. Most of its rows are now in another one, which has this canonical row.
    Merged,
    /// A cluster began with this canonical row. Most of its rows were in another one before.
    Split,
    /// This row replaced another one as the canonical row of a cluster.
    #[strum(serialize = "new canonical")]
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

/// The numbers of the clusters of affected rows.
#[derive(Debug)]
pub struct ClusterNumbers {
    /// For each canonical row, the number of its cluster if an affected row belongs to it.
    of_canonical: Vec<i64>,
    /// The lowest number that has never been used.
    pub next: i64,
}

/// Returns the numbers of the clusters that the rows are in now. `moves` come in the order of the rows. `log`
/// receives the events of clusters, then the events of rows.
///
/// A cluster keeps its number while its canonical row stays. The number of a ceased cluster goes to the new cluster
/// that has most of the ceased cluster's rows, or to the earliest if two or more have equally many. If two or more
/// numbers go to one cluster, it takes the number that most of its rows had, or the lowest if equally many rows had two
/// or more numbers; the other numbers end. New clusters that take no number get numbers that start at `next`, in their
/// order.
///
/// `kept` returns the number of the cluster of a canonical row that was canonical before and has not changed since.
///
/// # Errors
/// `OutOfMemory`.
pub fn number(
    moves: impl Iterator<Item = Move> + Clone,
    next: i64,
    kept: &dyn Fn(u32) -> Option<i64>,
    log: &mut dyn FnMut(Event),
) -> Result<ClusterNumbers> {
    let canonicals = moves.clone().filter_map(|row| row.canonical);
    let rows = canonicals.max().map_or(0, |last| last as usize + 1);
    let mut numbers = ClusterNumbers {
        of_canonical: filled(0, rows)?,
        next,
    };
    let mut ceased = HashMap::new();
    let ceasing = moves.clone().filter(|row| row.ceased);
    for (from, row) in ceasing.filter_map(|row| Some((row.from?, row.row))) {
        ceased.try_reserve(1)?;
        ceased.insert(from, row);
    }
    let fresh = numbers.add_kept(moves.clone(), kept)?;
    numbers.add_fresh(moves.clone(), &mut ceased, &fresh, log)?;
    numbers.log_merged(moves.clone(), &ceased, log)?;
    numbers.log_rows(moves, next, log);
    Ok(numbers)
}

impl ClusterNumbers {
    /// Returns the number of the cluster of `canonical`, to which some affected row belongs.
    pub fn of(&self, canonical: u32) -> i64 {
        self.of_canonical[canonical as usize]
    }

    /// Sets the numbers of the clusters whose canonical rows stay, and returns the other canonical rows in order.
    fn add_kept(
        &mut self,
        moves: impl Iterator<Item = Move>,
        kept: &dyn Fn(u32) -> Option<i64>,
    ) -> Result<Vec<u32>> {
        let mut fresh = Vec::new();
        for (row, canonical) in moves.filter_map(|row| Some((row.row, row.canonical?))) {
            match kept(canonical) {
                Some(number) => self.of_canonical[canonical as usize] = number,
                None => fresh.try_extend((row == canonical).then_some(row))?,
            }
        }
        Ok(fresh)
    }

    /// Numbers the clusters of the new canonical rows `fresh`, which are in order. `ceased` maps the numbers of ceased
    /// clusters to their canonical rows. Removes the numbers that new clusters take over.
    fn add_fresh(
        &mut self,
        moves: impl Iterator<Item = Move>,
        ceased: &mut HashMap<i64, u32>,
        fresh: &[u32],
        log: &mut dyn FnMut(Event),
    ) -> Result<()> {
        let mut place_of = filled(None, self.of_canonical.len())?;
        for (place, &row) in (0u32..).zip(fresh) {
            place_of[row as usize] = Some(place);
        }
        let moved = moves.filter_map(|row| Some((row.from?, place_of[row.canonical? as usize]?)));
        let shared = counted(moved)?;
        let by_place = |(from, place, rows)| (place, from, rows);
        let origins = largest(shared.iter().copied().map(by_place))?;
        let mut claims = largest(shared)?;
        claims.retain(|(from, ..)| ceased.contains_key(from));
        let taken = largest(claims.into_iter().map(by_place))?;
        for (place, &row) in (0..).zip(fresh) {
            let taken = second_of(&taken, place);
            let to = taken.unwrap_or(self.next);
            self.of_canonical[row as usize] = to;
            match taken.and_then(|number| ceased.remove(&number)) {
                Some(replaced) if replaced != row => {
                    let event = Event::new(EventKind::NewCanonical, None, Some(to), row);
                    log(Event { replaced, ..event });
                }
                Some(_) => {}
                None => {
                    let from = second_of(&origins, place);
                    let kind = from.map_or(EventKind::Created, |_| EventKind::Split);
                    log(Event::new(kind, from, Some(to), row));
                    self.next += 1;
                }
            }
        }
        Ok(())
    }

    /// Logs the clusters that `ended`, if some of their rows still exist.
    fn log_merged(
        &self,
        moves: impl Iterator<Item = Move>,
        ended: &HashMap<i64, u32>,
        log: &mut dyn FnMut(Event),
    ) -> Result<()> {
        let moved = moves.filter_map(|row| {
            let from = row.from.filter(|from| ended.contains_key(from))?;
            let canonical = row.canonical?;
            Some((from, (self.of(canonical), canonical)))
        });
        for (from, (to, canonical), _) in largest(counted(moved)?)? {
            let event = Event::new(EventKind::Merged, Some(from), Some(to), canonical);
            log(event);
        }
        Ok(())
    }

    /// Logs the rows that joined and left clusters, except the canonical row of a new cluster, which came with it.
    fn log_rows(
        &self,
        moves: impl Iterator<Item = Move>,
        first_new: i64,
        log: &mut dyn FnMut(Event),
    ) {
        for moved in moves {
            let to = moved.canonical.map(|canonical| self.of(canonical));
            let began = moved.canonical == Some(moved.row) && to >= Some(first_new);
            if moved.from != to && !began {
                let kind = to.map_or(EventKind::Left, |_| EventKind::Joined);
                log(Event::new(kind, moved.from, to, moved.row));
            }
        }
    }
}

/// Returns each first element with the second element that has the greatest count (the lowest if counts are equal), and
/// that count, sorted by the first element.
fn largest<K: Ord + Copy, V: Ord + Copy>(
    counts: impl IntoIterator<Item = (K, V, usize)>,
) -> Result<Vec<(K, V, usize)>> {
    let mut sorted = collected(counts)?;
    sorted.sort_unstable_by_key(|&(first, second, count)| (first, Reverse(count), second));
    sorted.dedup_by_key(|(first, ..)| *first);
    Ok(sorted)
}

/// Returns the distinct pairs, sorted, with the number of times that each occurs.
fn counted<K: Ord + Copy, V: Ord + Copy>(
    pairs: impl Iterator<Item = (K, V)>,
) -> Result<Vec<(K, V, usize)>> {
    let mut sorted = collected(pairs)?;
    sorted.sort_unstable();
    let same = sorted.chunk_by(|a, b| a == b);
    collected(same.map(|same| (same[0].0, same[0].1, same.len())))
}

/// Returns the second element of the triple that begins with `first`, or None if there is no such triple.
fn second_of(sorted: &[(u32, i64, usize)], first: u32) -> Option<i64> {
    let place = sorted.binary_search_by_key(&first, |(first, ..)| *first);
    place.ok().map(|place| sorted[place].1)
}
