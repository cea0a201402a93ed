//! Pairs of sets that meet under one of their rarest elements, for collections that no single machine can hold.
//!
//! Every set is listed under each element of its prefix, in an order that all sets share ([`ranked_prefix`]). Two sets
//! of resemblance t or more meet under the rarest element that they share, because it is in both prefixes (Chaudhuri,
//! Ganti, Kaushik, ICDE 2006). They share no rarer element, so counting the rest of each set rules out most pairs
//! (Xiao, Wang, Lin, Yu, "Efficient similarity joins for near duplicate detection", WWW 2008).

use crate::Result;
use crate::bands::Occurrence;
use crate::hash::{GOLDEN, finish};
use crate::memory::collected;
use std::ops::Range;

/// Exceeds the rounding error of a product of a threshold and a size.
const ROUNDING: f64 = 1e-6;

fn mixed(element: i64) -> u64 {
    finish((element as u64).wrapping_mul(GOLDEN))
}

/// Returns the index of the counter for `element`. `counters`, the number of counters, must be a power of two.
pub fn counter(element: i64, counters: usize) -> usize {
    mixed(element) as usize & (counters - 1)
}

/// Returns the part, from 0 to `parts` - 1, to which `element` belongs.
pub fn part(element: i64, parts: usize) -> usize {
    ((u128::from(mixed(element)) * parts as u128) >> 64) as usize
}

/// Returns the prefix of `set` for `threshold`: its rarest elements by `count`, rarest first. The prefix of an empty
/// set is empty.
///
/// # Errors
/// `OutOfMemory`.
pub fn ranked_prefix(set: &[i64], threshold: f64, count: impl Fn(i64) -> u32) -> Result<Vec<i64>> {
    let probes = Occurrence::contained(set.len(), threshold).map_or(0, |found| found.probes());
    let rank = |element: i64| (count(element), finish(element as u64), element);
    let mut ranked: Vec<_> = collected(set.iter().map(|element| rank(*element)))?;
    if probes < ranked.len() {
        ranked.select_nth_unstable(probes);
        ranked.truncate(probes);
    }
    ranked.sort_unstable();
    collected(ranked.iter().map(|ranked| ranked.2))
}

/// A set under an element of its prefix.
#[derive(Debug, Clone, Copy)]
pub struct Member {
    pub element: i64,
    /// Pairs with the same label are left out if [`Meeting::by_label`] is true.
    pub label: i64,
    /// The number of elements of the set.
    pub size: u32,
    /// The number of elements of the set that are no rarer than `element`, including `element`.
    pub rest: u32,
    /// 1 for the first side, 2 for the second, 3 for both. Every pair has both sides.
    pub sides: u8,
}

/// The rule for which pairs meet.
#[derive(Debug, Clone, Copy)]
pub struct Meeting {
    pub threshold: f64,
    /// Maximum size of a group in which all members meet. In a larger one, only the middle member meets others. It also
    /// meets itself, so that callers see such a group.
    pub hot: usize,
    /// If true, members meet only in groups larger than `hot`, and only members with different labels.
    pub by_label: bool,
}

impl Meeting {
    /// Returns whether members `a` and `b` can be similar enough, and together have both sides.
    fn meet(&self, a: &Member, b: &Member) -> bool {
        let [a_size, b_size] = [a.size, b.size].map(f64::from);
        let shared = self.threshold / (1.0 + self.threshold) * (a_size + b_size);
        f64::from(a.rest.min(b.rest)) >= shared - ROUNDING
            && a_size.min(b_size) >= self.threshold * a_size.max(b_size) - ROUNDING
            && [(a, b), (b, a)]
                .iter()
                .any(|(a, b)| a.sides & 1 != 0 && b.sides & 2 != 0)
    }

    /// Calls `visit` with the partners of member `i` of `group`, which holds the members under one element in the order
    /// of (label, size). Over all members of the group, each pair is visited once.
    pub fn visit_pairs(&self, group: &[Member], i: usize, visit: &mut dyn FnMut(usize)) {
        match (group.len() > self.hot, self.by_label) {
            (false, false) => self.visit_sizes(group, i, i + 1..group.len(), visit),
            (true, false) if i == group.len() / 2 => (0..group.len())
                .filter(|&j| j == i || self.meet(&group[i], &group[j]))
                .for_each(visit),
            (true, true) => self.visit_labels(group, i, visit),
            _ => {}
        }
    }

    /// Visits the partners of member `i` that are larger, or as large and later, among the members with other labels.
    /// Few members of a template can be the smaller one of a pair: that takes more elements than the template has.
    fn visit_labels(&self, group: &[Member], i: usize, visit: &mut dyn FnMut(usize)) {
        let (member, t) = (&group[i], self.threshold);
        let least = 2.0 * t / (1.0 + t) * f64::from(member.size) - ROUNDING;
        if f64::from(member.rest) < least {
            return;
        }
        let mut start = 0;
        while start < group.len() {
            let label = group[start].label;
            let end = start + group[start..].partition_point(|other| other.label == label);
            if label != member.label {
                self.visit_sizes(group, i, start..end, &mut |j| {
                    if (group[j].size, j) > (member.size, i) {
                        visit(j);
                    }
                });
            }
            start = end;
        }
    }

