//! From errors of the algorithms to Python's, in the words that the server has for them.

use neardup::Error;
use neardup::minhash::signature::{BINARY_FORM, TEXT_FORM};
use pyo3::PyErr;
use pyo3::exceptions::{PyMemoryError, PyValueError};

/// Returns the exception for an error: message and hint as psycopg prints them.
pub fn raised(error: Error) -> PyErr {
    raised_as(error, BINARY_FORM.to_owned())
}

/// [`raised`], where what should have been a signature is a text.
pub fn raised_for_text(error: Error) -> PyErr {
    let form = format!("To compare with a document, sign it: neardup.signature(text). {TEXT_FORM}");
    raised_as(error, form)
}

fn raised_as(error: Error, form: String) -> PyErr {
    let message = error.to_string();
    let hint = match &error {
        Error::Invalid { hint, .. }
        | Error::Incomparable { hint, .. }
        | Error::TooLarge { hint, .. } => hint,
        Error::Corrupt(_) => &form,
        Error::OutOfMemory => return PyMemoryError::new_err(message),
    };
    PyValueError::new_err(format!("{message}\nHINT:  {hint}"))
}
