//! The numbers of clusters, which last while rows come and go.

use crate::Result;
use crate::memory::Grow;
use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;

/// A row whose cluster may have changed, or its canonical row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    pub row: u32,
    /// The number of the cluster that the row was in; None for a new row.
    pub from: Option<i64>,
    /// The canonical row that it belongs to now, itself for a canonical row; None for a row that is
    /// gone.
    pub canonical: Option<u32>,
}

/// A cluster whose canonical row has changed, is gone, or is canonical no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ceased {
    pub cluster: i64,
    pub canonical: u32,
}

/// An event of a cluster or a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A cluster began with this canonical row, of no other cluster's rows.
    Created { to: i64, row: u32 },
    /// A cluster began with this canonical row, most of its rows having been in another.
    Split { from: i64, to: i64, row: u32 },
    /// A cluster ended, and most of its rows are in another, whose canonical row this is.
    Merged { from: i64, to: i64, row: u32 },
    /// A cluster has this canonical row now, and had another one before.
    NewCanonical { to: i64, row: u32, replaced: u32 },
    /// A row came into a cluster, from another or anew.
    Joined {
        from: Option<i64>,
        to: i64,
        row: u32,
    },
    /// A row is in no cluster any more.
    Left { from: i64, row: u32 },
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

/// Returns the numbers of the clusters that the rows are in now, and the events of clusters.
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
    ceased: &[Ceased],
    next: i64,
    kept: &dyn Fn(u32) -> Option<i64>,
    compare: &dyn Fn(u32, u32) -> Ordering,
) -> Result<ClusterNumbers> {
    let mut numbers = ClusterNumbers {
        next,
        ..ClusterNumbers::default()
    };
    let fresh = numbers.add_kept(moves, kept, compare)?;
    numbers.add_fresh(moves, ceased, &fresh)?;
    numbers.add_merged(moves, ceased)?;
    numbers.add_rows(moves, next)?;
    Ok(numbers)
}

impl ClusterNumbers {
    /// Notes the clusters whose canonical rows stay; returns the other canonical rows in order.
    fn add_kept(
        &mut self,
        moves: &[Move],
        kept: &dyn Fn(u32) -> Option<i64>,
        compare: &dyn Fn(u32, u32) -> Ordering,
    ) -> Result<Vec<u32>> {
        let mut fresh = Vec::new();
        for canonical in moves.iter().filter_map(|row| row.canonical) {
            match kept(canonical) {
                Some(number) => {
                    self.of_canonical.try_reserve(1)?;
                    self.of_canonical.insert(canonical, number);
                }
                None => fresh.try_push(canonical)?,
            }
        }
        fresh.sort_unstable_by(|a, b| compare(*a, *b));
        fresh.dedup();
        Ok(fresh)
    }

    /// Numbers the clusters of new canonical rows, which come in order.
    fn add_fresh(&mut self, moves: &[Move], ceased: &[Ceased], fresh: &[u32]) -> Result<()> {
        let before: HashMap<i64, u32> = pairs(ceased.iter().map(|c| (c.cluster, c.canonical)))?;
        let shares = SharedRows::of(moves, fresh)?;
        let taken = shares.taken(&before)?;
        for (place, &row) in (0..).zip(fresh) {
            let (to, event) = match taken.get(&place) {
                Some(&to) => {
                    let replaced = before[&to];
                    let event = Event::NewCanonical { to, row, replaced };
                    (to, (replaced != row).then_some(event))
                }
                None => {
                    let to = self.next;
                    self.next += 1;
                    (
                        to,
                        Some(match shares.largest(place) {
                            Some(from) => Event::Split { from, to, row },
                            None => Event::Created { to, row },
                        }),
                    )
                }
            };
            self.events.try_extend(event)?;
            self.of_canonical.try_reserve(1)?;
            self.of_canonical.insert(row, to);
        }
        Ok(())
    }

