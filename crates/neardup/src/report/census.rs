//! The counts of a report.

use super::chart::{Bar, Chart};
use crate::Result;
use crate::memory::{Grow, collected, filled};
use std::cmp::Reverse;

/// The facts of a document that the report counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Facts {
    pub bytes: u32,
    /// The number of its source.
    pub source: Option<u32>,
    /// Days since 1 January 2000.
    pub day: Option<i32>,
}

/// A document in its group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CensusRow {
    /// The row of the canonical document of its group, perhaps this one.
    pub canonical: u32,
    /// The similarity to the canonical document.
    pub similarity: f64,
    pub facts: Facts,
}

/// Numbers of documents. A document is redundant if it is not the canonical one of its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DocumentTally {
    pub documents: u64,
    pub redundant: u64,
    pub bytes: u64,
    pub redundant_bytes: u64,
}

/// A group, and those of its members that a report shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CensusGroup {
    pub canonical: u32,
    /// The number of documents, the canonical one included.
    pub documents: u64,
    /// The least similar members, the least similar first, without the canonical document.
    pub members: Vec<u32>,
}

/// The greatest size in each class of sizes, and the name of the class.
const SIZES: [(u32, &str); 9] = [
    (2, "2"),
    (3, "3"),
    (4, "4"),
    (9, "5\u{2013}9"),
    (19, "10\u{2013}19"),
    (49, "20\u{2013}49"),
    (99, "50\u{2013}99"),
    (999, "100\u{2013}999"),
    (u32::MAX, "1000+"),
];

/// Classes of similarities below 1, at most.
const SIMILARITIES: usize = 10;

/// All documents of a report.
pub struct Census {
    /// The documents that were compared, then the others, each in a group of its own.
    rows: Vec<CensusRow>,
    /// By row: the number of documents in the group if the row is its canonical one, else 0.
    sizes: Vec<u32>,
    /// Documents that were not compared: they have no word, or no signature.
    pub uncompared: u64,
}

impl Census {
    /// # Errors
    /// `OutOfMemory`.
    pub fn new(mut rows: Vec<CensusRow>, uncompared: Vec<Facts>) -> Result<Self> {
        let alone = (rows.len() as u32..).zip(&uncompared);
        rows.try_extend(alone.map(|(canonical, facts)| CensusRow {
            canonical,
            similarity: 1.0,
            facts: *facts,
        }))?;
        let mut sizes = filled(0, rows.len())?;
        for row in &rows {
            sizes[row.canonical as usize] += 1;
        }
        Ok(Self {
            rows,
            sizes,
            uncompared: uncompared.len() as u64,
        })
    }

    pub fn row(&self, number: u32) -> &CensusRow {
        &self.rows[number as usize]
    }

    /// Returns the canonical row and the number of documents of each group of several documents.
    fn groups(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let sizes = (0..).zip(&self.sizes).map(|(row, size)| (row, *size));
        sizes.filter(|(_, size)| *size > 1)
    }

    /// Returns how many groups of several documents there are.
    pub fn group_count(&self) -> u64 {
        self.groups().count() as u64
    }

    /// Visits every document, and whether it is redundant.
    pub fn documents(&self) -> impl Iterator<Item = (&Facts, bool)> {
        let rows = (0u32..).zip(&self.rows);
        rows.map(|(number, row)| (&row.facts, row.canonical != number))
    }

    pub fn total(&self) -> DocumentTally {
        let mut total = DocumentTally::default();
        self.documents().for_each(|document| total.count(document));
        total
    }

    /// Returns the number of groups in each class of sizes, up to the largest.
    #[allow(clippy::disallowed_methods, reason = "as many as classes")]
    pub fn sizes(&self) -> Chart {
        let mut counts = [0; SIZES.len()];
        let mut used = 0;
        for (_, size) in self.groups() {
            let class = SIZES.partition_point(|(greatest, _)| *greatest < size);
            counts[class] += 1;
            used = used.max(class + 1);
        }
        let classes = SIZES.iter().zip(counts).take(used);
        Chart {
            title: "Groups by number of documents",
            columns: ["Documents", "Groups", ""],
            bars: classes
                .map(|((_, name), count)| Bar::filled_with(name.to_string(), count))
                .collect(),
        }
    }