    /// Visits the partners of member `i` among `others`, which are in the order of their sizes.
    fn visit_sizes(
        &self,
        group: &[Member],
        i: usize,
        others: Range<usize>,
        visit: &mut dyn FnMut(usize),
    ) {
        let (member, t) = (&group[i], self.threshold);
        let [size, rest] = [member.size, member.rest].map(f64::from);
        let least = t * size - ROUNDING;
        let most = (size / t).min(rest * (1.0 + t) / t - size) + ROUNDING / t;
        let first = others.start
            + group[others.clone()].partition_point(|other| f64::from(other.size) < least);
        for (j, other) in group[..others.end].iter().enumerate().skip(first) {
            if f64::from(other.size) > most {
                return;
            }
            if self.meet(member, other) {
                visit(j);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::jaccard;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn set() -> impl Strategy<Value = Vec<i64>> {
        let element = prop_oneof![2 => 0i64..12, 1 => 0i64..200];
        prop::collection::btree_set(element, 0..24).prop_map(|set| set.into_iter().collect())
    }

    /// Returns all members, in groups, each with the number of its set.
    fn groups(sets: &[Vec<i64>], labels: &[i64], meeting: &Meeting) -> Vec<Vec<(Member, usize)>> {
        let mut counts: BTreeMap<i64, u32> = BTreeMap::new();
        for element in sets.iter().flatten() {
            *counts.entry(element / 3).or_default() += 1;
        }
        let mut groups: BTreeMap<i64, Vec<(Member, usize)>> = BTreeMap::new();
        for (number, set) in sets.iter().enumerate() {
            let prefix = ranked_prefix(set, meeting.threshold, |element| counts[&(element / 3)]);
            for (at, element) in prefix.expect("memory").into_iter().enumerate() {
                let member = Member {
                    element,
                    label: if meeting.by_label { labels[number] } else { 0 },
                    size: set.len() as u32,
                    rest: (set.len() - at) as u32,
                    sides: (number % 4) as u8,
                };
                groups.entry(element).or_default().push((member, number));
            }
        }
        let mut groups: Vec<_> = groups.into_values().collect();
        for group in &mut groups {
            group.sort_by_key(|(member, number)| (member.label, member.size, *number));
        }
        groups
    }

    fn pairs(sets: &[Vec<i64>], labels: &[i64], meeting: &Meeting) -> BTreeSet<[usize; 2]> {
        let mut pairs = BTreeSet::new();
        for group in groups(sets, labels, meeting) {
            let members: Vec<Member> = group.iter().map(|(member, _)| *member).collect();
            for i in 0..members.len() {
                meeting.visit_pairs(&members, i, &mut |j| {
                    let [a, b] = [group[i].1, group[j].1];
                    pairs.insert([a.min(b), a.max(b)]);
                });
            }
        }
        pairs
    }

    proptest! {
        #[test]
        fn similar_sets_meet(
            sets in prop::collection::vec(set(), 1..24),
            labels in prop::collection::vec(0i64..3, 24),
            threshold in prop_oneof![0.05f64..=1.0, Just(0.5), Just(0.8), Just(1.0)],
            by_label in any::<bool>(),
        ) {
            let hot = if by_label { 0 } else { usize::MAX };
            let meeting = Meeting { threshold, hot, by_label };
            let met = pairs(&sets, &labels, &meeting);
            for b in 0..sets.len() {
                for a in 0..b {
                    let near = jaccard(&sets[a], &sets[b], &mut || ()) >= threshold;
                    let sides = [a % 4, b % 4];
                    let both = sides[0] & 1 != 0 && sides[1] & 2 != 0
                        || sides[1] & 1 != 0 && sides[0] & 2 != 0;
                    let apart = !by_label || labels[a] != labels[b];
                    let meet = met.contains(&[a, b]);
                    prop_assert!(meet || !(near && both && apart), "{a} {b}");
                    prop_assert!(!meet || both && apart, "{a} {b}");
                }
            }
        }

        #[test]
        fn one_member_of_a_hot_group_meets_the_others(
            sets in prop::collection::vec(set(), 1..24),
            threshold in 0.05f64..=1.0,
        ) {
            let all = Meeting { threshold, hot: usize::MAX, by_label: false };
            let hot = Meeting { hot: 1, ..all };
            let is_shared = groups(&sets, &[], &all).iter().any(|group| group.len() > 1);
            let (all, hot) = (pairs(&sets, &[], &all), pairs(&sets, &[], &hot));
            prop_assert_eq!(hot.iter().any(|[a, b]| a == b), is_shared);
            prop_assert!(hot.iter().all(|[a, b]| a == b || all.contains(&[*a, *b])));
        }
    }
}
