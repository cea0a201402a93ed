//! The suffix tree of the sequences: one node for every run of symbols that continues in several ways.

use super::symbols::{BETWEEN, Sequences};
use crate::Result;
use crate::align::{Pace, shared_with_previous, suffix_array};
use crate::memory::{Grow, filled, with_room};

/// The node of the empty run, above all others.
pub(super) const ROOT: u32 = 0;

/// More than one symbol before the run.
const SEVERAL: u32 = u32::MAX;

/// A run of symbols that has several places.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Node {
    /// The number of its symbols.
    pub depth: u32,
    /// The longest proper prefix of the run that is a node.
    pub parent: u32,
    /// The nearest node above it with places in more documents.
    pub above: u32,
    pub places: u32,
    pub documents: u32,
    /// Its first place, as a symbol's number.
    pub first: u32,
    /// The symbol before all its places, or [`SEVERAL`].
    left: u32,
}

impl Node {
    /// Returns whether the symbols before its places differ. The symbols after them differ for every node.
    pub fn is_maximal(&self) -> bool {
        self.left == SEVERAL
    }
}

pub(super) struct BoundaryTree {
    pub nodes: Vec<Node>,
    /// The deepest node above every suffix.
    pub parents: Vec<u32>,
}

impl BoundaryTree {
    /// Returns the suffix tree. Time O(n log n), mostly linear.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn new(sequences: &Sequences, starts: &[u64], pace: &mut Pace) -> Result<Self> {
        let documents = documents(sequences, starts, pace)?;
        let order = suffix_array(&sequences.symbols, sequences.letters, pace)?;
        let shared = shared_with_previous(&sequences.symbols, &order, pace)?;
        let mut builder = Builder {
            symbols: &sequences.symbols,
            documents: &documents,
            nodes: Vec::new(),
            parents: filled(ROOT, order.len())?,
            open: Vec::new(),
            closed: Vec::new(),
            last_of_document: filled(
                u32::MAX,
                documents.last().map_or(0, |last| *last as usize + 1),
            )?,
        };
        builder.open(0, 0)?;
        for (rank, suffix) in order.iter().enumerate() {
            pace.step();
            let next = shared.get(rank + 1).copied().unwrap_or(0);
            if next > builder.depth() {
                builder.open(next, rank as u32)?;
            }
            builder.add_leaf(rank as u32, *suffix);
            while next < builder.depth() {
                pace.step();
                builder.close(next)?;
            }
        }
        let Builder {
            mut nodes,
            parents,
            closed,
            ..
        } = builder;
        for &node in closed.iter().rev() {
            pace.step();
            let Node {
                parent, documents, ..
            } = nodes[node as usize];
            let over = nodes[parent as usize];
            let more = parent == ROOT || over.documents > documents;
            nodes[node as usize].above = if more { parent } else { over.above };
        }
        Ok(Self { nodes, parents })
    }

    pub fn node(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }
}

/// Returns the document of every symbol, numbered in the order in which documents have symbols.
fn documents(sequences: &Sequences, starts: &[u64], pace: &mut Pace) -> Result<Vec<u32>> {
    let mut documents = with_room(sequences.firsts.len())?;
    let (mut number, mut next) = (0u32, 0);
    for &first in &sequences.firsts {
        pace.step();
        if first != BETWEEN && next < starts.len() && first >= starts[next] {
            next += starts[next..].partition_point(|start| *start <= first);
            number += u32::from(!documents.is_empty());
        }
        documents.push(number);
    }
    Ok(documents)
}

/// A node whose suffixes have not all come yet.
struct OpenNode {
    node: u32,
    depth: u32,
    /// The rank of its first suffix.
    start: u32,
    /// The number of its suffixes for which an earlier one in the node is of the same document.
    again: u32,
}

/// Goes through the sorted suffixes, while the nodes above the current one are open.
struct Builder<'a> {
    symbols: &'a [u32],
    documents: &'a [u32],
    nodes: Vec<Node>,
    parents: Vec<u32>,
    open: Vec<OpenNode>,
    /// All nodes except the root, every node after the nodes below it.
    closed: Vec<u32>,
    last_of_document: Vec<u32>,
}

impl Builder<'_> {
    fn top(&mut self) -> &mut OpenNode {
        self.open.last_mut().expect("the root is open")
    }

    fn depth(&mut self) -> u32 {
        self.top().depth
    }

    fn open(&mut self, depth: u32, start: u32) -> Result<()> {
        let node = self.nodes.len() as u32;
        self.nodes.try_push(Node {
            depth,
            first: u32::MAX,
            left: NO_PLACE_YET,
            ..Node::default()
        })?;
        self.open.try_push(OpenNode {
            node,
            depth,
            start,
            again: 0,
        })
    }

    fn add_leaf(&mut self, rank: u32, suffix: u32) {
        let node = self.top().node;
        self.parents[suffix as usize] = node;
        let left = match suffix.checked_sub(1) {
            Some(before) => self.symbols[before as usize],
            None => SEVERAL,
        };
        self.join(node, suffix, left, 1);
        let document = self.documents[suffix as usize] as usize;
        let last = std::mem::replace(&mut self.last_of_document[document], rank);
        if last != u32::MAX {
            // Both suffixes are below the deepest node that was already open when the last one came (Hui, "Color set
            // size problem", CPM 1992).
            let over = self.open.partition_point(|open| open.start <= last) - 1;
            self.open[over].again += 1;
        }
    }

    /// Closes the deepest open node; its parent is at least `depth` deep.
    fn close(&mut self, depth: u32) -> Result<()> {
        let closed = self
            .open
            .pop()
            .expect("a node deeper than the root is open");
        if self.depth() < depth {
            self.open(depth, closed.start)?;
        }
        self.closed.try_push(closed.node)?;
        let parent = self.top();
        parent.again += closed.again;
        let parent = parent.node;
        let node = &mut self.nodes[closed.node as usize];
        node.documents = node.places - closed.again;
        node.parent = parent;
        let Node {
            first,
            left,
            places,
            ..
        } = *node;
        self.join(parent, first, left, places);
        Ok(())
    }

    fn join(&mut self, node: u32, first: u32, left: u32, places: u32) {
        let node = &mut self.nodes[node as usize];
        node.first = node.first.min(first);
        node.places += places;
        node.left = match node.left {
            NO_PLACE_YET => left,
            same if same == left => left,
            _ => SEVERAL,
        };
    }
}

/// The left symbol of a node that has no place yet.
const NO_PLACE_YET: u32 = u32::MAX - 1;
