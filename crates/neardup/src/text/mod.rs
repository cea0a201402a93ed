//! Fold, words and characters: which texts count as the same.
//!
//! A document is bytes. Bytes that are not UTF-8 stand for U+FFFD, as in [`String::from_utf8_lossy`], and separate
//! words.
//!
//! Frozen: stored signatures depend on every rule here and on Unicode 17. The crates with the Unicode properties are
//! pinned to that version. No Unicode data of std is used, so that a newer compiler changes nothing.

mod cell;
mod decode;
mod fold;
mod properties;
mod quick;
mod split;
mod table;
mod words;

pub use split::{SplitBy, split};
pub use words::words;

pub(crate) use cell::Cell;
pub(crate) use decode::{fold_document, pieces};
pub(crate) use fold::FoldedText;
pub(crate) use properties::WordClass;
pub(crate) use quick::{ROOM, Units, fold_quickly};
pub(crate) use table::Table;

use crate::{Error, unknown};
use strum::{Display, EnumString, FromRepr, VariantNames};

/// Number of code points to process between two checks for interrupts.
const HEARTBEAT: usize = 1 << 16;

/// The English stop words, sorted: the function words, folded by 'case'. Frozen: stored signatures depend on them.
pub(crate) const STOP_WORDS: &str = "\
    a about above across after again against all along also although am among an and another any are around as at be \
    because been before behind being below beside between beyond both but by can could did do does doing done down \
    during each either even ever every few for from had has have having he her here hers herself him himself his how \
    i if in into is it its itself just many may me might mine more most much must my myself near neither never no \
    none nor not now of off on once one only or other ought our ours ourselves out over own per same several shall \
    she should since so some still such than that the their theirs them themselves then there these they this those \
    though through to too toward towards under unless until up upon us very via was we were what when where whether \
    which while who whom whose why will with within without would yet you your yours yourself yourselves";

/// Returns the words of [`STOP_WORDS`].
pub fn stop_words() -> impl Iterator<Item = &'static str> {
    STOP_WORDS.split(' ')
}

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

/// Differences in spelling that are ignored.
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
