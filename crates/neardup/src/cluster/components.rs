//! Connected components: sets of rows joined where two of them are similar.

use super::UnionFind;
use crate::candidates::Tokens;

/// Joins the sets of similar rows of a group that met under the key of the group. Rows whose sets
/// are one already are not compared, so that a group of copies takes one comparison a row.
pub fn connect_group(
    tokens: &Tokens,
    group: &[u32],
    met: u32,
    sets: &mut UnionFind,
    similar: &mut dyn FnMut(u32, u32) -> bool,
) {
    let mut by_set: Vec<(u32, u32)> = group.iter().map(|&row| (sets.find(row), row)).collect();
    by_set.sort_unstable();
    let mut parts: Vec<Vec<u32>> = Vec::new();
    for part in by_set.chunk_by(|a, b| a.0 == b.0) {
        let mut joined: Vec<u32> = part.iter().map(|&(_, row)| row).collect();
        parts.retain_mut(|other| {
            let mut pairs = other
                .iter()
                .flat_map(|&x| joined.iter().map(move |&y| (x, y)));
            let found = pairs.find(|&(x, y)| tokens.meet(x, y, met) && similar(x, y));
            if let Some((x, y)) = found {
                sets.union(x, y);
                // The longer list goes on growing: a row is moved log n times at most.
                if other.len() > joined.len() {
                    std::mem::swap(other, &mut joined);
                }
                joined.append(other);
            }
            found.is_none()
        });
        parts.push(joined);
    }
}
