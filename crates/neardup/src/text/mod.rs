//! Fold, words, characters: which texts count as the same.
//!
//! A document is bytes. Those that are not UTF-8 stand for U+FFFD, as in
//! [`String::from_utf8_lossy`]: they separate words.
//!
//! Frozen: signatures that are stored depend on every rule here and on Unicode 17, to which the
//! crates that the properties come from are pinned. No Unicode data of std is consulted, so that a
//! newer compiler changes nothing.

mod cell;
mod decode;
mod fold;
mod properties;
mod quick;
mod split;
mod stop_words;
mod table;
mod words;

pub use split::{SplitBy, split};
pub use stop_words::STOP_WORDS;

pub(crate) use cell::Cell;
pub(crate) use decode::{fold_document, pieces};
pub(crate) use fold::FoldedText;
pub(crate) use properties::WordClass;
pub(crate) use quick::{ROOM, Units, fold_quickly};
pub(crate) use words::{WordSink, Words};

use crate::memory::FirstError;
use crate::{Error, Result, unknown};
use std::ops::Range;
use strum::{Display, EnumString, FromRepr, VariantNames};

/// Work, in code points, after which interrupts are checked for.
const HEARTBEAT: usize = 1 << 16;

/// Elements of a shingle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Display, EnumString, FromRepr, VariantNames)]
#[strum(serialize_all = "lowercase", parse_err_ty = Error, parse_err_fn = unknown_unit)]
#[repr(u8)]
pub enum Unit {
    /// k consecutive words.
    Word,
    /// k consecutive code points.
    Char,
    /// k consecutive words, the first of them a stop word.
    Stop,
}

/// Differences of spelling that are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Display, EnumString, FromRepr, VariantNames)]
#[strum(serialize_all = "lowercase", parse_err_ty = Error, parse_err_fn = unknown_fold)]
#[repr(u8)]
pub enum Fold {
    /// The text as it is.
    None,
    /// NFKC_Casefold (Unicode, section 3.13.3).
    Case,
    /// NFKC_Casefold, then nonspacing marks (Mn) dropped.
    Marks,
}

fn unknown_unit(name: &str) -> Error {
    unknown("unit", name, Unit::VARIANTS)
}

fn unknown_fold(name: &str) -> Error {
    unknown("fold", name, Fold::VARIANTS)
}

/// The words of a document in order: the word as folded, and the bytes of `doc` that it was made
/// from. Two ranges overlap where one code point becomes parts of two words ("½" folds to "1⁄2").
///
/// `check` is called at least every 64 KiB. Linear time; memory for the longest word.
///
/// # Errors
/// The first that `emit` returns, which is not called again; `OutOfMemory`.
pub fn words(
    doc: &[u8],
    fold: Fold,
    check: &mut dyn FnMut(),
    emit: &mut dyn FnMut(&str, Range<usize>) -> Result<()>,
) -> Result<()> {
    let mut words = Words::new(EachWord {
        check,
        emit,
        error: FirstError::default(),
    });
    fold_document(doc, fold, &mut words)?;
    words.finish()?.error.into_result()
}

struct EachWord<'a> {
    check: &'a mut dyn FnMut(),
    emit: &'a mut dyn FnMut(&str, Range<usize>) -> Result<()>,
    error: FirstError,
}

impl WordSink for EachWord<'_> {
    fn word(&mut self, word: &str, source: Range<usize>) {
        self.error.run(|| (self.emit)(word, source));
    }

    fn check(&mut self) {
        (self.check)();
    }
}
