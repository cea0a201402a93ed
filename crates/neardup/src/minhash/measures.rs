//! Containment and cardinality, from the codes of the slots.

use super::combine::check_full_width;
use super::{Signature, SignatureUnit};
use crate::hash::slot::fill_time;
use crate::{Error, Result};

/// Returns the estimated share of the set of `a` that is in the set of `b`: #(a = b) / #(a <= b) over the slots, 1 for
/// subsets. 0 if `a` or `b` is empty; `None` if no slot of `a` is at most the slot of `b`.
///
/// # Errors
/// `Incomparable` if the parameters differ, `Invalid` for packed signatures.
pub fn containment(a: &Signature<'_>, b: &Signature<'_>) -> Result<Option<f64>> {
    a.header.check_comparable(&b.header)?;
    check_full_width(a)?;
    if a.header.empty || b.header.empty {
        return Ok(Some(0.0));
    }
    let pairs = || a.slots().zip(b.slots());
    let equal = pairs().filter(|(a, b)| a == b).count();
    let at_most = pairs().filter(|(a, b)| a <= b).count();
    Ok((at_most > 0).then(|| equal as f64 / at_most as f64))
}

/// Returns the estimated number of distinct elements of a signature of k slots: k (d - 1) / sum(min(T, k)). T is the
/// round in which a slot was filled plus its value as a fraction, and d is the number of slots filled before round
/// k. Bias at most 1 %; standard error 6 to 9 % at 128 slots, 3 to 4.5 % at 512. 0 for an empty document and for a
/// single slot.
///
/// # Errors
/// `Invalid` for packed signatures and for slots computed elsewhere.
pub fn cardinality(signature: &Signature<'_>) -> Result<f64> {
    check_full_width(signature)?;
    if signature.header.unit == SignatureUnit::Imported {
        return Err(Error::invalid(
            "a signature imported from elsewhere does not tell how many elements there were",
            "Use signatures made by minhash, minhash_agg, or minhash_union.",
        ));
    }
    if signature.header.empty {
        return Ok(0.0);
    }
    let slots = f64::from(signature.header.slots);
    let (mut filled, mut sum) = (0.0, 0.0);
    for code in signature.slots() {
        let time = fill_time(code);
        filled += f64::from(u8::from(time < slots));
        sum += time.min(slots);
    }
    Ok(slots * (filled - 1.0) / sum)
}
