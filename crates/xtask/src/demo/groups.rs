//! Grouping the pairs: every group is a first document and those similar to it.

use std::collections::{BTreeMap, HashMap};

use super::pairs::Found;

/// A first document and its near-duplicates.
pub struct Group {
    /// The first document's id.
    pub first: i64,
    /// How many documents have exactly its text.
    pub copies: i64,
    /// The other texts, most similar first.
    pub others: Vec<Member>,
}

/// A text that is similar to the first of its group.
pub struct Member {
    pub id: i64,
    pub copies: i64,
    pub similarity: f64,
}

impl Group {
    /// How many documents belong to the group.
    pub fn documents(&self) -> i64 {
        self.copies + self.others.iter().map(|member| member.copies).sum::<i64>()
    }
}

/// Walks through the texts in the order of their ids; each joins the most similar earlier first
/// document, or else begins a group. Groups of a single text are left out; largest first.
pub fn star(found: &Found) -> Vec<Group> {
    let mut earlier: HashMap<i64, Vec<(i64, f64)>> = HashMap::new();
    for (a, b, similarity) in &found.pairs {
        earlier.entry(*b).or_default().push((*a, *similarity));
    }
    let mut groups: BTreeMap<i64, Group> = BTreeMap::new();
    for text in &found.texts {
        let firsts = earlier.get(&text.id).into_iter().flatten();
        let firsts = firsts.filter(|(id, _)| groups.contains_key(id));
        let best = firsts
            .copied()
            .reduce(|best, next| if next.1 > best.1 { next } else { best });
        let (id, copies) = (text.id, text.copies);
        if let Some((first, similarity)) = best {
            let group = groups.get_mut(&first).map(|group| &mut group.others);
            group.into_iter().for_each(|others| {
                others.push(Member {
                    id,
                    copies,
                    similarity,
                })
            });
        } else {
            groups.insert(
                id,
                Group {
                    first: id,
                    copies,
                    others: Vec::new(),
                },
            );
        }
    }
    let mut groups: Vec<Group> = groups
        .into_values()
        .filter(|group| !group.others.is_empty())
        .collect();
    for group in &mut groups {
        group
            .others
            .sort_by(|a, b| b.similarity.total_cmp(&a.similarity));
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.documents()));
    groups
}

#[cfg(test)]
mod tests {
    use super::super::pairs::{Found, Text};
    use super::star;

    #[test]
    fn a_text_joins_the_most_similar_first_document() {
        let texts = (1..=6).map(|id| Text { id, copies: 1 }).collect();
        let pairs = vec![
            (1, 2, 0.9),
            (2, 3, 0.9),
            (1, 4, 0.8),
            (3, 4, 0.95),
            (2, 5, 0.99),
        ];
        let groups = star(&Found { texts, pairs });
        let members: Vec<(i64, Vec<i64>)> = groups
            .iter()
            .map(|group| {
                (
                    group.first,
                    group.others.iter().map(|member| member.id).collect(),
                )
            })
            .collect();
        assert_eq!(members, [(1, vec![2]), (3, vec![4])]);
    }
}
