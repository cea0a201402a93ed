//! Exact measures of pairs of documents.

use neardup::align::{self, Costs};
use neardup::set;
use neardup::shingle::{Key, Shingling, shingle_hashes};
use neardup::{Error, Result};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::column::{Column, Value};
use crate::documents::shingling;
use crate::error::{integer, raised};
use crate::parallel;

/// Returns the pairs of texts at the same places of two columns, or None where one is missing.
///
/// # Errors
/// ValueError if the columns are not of the same length; the errors of [`Column::texts`].
pub fn pairs<'a>(
    a: &'a Column<'_>,
    b: &'a Column<'_>,
) -> impl Iterator<Item = PyResult<Option<[Value<'a>; 2]>>> {
    let (mut a, mut b) = (a.texts(), b.texts());
    std::iter::from_fn(move || match (a.next(), b.next()) {
        (None, None) => None,
        (Some(a), Some(b)) => Some(a.and_then(|a| Ok(a.zip(b?).map(|(a, b)| [a, b])))),
        _ => Some(Err(PyValueError::new_err(
            "the columns have different numbers of items",
        ))),
    })
}

/// A measure of two sorted sets.
type OfSets = fn(&[i64], &[i64], &mut dyn FnMut()) -> f64;

fn measure(
    py: Python<'_>,
    columns: [&Bound<'_, PyAny>; 2],
    shingling: &Shingling,
    of_sets: OfSets,
) -> PyResult<Vec<Option<f64>>> {
    let [a, b] = [Column::read(columns[0])?, Column::read(columns[1])?];
    let hashes = |doc: &[u8]| shingle_hashes(doc, shingling, &Key::from_seed(0), &mut || {});
    let work = |[a, b]: &[Value<'_>; 2]| Ok(of_sets(&hashes(a)?, &hashes(b)?, &mut || {}));
    parallel::map(py, pairs(&a, &b), work, Ok)
}

#[pyfunction]
pub fn resemblances(
    py: Python<'_>,
    a: &Bound<'_, PyAny>,
    b: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = integer)] k: i64,
    unit: &str,
    fold: &str,
) -> PyResult<Vec<Option<f64>>> {
    measure(py, [a, b], &shingling(k, unit, fold)?, set::jaccard)
}

#[pyfunction]
pub fn containments(
    py: Python<'_>,
    a: &Bound<'_, PyAny>,
    b: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = integer)] k: i64,
    unit: &str,
    fold: &str,
) -> PyResult<Vec<Option<f64>>> {
    measure(py, [a, b], &shingling(k, unit, fold)?, set::containment)
}

#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn edit_distances(
    py: Python<'_>,
    a: &Bound<'_, PyAny>,
    b: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = integer)] ins_cost: i64,
    #[pyo3(from_py_with = integer)] del_cost: i64,
    #[pyo3(from_py_with = integer)] sub_cost: i64,
    max: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<Option<i64>>> {
    let max = max.map(integer).transpose()?;
    let costs = Costs::new(ins_cost, del_cost, sub_cost).map_err(raised)?;
    // Checked first, so that the error does not name an item.
    align::edit_distance(b"", b"", costs, max, &mut || {}).map_err(raised)?;
    let [a, b] = [Column::read(a)?, Column::read(b)?];
    let work = |[a, b]: &[Value<'_>; 2]| align::edit_distance(a, b, costs, max, &mut || {});
    let distances = parallel::map(py, pairs(&a, &b), work, Ok)?;
    Ok(distances.into_iter().map(Option::flatten).collect())
}

/// A segment's text, its standing, its chunk and its number of words.
type Segment = (String, String, Option<u32>, u32);

/// Kind, similarity, words of one side, and segments of both.
type Explanation = (
    String,
    f64,
    Vec<String>,
    Vec<String>,
    Vec<Segment>,
    Vec<Segment>,
);

#[pyfunction]
pub fn explanations(
    py: Python<'_>,
    a: &Bound<'_, PyAny>,
    b: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = integer)] min_words: i64,
) -> PyResult<Vec<Option<Explanation>>> {
    // Checked first, so that the error does not name an item.
    align::explain_segments([b"", b""], min_words, &mut || {}).map_err(raised)?;
    let [a, b] = [Column::read(a)?, Column::read(b)?];
    parallel::map(py, pairs(&a, &b), |docs| explain(docs, min_words), Ok)
}

fn explain([a, b]: &[Value<'_>; 2], min_words: i64) -> Result<Explanation> {
    let (found, [of_a, of_b]) = align::explain_segments([a, b], min_words, &mut || {})?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let words = |words: Vec<Vec<u8>>| words.iter().map(|word| text(word)).collect();
    let segments = |doc: &[u8], segments: Vec<align::Segment>| {
        let segment = |segment: align::Segment| {
            (
                text(&doc[segment.bytes]),
                segment.standing.to_string(),
                segment.chunk,
                segment.words,
            )
        };
        segments.into_iter().map(segment).collect()
    };
    Ok::<_, Error>((
        found.kind.to_string(),
        found.similarity,
        words(found.only_in_a),
        words(found.only_in_b),
        segments(a, of_a),
        segments(b, of_b),
    ))
}
