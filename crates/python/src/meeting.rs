//! The steps of a search for similar sets by machines that each hold a part of them. A set is the bytes of its sorted
//! hashes; numbers come and go as the bytes of arrays.

use neardup::candidates::{Meeting, Member, counter, ranked_prefix};
use neardup::set::jaccard;
use neardup::shingle::{Key, shingle_hashes};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::column::{Column, Value};
use crate::documents::shingling;
use crate::error::{integer, raised};
use crate::pairs::pairs;
use crate::parallel;

/// Pairs that are returned at once, about.
const AT_ONCE: usize = 1 << 20;

fn numbers<const N: usize, T>(bytes: &[u8], read: fn([u8; N]) -> T) -> Vec<T> {
    let (numbers, _) = bytes.as_chunks::<N>();
    numbers.iter().map(|number| read(*number)).collect()
}

fn set(bytes: &[u8]) -> Vec<i64> {
    numbers(bytes, i64::from_le_bytes)
}

fn packed<'py, const N: usize>(
    py: Python<'py>,
    numbers: impl Iterator<Item = [u8; N]>,
) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &numbers.flatten().collect::<Vec<u8>>())
}

#[pyfunction]
pub fn sets<'py>(
    py: Python<'py>,
    texts: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = integer)] k: i64,
    unit: &str,
    fold: &str,
) -> PyResult<Vec<Option<Bound<'py, PyBytes>>>> {
    let shingling = shingling(k, unit, fold)?;
    let column = Column::read(texts)?;
    let cut = |text: &Value<'_>| shingle_hashes(text, &shingling, &Key::from_seed(0), &mut || {});
    parallel::map(py, column.texts(), cut, |set| {
        Ok(packed(py, set.into_iter().map(i64::to_le_bytes)))
    })
}

/// Returns how many of the sets have an element of each counter, a power of two of them, as 32-bit numbers.
#[pyfunction]
pub fn frequencies<'py>(
    py: Python<'py>,
    sets: &Bound<'py, PyAny>,
    counters: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut counts = vec![0u32; counters];
    for bytes in Column::read(sets)?.texts() {
        for element in bytes?.iter().flat_map(|bytes| set(bytes)) {
            let count = &mut counts[counter(element, counters)];
            *count = count.saturating_add(1);
        }
    }
    Ok(packed(py, counts.into_iter().map(u32::to_le_bytes)))
}

/// Returns the members of all sets in three columns: the number of the set, the element, and how many elements of the
/// set are no rarer.
#[pyfunction]
pub fn members<'py>(
    py: Python<'py>,
    sets: &Bound<'py, PyAny>,
    threshold: f64,
    frequencies: &[u8],
) -> PyResult<(
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
)> {
    let counts = numbers(frequencies, u32::from_le_bytes);
    let count = |element| counts[counter(element, counts.len())];
    let (mut rows, mut elements, mut rests) = (Vec::new(), Vec::new(), Vec::new());
    for (row, bytes) in Column::read(sets)?.texts().enumerate() {
        let set = bytes?.map(|bytes| set(&bytes)).unwrap_or_default();
        let prefix = ranked_prefix(&set, threshold, count).map_err(raised)?;
        for (at, element) in prefix.into_iter().enumerate() {
            rows.push(row as i32);
            elements.push(element);
            rests.push((set.len() - at) as i32);
        }
    }
    Ok((
        packed(py, rows.into_iter().map(i32::to_le_bytes)),
        packed(py, elements.into_iter().map(i64::to_le_bytes)),
        packed(py, rests.into_iter().map(i32::to_le_bytes)),
    ))
}

/// Returns the pairs of members from member `start` on: the members' numbers on both sides, and the member to go on
/// with. The columns of members are elements, labels, sizes, rests, and sides.
#[pyfunction]
pub fn meet<'py>(
    py: Python<'py>,
    members: [PyBackedBytes; 5],
    meeting: (f64, usize, bool),
    start: usize,
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>, usize)> {
    let (threshold, hot, by_label) = meeting;
    let meeting = Meeting {
        threshold,
        hot,
        by_label,
    };
    let [elements, labels, sizes, rests, sides] = members;
    let [elements, labels] = [elements, labels].map(|column| numbers(&column, i64::from_le_bytes));
    let [sizes, rests] = [sizes, rests].map(|column| numbers(&column, u32::from_le_bytes));
    let len = elements.len();
    if [labels.len(), sizes.len(), rests.len(), sides.len()] != [len; 4] {
        return Err(PyValueError::new_err("the columns have different lengths"));
    }
    let member = |i: usize| Member {
        element: elements[i],
        label: labels[i],
        size: sizes[i],
        rest: rests[i],
        sides: sides[i],
    };
    let members: Vec<Member> = (0..len).map(member).collect();
    let (mut left, mut right, mut next) = (Vec::new(), Vec::new(), 0);
    'members: for group in members.chunk_by(|a, b| a.element == b.element) {
        let first = next;
        for i in 0..group.len() {
            if next >= start {
                if left.len() >= AT_ONCE {
                    break 'members;
                }
                meeting.visit_pairs(group, i, &mut |j| {
                    left.push(next as u32);
                    right.push((first + j) as u32);
                });
            }
            next += 1;
        }
    }
    Ok((
        packed(py, left.into_iter().map(u32::to_le_bytes)),
        packed(py, right.into_iter().map(u32::to_le_bytes)),
        next,
    ))
}

#[pyfunction]
pub fn set_resemblances(
    py: Python<'_>,
    a: &Bound<'_, PyAny>,
    b: &Bound<'_, PyAny>,
) -> PyResult<Vec<Option<f64>>> {
    let [a, b] = [Column::read(a)?, Column::read(b)?];
    let measure = |[a, b]: &[Value<'_>; 2]| Ok(jaccard(&set(a), &set(b), &mut || {}));
    parallel::map(py, pairs(&a, &b), measure, Ok)
}
