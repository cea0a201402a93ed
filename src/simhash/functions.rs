//! SimHash of documents and of weighted terms.

use crate::options;
use crate::pg::arrays::beating;
use crate::pg::bits::NewBits;
use crate::pg::memo::{Document, Remembered, remembered};
use crate::pg::prelude::*;
use crate::pg::tsvector::TsVector;
use neardup::shingle::Key;
use neardup::simhash::{Sums, Weighting, Width, document, fixed_point};
use pgrx::prelude::*;

/// Implements `simhash`: returns the SimHash of a document, or NULL if it is empty. Takes linear time, 3 us for 260
/// words and 64 bits.
///
/// # Errors
/// `invalid_parameter_value` for k outside 1 to 256, an unknown unit, fold or weighting, and bits that are not a
/// multiple of 64 from 64 to 4096.
#[pg_extern(sql = false)]
#[allow(clippy::too_many_arguments)]
fn simhash(
    doc: Document<'_>,
    k: i32,
    unit: Text<'_>,
    fold: Text<'_>,
    bits: i32,
    weighting: Text<'_>,
    seed: i64,
    call: Call,
) -> Remembered<NewBits> {
    let shingling = options::shingling(k, &unit, &fold);
    let weighting = weighting.name().parse::<Weighting>().or_raise();
    let options = (shingling, width(bits), weighting, Key::from_seed(seed));
    remembered(call, &doc, options, |doc, options| {
        let (shingling, width, weighting, key) = options;
        let check = &mut check_interrupts;
        let bits = document(doc, shingling, key, *width, *weighting, check);
        bits.or_raise().map(NewBits::new)
    })
}

/// Returns the SimHash of weighted terms, or NULL if no term has a weight other than 0. The weights of a repeated term
/// add up. Ignores pairs with a NULL.
///
/// # Errors
/// `invalid_parameter_value` for NaN, infinite and too large weights, arrays of different lengths, and bits as in
/// `simhash`.
#[pg_extern(immutable, parallel_safe, strict, cost = 25000, name = "simhash")]
fn simhash_terms(
    terms: Array<'_, Text<'_>>,
    weights: Array<'_, f64>,
    bits: default!(i32, 64),
    seed: default!(i64, 0),
) -> Option<NewBits> {
    if terms.len() != weights.len() {
        invalid(
            &format!("{} terms with {} weights", terms.len(), weights.len()),
            "Pass one weight for each term.",
        );
    }
    let key = Key::from_seed(seed);
    let mut sums = Sums::new(width(bits));
    for pair in beating(terms.iter().zip(weights.iter())) {
        if let (Some(term), Some(weight)) = pair {
            add(&mut sums, &key, &term, weight).or_raise();
        }
    }
    sums.signature().map(NewBits::new)
}

/// Returns the SimHash of a document's lexemes, or NULL if there are none. A lexeme's frequency is the number of its
/// positions, at most 255 in a tsvector. Its weight is multiplied by the mean of the weights that `ts_rank` gives by
/// default to the classes of its positions: A 1.0, B 0.4, C 0.2, D 0.1.
///
/// # Errors
/// `invalid_parameter_value` for an unknown weighting, and bits as in `simhash`.
#[pg_extern(immutable, parallel_safe, strict, cost = 1500, name = "simhash")]
fn simhash_lexemes(
    doc: TsVector<'_>,
    bits: default!(i32, 64),
    weighting: default!(Text<'_>, "'log'"),
    seed: default!(i64, 0),
) -> Option<NewBits> {
    let weighting = weighting.name().parse::<Weighting>().or_raise();
    let key = Key::from_seed(seed);
    let mut sums = Sums::new(width(bits));
    for lexeme in doc.frequencies() {
        let weight = weighting.weight(lexeme.frequency) * lexeme.mean_weight;
        add(&mut sums, &key, &lexeme.lexeme, weight).or_raise();
    }
    sums.signature().map(NewBits::new)
}

/// Checks and returns the number of bits of a SimHash.
pub fn width(bits: i32) -> Width {
    Width::new(i64::from(bits)).or_raise()
}

fn add(sums: &mut Sums, key: &Key, term: &[u8], weight: f64) -> neardup::Result<()> {
    sums.add(key.element_hash(term), fixed_point(weight)?)
}

pgrx::extension_sql_file!("../../sql/simhash/functions.sql", name = "simhash");
