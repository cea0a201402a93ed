//! From documents to signatures, SimHashes and fingerprints.

use neardup::Result;
use neardup::arguments;
use neardup::error::within;
use neardup::minhash::{Header, SignatureUnit, Signing, Sketch};
use neardup::shingle::{self, Key, MAX_WINDOW, Shingling};
use neardup::simhash::{Weighting, Width, document};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::column::{Column, Value, reject_single, unexpected};
use crate::error::{integer, raised, seed};
use crate::parallel;

pub fn shingling(k: i64, unit: &str, fold: &str) -> PyResult<Shingling> {
    let cut = || Shingling::new(k, unit.parse()?, fold.parse()?);
    cut().map_err(raised)
}

#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn signatures<'py>(
    py: Python<'py>,
    texts: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = integer)] k: i64,
    unit: &str,
    fold: &str,
    #[pyo3(from_py_with = integer)] slots: i64,
    #[pyo3(from_py_with = seed)] seed: i64,
    made: &Bound<'py, PyAny>,
) -> PyResult<Vec<Option<Bound<'py, PyAny>>>> {
    let signing = Signing {
        shingling: shingling(k, unit, fold)?,
        slots: arguments::slots(slots).map_err(raised)?,
        key: Key::from_seed(seed),
    };
    let column = Column::read(texts)?;
    let sign = |text: &Value<'_>| signing.sign(text, &mut || {});
    parallel::map(py, column.texts(), sign, |signature| {
        made.call1((PyBytes::new(py, &signature),))
    })
}

#[pyfunction]
pub fn set_signature<'py>(
    py: Python<'py>,
    elements: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = integer)] slots: i64,
    #[pyo3(from_py_with = seed)] seed: i64,
) -> PyResult<Bound<'py, PyBytes>> {
    let slots = arguments::slots(slots).map_err(raised)?;
    let key = Key::from_seed(seed);
    let mut hashes = Vec::new();
    reject_single(elements)?;
    for (item, element) in elements.try_iter()?.enumerate() {
        let element = element?;
        if let Ok(text) = element.cast::<PyString>() {
            hashes.push(key.element_hash(text.to_str()?.as_bytes()));
        } else if let Ok(number) = element.extract::<i64>() {
            hashes.push(key.element_hash(&number.to_le_bytes()));
        } else if !element.is_none() {
            return Err(unexpected(item, &element, "a text, an integer of 64 bits"));
        }
    }
    let mut sketch = Sketch::new(slots);
    sketch.add(&hashes);
    let header = Header::of_set(SignatureUnit::Set, 1, slots, key.id());
    Ok(PyBytes::new(py, &sketch.encode(header)))
}

#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn simhashes(
    py: Python<'_>,
    texts: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = integer)] k: i64,
    unit: &str,
    fold: &str,
    #[pyo3(from_py_with = integer)] bits: i64,
    weighting: &str,
    #[pyo3(from_py_with = seed)] seed: i64,
) -> PyResult<Vec<Option<String>>> {
    let shingling = shingling(k, unit, fold)?;
    let width = Width::new(bits).map_err(raised)?;
    let weighting: Weighting = weighting.parse().map_err(raised)?;
    let key = Key::from_seed(seed);
    let column = Column::read(texts)?;
    let hash = |text: &Value<'_>| {
        let bits = document(text, &shingling, &key, width, weighting, &mut || ())?;
        let digit = |bit: bool| if bit { '1' } else { '0' };
        Ok(bits.map(|bits| bits.iter().by_vals().map(digit).collect::<String>()))
    };
    let hashed = parallel::map(py, column.texts(), hash, Ok)?;
    Ok(hashed.into_iter().map(Option::flatten).collect())
}

#[pyfunction]
pub fn winnow(
    py: Python<'_>,
    texts: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = integer)] k: i64,
    #[pyo3(from_py_with = integer)] window: i64,
    unit: &str,
    fold: &str,
    #[pyo3(from_py_with = seed)] seed: i64,
) -> PyResult<Vec<Option<Vec<i64>>>> {
    let shingling = shingling(k, unit, fold)?;
    let window = within("window", window, 1, MAX_WINDOW as i64).map_err(raised)?;
    let key = Key::from_seed(seed);
    let column = Column::read(texts)?;
    let select = |text: &Value<'_>| -> Result<Vec<i64>> {
        shingle::winnow(text, &shingling, &key, window as usize, &mut || ())
    };
    parallel::map(py, column.texts(), select, Ok)
}

/// Maximum number of bytes of the distinct shingles of a text, as in the server.
const MAX_SHINGLES: usize = 1 << 30;

#[pyfunction]
pub fn shingles(
    py: Python<'_>,
    texts: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = integer)] k: i64,
    unit: &str,
    fold: &str,
) -> PyResult<Vec<Option<Vec<String>>>> {
    let shingling = shingling(k, unit, fold)?;
    let column = Column::read(texts)?;
    let cut = |text: &Value<'_>| -> Result<Vec<String>> {
        shingle::shingles(text, &shingling, MAX_SHINGLES, &mut || ())
    };
    parallel::map(py, column.texts(), cut, Ok)
}

#[pyfunction]
pub fn shingle_hashes(
    py: Python<'_>,
    texts: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = integer)] k: i64,
    unit: &str,
    fold: &str,
    #[pyo3(from_py_with = seed)] seed: i64,
) -> PyResult<Vec<Option<Vec<i64>>>> {
    let shingling = shingling(k, unit, fold)?;
    let key = Key::from_seed(seed);
    let column = Column::read(texts)?;
    let hash = |text: &Value<'_>| shingle::shingle_hashes(text, &shingling, &key, &mut || ());
    parallel::map(py, column.texts(), hash, Ok)
}
