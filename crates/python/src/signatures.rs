//! Functions of signatures: measures, properties, and new signatures from old ones.

use neardup::bands::{Bands, band_keys};
use neardup::minhash::signature::VERSION;
use neardup::minhash::{Signature, combine, estimate_stored, measures, near_duplicates_stored};
use neardup::{Result, arguments};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::column::{Column, Value};
use crate::error::{integer, raised, raised_for_text};
use crate::parallel;

fn read(bytes: &[u8]) -> PyResult<Signature<'_>> {
    Signature::from_bytes(bytes).map_err(raised)
}

fn new<'py>(py: Python<'py>, signature: Result<Vec<u8>>) -> PyResult<Bound<'py, PyBytes>> {
    Ok(PyBytes::new(py, &signature.map_err(raised)?))
}

/// Raises ValueError unless the bytes are a signature. Checks every slot.
#[pyfunction]
pub fn check(signature: &[u8]) -> PyResult<()> {
    Signature::from_foreign_bytes(signature).map_err(raised)?;
    Ok(())
}

#[pyfunction]
pub fn parse<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyBytes>> {
    let bytes = Signature::parse_text(text).map_err(raised_for_text)?;
    Ok(PyBytes::new(py, &bytes))
}

#[pyfunction]
pub fn text(signature: &[u8]) -> PyResult<String> {
    Ok(read(signature)?.to_string())
}

#[pyfunction]
pub fn describe<'py>(py: Python<'py>, signature: &[u8]) -> PyResult<Bound<'py, PyDict>> {
    let header = read(signature)?.header;
    let parameters = PyDict::new(py);
    parameters.set_item("version", VERSION)?;
    parameters.set_item("unit", header.unit.to_string())?;
    parameters.set_item("k", header.k)?;
    parameters.set_item("fold", header.fold.to_string())?;
    parameters.set_item("slots", header.slots)?;
    parameters.set_item("slot_bits", header.slot_bits)?;
    parameters.set_item("seed_id", format!("{:016x}", header.seed_id))?;
    parameters.set_item("empty", header.empty)?;
    parameters.set_item("bytes", signature.len())?;
    Ok(parameters)
}

#[pyfunction]
pub fn sim(a: &[u8], b: &[u8]) -> PyResult<f64> {
    estimate_stored(a, b).map_err(raised)
}

#[pyfunction]
pub fn near_dup(a: &[u8], b: &[u8], threshold: f64) -> PyResult<bool> {
    let threshold = arguments::threshold(threshold).map_err(raised)?;
    let is_near = near_duplicates_stored(a, b, threshold).map_err(raised)?;
    Ok(is_near.unwrap_or(false))
}

#[pyfunction]
pub fn distances(
    py: Python<'_>,
    signature: &[u8],
    others: &Bound<'_, PyAny>,
) -> PyResult<Vec<Option<f64>>> {
    read(signature)?;
    let column = Column::read(others)?;
    let distance = |other: &Value<'_>| Ok(1.0 - estimate_stored(signature, other)?);
    parallel::map(py, column.bytes(), distance, Ok)
}

#[pyfunction]
pub fn interval(a: &[u8], b: &[u8], confidence: f64) -> PyResult<(f64, f64, f64)> {
    let interval = neardup::minhash::interval::interval(&read(a)?, &read(b)?, confidence);
    let limits = interval.map_err(raised)?;
    Ok((limits.low, limits.estimate, limits.high))
}

#[pyfunction]
pub fn containment(a: &[u8], b: &[u8]) -> PyResult<Option<f64>> {
    measures::containment(&read(a)?, &read(b)?).map_err(raised)
}

#[pyfunction]
pub fn cardinality(signature: &[u8]) -> PyResult<f64> {
    measures::cardinality(&read(signature)?).map_err(raised)
}

#[pyfunction]
pub fn bands(signature: &[u8], threshold: f64) -> PyResult<Vec<i64>> {
    let signature = read(signature)?;
    let threshold = arguments::threshold(threshold).map_err(raised)?;
    let (slots, bits) = (signature.header.slots, signature.header.slot_bits);
    let bands = Bands::for_threshold(usize::from(slots), u32::from(bits), threshold);
    Ok(band_keys(&signature, &bands).collect())
}

#[pyfunction]
pub fn classic_bands(
    signature: &[u8],
    #[pyo3(from_py_with = integer)] bands: i64,
    #[pyo3(from_py_with = integer)] rows: i64,
) -> PyResult<Vec<i64>> {
    let signature = read(signature)?;
    let slots = usize::from(signature.header.slots);
    let bands = Bands::classic(bands, rows, slots).map_err(raised)?;
    Ok(band_keys(&signature, &bands).collect())
}

#[pyfunction]
pub fn union<'py>(py: Python<'py>, a: &[u8], b: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    new(py, combine::union(&read(a)?, &read(b)?))
}

#[pyfunction]
pub fn pack<'py>(
    py: Python<'py>,
    signature: &[u8],
    #[pyo3(from_py_with = integer)] bits: i64,
) -> PyResult<Bound<'py, PyBytes>> {
    new(py, combine::pack(&read(signature)?, bits))
}
