//! Errors of the algorithms as Python exceptions, with the same texts as the server's.

use neardup::Error;
use neardup::minhash::signature::{BINARY_FORM, TEXT_FORM};
use pyo3::exceptions::{PyMemoryError, PyOverflowError, PyValueError};
use pyo3::prelude::*;
use std::fmt::Display;

/// Returns the exception for an error, with message and hint as psycopg prints them.
pub fn raised(error: Error) -> PyErr {
    exception(&error, message_and_hint(&error, BINARY_FORM))
}

/// Returns the exception of [`raised`] for a text that should have been a signature.
pub fn raised_for_text(error: Error) -> PyErr {
    let form = format!("To compare with a document, sign it: neardup.signature(text). {TEXT_FORM}");
    exception(&error, message_and_hint(&error, &form))
}

/// Returns the exception of [`raised`] for an item of a column, counted from 0.
pub fn raised_at(item: usize, error: Error) -> PyErr {
    exception(
        &error,
        at_item(item, &message_and_hint(&error, BINARY_FORM)),
    )
}

fn exception(error: &Error, message: String) -> PyErr {
    match error {
        Error::OutOfMemory => PyMemoryError::new_err(error.to_string()),
        _ => PyValueError::new_err(message),
    }
}

/// Returns message and hint; `form` is the hint for a value that is not a signature.
fn message_and_hint(error: &Error, form: &str) -> String {
    let hint = match error {
        Error::Invalid { hint, .. }
        | Error::Incomparable { hint, .. }
        | Error::TooLarge { hint, .. } => hint,
        Error::Corrupt(_) => form,
        Error::OutOfMemory => "",
    };
    format!("{error}\nHINT:  {hint}")
}

/// Returns a message about an item of a column, counted from 0.
pub fn at_item(item: usize, message: &dyn Display) -> String {
    format!("item {item}: {message}")
}

/// Returns an integer argument. A value of more than 64 bits becomes the nearest one of 64 bits, because only a seed
/// can be as large.
///
/// # Errors
/// TypeError unless the value is an integer.
pub fn integer(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    match value.extract::<i64>() {
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => {
            Ok(if value.lt(0)? { i64::MIN } else { i64::MAX })
        }
        result => Ok(result?),
    }
}

/// Returns the argument `seed`.
///
/// # Errors
/// ValueError for more than 64 bits, TypeError unless the value is an integer.
pub fn seed(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    match value.extract::<i64>() {
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => {
            let valid = format!("Valid values are {} to {}.", i64::MIN, i64::MAX);
            let message = format!("seed = {value} is out of range");
            Err(raised(Error::invalid(message, valid)))
        }
        result => Ok(result?),
    }
}