    /// Returns the number of redundant documents in each class of similarities, labeled with the similarity at which
    /// the class begins; the last class is exactly 1.
    #[allow(clippy::disallowed_methods, reason = "as many as classes")]
    pub fn similarities(&self, threshold: f64) -> Chart {
        let classes = classes(threshold);
        let mut bars: Vec<Bar> = classes
            .iter()
            .map(|(label, _)| Bar::filled_with(label.clone(), 0))
            .collect();
        for (number, row) in (0u32..).zip(&self.rows) {
            if row.canonical != number {
                let behind = classes.partition_point(|(_, least)| *least <= row.similarity);
                let bar = &mut bars[behind.max(1) - 1];
                (bar.all, bar.part) = (bar.all + 1, bar.part + 1);
            }
        }
        Chart {
            title: "Redundant documents by similarity to the canonical one",
            columns: ["Similarity from", "Documents", ""],
            bars,
        }
    }

    /// Returns the counts of each source, and of the documents without one. Sources with the most redundant
    /// documents come first.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn by_source(&self) -> Result<Vec<(Option<u32>, DocumentTally)>> {
        let last = self.documents().filter_map(|(facts, _)| facts.source).max();
        let mut tallies = filled(
            DocumentTally::default(),
            last.map_or(0, |last| last as usize + 1),
        )?;
        let mut none = DocumentTally::default();
        for document in self.documents() {
            let tally = match document.0.source {
                Some(source) => &mut tallies[source as usize],
                None => &mut none,
            };
            tally.count(document);
        }
        let numbered = (0..)
            .zip(tallies)
            .map(|(source, tally)| (Some(source), tally));
        let mut all = collected(numbered.chain([(None, none)]))?;
        all.retain(|(_, tally)| tally.documents > 0);
        all.sort_unstable_by_key(|(source, tally)| {
            let order = source.map_or(u64::MAX, u64::from);
            (Reverse(tally.redundant), Reverse(tally.documents), order)
        });
        Ok(all)
    }

    /// Returns the `count` largest groups, the largest first, each with up to `members` members.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn largest(&self, count: usize, members: usize) -> Result<Vec<CensusGroup>> {
        let mut groups = collected(self.groups())?;
        groups.sort_unstable_by_key(|&(canonical, size)| (Reverse(size), canonical));
        groups.truncate(count);
        let mut places = filled(None, self.rows.len())?;
        for (place, (canonical, _)) in (0u32..).zip(&groups) {
            places[*canonical as usize] = Some(place);
        }
        let mut found = Vec::new();
        for (number, row) in (0u32..).zip(&self.rows) {
            if let Some(place) = places[row.canonical as usize]
                && row.canonical != number
            {
                found.try_push((place, number))?;
            }
        }
        found.sort_unstable_by(|x, y| {
            let similarity = |number: u32| self.row(number).similarity;
            let by_similarity = similarity(x.1).total_cmp(&similarity(y.1));
            x.0.cmp(&y.0).then(by_similarity).then(x.1.cmp(&y.1))
        });
        let mut largest = Vec::new();
        for (of_group, (canonical, documents)) in found.chunk_by(|x, y| x.0 == y.0).zip(groups) {
            largest.try_push(CensusGroup {
                canonical,
                documents: documents.into(),
                members: collected(of_group.iter().take(members).map(|(_, number)| *number))?,
            })?;
        }
        Ok(largest)
    }
}

impl DocumentTally {
    /// Returns the share of documents that are redundant; 0 if there are no documents.
    pub fn redundant_share(&self) -> f64 {
        self.redundant as f64 / self.documents.max(1) as f64
    }

