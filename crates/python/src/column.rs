//! Columns of texts or of bytes, as Python libraries represent them.

use std::ops::Deref;

use pyo3::exceptions::{PyImportError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyFloat, PyIterator, PyList, PyString, PyTuple};

use crate::arrow::Array;
use crate::error::at_item;
use crate::parallel::Document;

/// A column of Python objects or of Arrow data.
pub enum Column<'py> {
    Objects(Bound<'py, PyIterator>),
    Arrow(Vec<Array>),
}

/// A value that other threads may read. It keeps its Python object alive.
pub enum Value<'a> {
    Text(PyBackedStr),
    Bytes(PyBackedBytes),
    Arrow(&'a [u8]),
}

impl Deref for Value<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
            Self::Arrow(value) => value,
        }
    }
}

impl Document for Value<'_> {
    fn bytes(&self) -> usize {
        self.len()
    }
}

impl Document for [Value<'_>; 2] {
    fn bytes(&self) -> usize {
        self.iter().map(|value| value.len()).sum()
    }
}

impl<'py> Column<'py> {
    /// Reads an Arrow array or stream, or any iterable.
    ///
    /// # Errors
    /// TypeError for a single text or value.
    pub fn read(column: &Bound<'py, PyAny>) -> PyResult<Self> {
        reject_single(column)?;
        let is_plain = column.is_instance_of::<PyList>() || column.is_instance_of::<PyTuple>();
        let has_list = !is_plain && column.hasattr("tolist")?;
        if !is_plain {
            // A pandas Series has the method, but without pyarrow the method fails. A Series without a text has
            // numbers, which are NaN.
            match Array::read(column) {
                Ok(None) => {}
                Ok(Some(chunks)) => return Ok(Self::Arrow(chunks)),
                Err(error) if error.is_instance_of::<PyImportError>(column.py()) => {}
                Err(error) if error.is_instance_of::<PyTypeError>(column.py()) && has_list => {}
                Err(error) => return Err(error),
            }
        }
        if !has_list {
            return Ok(Self::Objects(column.try_iter()?));
        }
        // An array of NumPy without dimensions becomes a single value.
        let values = column.call_method0("tolist")?;
        reject_single(&values)?;
        Ok(Self::Objects(values.try_iter()?))
    }

    /// Returns the texts as UTF-8.
    ///
    /// # Errors
    /// TypeError unless each item is a text, ValueError for unpaired surrogates; both name the item.
    pub fn texts(&self) -> impl Iterator<Item = PyResult<Option<Value<'_>>>> {
        self.values("a text", |value| {
            let text = value.cast::<PyString>().ok()?.clone();
            Some(PyBackedStr::try_from(text).map(Value::Text))
        })
    }

    /// Returns the bytes.
    ///
    /// # Errors
    /// TypeError unless each item is a bytes object; it names the item.
    pub fn bytes(&self) -> impl Iterator<Item = PyResult<Option<Value<'_>>>> {
        self.values("a bytes object", |value| {
            let bytes = value.cast::<PyBytes>().ok()?.clone();
            Some(Ok(Value::Bytes(bytes.into())))
        })
    }

    fn values<'a>(
        &'a self,
        expected: &'static str,
        read: impl Fn(&Bound<'py, PyAny>) -> Option<PyResult<Value<'a>>>,
    ) -> impl Iterator<Item = PyResult<Option<Value<'a>>>> {
        let (chunks, objects): (&[Array], _) = match self {
            Self::Arrow(chunks) => (chunks, None),
            Self::Objects(objects) => (&[], Some(objects.clone())),
        };
        let value = move |(item, value): (usize, PyResult<Bound<'py, PyAny>>)| {
            let value = value?;
            match read(&value) {
                Some(Ok(value)) => Ok(Some(value)),
                Some(Err(error)) => Err(PyValueError::new_err(at_item(item, &error))),
                None if is_missing(&value) => Ok(None),
                None => Err(unexpected(item, &value, expected)),
            }
        };
        let of_chunk = |chunk: &'a Array| chunk.values().map(|value| Ok(value?.map(Value::Arrow)));
        let of_objects = objects.into_iter().flatten().enumerate().map(value);
        chunks.iter().flat_map(of_chunk).chain(of_objects)
    }
}

/// Checks that a column is not a single text or value.
///
/// # Errors
/// TypeError for a single text or value: its characters or bytes are not items.
pub fn reject_single(column: &Bound<'_, PyAny>) -> PyResult<()> {
    if column.is_instance_of::<PyString>() || column.is_instance_of::<PyBytes>() {
        return Err(PyTypeError::new_err(
            "a column of values expected, not a single one: put it into a list",
        ));
    }
    Ok(())
}

/// Returns the error for an item that is neither None nor of the expected types.
pub fn unexpected(item: usize, value: &Bound<'_, PyAny>, expected: &str) -> PyErr {
    match value.get_type().name() {
        Ok(name) => {
            let message = format!("{expected} or None expected, not {name}");
            PyTypeError::new_err(at_item(item, &message))
        }
        Err(error) => error,
    }
}

/// Returns whether a value stands for NULL: None, or one of the values that pandas uses instead.
fn is_missing(value: &Bound<'_, PyAny>) -> bool {
    value.is_none()
        || value
            .cast::<PyFloat>()
            .is_ok_and(|value| value.value().is_nan())
        || value.get_type().name().is_ok_and(|name| name == "NAType")
}
