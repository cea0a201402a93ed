//! The errors of this crate.

use std::collections::TryReserveError;
use std::fmt::Display;

/// The reason why a request was rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// An argument outside its range. `hint` lists the valid ones.
    #[error("{message}")]
    Invalid { message: String, hint: String },
    /// A comparison or a merge of signatures made with different parameters.
    #[error("{message}")]
    Incomparable { message: String, hint: String },
    /// A result larger than the caller can hold.
    #[error("{message}")]
    TooLarge { message: String, hint: String },
    /// Bytes or a text that no release has ever written as a signature, and the reason.
    #[error("invalid minhash_signature: {0}")]
    Corrupt(String),
    /// An allocation proportional to the input failed.
    #[error("out of memory")]
    OutOfMemory,
}

impl Error {
    pub fn invalid(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Invalid {
            message: message.into(),
            hint: hint.into(),
        }
    }

    pub fn corrupt(message: impl Into<String>) -> Self {
        Self::Corrupt(message.into())
    }
}

/// Quotes `name` for a message. A long name is cut, because it may be a whole document.
pub fn quoted(name: &str) -> String {
    const LONGEST: usize = 64;
    match name.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("\"{}...\"", &name[..end]),
        None => format!("\"{name}\""),
    }
}

/// Returns the error for a `name` that is not one of the `valid` names of a `what`.
pub fn unknown(what: &str, name: &str, valid: &[&str]) -> Error {
    Error::invalid(
        format!("unknown {what} {}", quoted(name)),
        format!("Valid {what}s are {}.", listed(valid)),
    )
}

/// Returns `names` as a list in a sentence: 'a', 'b' and 'c'.
pub(crate) fn listed(names: &[&str]) -> String {
    let all = names.join("', '");
    match all.rsplit_once(", ") {
        Some((before, last)) => format!("'{before} and {last}'"),
        None => format!("'{all}'"),
    }
}

impl From<TryReserveError> for Error {
    fn from(_: TryReserveError) -> Self {
        Self::OutOfMemory
    }
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Checks that `value` is between `low` and `high`, and returns it. Errors call it `name`.
///
/// # Errors
/// `Invalid` outside that range.
pub fn within(name: &str, value: i64, low: i64, high: i64) -> Result<i64> {
    if (low..=high).contains(&value) {
        return Ok(value);
    }
    Err(Error::invalid(
        format!("{name} = {value} is out of range"),
        format!("Valid values are {low} to {high}."),
    ))
}

/// Returns the error for an argument outside its range.
#[cold]
pub fn out_of_range(name: &str, value: &dyn Display, valid: &str) -> Error {
    Error::invalid(
        format!("{name} {value} is out of range"),
        format!("Valid values are {valid}."),
    )
}
