//! Random histories, each state compared with the state computed from scratch.

use super::*;
use crate::Result;
use proptest::prelude::*;
use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// A document: its place in the order, and its position on a line, along which documents are near each other.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Document {
    place: u8,
    position: i16,
}

/// Returns a document at the beginning of the order.
fn at(position: i16) -> Document {
    Document { place: 0, position }
}

type Documents = BTreeMap<u32, Document>;

/// Returns the similarity of two documents: it reaches the threshold if they are at most two steps apart.
fn similarity(a: &Document, b: &Document) -> Option<f64> {
    let steps = (a.position - b.position).unsigned_abs();
    (steps <= 2).then(|| 1.0 - f64::from(steps) / 10.0)
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Kept {
    cluster: i64,
    near: NearCanonical,
}

/// The kept clusters.
#[derive(Debug, Clone, Default)]
struct State {
    rows: BTreeMap<u32, Kept>,
    next: i64,
}

impl State {
    fn is_canonical(&self, row: u32) -> bool {
        self.rows
            .get(&row)
            .is_some_and(|kept| kept.near.canonical == row)
    }
}

/// Returns the canonical row of every document, and the similarity to it.
fn from_scratch(documents: &Documents) -> BTreeMap<u32, (u32, f64)> {
    let mut order: Vec<u32> = documents.keys().copied().collect();
    order.sort_by_key(|row| (documents[row].place, *row));
    let mut canonicals: Vec<u32> = Vec::new();
    let mut clusters = BTreeMap::new();
    for row in order {
        let mut best: Option<(u32, f64)> = None;
        for &canonical in &canonicals {
            let found = similarity(&documents[&canonical], &documents[&row]);
            if let Some(found) = found
                && best.is_none_or(|(_, best)| found > best)
            {
                best = Some((canonical, found));
            }
        }
        if best.is_none() {
            canonicals.push(row);
        }
        clusters.insert(row, best.unwrap_or((row, 1.0)));
    }
    clusters
}

/// The present documents, and the clusters from before.
struct World<'a> {
    documents: &'a Documents,
    before: &'a State,
    changed: &'a BTreeSet<u32>,
    /// The rows whose neighbors have been asked for.
    asked: &'a RefCell<BTreeSet<u32>>,
}

impl World<'_> {
    /// Returns whether a row was canonical and has not changed.
    fn stays(&self, row: u32) -> bool {
        self.before.is_canonical(row) && !self.changed.contains(&row)
    }

    /// Returns all unchanged rows near a document that were canonical.
    fn canonicals_near(&self, row: u32) -> Vec<NearCanonical> {
        let rows = self.before.rows.keys().copied();
        let canonicals = rows.filter(|&other| other != row && self.stays(other));
        let near = canonicals.filter_map(|canonical| {
            let similarity = similarity(&self.documents[&canonical], &self.documents[&row])?;
            Some(NearCanonical {
                canonical,
                similarity,
            })
        });
        near.collect()
    }

    fn searched(&self, row: u32) -> AffectedRow {
        AffectedRow {
            row,
            was_canonical: false,
            canonicals: self.canonicals_near(row),
        }
    }

    /// Returns the changed rows that still exist, and the members that have lost their canonical row.
    fn affected(&self) -> Vec<AffectedRow> {
        let mut affected = Vec::new();
        for &row in self.changed {
            let is_there = self.documents.contains_key(&row);
            affected.extend(is_there.then(|| self.searched(row)));
            affected.extend(self.members(row).unwrap());
        }
        affected
    }
}

impl ClusteredRows for World<'_> {
    fn compare(&self, a: u32, b: u32) -> Ordering {
        let place = |row: u32| (self.documents[&row].place, row);
        place(a).cmp(&place(b))
    }

    fn members(&self, canonical: u32) -> Result<Vec<AffectedRow>> {
        let members = self.before.rows.iter().filter(|(row, kept)| {
            kept.near.canonical == canonical && **row != canonical && !self.changed.contains(row)
        });
        Ok(members.map(|(&row, _)| self.searched(row)).collect())
    }

    fn neighbors(&self, row: u32) -> Result<Vec<(AffectedRow, f64)>> {
        assert!(self.asked.borrow_mut().insert(row), "{row} is placed twice");
        let others = self.documents.keys().filter(|other| **other != row);
        let found = others.filter_map(|&other| {
            let similarity = similarity(&self.documents[&row], &self.documents[&other])?;
            let kept = self.before.rows.get(&other);
            let kept = kept.filter(|_| !self.changed.contains(&other));
            let member_of =
                kept.filter(|kept| kept.near.canonical != other && self.stays(kept.near.canonical));
            let canonicals = member_of.map(|kept| kept.near);
            let found = AffectedRow {
                row: other,
                was_canonical: self.stays(other),
                canonicals: canonicals.into_iter().collect(),
            };
            Some((found, similarity))
        });
        Ok(found.collect())
    }
}

