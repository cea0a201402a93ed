//! Rows of a query, worked on by helpers in pieces while the next rows are read.

use crate::pg::error::OrRaise;
use crate::pg::helpers::{in_order, piece_bytes};
use crate::pg::parts::Parts;
use crate::pg::query::{CheckedColumn, Query, QueryRow};
use crate::pg::value::Keys;
use helpers::Work;
use neardup::Result;
use pgrx::pg_sys;

/// Rows that one thread works on at once; new ones are empty.
pub trait Piece: Default + Send {
    /// Returns how many bytes it takes.
    fn bytes(&self) -> usize;
}

impl Piece for Parts<u8> {
    fn bytes(&self) -> usize {
        Parts::bytes(self)
    }
}

/// Reads all rows of a query. `push` adds a row to a piece, or returns false to leave it out; `take` gets
/// the keys of a piece, of type `key_type`, and what `work` made of it, in the order of the query.
pub fn read_in_pieces<P: Piece, R: Send>(
    stage: &'static str,
    (query, key, key_type): (Query, CheckedColumn, pg_sys::Oid),
    push: &mut dyn FnMut(&QueryRow<'_>, &mut P) -> bool,
    work: &Work<'_, P, Result<R>>,
    take: &mut dyn FnMut(Keys, R),
) {
    let mut take = |keys: Keys, made: Result<R>| take(keys, made.or_raise());
    let mut progress = query.progress(stage);
    in_order(work, &mut take, |line| {
        let (mut keys, mut piece) = (Keys::new(key_type), P::default());
        query.for_each(&mut |row| {
            progress.step();
            if !push(row, &mut piece) {
                return;
            }
            keys.push(row.get(key));
            let bytes = piece.bytes();
            if bytes >= piece_bytes() {
                let keys = std::mem::replace(&mut keys, Keys::new(key_type));
                line.put(keys, std::mem::take(&mut piece), bytes);
            }
        });
        let bytes = piece.bytes();
        line.put(keys, piece, bytes);
    });
}
