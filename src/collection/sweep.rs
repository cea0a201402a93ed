//! Runs work on stored records in helper threads.

use crate::pg::helpers::in_pieces;
use crate::pg::prelude::*;
use neardup::parts::Parts;

/// Appends values made from a record, the first argument, to a list, the second. Runs in any thread, and often calls
/// the last argument, a check for interrupts.
pub type Make<'a, U> = dyn Fn(&[u8], &mut Vec<U>, &mut dyn FnMut()) -> Result<()> + Sync + 'a;

/// Appends the record with a given number to a list.
pub type Read<'a> = &'a mut dyn FnMut(u32, &mut Vec<u8>);

/// Reads the records of `numbers`, calls `make` for each in helper threads, and calls `take` with the results in the
/// order of `numbers`.
pub fn sweep<U: Send>(
    progress: &mut Progress,
    numbers: impl Iterator<Item = u32>,
    read: Read<'_>,
    make: &Make<'_, U>,
    take: &mut dyn FnMut(u32, &[U]),
) {
    let work = |(numbers, records): (Vec<u32>, Parts<u8>), check: &mut dyn FnMut()| {
        let made = records.each(|record, made| {
            check();
            make(record, made, check)
        });
        Ok((numbers, made?))
    };
    let mut take_piece = |made: Result<(Vec<u32>, Parts<U>)>| {
        let (numbers, made) = made.or_raise();
        for (number, made) in numbers.into_iter().zip(made.iter()) {
            take(number, made);
        }
    };
    in_pieces(0, &work, &mut take_piece, |put| {
        for number in numbers {
            progress.step();
            put(number, &mut |record| read(number, record));
        }
    });
}
