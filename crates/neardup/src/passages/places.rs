//! The choice of the places of passages that are listed.

use super::place::{Place, Visit};
use super::series::LongSeries;
use super::symbols::{BETWEEN, Sequences};
use super::tree::{Node, ROOT, Tree};
use crate::Result;
use crate::align::Pace;
use crate::memory::{collected, filled};
use std::ops::RangeFrom;

/// The passages of a collection.
///
/// A passage has many places within longer passages. Listed are
/// - the places that lie within no place of a longer passage of the same documents; but where a
///   passage overlaps itself by half of `min_words` or more, over and over, only the first and the
///   last place of the series;
/// - the places, but for a passage's first, that lie within no longer run that stood before;
/// - the first place of every passage of which a place is listed.
///
/// Consequences, for a word anywhere in a run of at least `min_words` words that stands more than
/// once: it lies in a listed place; and if the run stood before, in one that is not the first of
/// its passage. So what is left when all listed places but the first of each passage are cut does
/// not repeat, and every word that is cut stands at the same place of a passage that is left.
pub struct Passages {
    sequences: Sequences,
    tree: Tree,
    series: LongSeries,
    starts: Vec<u64>,
    /// The nodes of which a place is listed, by their first places, deepest first.
    listed: Vec<u32>,
    /// For every node its passage's number; 0 if no place is listed.
    numbers: Vec<u32>,
    /// For every passage of a series its number.
    series_numbers: Vec<u32>,
}

impl Passages {
    pub(super) fn new(
        sequences: Sequences,
        tree: Tree,
        series: LongSeries,
        starts: Vec<u64>,
        check: &mut dyn FnMut(),
    ) -> Result<Self> {
        let pace = &mut Pace::new(check);
        let mut this = Self {
            numbers: filled(0, tree.nodes.len())?,
            series_numbers: filled(0, series.passages.len())?,
            sequences,
            tree,
            series,
            starts,
            listed: Vec::new(),
        };
        let (mut walk, mut nodes) = (Walk::new(), Vec::new());
        for at in 0..this.symbols() {
            walk.listed_at(&this, at, &mut nodes, pace)?;
            for &node in &nodes {
                if this.numbers[node as usize] == 0 {
                    this.numbers[node as usize] = 1;
                    this.listed.try_reserve(1)?;
                    this.listed.push(node);
                }
            }
        }
        let nodes = &this.tree.nodes;
        pace.sort_by_key(&mut this.listed, |node| {
            let node = &nodes[*node as usize];
            (node.first, u32::MAX - node.depth)
        });
        this.number()?;
        Ok(this)
    }

    /// Numbers the passages by their first places, the longer one first.
    fn number(&mut self) -> Result<()> {
        let mut others: Vec<u32> = collected(0..self.series.passages.len() as u32)?;
        others.sort_unstable_by_key(|passage| self.series.passages[*passage as usize].first);
        let mut others = others.into_iter().peekable();
        let mut numbers = 1..;
        for &node in &self.listed {
            let first = self.tree.node(node).first;
            let place = by_length(self.word(first), self.words(first, node));
            let is_before = |other: &u32| {
                let series = self.series.first_of(*other);
                by_length(series.first, series.passage_words()) < place
            };
            while let Some(other) = others.next_if(is_before) {
                self.series_numbers[other as usize] = next(&mut numbers);
            }
            self.numbers[node as usize] = next(&mut numbers);
        }
        for other in others {
            self.series_numbers[other as usize] = next(&mut numbers);
        }
        Ok(())
    }

    fn symbols(&self) -> u32 {
        self.sequences.firsts.len() as u32
    }