    /// Notes the clusters that ended while some of their rows are still there.
    fn add_merged(&mut self, moves: &[Move], ceased: &[Ceased]) -> Result<()> {
        let lasting: HashMap<i64, u32> = pairs(self.of_canonical.iter().map(|(&c, &n)| (n, c)))?;
        let numbers = ceased.iter().map(|ceased| ceased.cluster);
        let ended = numbers.filter(|number| !lasting.contains_key(number));
        let ended: HashMap<i64, ()> = pairs(ended.map(|number| (number, ())))?;
        let moved = moves.iter().filter_map(|row| {
            let from = row.from.filter(|from| ended.contains_key(from))?;
            Some((from, self.of_canonical[&row.canonical?]))
        });
        for of_number in counted(moved)?.chunk_by(|a, b| a.0.0 == b.0.0) {
            let ((from, to), _) = *of_number
                .iter()
                .min_by_key(|((_, to), rows)| (Reverse(*rows), *to))
                .expect("chunks are not empty");
            let row = lasting[&to];
            self.events.try_push(Event::Merged { from, to, row })?;
        }
        Ok(())
    }

    /// Notes the rows that came and went. The canonical row of a cluster that began came with it.
    fn add_rows(&mut self, moves: &[Move], first_new: i64) -> Result<()> {
        for &Move {
            row,
            from,
            canonical,
        } in moves
        {
            let Some(canonical) = canonical else {
                let left = from.map(|from| Event::Left { from, row });
                self.events.try_extend(left)?;
                continue;
            };
            let to = self.of_canonical[&canonical];
            if from != Some(to) && (canonical != row || to < first_new) {
                self.events.try_push(Event::Joined { from, to, row })?;
            }
        }
        Ok(())
    }
}

/// The numbers of rows that an old and a new cluster share.
struct SharedRows {
    /// By number, and by place among the new clusters.
    counts: Vec<((i64, u32), u64)>,
    /// For each new cluster the old ones, the largest share first.
    origins: Vec<(u32, Reverse<u64>, i64)>,
}

impl SharedRows {
    fn of(moves: &[Move], fresh: &[u32]) -> Result<Self> {
        let place_of: HashMap<u32, u32> = pairs(fresh.iter().copied().zip(0..))?;
        let shared = moves
            .iter()
            .filter_map(|row| Some((row.from?, *place_of.get(&row.canonical?)?)));
        let counts = counted(shared)?;
        let mut origins = Vec::new();
        origins.try_extend(
            counts
                .iter()
                .map(|((number, place), rows)| (*place, Reverse(*rows), *number)),
        )?;
        origins.sort_unstable();
        Ok(Self { counts, origins })
    }

    /// Returns the numbers that new clusters take over from ceased ones.
    fn taken(&self, ceased: &HashMap<i64, u32>) -> Result<HashMap<u32, i64>> {
        let mut claims = Vec::new();
        for of_number in self.counts.chunk_by(|a, b| a.0.0 == b.0.0) {
            let ((number, place), rows) = *of_number
                .iter()
                .min_by_key(|((_, place), rows)| (Reverse(*rows), *place))
                .expect("chunks are not empty");
            if ceased.contains_key(&number) {
                claims.try_push((place, Reverse(rows), number))?;
            }
        }
        claims.sort_unstable();
        claims.dedup_by_key(|(place, ..)| *place);
        pairs(claims.into_iter().map(|(place, _, number)| (place, number)))
    }

    /// Returns the old cluster that most of the rows of a new one come from, of equals the lowest.
    fn largest(&self, place: u32) -> Option<i64> {
        let first = self.origins.partition_point(|origin| origin.0 < place);
        let origin = self.origins.get(first)?;
        (origin.0 == place).then_some(origin.2)
    }
}

/// Returns the distinct elements, sorted, with how often each occurs.
fn counted<T: Ord + Copy>(elements: impl Iterator<Item = T>) -> Result<Vec<(T, u64)>> {
    let mut sorted = Vec::new();
    sorted.try_extend(elements)?;
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
