//! Outlines of signatures: all that the search for pairs needs of them, so that they are read only once.

use crate::collection::documents::share_of_work_mem_bytes;
use crate::pg::spool::Records;
use neardup::Result;
use neardup::bands::plan::{BandPlan, VerifiedPlan};
use neardup::bands::{Bands, band_hashes};
use neardup::candidates::token;
use neardup::memory::{Grow, collected};
use neardup::minhash::{Header, Signature};
use siphasher::sip128::SipHasher13;
use std::ops::Range;

/// 128 bits of a record: different records share them with a probability of 2^-128 a pair.
pub type Digest = (u64, u64);

/// Bytes of a digest.
const DIGEST_LEN: usize = 16;

/// Returns the digest of a record.
pub fn digest(record: &[u8]) -> Digest {
    SipHasher13::new().hash(record).as_u64()
}

/// The parameters of outlines. The outline of a signature is its digest, by which identical rows are
/// found, then the tokens of its bands, 4 bytes each, and for verified pairs a few bits of its slots.
#[derive(Debug, Clone, Copy)]
pub struct Outlining {
    /// Of all signatures.
    pub header: Header,
    pub plan: BandPlan,
    /// Of pairs that are verified by their documents.
    pub verified: Option<Verified>,
}

/// The search for verified pairs.
#[derive(Debug, Clone, Copy)]
pub struct Verified {
    pub plan: VerifiedPlan,
    /// The header of the few bits of the slots.
    pub packed: Header,
}

impl Outlining {
    /// Returns how to outline signatures of that header for pairs that reach a threshold by their
    /// documents or, where there are none, by the estimate.
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

    fn bands(&self) -> &Bands {
        &self.plan.bands
    }

    /// Returns where an outline holds the tokens.
    pub fn tokens(&self) -> Range<usize> {
        DIGEST_LEN..DIGEST_LEN + size_of::<u32>() * self.bands().bands
    }

    /// Returns where an outline holds the few bits of the slots.
    pub fn packed(&self) -> Range<usize> {
        let start = self.tokens().end;
        start
            ..start
                + self
                    .verified
                    .map_or(0, |verified| verified.packed.payload_len())
    }

    fn len(&self) -> usize {
        self.packed().end
    }

    /// Appends the outline of a stored signature; nothing for that of an empty document.
    ///
    /// # Errors
    /// Those of reading a stored signature, or of one made with other parameters; `OutOfMemory`.
    pub fn push(&self, stored: &[u8], outline: &mut Vec<u8>) -> Result<()> {
        let signature = Signature::from_bytes(stored)?;
        if signature.header.empty {
            return Ok(());
        }
        self.header.check_comparable(&signature.header)?;
        outline.try_reserve(self.len())?;
        let (low, high) = digest(stored);
        outline.try_extend_from_slice(&low.to_le_bytes())?;
        outline.try_extend_from_slice(&high.to_le_bytes())?;
        write_tokens(band_hashes(&signature, self.bands()).map(token), outline)?;
        if let Some(verified) = &self.verified {
            verified
                .packed
                .push_slots(&collected(signature.slots())?, outline);
        }
        Ok(())
    }
}

/// Outlines of the rows of a collection.
pub struct Outlines {
    pub outlining: Outlining,
    pub records: Records,
}

impl Outlines {
    pub fn new(outlining: Outlining) -> Self {
        Self {
            outlining,
            records: Records::of_width(outlining.len(), share_of_work_mem_bytes()),
        }
    }

    /// Visits the digests of rows.
    pub fn for_each_digest(
        &mut self,
        rows: impl Iterator<Item = u32>,
        visit: &mut dyn FnMut(u32, Digest),
    ) {
        let mut buffer = Vec::new();
        for row in rows {
            let records = &mut self.records;
            let bytes = records.read_part(row as usize, 0..DIGEST_LEN, &mut buffer);
            let (halves, _) = bytes.as_chunks::<8>();
            let [low, high] = [halves[0], halves[1]].map(u64::from_le_bytes);
            visit(row, (low, high));
        }
    }

    /// Adds the outline of the next row.
    pub fn push(&mut self, outline: &[u8]) {
        self.records.push(outline);
    }
}

/// Returns the tokens that a part of an outline holds.
pub fn read_tokens(bytes: &[u8]) -> impl ExactSizeIterator<Item = u32> {
    let (tokens, _) = bytes.as_chunks::<4>();
    tokens.iter().map(|token| u32::from_le_bytes(*token))
}

/// Writes tokens as outlines hold them.
///
/// # Errors
/// `OutOfMemory`.
pub fn write_tokens(tokens: impl Iterator<Item = u32>, bytes: &mut Vec<u8>) -> Result<()> {
    for token in tokens {
        bytes.try_extend_from_slice(&token.to_le_bytes())?;
    }
    Ok(())
}