/// Brings the state up to date with the documents, and returns the events.
fn refresh(state: &mut State, documents: &Documents, changed: &BTreeSet<u32>) -> Vec<Event> {
    try_refresh(state, documents, changed).expect("every change is known")
}

/// Does the same as [`refresh`]; returns None if some changes are unknown.
fn try_refresh(
    state: &mut State,
    documents: &Documents,
    changed: &BTreeSet<u32>,
) -> Option<Vec<Event>> {
    let before = state.clone();
    let world = World {
        documents,
        before: &before,
        changed,
        asked: &RefCell::default(),
    };
    let placed = repair(&world, world.affected()).unwrap()?;
    let standing = |placed: &Placed| match placed.canonical {
        Some(near) => near,
        None => NearCanonical::itself(placed.row),
    };
    let moved = |row: u32, canonical: Option<u32>| {
        let stays = canonical == Some(row) && !changed.contains(&row);
        Move {
            row,
            from: before.rows.get(&row).map(|kept| kept.cluster),
            ceased: !stays && before.is_canonical(row),
            canonical,
        }
    };
    let gone = changed.iter().filter(|row| !documents.contains_key(row));
    let stay = placed
        .iter()
        .map(|placed| moved(placed.row, Some(standing(placed).canonical)));
    let moves: Vec<Move> = stay.chain(gone.map(|&row| moved(row, None))).collect();
    let kept = |row: u32| {
        let has_ceased = moves.iter().any(|moved| moved.row == row && moved.ceased);
        (before.is_canonical(row) && !has_ceased).then(|| before.rows[&row].cluster)
    };
    let mut events = Vec::new();
    let log = &mut |event| events.push(event);
    let numbers = number(moves.iter().copied(), state.next, &kept, log).unwrap();
    state.rows.retain(|row, _| !changed.contains(row));
    for placed in placed {
        let near = standing(&placed);
        let kept = Kept {
            cluster: numbers.of(near.canonical),
            near,
        };
        state.rows.insert(placed.row, kept);
    }
    state.next = numbers.next;
    Some(events)
}

/// Clusters of rows and canonical rows of clusters, replayed from the log.
#[derive(Debug, Default)]
struct Replay {
    cluster_of: BTreeMap<u32, i64>,
    canonical_of: BTreeMap<i64, u32>,
}

impl Replay {
    fn play(&mut self, event: Event) {
        let Event {
            from,
            row,
            replaced,
            ..
        } = event;
        let to = || event.to.unwrap();
        match event.kind {
            EventKind::Created | EventKind::Split => {
                self.canonical_of.insert(to(), row);
                self.cluster_of.insert(row, to());
            }
            EventKind::NewCanonical => {
                assert_eq!(self.canonical_of.insert(to(), row), Some(replaced));
            }
            EventKind::Joined => assert_eq!(self.cluster_of.insert(row, to()), from),
            EventKind::Left => assert_eq!(self.cluster_of.remove(&row), from),
            EventKind::Merged => {}
        }
    }
}

/// Checks that a ceased cluster's number went where most of its rows are, unless another number went there.
fn ensure_stable(before: &State, after: &State, changed: &BTreeSet<u32>) {
    let mut rows_of: BTreeMap<i64, BTreeMap<u32, usize>> = BTreeMap::new();
    for (row, kept) in &before.rows {
        if let Some(now) = after.rows.get(row) {
            let parts = rows_of.entry(kept.cluster).or_default();
            *parts.entry(now.near.canonical).or_default() += 1;
        }
    }
    let canonicals = before
        .rows
        .iter()
        .filter(|(row, _)| before.is_canonical(**row));
    for (row, kept) in canonicals {
        if !changed.contains(row) && after.is_canonical(*row) {
            assert_eq!(after.rows[row].cluster, kept.cluster, "a number moved");
            continue;
        }
        let Some(parts) = rows_of.get(&kept.cluster) else {
            continue;
        };
        let is_fresh = |row: u32| changed.contains(&row) || !before.is_canonical(row);
        let parts = parts.iter().filter(|(row, _)| is_fresh(**row));
        let Some(most) = parts.clone().map(|(_, rows)| *rows).max() else {
            continue;
        };
        let takers = parts
            .filter(|(_, rows)| **rows == most)
            .map(|(row, _)| *row);
        let takers: Vec<u32> = takers.collect();
        if let [taker] = takers[..] {
            let number = after.rows[&taker].cluster;
            let had_more = rows_of.get(&number).is_some_and(|parts| {
                let theirs = parts.get(&taker).copied().unwrap_or(0);
                theirs > most || (theirs == most && number <= kept.cluster)
            });
            assert!(had_more, "{kept:?} did not go to its largest part");
        }
    }
}

