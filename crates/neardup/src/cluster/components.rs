//! Connected components: sets of rows joined where two of them are similar.

use super::UnionFind;
use crate::Result;
use crate::candidates::Tokens;
use crate::memory::{FirstError, Grow, collected};

/// Joins the sets of similar rows of a group that met under the key of the group. Groups come by
/// ascending keys, so that all pairs of a group that have not been compared are. Rows whose sets are
/// one already are not compared, so that a group of copies takes one comparison a row. `step` is
/// called for every row, before it is compared with rows of other sets.
///
/// # Errors
/// `OutOfMemory`.
pub fn connect_group(
    tokens: &Tokens,
    group: &[u32],
    met: u32,
    sets: &mut UnionFind,
    step: &mut dyn FnMut(),
    similar: &mut dyn FnMut(u32, u32) -> bool,
) -> Result<()> {
    let mut by_set = collected(group.iter().map(|&row| (sets.find(row), row)))?;
    by_set.sort_unstable();
    let mut parts: Vec<Vec<u32>> = Vec::new();
    let mut error = FirstError::default();
    for part in by_set.chunk_by(|a, b| a.0 == b.0) {
        let mut joined = collected(part.iter().map(|&(_, row)| row))?;
        part.iter().for_each(|_| step());
        parts.retain_mut(|other| {
            let mut pairs = other
                .iter()
                .flat_map(|&x| joined.iter().map(move |&y| (x, y)));
            let found = pairs.find(|&(x, y)| tokens.meet_first(x, y, met) && similar(x, y));
            if let Some((x, y)) = found {
                sets.union(x, y);
                // The longer list goes on growing: a row is moved log n times at most.
                if other.len() > joined.len() {
                    std::mem::swap(other, &mut joined);
                }
                error.run(|| joined.try_extend_from_slice(other));
            }
            found.is_none()
        });
        parts.try_push(joined)?;
    }
    error.into_result()
}
