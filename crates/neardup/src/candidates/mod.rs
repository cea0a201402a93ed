//! From the bands of a collection's rows to the pairs worth comparing.
//!
//! Two similar rows share at least `needed` of their b tokens, one token per band. Order the tokens of all rows from
//! rare to frequent. The rarest token that two rows share is followed by at least `needed` - 1 other shared ones, so it
//! is among the b - needed + 1 rarest of either row. So a row looks for partners only under these (Chaudhuri, Ganti,
//! Kaushik, ICDE 2006), and pairs that share only frequent text are never enumerated. Any order works, so an
//! approximate count suffices. A row that shares fewer than `needed` tokens with other rows is dropped. Documents that
//! share a token with very many others look for partners under the rarest elements of their sets instead
//! ([`Prefixes`]).

mod frequencies;
mod group_sizes;
mod hot;
mod lists;
mod meeting;
mod prefix;
mod tokens;

pub use frequencies::Frequencies;
pub use group_sizes::GroupSizes;
pub use hot::{Prefixes, choose_prefix};
pub use lists::KeyLists;
pub use meeting::{Meeting, Member, counter, part, ranked_prefix};
pub use prefix::rarest;
pub use tokens::{Sides, Tokens, choose, keys, pairs_of_row, token};