    /// Passages with a listed place.
    pub fn len(&self) -> usize {
        self.listed.len() + self.series_numbers.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Visits the listed places, in the order of the documents and within each of their first words,
    /// the longest first.
    ///
    /// # Errors
    /// `OutOfMemory`; those of `visit`.
    pub fn for_each(&self, check: &mut dyn FnMut(), visit: &mut Visit<'_, Place>) -> Result<()> {
        let pace = &mut Pace::new(check);
        let (mut walk, mut nodes) = (Walk::new(), Vec::new());
        let mut firsts = self.listed.iter().copied().peekable();
        let mut others = self
            .series
            .places(&self.starts, &self.series_numbers)
            .peekable();
        for at in 0..self.symbols() {
            walk.listed_at(self, at, &mut nodes, pace)?;
            while let Some(node) = firsts.next_if(|node| self.tree.node(*node).first == at) {
                nodes.try_reserve(1)?;
                nodes.push(node);
            }
            pace.sort_by_key(&mut nodes, |node| u32::MAX - self.tree.node(*node).depth);
            nodes.dedup();
            for &node in &nodes {
                let place = self.place(at, node);
                let order = |place: &Place| (place.document, by_length(place.word, place.words));
                while let Some(other) = others.next_if(|other| order(other) < order(&place)) {
                    visit(&other, pace.check())?;
                }
                visit(&place, pace.check())?;
            }
        }
        others.try_for_each(|other| visit(&other, pace.check()))
    }

    fn place(&self, at: u32, node: u32) -> Place {
        let Node {
            places, documents, ..
        } = *self.tree.node(node);
        let document = self.tree.documents[at as usize] as usize;
        Place {
            passage: self.numbers[node as usize],
            document,
            word: self.word(at) - self.starts[document],
            words: self.words(at, node),
            occurrences: places,
            documents,
        }
    }

    /// Returns the number of a boundary's first word.
    fn word(&self, at: u32) -> u64 {
        self.sequences.firsts[at as usize]
    }

    /// Returns whether a place lies in the second of a long series' passage: it stood before, and
    /// that place, too.
    fn is_in_second_of_series(&self, at: u32, node: u32) -> bool {
        let (first, words) = (self.word(at), self.words(at, node));
        let around = self.series.around(first, words);
        around.is_some_and(|(series, _)| first >= series.places()[1])
    }

    /// Returns whether a place lies in one of a long series' passage that is of as many documents.
    fn is_in_series(&self, at: u32, node: u32) -> bool {
        let (first, words) = (self.word(at), self.words(at, node));
        let around = self.series.around(first, words);
        around.is_some_and(|(series, passage)| {
            let [begin, second] = series.places();
            let is_in_one = first >= second || first + words <= begin + series.passage_words();
            is_in_one && passage.documents == self.tree.node(node).documents
        })
    }

    /// Returns the words of a maximal node's run, of which `at` is a place.
    fn words(&self, at: u32, node: u32) -> u64 {
        let last = at + self.tree.node(node).depth - 1;
        let firsts = &self.sequences.firsts;
        firsts[last as usize] - firsts[at as usize] + self.sequences.min_words as u64
    }
}

/// Goes through the suffixes in order.
struct Walk {
    /// The end of the longest run from the suffix before that stood before, as a symbol's number.
    end: u32,
}

impl Walk {
    fn new() -> Self {
        Self { end: 0 }
    }

    /// The nodes of which `at` is a listed place, without those of which it is merely the first.
    fn listed_at(
        &mut self,
        passages: &Passages,
        at: u32,
        nodes: &mut Vec<u32>,
        pace: &mut Pace,
    ) -> Result<()> {
        nodes.clear();
        let tree = &passages.tree;
        let mut longest = tree.parents[at as usize];
        while longest != ROOT && tree.node(longest).first == at {
            pace.step();
            longest = tree.node(longest).parent;
        }
        let end = at + tree.node(longest).depth;
        if longest != ROOT && end > self.end && !passages.is_in_second_of_series(at, longest) {
            nodes.try_reserve(1)?;
            nodes.push(longest);
        }
        self.end = end;
        if passages.sequences.firsts[at as usize] != BETWEEN {
            not_within_longer(passages, at, nodes, pace)?;
        }
        Ok(())
    }
}

/// The nodes of which the place `at` lies within none of a longer passage of the same documents:
/// neither the run with the symbol before nor that with the symbol behind is one of as many.
fn not_within_longer(
    passages: &Passages,
    at: u32,
    nodes: &mut Vec<u32>,
    pace: &mut Pace,
) -> Result<()> {
    let tree = &passages.tree;
    // Of the nodes over a suffix with as many documents, the deepest; longer ones are of fewer.
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
            if passages.words(at, node) <= u64::from(passages.sequences.series[at as usize]) {
                break;
            }
            while tree.node(tree.node(extended).above).depth > depth {
                pace.step();
                extended = tree.node(extended).above;
            }
            let with_left = tree.node(extended);
            let is_within = with_left.depth > depth && with_left.documents == documents;
            if !is_within && !passages.is_in_series(at, node) {
                nodes.try_reserve(1)?;
                nodes.push(node);
            }
        }
        node = above;
    }
    Ok(())
}

/// By the first word, the longer run first.
fn by_length(first: u64, words: u64) -> (u64, u64) {
    (first, u64::MAX - words)
}

fn next(numbers: &mut RangeFrom<u32>) -> u32 {
    numbers.next().expect("a range without end")
}
