//! Folds text code point by code point, in one pass. Holds back only the end of the text that later code points can
//! still change.
//!
//! Fold 'case' is toNFKC_Casefold (Unicode, section 3.13.3): every code point mapped, then NFC. Fold 'marks' is NFD
//! of that, without nonspacing marks, then NFC. Both are one mapping by code point, followed by canonical ordering
//! and composition (UAX #15) inside segments that no mark can leave.

use super::properties::{Info, Mapped, WordClass};
use super::table::{Table, info};
use super::{Fold, HEARTBEAT};
use crate::Result;
use crate::memory::{FirstError, Grow, copied};
use std::ops::Range;
use unicode_normalization::char::{compose, decompose_canonical};

/// Receives a folded text.
pub(crate) trait FoldedText {
    /// Receives the next code point, and the bytes of the document that it was made from.
    fn put(&mut self, c: char, class: WordClass, source: Range<usize>);
    /// Called while a long sequence of marks is ordered.
    fn check(&mut self);
}

/// Folds a document, code point by code point.
pub(crate) struct Folder {
    table: &'static Table,
    is_plain: bool,
    /// The last code point while no segment is open, else [`Info::DROPPED`].
    pending: Info,
    /// A boundary and the marks after it, canonically decomposed.
    segment: Vec<Info>,
    /// The source of the pending code point or the open segment.
    source: Range<usize>,
    /// Set when a segment does not fit into memory; [`Folder::finish`] returns it.
    error: FirstError,
}

impl Folder {
    pub fn new(fold: Fold) -> Self {
        Self {
            table: Table::of(fold),
            is_plain: fold == Fold::None,
            pending: Info::DROPPED,
            segment: Vec::new(),
            source: 0..0,
            error: FirstError::default(),
        }
    }

    #[inline]
    pub fn push(&mut self, c: char, source: Range<usize>, out: &mut impl FoldedText) {
        match self.table.map(c) {
            Mapped::One(info) if info.is_dropped() => {}
            Mapped::One(info) if self.is_plain => out.put(c, info.class(), source),
            Mapped::One(info) if info.has(Info::BOUNDARY) => {
                self.flush(out);
                self.pending = info;
                self.source = source;
            }
            Mapped::One(info) => self.extend(info, &source, out),
            Mapped::Several(infos) => {
                for info in infos {
                    self.extend(*info, &source, out);
                }
            }
        }
    }

    /// Passes the characters held back to `out`, because the document ends here or a boundary follows.
    #[inline]
    pub fn flush(&mut self, out: &mut impl FoldedText) {
        if !self.segment.is_empty() {
            self.flush_segment(out);
        } else if !self.pending.is_dropped() {
            let pending = std::mem::replace(&mut self.pending, Info::DROPPED);
            out.put(pending.char(), pending.class(), self.source.clone());
        }
    }

    /// Passes the rest to `out`, because the document ends here.
    ///
    /// # Errors
    /// `OutOfMemory`, if a sequence of combining marks was too long; parts of it are missing.
    pub fn finish(mut self, out: &mut impl FoldedText) -> Result<()> {
        self.flush(out);
        self.error.into_result()
    }

    /// Returns whether nothing is held back.
    pub fn is_empty(&self) -> bool {
        self.segment.is_empty() && self.pending.is_dropped()
    }

    fn extend(&mut self, info: Info, source: &Range<usize>, out: &mut impl FoldedText) {
        if info.has(Info::BOUNDARY) {
            self.flush(out);
        }
        if self.segment.is_empty() {
            if self.pending.is_dropped() {
                self.source.start = source.start;
            } else {
                self.push_decomposed(self.pending);
                self.pending = Info::DROPPED;
            }
        }
        self.source.end = source.end;
        self.push_decomposed(info);
    }

    fn push_decomposed(&mut self, whole: Info) {
        let mut push = |part| self.error.run(|| self.segment.try_push(part));
        if whole.has(Info::DECOMPOSES) {
            decompose_canonical(whole.char(), |part| push(info(part)));
        } else {
            push(whole);
        }
    }

    fn flush_segment(&mut self, out: &mut impl FoldedText) {
        let alike = |a: &Info, b: &Info| (a.combining_class() == 0) == (b.combining_class() == 0);
        for run in self.segment.chunk_by_mut(alike) {
            self.error.run(|| order(run, out));
        }
        let kept = compose_segment(&mut self.segment, out);
        for parts in self.segment[..kept].chunks(HEARTBEAT) {
            for part in parts {
                out.put(part.char(), part.class(), self.source.clone());
            }
            if parts.len() == HEARTBEAT {
                out.check();
            }
        }
        self.segment.clear();
    }
}

/// Maximum number of marks to sort by insertion.
const FEW: usize = 20;

/// Sorts `run`, a run of marks, into canonical order.
///
/// # Errors
/// `OutOfMemory`.
fn order(run: &mut [Info], out: &mut impl FoldedText) -> Result<()> {
    if run.is_sorted_by_key(|part| part.combining_class()) {
        return Ok(());
    }
    if run.len() <= FEW {
        for sorted in 1..run.len() {
            let place = run[..sorted]
                .partition_point(|part| part.combining_class() <= run[sorted].combining_class());
            run[place..=sorted].rotate_right(1);
        }
        return Ok(());
    }
    // Counting sort: linear and stable, with checks for interrupts.
    let mut next = [0usize; 257];
    for parts in run.chunks(HEARTBEAT) {
        for part in parts {
            next[usize::from(part.combining_class()) + 1] += 1;
        }
        out.check();
    }
    for class in 1..next.len() {
        next[class] += next[class - 1];
    }
    let ordered = copied(run)?;
    out.check();
    for parts in ordered.chunks(HEARTBEAT) {
        for part in parts {
            let place = &mut next[usize::from(part.combining_class())];
            run[*place] = *part;
            *place += 1;
        }
        out.check();
    }
    Ok(())
}

/// Applies canonical composition in place. Returns the number of parts that are left.
fn compose_segment(segment: &mut [Info], out: &mut impl FoldedText) -> usize {
    let mut kept = 0;
    let mut starter = None;
    for i in 0..segment.len() {
        let part = segment[i];
        let class = part.combining_class();
        if i % HEARTBEAT == HEARTBEAT - 1 {
            out.check();
        }
        if let Some(s) = starter {
            let is_blocked = kept - 1 > s && segment[kept - 1].combining_class() >= class;
            if let (false, Some(composite)) = (is_blocked, compose(segment[s].char(), part.char()))
            {
                segment[s] = info(composite);
                continue;
            }
        }
        if class == 0 {
            starter = Some(kept);
        }
        segment[kept] = part;
        kept += 1;
    }
    kept
}
