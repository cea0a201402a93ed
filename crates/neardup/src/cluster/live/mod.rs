//! Star clusters that are kept while rows come, change and go.
//!
//! A row is canonical if no earlier canonical row is near; a member belongs to the most similar
//! earlier canonical row, of equals to the earliest. The canonical rows are the lexicographically
//! first maximal independent set of the rows in their order. After a change it is repaired by going
//! through the affected rows in that order, each taken once: a row can only affect later ones
//! (Censor-Hillel, Haramaty, Karnin, 'Optimal Dynamic Distributed MIS', PODC 2016).

mod numbers;
mod repair;
#[cfg(test)]
mod tests;

pub use numbers::{ClusterNumbers, Event, EventKind, Move, number};
pub use repair::{AffectedRow, ClusteredRows, NearCanonical, Placed, repair};
