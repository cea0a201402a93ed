//! From the bands of a collection's rows to the pairs worth comparing.
//!
//! Two similar rows share at least `needed` of their b tokens, one token a band. Order the tokens of
//! all rows from rare to frequent: the rarest token that two rows share is, in either row, among the
//! b - needed + 1 rarest, for `needed` - 1 shared ones follow it. So a row looks for partners under
//! these only (Chaudhuri, Ganti, Kaushik, ICDE 2006), and text that many rows share is never
//! enumerated. Any order will do, so an approximate count serves; a row that has fewer than `needed`
//! tokens in common with anybody is dropped altogether. Documents that share a token with very many
//! others look for partners under the rarest elements of their sets instead ([`Prefixes`]).

mod frequencies;
mod group_sizes;
mod hot;
mod prefix;
mod sample;
mod tokens;

pub use frequencies::Frequencies;
pub use group_sizes::GroupSizes;
pub use hot::{Prefixes, choose_prefix};
pub use prefix::rarest;
pub use sample::for_each_pair;
pub use tokens::{Sides, TokenCounts, Tokens, choose, keys, pairs_of_row, token};
