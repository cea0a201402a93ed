//! Hamming distance of bit strings, and keys that find close ones in an ordinary B-tree.

use crate::options;
use crate::pg::bits::Bits;
use crate::pg::error::{OrRaise, raise};
use neardup::bands::HammingBlocks;
use pgrx::prelude::*;

/// Returns the number of bits in which two bit strings of equal length differ.
///
/// # Errors
/// `string_data_length_mismatch` for different lengths, like PostgreSQL's own bit operators.
#[pg_extern(immutable, parallel_safe, strict, cost = 10, support = near_dup_support)]
pub fn bit_hamming(a: Bits<'_>, b: Bits<'_>) -> i32 {
    let (bits, other_bits) = (a.len(), b.len());
    if bits != other_bits {
        raise(
            PgSqlErrorCode::ERRCODE_STRING_DATA_LENGTH_MISMATCH,
            &format!("cannot compare bit strings of {bits} and {other_bits} bits"),
            "Hamming distance is defined for bit strings of equal length.",
        );
    }
    neardup::hamming::distance(a.bytes(), b.bytes()) as i32
}

/// Returns the keys to store for lookups of bit strings at most `distance` apart: one for every subset of `blocks -
/// distance` of the `blocks` blocks. If `blocks` is NULL, it is `distance + 1`. Returns NULL if `b` or `distance` is
/// NULL.
///
/// # Errors
/// `invalid_parameter_value` unless 0 <= distance < blocks <= 64, and for more than 1024 keys.
#[pg_extern(immutable, parallel_safe, cost = 150)]
fn hamming_bands(
    b: Option<Bits<'_>>,
    distance: Option<i32>,
    blocks: default!(Option<i32>, "NULL"),
) -> Option<Vec<i64>> {
    let blocks = hamming_blocks(distance?, blocks);
    Some(blocks.keys(b?.as_bitslice()).or_raise())
}

/// Returns keys that find every bit string at most `distance` away: each such string has one of them among its own
/// keys, which `hamming_bands(b, index_distance, blocks)` made. Returns NULL if an argument other than `blocks` is
/// NULL.
///
/// # Errors
/// The errors of `hamming_bands`, and `invalid_parameter_value` for a distance below 0 or above `index_distance`.
#[pg_extern(immutable, parallel_safe, cost = 150)]
fn hamming_probe(
    b: Option<Bits<'_>>,
    index_distance: Option<i32>,
    distance: Option<i32>,
    blocks: default!(Option<i32>, "NULL"),
) -> Option<Vec<i64>> {
    let blocks = hamming_blocks(index_distance?, blocks);
    let distance = i64::from(distance?);
    Some(blocks.probe(b?.as_bitslice(), distance).or_raise())
}

fn hamming_blocks(distance: i32, blocks: Option<i32>) -> HammingBlocks {
    let distance = i64::from(distance);
    HammingBlocks::new(distance, blocks.map_or(distance + 1, i64::from)).or_raise()
}

/// Returns whether two bit strings differ in at most `distance` bits. False if their lengths differ.
///
/// # Errors
/// `invalid_parameter_value` for a negative distance.
#[pg_extern(immutable, parallel_safe, strict, cost = 5, support = near_dup_support)]
pub fn hamming_within(a: Bits<'_>, b: Bits<'_>, distance: i32) -> bool {
    let distance = options::distance(distance);
    a.len() == b.len() && neardup::hamming::distance(a.bytes(), b.bytes()) <= distance
}

pgrx::extension_sql_file!(
    "../../sql/simhash/hamming.sql",
    name = "hamming",
    requires = [bit_hamming, hamming_within]
);
