//! Compares two documents: common chunks, edit distance, and differences.

use crate::pg::prelude::*;
use crate::pg::srf::Record;
use neardup::align::{self, ChunkPlace, Costs};
use pgrx::prelude::*;

type SimilarityRecord = Record<(i32, i32, i32, f64, f64)>;
type ExplanationRecord = Record<(NewText, f64, Vec<NewText>, Vec<NewText>)>;

pgrx::impl_sql_translatable!(SimilarityRecord, "record");
pgrx::impl_sql_translatable!(ExplanationRecord, "record");

/// Approximate bytes of two documents per check for interrupts while their words are aligned.
const BYTES_A_CHECK: usize = 1200;

/// Returns a check for interrupts that also reports the progress of comparing documents of these lengths.
fn comparing(bytes: [usize; 2]) -> impl FnMut() {
    let checks = bytes.into_iter().sum::<usize>() / BYTES_A_CHECK;
    let mut progress = Progress::of_call("comparing", checks);
    move || progress.step()
}

/// Returns the runs of words that both documents have. Positions count from 1, as in `substr`.
///
/// # Errors
/// `invalid_parameter_value` for an unknown matching or `min_words` below 1;
/// `program_limit_exceeded` for documents above [`align::MAX_UNITS`] words.
#[pg_extern(sql = false)]
#[allow(clippy::type_complexity, reason = "pgrx wants the columns in the signature")]
fn common_chunks(
    a: Text<'_>,
    b: Text<'_>,
    min_words: i32,
    matching: Text<'_>,
) -> TableIterator<
    'static,
    (
        name!(words, i32),
        name!(a_word, i32),
        name!(a_start, i32),
        name!(a_length, i32),
        name!(b_word, i32),
        name!(b_start, i32),
        name!(b_length, i32),
        name!(chunk, NewText),
    ),
> {
    let matching = matching.name().parse().or_raise();
    let check = &mut comparing([a.len(), b.len()]);
    let chunks = align::common_chunks(&a, &b, i64::from(min_words), matching, check).or_raise();
    let a = copied(&a).or_raise();
    TableIterator::new(chunks.into_iter().map(move |chunk| {
        let [a_place, b_place] = [&chunk.a, &chunk.b].map(from_one);
        (
            chunk.words as i32,
            a_place.0,
            a_place.1,
            a_place.2,
            b_place.0,
            b_place.1,
            b_place.2,
            NewText(copied(&a[chunk.a.bytes]).or_raise()),
        )
    }))
}

/// Returns the first word and the first character of `place`, counted from 1, and the number of its characters.
fn from_one(place: &ChunkPlace) -> (i32, i32, i32) {
    let (word, start) = (place.word as i32, place.chars.start as i32);
    (word + 1, start + 1, place.chars.end as i32 - start)
}

/// Returns the numbers of words in common chunks (C), in the longer (L) and in the shorter document (S), and the
/// similarities S_L = C / L and S_J = C / (L + S - C).
///
/// # Errors
/// The errors of [`common_chunks`].
#[pg_extern(sql = false)]
fn chunk_similarity(
    a: Text<'_>,
    b: Text<'_>,
    min_words: i32,
    matching: Text<'_>,
) -> SimilarityRecord {
    let matching = matching.name().parse().or_raise();
    let check = &mut comparing([a.len(), b.len()]);
    let found = align::chunk_similarity(&a, &b, i64::from(min_words), matching, check).or_raise();
    Record((
        found.common as i32,
        found.longer as i32,
        found.shorter as i32,
        found.s_l(),
        found.s_j(),
    ))
}

/// Returns the longest text that both documents contain; empty if they have no character in common.
///
/// # Errors
/// `program_limit_exceeded` for documents above [`align::MAX_UNITS`] characters.
#[pg_extern(immutable, parallel_safe, strict, cost = 40000)]
fn longest_common_substring(a: Text<'_>, b: Text<'_>) -> NewText {
    let found =
        align::longest_common_substring(&a, &b, &mut comparing([a.len(), b.len()])).or_raise();
    NewText(copied(&a[found]).or_raise())
}

/// Returns the minimum cost of turning `a` into `b`, or NULL if the cost is above `max` or if an argument other than
/// `max` is NULL.
///
/// # Errors
/// `invalid_parameter_value` for costs outside 0 to [`align::MAX_COST`] or a negative `max`;
/// `program_limit_exceeded` for documents above [`align::MAX_UNITS`] characters.
#[pg_extern(immutable, parallel_safe, cost = 40000)]
fn edit_distance(
    a: Option<Text<'_>>,
    b: Option<Text<'_>>,
    ins_cost: default!(Option<i32>, 1),
    del_cost: default!(Option<i32>, 1),
    sub_cost: default!(Option<i32>, 1),
    max: default!(Option<i64>, "NULL"),
) -> Option<i64> {
    let [insert, delete, substitute] = [ins_cost?, del_cost?, sub_cost?].map(i64::from);
    let costs = Costs::new(insert, delete, substitute).or_raise();
    let (a, b) = (a?, b?);
    align::edit_distance(&a, &b, costs, max, &mut comparing([a.len(), b.len()])).or_raise()
}

/// Returns the kind of difference between two documents, their similarity, and the words that only one of them has.
///
/// # Errors
/// `program_limit_exceeded` for documents above [`align::MAX_UNITS`] words.
#[pg_extern(sql = false)]
fn near_dup_explain(a: Text<'_>, b: Text<'_>) -> ExplanationRecord {
    let found = align::explain(&a, &b, &mut comparing([a.len(), b.len()])).or_raise();
    let texts = |words: Vec<Vec<u8>>| collected(words.into_iter().map(NewText)).or_raise();
    Record((
        NewText(found.kind.to_string().into_bytes()),
        found.similarity,
        texts(found.only_in_a),
        texts(found.only_in_b),
    ))
}

pgrx::extension_sql_file!("../../sql/text/align.sql", name = "align");
