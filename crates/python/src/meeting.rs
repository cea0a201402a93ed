//! The steps of a search for similar sets by machines that each hold a part of the sets. A set consists of the bytes of
//! its sorted hashes; numbers are passed as the bytes of arrays.

use std::ops::Range;

use neardup::candidates::{Meeting, Member, counter, part, ranked_prefix};
use neardup::set::jaccard;
use neardup::shingle::{Key, shingle_hashes};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::column::{Column, Value};
use crate::documents::shingling;
use crate::error::{integer, raised};
use crate::pairs::pairs;
use crate::parallel;

/// Approximate number of pairs that are returned at a time.
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

/// Returns, for each counter, how many of the sets have an element that belongs to it, as 32-bit numbers. The number of
/// counters is a power of two.
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

/// Returns the members of all sets, packed, grouped by the part of all elements that they belong to. Elements whose
/// counter is at most `above` are left out. The columns are the numbers, sides and labels of the sets.
#[pyfunction]
pub fn members<'py>(
    py: Python<'py>,
    sets: &Bound<'py, PyAny>,
    columns: [PyBackedBytes; 3],
    threshold: f64,
    frequencies: &[u8],
    above: u64,
    parts: usize,
) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let counts = numbers(frequencies, u32::from_le_bytes);
    let count = |element| counts[counter(element, counts.len())];
    let [ids, sides, labels] = columns;
    let [ids, labels] = [ids, labels].map(|column| numbers(&column, i64::from_le_bytes));
    let sides = numbers(&sides, i32::from_le_bytes);
    let mut members = vec![Vec::new(); parts];
    for (row, bytes) in Column::read(sets)?.texts().enumerate() {
        let set = bytes?.map(|bytes| set(&bytes)).unwrap_or_default();
        let prefix = ranked_prefix(&set, threshold, count).map_err(raised)?;
        for (at, element) in prefix.into_iter().enumerate() {
            let member = Member {
                element,
                label: labels[row],
                size: set.len() as u32,
                rest: (set.len() - at) as u32,
                sides: sides[row] as u8,
            };
            if u64::from(count(element)) > above {
                members[part(element, parts)].extend(words(&member, ids[row]));
            }
        }
    }
    let bytes = |words: Vec<i64>| packed(py, words.into_iter().map(i64::to_le_bytes));
    Ok(members.into_iter().map(bytes).collect())
}

/// Returns a member and the number of its set as words.
fn words(member: &Member, id: i64) -> [i64; 5] {
    let sizes = i64::from(member.size) << 32 | i64::from(member.rest);
    [
        member.element,
        member.label,
        id,
        sizes,
        i64::from(member.sides),
    ]
}

fn member([element, label, id, sizes, sides]: [i64; 5]) -> (Member, i64) {
    let member = Member {
        element,
        label,
        size: (sizes >> 32) as u32,
        rest: sizes as u32,
        sides: sides as u8,
    };
    (member, id)
}

/// The pairs of packed members that meet: an iterator over two columns of sets' numbers, the smaller of each pair first.
#[pyclass]
pub struct Meetings {
    meeting: Meeting,
    members: Vec<Member>,
    ids: Vec<i64>,
    /// The group to which the next member belongs.
    group: Range<usize>,
    next: usize,
}

#[pymethods]
impl Meetings {
    #[new]
    fn new(packed: &[u8], threshold: f64, hot: usize, by_label: bool) -> Meetings {
        let words = numbers(packed, i64::from_le_bytes);
        let (words, _) = words.as_chunks();
        let mut members: Vec<_> = words.iter().copied().map(member).collect();
        members
            .sort_unstable_by_key(|(member, id)| (member.element, member.label, member.size, *id));
        let (members, ids) = members.into_iter().unzip();
        let meeting = Meeting {
            threshold,
            hot,
            by_label,
        };
        Meetings {
            meeting,
            members,
            ids,
            group: 0..0,
            next: 0,
        }
    }

    fn __iter__(of: Bound<'_, Meetings>) -> Bound<'_, Meetings> {
        of
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> Option<[Bound<'py, PyBytes>; 2]> {
        let mut pairs = Vec::new();
        while pairs.len() < AT_ONCE && self.next < self.members.len() {
            if self.next == self.group.end {
                let element = self.members[self.next].element;
                let rest = &self.members[self.next..];
                self.group =
                    self.next..self.next + rest.partition_point(|other| other.element == element);
            }
            let ids = &self.ids[self.group.clone()];
            let at = self.next - self.group.start;
            let group = &self.members[self.group.clone()];
            self.meeting.visit_pairs(group, at, &mut |partner| {
                pairs.push([ids[at].min(ids[partner]), ids[at].max(ids[partner])]);
            });
            self.next += 1;
        }
        pairs.sort_unstable();
        pairs.dedup();
        let column = |side: usize| packed(py, pairs.iter().map(|pair| pair[side].to_le_bytes()));
        (!pairs.is_empty()).then(|| [column(0), column(1)])
    }
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
