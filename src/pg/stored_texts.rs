//! Texts on temporary storage, kept as PostgreSQL stores them until they are read.
//!
//! Only a few of many documents are ever compared. So a compressed document stays compressed, and one stored out of
//! line stays a pointer, whose value the snapshot and the locks of the statement preserve.

use crate::pg::error::OrRaise;
use crate::pg::spool::Records;
use crate::pg::text::Text;
use crate::pg::varlena::{new_value, stored};
use neardup::memory::Grow;
use pgrx::pg_sys;
use pgrx::varlena::{varatt_is_1b_e, varatt_is_4b_c, vartag_1b_e};

/// The first byte of a record: whether the text follows in UTF-8 or as PostgreSQL stores it.
const PLAIN: u8 = 0;
const STORED: u8 = 1;

/// Appends the record of a text to `record`. If the record does not hold the plain text, also appends the text to
/// `text`.
///
/// # Safety
/// `datum` is a non-null datum of a text type.
pub unsafe fn push_record_and_text(datum: pg_sys::Datum, record: &mut Vec<u8>, text: &mut Vec<u8>) {
    let start = record.len();
    push_record(datum, record);
    if record[start] == STORED {
        text.try_extend_from_slice(&Text::from_raw(datum))
            .or_raise();
    }
}

/// Returns the text of a record, or None if the record does not hold the plain text.
pub fn plain(record: &[u8]) -> Option<&[u8]> {
    let (kind, text) = record.split_first()?;
    (*kind == PLAIN).then_some(text)
}

/// Appends the record of a text to `record`.
///
/// # Safety
/// `datum` is a non-null datum of a text type.
pub unsafe fn push_record(datum: pg_sys::Datum, record: &mut Vec<u8>) {
    let value = datum.cast_mut_ptr::<pg_sys::varlena>();
    if is_smaller_as_stored(value) {
        record.try_push(STORED).or_raise();
        record.try_extend_from_slice(stored(value)).or_raise();
    } else {
        record.try_push(PLAIN).or_raise();
        let text = Text::from_raw(datum);
        record.try_extend_from_slice(&text).or_raise();
    }
}

/// Returns whether a value is smaller as stored: compressed, or a pointer to storage out of line.
///
/// # Safety
/// `value` is a varlena.
unsafe fn is_smaller_as_stored(value: *mut pg_sys::varlena) -> bool {
    // Other external values point to memory that is freed with the row.
    if varatt_is_1b_e(value) {
        u32::from(vartag_1b_e(value)) == pg_sys::vartag_external::VARTAG_ONDISK
    } else {
        varatt_is_4b_c(value)
    }
}

/// Appends the text of record `number` in UTF-8 to `text`. `buffer` is scratch space.
pub fn read(records: &mut Records, number: usize, buffer: &mut Vec<u8>, text: &mut Vec<u8>) {
    let record = records.read(number, buffer);
    match plain(record) {
        Some(plain) => text.try_extend_from_slice(plain).or_raise(),
        None => {
            let copy = new_value(&record[1..]);
            // SAFETY: the copy is aligned as PostgreSQL expects, and is freed when nothing refers to it anymore.
            unsafe {
                text.try_extend_from_slice(&Text::from_raw(copy)).or_raise();
                pg_sys::pfree(copy.cast_mut_ptr());
            }
        }
    }
}
