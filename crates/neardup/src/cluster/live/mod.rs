//! Star clusters that are kept up to date while rows are inserted, updated and deleted.
//!
//! A row is canonical if no earlier canonical row is near. A member belongs to the most similar earlier canonical
//! row, or to the earliest of equally similar ones. The canonical rows are the lexicographically first maximal
//! independent set of the rows in their order. After a change, this set is repaired by visiting the affected rows in
//! that order, each once, because a row can only affect later ones (Censor-Hillel, Haramaty, Karnin, 'Optimal
//! Dynamic Distributed MIS', PODC 2016).

mod numbers;
mod repair;
#[cfg(test)]
mod tests;

pub use numbers::{ClusterNumbers, Event, EventKind, Move, number};
pub use repair::{AffectedRow, ClusteredRows, NearCanonical, Placed, repair};
