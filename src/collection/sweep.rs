//! Work of helper threads on stored records.

use crate::pg::error::OrRaise;
use crate::pg::helpers::{in_order, piece_bytes};
use crate::pg::progress::Progress;
use crate::pg::spool::Records;
use neardup::Result;
use neardup::memory::Grow;
use neardup::parts::Parts;

/// Appends values made from a record to a list. Runs in any thread, and calls its last argument often.
pub type Make<'a, U> = dyn Fn(&[u8], &mut Vec<U>, &mut dyn FnMut()) -> Result<()> + Sync + 'a;

/// Appends the record of a number to a list.
pub type Read<'a> = &'a mut dyn FnMut(u32, &mut Vec<u8>);

/// Reads the records of `numbers`, calls `make` for each in helper threads, and `take` for the results in the same
/// order.
pub fn sweep<U: Send>(
    progress: &mut Progress,
    numbers: impl Iterator<Item = u32>,
    read: Read<'_>,
    make: &Make<'_, U>,
    take: &mut dyn FnMut(u32, &[U]),
) {
    let work = |records: Parts<u8>, check: &mut dyn FnMut()| {
        records.each(|record, made| {
            check();
            make(record, made, check)
        })
    };
    let mut take_piece = |numbers: Vec<u32>, made: Result<Parts<U>>| {
        for (number, made) in numbers.into_iter().zip(made.or_raise().iter()) {
            take(number, made);
        }
    };
    in_order(&work, &mut take_piece, |line| {
        let (mut taken, mut piece) = (Vec::new(), Parts::default());
        for number in numbers {
            progress.step();
            read(number, &mut piece.items);
            piece.end().or_raise();
            taken.try_push(number).or_raise();
            let bytes = piece.items.len() + size_of::<u32>() * taken.len();
            if bytes >= piece_bytes() {
                line.put(
                    std::mem::take(&mut taken),
                    std::mem::take(&mut piece),
                    bytes,
                );
            }
        }
        let bytes = piece.items.len();
        line.put(taken, piece, bytes);
    });
}

/// Returns a closure that appends the record of a number to a list.
pub fn read_stored(records: &mut Records) -> impl FnMut(u32, &mut Vec<u8>) {
    let mut buffer = Vec::new();
    move |number, record| {
        let stored = records.read(number as usize, &mut buffer);
        record.try_extend_from_slice(stored).or_raise();
    }
}
