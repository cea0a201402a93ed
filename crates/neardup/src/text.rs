//! Fold, words, characters: what counts as the same text.

use crate::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// What a shingle is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unit {
    /// k consecutive words.
    Word,
    /// k consecutive code points.
    Char,
    /// k consecutive words, the first of them a stop word.
    Stop,
}

/// Which differences of spelling are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fold {
    /// The text as it is.
    None,
    /// NFKC_Casefold (Unicode, section 3.13.3).
    Case,
    /// NFKC_Casefold, then nonspacing marks (Mn) dropped.
    Marks,
}

impl FromStr for Unit {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "word" => Ok(Self::Word),
            "char" => Ok(Self::Char),
            "stop" => Ok(Self::Stop),
            _ => Err(Error::invalid(
                format!("unknown unit \"{name}\""),
                "Valid units are 'word', 'char' and 'stop'.",
            )),
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Word => "word",
            Self::Char => "char",
            Self::Stop => "stop",
        })
    }
}

impl FromStr for Fold {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "none" => Ok(Self::None),
            "case" => Ok(Self::Case),
            "marks" => Ok(Self::Marks),
            _ => Err(Error::invalid(
                format!("unknown fold \"{name}\""),
                "Valid folds are 'none', 'case' and 'marks'.",
            )),
        }
    }
}

impl fmt::Display for Fold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Case => "case",
            Self::Marks => "marks",
        })
    }
}
