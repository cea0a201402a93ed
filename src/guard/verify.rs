//! Exact resemblance of documents, for a guard that verifies.

use crate::index::kind::Bound;
use crate::minhash::datum::{StoredSignature, shingling};
use crate::pg::error::{OrRaise, check_interrupts};
use crate::pg::text::Text;
use neardup::set;
use neardup::shingle::{Key, Shingling, shingle_hashes};
use pgrx::pg_sys;

/// A version's document, its shingles computed when they are first asked for.
pub struct VersionDocument {
    text: Option<pg_sys::Datum>,
    shingling: Option<Shingling>,
    threshold: f64,
    hashes: Option<Vec<i64>>,
}

impl VersionDocument {
    /// Takes `text` of a text type and `signature` of the kind's type; both outlive the value.
    pub fn new(text: Option<pg_sys::Datum>, bound: &Bound, signature: pg_sys::Datum) -> Self {
        let (shingling, threshold) = match bound {
            Bound::Threshold(threshold) => {
                // SAFETY: the signature is of the kind's type.
                let stored = unsafe { StoredSignature::from_raw(signature) };
                (shingling(&stored.read().header), *threshold)
            }
            Bound::Distance(_) | Bound::Share(_) | Bound::Resemblance(..) => (None, 1.0),
        };
        Self {
            text,
            shingling,
            threshold,
            hashes: None,
        }
    }

    /// Returns the exact resemblance to another document; None below the threshold.
    ///
    /// # Safety
    /// `other` is of a text type.
    pub unsafe fn resemblance(&mut self, other: Option<pg_sys::Datum>) -> Option<f64> {
        let (text, other) = (self.text?, other?);
        let shingling = match &self.shingling {
            Some(shingling) => *shingling,
            None => Err(neardup::Error::invalid(
                "signatures of sets cannot be verified by the text of documents",
                "Leave out verify=, or guard a signature made by minhash(document).",
            ))
            .or_raise(),
        };
        let hashes = |datum| {
            // SAFETY: vouched for by the callers of this function and of `new`.
            let text = unsafe { Text::from_raw(datum) };
            shingle_hashes(&text, &shingling, &Key::from_seed(0), &mut check_interrupts).or_raise()
        };
        let ours = self.hashes.get_or_insert_with(|| hashes(text));
        let resemblance = set::jaccard(ours, &hashes(other), &mut check_interrupts);
        (resemblance >= self.threshold).then_some(resemblance)
    }
}
