//! The choice of the places of passages that are listed.

use super::batches::BoundaryBatch;
use super::place::Chosen;
use super::series::LongSeries;
use super::symbols::{BETWEEN, Sequences};
use super::tree::{BoundaryTree, Node, ROOT};
use crate::Result;
use crate::align::Pace;
use crate::memory::{Grow, filled};
use std::ops::ControlFlow;

/// Takes a place that is listed, and says whether to go on.
type VisitChosen<'a> = dyn FnMut(&Chosen) -> Result<ControlFlow<()>> + 'a;

/// The passages of a batch.
pub(super) struct Chooser<'a> {
    sequences: &'a Sequences,
    tree: &'a BoundaryTree,
    series: &'a LongSeries,
}

impl Chooser<'_> {
    /// Visits the places that are listed, in any order, until `visit` breaks off.
    ///
    /// # Errors
    /// `OutOfMemory`; the errors of `visit`.
    pub fn for_each(&self, pace: &mut Pace, visit: &mut VisitChosen<'_>) -> Result<()> {
        let mut is_listed = filled(false, self.tree.nodes.len())?;
        let (mut stood_before, mut nodes) = (0, Vec::new());
        for at in 0..self.sequences.firsts.len() as u32 {
            nodes.clear();
            nodes.try_extend(self.longest_again(at, &mut stood_before, pace))?;
            if self.word(at) != BETWEEN {
                self.not_within_longer(at, &mut nodes, pace)?;
            }
            pace.sort_by_key(&mut nodes, |node| *node);
            nodes.dedup();
            for &node in &nodes {
                let first = self.tree.node(node).first;
                let is_first_missing = !is_listed[node as usize] && at != first;
                is_listed[node as usize] = true;
                for place in is_first_missing.then_some(first).into_iter().chain([at]) {
                    if visit(&self.place(place, node))?.is_break() {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the node of the longest run from `at` that occurred before; None if this place lies within a longer
    /// such run. `stood_before` is the end of the longest one from the previous suffix, as a symbol's number.
    fn longest_again(&self, at: u32, stood_before: &mut u32, pace: &mut Pace) -> Option<u32> {
        let tree = self.tree;
        let mut longest = tree.parents[at as usize];
        while longest != ROOT && tree.node(longest).first == at {
            pace.step();
            longest = tree.node(longest).parent;
        }
        let end = at + tree.node(longest).depth;
        let is_new = end > std::mem::replace(stood_before, end);
        (longest != ROOT && is_new && !self.is_in_second_of_series(at, longest)).then_some(longest)
    }

    /// Adds the nodes whose place `at` does not lie within a longer passage of the same documents: extending the run
    /// by the symbol before or after leads to a run with places in fewer documents.
    fn not_within_longer(&self, at: u32, nodes: &mut Vec<u32>, pace: &mut Pace) -> Result<()> {
        let tree = self.tree;
        // Of the nodes above a suffix with equally many documents, only the deepest counts; longer runs have fewer
        // documents.
        let mut node = tree.parents[at as usize];
        let mut extended = at
            .checked_sub(1)
            .map_or(ROOT, |before| tree.parents[before as usize]);
        while node != ROOT {
            pace.step();
            let Node {
                depth,
                documents,
                above,
                ..
            } = *tree.node(node);
            if tree.node(node).is_maximal() {
                if self.words(at, node) <= u64::from(self.sequences.series[at as usize]) {
                    break;
                }
                while tree.node(tree.node(extended).above).depth > depth {
                    pace.step();
                    extended = tree.node(extended).above;
                }
                let with_left = tree.node(extended);
                let is_within = with_left.depth > depth && with_left.documents == documents;
                if !is_within && !self.is_in_series(at, node) {
                    nodes.try_push(node)?;
                }
            }
            node = above;
        }
        Ok(())
    }

    fn place(&self, at: u32, node: u32) -> Chosen {
        let Node {
            first,
            places,
            documents,
            ..
        } = *self.tree.node(node);
        Chosen {
            passage: self.word(first),
            words: self.words(at, node),
            is_series: false,
            first: self.word(at),
            occurrences: places,
            documents,
        }
    }

    /// Returns the number of a boundary's first word.
    fn word(&self, at: u32) -> u64 {
        self.sequences.firsts[at as usize]
    }

    /// Returns whether a place lies within the second place of a long series' passage: then it occurred before, and
    /// so did that place.
    fn is_in_second_of_series(&self, at: u32, node: u32) -> bool {
        let (first, words) = (self.word(at), self.words(at, node));
        let around = self.series.around(first, words);
        around.is_some_and(|(series, _)| first >= series.places()[1])
    }

    /// Returns whether a place lies within a place of a long series' passage that has as many documents.
    fn is_in_series(&self, at: u32, node: u32) -> bool {
        let (first, words) = (self.word(at), self.words(at, node));
        let around = self.series.around(first, words);
        around.is_some_and(|(series, passage)| {
            let [begin, second] = series.places();
            let is_in_one = first >= second || first + words <= begin + series.passage_words();
            is_in_one && passage.documents == self.tree.node(node).documents
        })
    }

    /// Returns the number of words of a maximal node's run, one of whose places is `at`.
    fn words(&self, at: u32, node: u32) -> u64 {
        let last = at + self.tree.node(node).depth - 1;
        let firsts = &self.sequences.firsts;
        firsts[last as usize] - firsts[at as usize] + self.sequences.min_words as u64
    }
}

/// The search for passages in batches, in any thread.
pub struct PassageSearch {
    pub(super) min_words: usize,
    /// The number of the first word of every document.
    pub(super) starts: Vec<u64>,
    pub(super) series: LongSeries,
}

/// The places of passages in a batch that are listed.
pub struct PassagePlaces(pub(super) FoundPlaces);

pub(super) enum FoundPlaces {
    All(Vec<Chosen>),
    /// They take too much memory: documents of one template share many passages with all others.
    TooMany(BoundaryBatch),
}

impl PassageSearch {
    /// Returns the places of a batch that are listed, if they take at most `memory` bytes. Time in proportion to
    /// the boundaries and the places.
    ///
    /// # Errors
    /// `OutOfMemory`; `TooLarge` beyond 2^31 boundaries.
    pub fn places(
        &self,
        batch: BoundaryBatch,
        memory: usize,
        check: &mut dyn FnMut(),
    ) -> Result<PassagePlaces> {
        let mut places: Vec<Chosen> = Vec::new();
        let mut are_many = false;
        self.for_each(&batch, check, &mut |place| {
            are_many = size_of_val(&places[..]) >= memory;
            match are_many {
                true => Ok(ControlFlow::Break(())),
                false => places.try_push(*place).map(ControlFlow::Continue),
            }
        })?;
        Ok(PassagePlaces(match are_many {
            true => FoundPlaces::TooMany(batch),
            false => FoundPlaces::All(places),
        }))
    }

    /// Visits the places of a batch that are listed, until `visit` breaks off.
    pub(super) fn for_each(
        &self,
        batch: &BoundaryBatch,
        check: &mut dyn FnMut(),
        visit: &mut VisitChosen<'_>,
    ) -> Result<()> {
        let pace = &mut Pace::new(check);
        let sequences = Sequences::new(&batch.0, self.min_words, pace)?;
        let tree = BoundaryTree::new(&sequences, &self.starts, pace)?;
        let chooser = Chooser {
            sequences: &sequences,
            tree: &tree,
            series: &self.series,
        };
        chooser.for_each(pace, visit)
    }
}