fn documents() -> impl Strategy<Value = Document> {
    (0u8..6, 0i16..24).prop_map(|(place, position)| Document { place, position })
}

#[derive(Debug, Clone)]
enum Step {
    Put(u32, Document),
    Delete(u32),
    Refresh,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => (0u32..30, documents()).prop_map(|(row, document)| Step::Put(row, document)),
        2 => (0u32..30).prop_map(Step::Delete),
        2 => Just(Step::Refresh),
    ];
    prop::collection::vec(step, 1..120)
}

fn ensure_law(state: &State, documents: &Documents) {
    let kept = state.rows.iter();
    let kept = kept.map(|(row, kept)| (*row, (kept.near.canonical, kept.near.similarity)));
    assert_eq!(kept.collect::<BTreeMap<_, _>>(), from_scratch(documents));
}

/// Returns the state of documents that were all inserted at once.
fn settled(documents: &Documents) -> State {
    let mut state = State::default();
    refresh(&mut state, documents, &documents.keys().copied().collect());
    state
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn kept_clusters_are_those_computed_from_scratch(steps in steps()) {
        let (mut documents, mut state) = (Documents::new(), State::default());
        let (mut changed, mut replay) = (BTreeSet::new(), Replay::default());
        for step in steps.into_iter().chain([Step::Refresh]) {
            match step {
                Step::Put(row, document) => {
                    documents.insert(row, document);
                    changed.insert(row);
                }
                Step::Delete(row) => {
                    documents.remove(&row);
                    changed.insert(row);
                }
                Step::Refresh => {
                    let before = state.clone();
                    for event in refresh(&mut state, &documents, &changed) {
                        replay.play(event);
                    }
                    ensure_law(&state, &documents);
                    ensure_stable(&before, &state, &changed);
                    changed.clear();
                }
            }
            for (row, kept) in &state.rows {
                prop_assert_eq!(replay.cluster_of[row], kept.cluster);
                prop_assert_eq!(replay.canonical_of[&kept.cluster], kept.near.canonical);
            }
            prop_assert_eq!(replay.cluster_of.len(), state.rows.len());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    /// Unknown changes may go unnoticed, but a refresh always ends.
    #[test]
    fn changes_that_are_not_known_end(
        mut all in prop::collection::btree_map(0u32..30, documents(), 1..30),
        unknown in prop::collection::vec((any::<prop::sample::Index>(), documents()), 0..8),
        known in prop::collection::btree_map(0u32..30, documents(), 1..8),
    ) {
        let mut state = settled(&all);
        for (row, document) in unknown {
            let rows: Vec<u32> = all.keys().copied().collect();
            all.insert(rows[row.index(rows.len())], document);
        }
        let changed = known.keys().copied().collect();
        all.extend(known);
        try_refresh(&mut state, &all, &changed);
    }
}

/// Every version is near only the next one: without the first, all rows change roles.
#[test]
fn a_chain_flips_whole() {
    let version = |row: u32| (row, at(2 * row as i16));
    let mut documents: Documents = (0..1000).map(version).collect();
    let mut state = settled(&documents);
    ensure_law(&state, &documents);
    documents.remove(&0);
    let events = refresh(&mut state, &documents, &BTreeSet::from([0]));
    ensure_law(&state, &documents);
    assert!(events.len() > 900);
}

/// The part that has most of the rows keeps the number.
#[test]
fn a_split_leaves_the_number_to_the_larger_part() {
    let mut documents: Documents = (0..).zip([10, 8, 12, 12].map(at)).collect();
    let mut state = settled(&documents);
    documents.remove(&0);
    let events = refresh(&mut state, &documents, &BTreeSet::from([0]));
    let event = |kind, from, to, row, replaced| Event {
        kind,
        from,
        to,
        row,
        replaced,
    };
    let wanted = [
        event(EventKind::Split, Some(0), Some(1), 1, 1),
        event(EventKind::NewCanonical, None, Some(0), 2, 0),
        event(EventKind::Left, Some(0), None, 0, 0),
    ];
    assert_eq!(events, wanted);
    documents.insert(0, at(10));
    let events = refresh(&mut state, &documents, &BTreeSet::from([0]));
    assert!(events.contains(&event(EventKind::Merged, Some(1), Some(0), 0, 0)));
    assert!(events.contains(&event(EventKind::NewCanonical, None, Some(0), 0, 2)));
}
