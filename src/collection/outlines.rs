//! Outlines of signatures: the parts that the search for pairs needs, stored apart so that each signature is read only
//! once.

use crate::pg::prelude::*;
use neardup::bands::band_hashes;
use neardup::bands::plan::{BandPlan, VerifiedPlan};
use neardup::candidates::token;
use neardup::minhash::{Header, Signature};
use siphasher::sip128::SipHasher13;
use std::ops::Range;

/// A 128-bit hash of a record. Two different records share it with a probability of 2^-128.
pub type Digest = (u64, u64);

/// Number of bytes of a digest.
const DIGEST_LEN: usize = 16;

/// Returns the digest of a record.
pub fn digest(record: &[u8]) -> Digest {
    SipHasher13::new().hash(record).as_u64()
}

/// Appends the digest of `record` to `outline`.
///
/// # Errors
/// `OutOfMemory`.
pub fn push_digest(record: &[u8], outline: &mut Vec<u8>) -> Result<()> {
    let (low, high) = digest(record);
    outline.try_extend_from_slice([low, high].map(u64::to_le_bytes).as_flattened())
}

/// Returns the digest at the start of the outline of `row`. `buffer` is scratch space.
pub fn read_digest(outlines: &mut Records, row: u32, buffer: &mut Vec<u8>) -> Digest {
    let bytes = outlines.read_part(row as usize, 0..DIGEST_LEN, buffer);
    let (halves, _) = bytes.as_chunks::<8>();
    let [low, high] = [halves[0], halves[1]].map(u64::from_le_bytes);
    (low, high)
}

/// The parameters of outlines. An outline holds the digest of a signature, which identifies identical rows, then the
/// tokens of its bands, 4 bytes each, and for verified pairs a few bits of each slot.
#[derive(Debug, Clone, Copy)]
pub struct Outlining {
    /// The parameters of all signatures.
    pub header: Header,
    pub plan: BandPlan,
    /// Set if pairs are verified by their documents.
    pub verified: Option<Verified>,
}

/// The plan of a search for pairs that are verified by their documents.
#[derive(Debug, Clone, Copy)]
pub struct Verified {
    pub plan: VerifiedPlan,
    /// The header of the packed slots.
    pub packed: Header,
}

impl Outlining {
    /// Plans the outlines of signatures with `header`, for pairs that reach `threshold` by their documents or, without
    /// documents, by the estimate.
    pub fn new(header: &Header, threshold: f64, has_documents: bool) -> Self {
        let slots = usize::from(header.slots);
        if !has_documents {
            return Self {
                header: *header,
                plan: BandPlan::estimate(slots, u32::from(header.slot_bits), threshold),
                verified: None,
            };
        }
        let plan = VerifiedPlan::new(slots, header.slot_bits, threshold);
        let packed = Header {
            slot_bits: plan.field_bits,
            ..*header
        };
        Self {
            header: *header,
            plan: BandPlan {
                bands: plan.bands,
                needed: 1,
            },
            verified: Some(Verified { plan, packed }),
        }
    }

    /// Returns the byte range of the tokens in an outline.
    pub fn tokens(&self) -> Range<usize> {
        DIGEST_LEN..DIGEST_LEN + size_of::<u32>() * self.plan.bands.bands
    }

    /// Returns the byte range of the packed slots in an outline.
    pub fn packed(&self) -> Range<usize> {
        let start = self.tokens().end;
        let verified = self.verified.as_ref();
        start..start + verified.map_or(0, |verified| verified.packed.payload_len())
    }

    /// Appends the outline of a stored signature, or nothing if its document is empty.
    ///
    /// # Errors
    /// `Corrupt` for bytes that are not a signature, `Incomparable` if it was made with different parameters,
    /// `OutOfMemory`.
    pub fn push(&self, stored: &[u8], outline: &mut Vec<u8>) -> Result<()> {
        let signature = Signature::from_bytes(stored)?;
        if signature.header.empty {
            return Ok(());
        }
        self.header.check_comparable(&signature.header)?;
        outline.try_reserve(self.packed().end)?;
        push_digest(stored, outline)?;
        let hashes = band_hashes(&signature, &self.plan.bands);
        write_tokens(hashes.map(token), outline)?;
        if let Some(verified) = &self.verified {
            let slots = collected(signature.slots())?;
            verified.packed.push_slots(&slots, outline);
        }
        Ok(())
    }
}

/// Returns the tokens stored in `bytes`, 4 bytes each as in an outline.
pub fn read_tokens(bytes: &[u8]) -> impl ExactSizeIterator<Item = u32> {
    let (tokens, _) = bytes.as_chunks::<4>();
    tokens.iter().map(|token| u32::from_le_bytes(*token))
}

/// Appends `tokens` to `bytes`, 4 bytes each as in an outline.
///
/// # Errors
/// `OutOfMemory`.
pub fn write_tokens(tokens: impl Iterator<Item = u32>, bytes: &mut Vec<u8>) -> Result<()> {
    for token in tokens {
        bytes.try_extend_from_slice(&token.to_le_bytes())?;
    }
    Ok(())
}