    /// Returns the share of bytes that are redundant; 0 if there are no bytes.
    pub fn redundant_bytes_share(&self) -> f64 {
        self.redundant_bytes as f64 / self.bytes.max(1) as f64
    }

    fn count(&mut self, (facts, is_redundant): (&Facts, bool)) {
        let (redundant, bytes) = (u64::from(is_redundant), u64::from(facts.bytes));
        self.documents += 1;
        self.bytes += bytes;
        self.redundant += redundant;
        self.redundant_bytes += redundant * bytes;
    }
}

/// Returns the classes of similarities from the threshold to 1, each as its label and the least similarity in it,
/// which is the number in the label. They begin at the threshold, then at the multiples of a step, then at 1. The
/// step is the finest of 0.1, 0.05, 0.02, 0.01 and so on that makes few enough classes.
#[allow(clippy::disallowed_methods, reason = "as many as classes")]
fn classes(threshold: f64) -> Vec<(String, f64)> {
    let steps = (1..=15).flat_map(|decimals| [(decimals, 1), (decimals + 1, 5), (decimals + 1, 2)]);
    let between = |(decimals, step): (usize, u64)| {
        let one = 10u64.pow(decimals as u32);
        let edges = (1..).map(move |edge| (one - step * edge) as f64 / one as f64);
        edges.take_while(move |edge| *edge > threshold)
    };
    let few = |step: &(usize, u64)| between(*step).take(SIMILARITIES).count() < SIMILARITIES;
    let step = steps.take_while(few).last().unwrap_or((1, 1));
    let decimals = step.0;
    let label = |edge: f64| match format!("{edge:.decimals$}") {
        rounded if rounded.parse() == Ok(edge) => rounded,
        _ => edge.to_string(),
    };
    let mut edges: Vec<f64> = between(step).collect();
    edges.reverse();
    edges.insert(0, threshold);
    let below = edges.into_iter().filter(|edge| *edge < 1.0);
    let below = below.map(|edge| (label(edge), edge));
    below.chain([("1".to_string(), 1.0)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Rows 0, 1, 3 and 6, rows 2 and 4, row 5.
    fn census() -> Census {
        let members = [0, 0, 2, 0, 2, 5, 0];
        let similarities = [1.0, 0.9, 1.0, 0.85, 1.0, 1.0, 0.99];
        let row = |(number, similarity): (usize, f64)| CensusRow {
            canonical: members[number],
            similarity,
            facts: Facts {
                bytes: 10 + number as u32,
                source: [Some(0), Some(1), None][number % 3],
                day: None,
            },
        };
        let rows = similarities.into_iter().enumerate().map(row);
        let uncompared = Facts {
            source: Some(1),
            ..Facts::default()
        };
        Census::new(rows.collect(), vec![uncompared]).unwrap()
    }

    #[test]
    fn a_worked_example() {
        let census = census();
        assert_eq!(census.group_count(), 2);
        let total = DocumentTally {
            documents: 8,
            redundant: 4,
            bytes: 91,
            redundant_bytes: 54,
        };
        assert_eq!(census.total(), total);
        let bars = |chart: Chart| -> Vec<String> {
            let bars = chart.bars.iter();
            bars.map(|bar| format!("{}: {}", bar.label, bar.all))
                .collect()
        };
        assert_eq!(bars(census.sizes()), ["2: 1", "3: 0", "4: 1"]);
        let mut similarities = bars(census.similarities(0.8));
        assert_eq!(similarities.len(), 11);
        similarities.retain(|bar| !bar.ends_with(": 0"));
        assert_eq!(similarities, ["0.84: 1", "0.90: 1", "0.98: 1", "1: 1"]);
        assert_eq!(bars(census.similarities(1.0)), ["1: 4"]);
    }

    /// A value on an edge belongs to the class that begins there, as in exact arithmetic.
    #[test]
    fn every_fraction_is_in_the_class_of_its_label() {
        for percent in 1..=100u64 {
            let threshold = percent as f64 / 100.0;
            let classes = classes(threshold);
            assert!(classes.len() <= SIMILARITIES + 1);
            assert!(classes.is_sorted_by(|(x, a), (y, b)| x != y && a < b));
            for whole in 1..=60u64 {
                for part in (1..=whole).filter(|part| part * 100 >= percent * whole) {
                    let similarity = part as f64 / whole as f64;
                    let behind = classes.partition_point(|(_, least)| *least <= similarity);
                    // The labels in units of 1/100 000.
                    let edge = |label: &str| (label.parse::<f64>().unwrap() * 1e5).round() as u64;
                    assert!(part * 100_000 >= edge(&classes[behind - 1].0) * whole);
                    let next = classes.get(behind);
                    assert!(next.is_none_or(|next| part * 100_000 < edge(&next.0) * whole));
                }
            }
        }
    }

    #[test]
    fn classes_of_uncommon_thresholds() {
        let labels = |threshold| {
            classes(threshold)
                .into_iter()
                .map(|(label, _)| label)
                .collect::<Vec<_>>()
        };
        assert_eq!(labels(0.95)[..3], ["0.950", "0.955", "0.960"]);
        assert_eq!(labels(0.85)[..3], ["0.85", "0.86", "0.88"]);
        assert_eq!(labels(1.0 / 3.0)[1..3], ["0.4", "0.5"]);
        assert_eq!(labels(0.9999)[..2], ["0.99990", "0.99991"]);
        assert_eq!(labels(1e-9)[..2], ["0.000000001", "0.1"]);
        assert_eq!(labels(1.0 - f64::EPSILON).len(), 2);
    }

    #[test]
    fn sources_by_redundance() {
        let by_source = census().by_source().unwrap();
        let found = by_source
            .iter()
            .map(|(source, of)| (*source, of.documents, of.redundant));
        assert!(found.eq([(Some(0), 3, 2), (Some(1), 3, 2), (None, 2, 0)]));
    }

    #[test]
    fn groups_by_size_and_members_by_similarity() {
        let of = |group: &CensusGroup| (group.canonical, group.documents, group.members.clone());
        let groups = |most, members| {
            census()
                .largest(most, members)
                .unwrap()
                .iter()
                .map(of)
                .collect::<Vec<_>>()
        };
        assert_eq!(groups(9, 2), [(0, 4, vec![3, 1]), (2, 2, vec![4])]);
        assert_eq!(groups(1, 9), [(0, 4, vec![3, 1, 6])]);
    }

    proptest! {
        #[test]
        fn every_document_is_counted_once(
            rows in prop::collection::vec((0u32..6, 0.5f64..1.0, 0u32..4), 1..60), alone in 0usize..3
        ) {
            let rows: Vec<CensusRow> = (0..).zip(rows).map(|(number, (canonical, similarity, source))| {
                let canonical = if number < 6 { number } else { canonical };
                CensusRow { canonical, similarity, facts: Facts { bytes: 1, source: source.checked_sub(1), day: None } }
            }).collect();
            let documents = (rows.len() + alone) as u64;
            let census = Census::new(rows, vec![Facts::default(); alone]).unwrap();
            let total = census.total();
            prop_assert_eq!(total.documents, documents);
            let members: u64 = census.similarities(0.5).bars.iter().map(|bar| bar.all).sum();
            prop_assert_eq!(members, total.redundant);
            let sources: u64 = census.by_source().unwrap().iter().map(|(_, tally)| tally.documents).sum();
            prop_assert_eq!(sources, documents);
            let groups = census.largest(100, 100).unwrap();
            prop_assert_eq!(groups.len() as u64, census.group_count());
            let shown: usize = groups.iter().map(|group| group.members.len()).sum();
            prop_assert_eq!(shown as u64, total.redundant);
        }
    }
}
