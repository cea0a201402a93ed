//! The counts of a report.

use super::calendar::Date;
use crate::Result;
use crate::memory::{Grow, collected, filled};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A document in its group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// The row that stands for its group: itself perhaps.
    pub canonical: u32,
    /// To that row.
    pub similarity: f64,
    pub bytes: u32,
    /// The number of its source.
    pub source: Option<u32>,
    /// Days since 1 January 2000.
    pub day: Option<i32>,
}

/// Numbers of documents. Those are redundant for which another one stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    pub documents: u64,
    pub redundant: u64,
    pub bytes: u64,
    pub redundant_bytes: u64,
}

/// A group and the members of it that a report shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    pub canonical: u32,
    /// With the canonical document.
    pub documents: u32,
    /// The least similar ones, the least similar first, without the canonical document.
    pub members: Vec<u32>,
}

/// The time span of a bar in the chart over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Period {
    Day,
    Month,
    Year,
}

/// Documents over time: every period from the first to the last, also those without documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Days {
    pub period: Period,
    pub bars: Vec<(String, Tally)>,
    /// Documents of periods before those.
    pub earlier: u64,
}

/// Bars of the chart over time, at most.
const BARS: i64 = 100;

/// The greatest size in each class of sizes, and the name of the class.
const SIZES: [(u32, &str); 9] = [
    (2, "2"),
    (3, "3"),
    (4, "4"),
    (9, "5&ndash;9"),
    (19, "10&ndash;19"),
    (49, "20&ndash;49"),
    (99, "50&ndash;99"),
    (999, "100&ndash;999"),
    (u32::MAX, "1000+"),
];

/// Classes of similarities below 1.
const SIMILARITIES: usize = 10;

/// All documents of a report.
pub struct Census {
    rows: Vec<Row>,
    /// Documents of the group for which a row stands, 0 for one that does not.
    sizes: Vec<u32>,
}

impl Census {
    /// # Errors
    /// `OutOfMemory`.
    pub fn new(rows: Vec<Row>) -> Result<Self> {
        let mut sizes = filled(0, rows.len())?;
        for row in &rows {
            sizes[row.canonical as usize] += 1;
        }
        Ok(Self { rows, sizes })
    }

    pub fn row(&self, number: u32) -> &Row {
        &self.rows[number as usize]
    }

    /// Returns the number of documents of each group of several.
    fn groups(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let sizes = (0..).zip(&self.sizes).map(|(row, size)| (row, *size));
        sizes.filter(|(_, size)| *size > 1)
    }

    /// Returns how many groups of several documents there are.
    pub fn group_count(&self) -> u64 {
        self.groups().count() as u64
    }

    pub fn total(&self) -> Tally {
        let mut total = Tally::default();
        for number in 0..self.rows.len() {
            self.count(number, &mut total);
        }
        total
    }

    fn count(&self, number: usize, tally: &mut Tally) {
        let row = &self.rows[number];
        let bytes = u64::from(row.bytes);
        tally.documents += 1;
        tally.bytes += bytes;
        if row.canonical as usize != number {
            tally.redundant += 1;
            tally.redundant_bytes += bytes;
        }
    }

    /// Returns how many groups there are of each class of sizes, up to the largest.
    #[allow(clippy::disallowed_methods, reason = "as many as classes")]
    pub fn sizes(&self) -> Vec<(&'static str, u64)> {
        let mut classes = SIZES.map(|(_, name)| (name, 0));
        let mut used = 0;
        for (_, size) in self.groups() {
            let class = SIZES.partition_point(|(greatest, _)| *greatest < size);
            classes[class].1 += 1;
            used = used.max(class + 1);
        }
        classes[..used].to_vec()
    }

    /// Returns how many redundant documents there are of each class of similarities, from the
    /// threshold on; the last is exactly 1. Documents below the threshold, which only groups by
    /// connection have, are in the first.
    #[allow(clippy::disallowed_methods, reason = "as many as classes")]
    pub fn similarities(&self, threshold: f64) -> Vec<(String, u64)> {
        let width = (1.0 - threshold) / SIMILARITIES as f64;
        let mut counts = [0; SIMILARITIES + 1];
        for (number, row) in self.rows.iter().enumerate() {
            if row.canonical as usize != number {
                let class = match row.similarity {
                    similarity if similarity >= 1.0 => SIMILARITIES,
                    similarity => {
                        (((similarity - threshold) / width) as usize).min(SIMILARITIES - 1)
                    }
                };
                counts[class] += 1;
            }
        }
        let name = |class: usize| match class {
            SIMILARITIES => "1".to_string(),
            class => format!("{:.2}", threshold + width * class as f64),
        };
        let classes = counts.iter().enumerate();
        let classes = classes.map(|(class, count)| (name(class), *count));
        let first = if threshold >= 1.0 { SIMILARITIES } else { 0 };
        classes.skip(first).collect()
    }

    /// Returns the documents of each source and of none, those with the most redundant ones first.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn by_source(&self) -> Result<Vec<(Option<u32>, Tally)>> {
        let sources = self.rows.iter().filter_map(|row| row.source).max();
        let mut tallies = filled(
            Tally::default(),
            sources.map_or(0, |last| last as usize + 1),
        )?;
        let mut none = Tally::default();
        for (number, row) in self.rows.iter().enumerate() {
            let tally = match row.source {
                Some(source) => &mut tallies[source as usize],
                None => &mut none,
            };
            self.count(number, tally);
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

    /// Returns the documents by day, month or year, whichever is the finest of which there are not too
    /// many; None if no document has a day.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn by_day(&self) -> Result<Option<Days>> {
        let days = || self.rows.iter().filter_map(|row| row.day);
        let (Some(first), Some(last)) = (days().min(), days().max()) else {
            return Ok(None);
        };
        let fits = |period: &Period| period.number(last) - period.number(first) < BARS;
        let periods = [Period::Day, Period::Month];
        let period = periods.into_iter().find(fits).unwrap_or(Period::Year);
        let last = period.number(last);
        let first = period.number(first).max(last - BARS + 1);
        let (mut tallies, mut earlier) = (BTreeMap::new(), 0);
        for (number, row) in self.rows.iter().enumerate() {
            match row.day.map(|day| period.number(day)) {
                Some(place) if place >= first => {
                    self.count(number, tallies.entry(place).or_default());
                }
                Some(_) => earlier += 1,
                None => {}
            }
        }
        let mut bars = Vec::new();
        for place in first..=last {
            let tally = tallies.get(&place).copied().unwrap_or_default();
            bars.try_push((period.name(place), tally))?;
        }
        Ok(Some(Days {
            period,
            bars,
            earlier,
        }))
    }

    /// Returns the `count` largest groups, the largest first, each with up to `members` members.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn largest(&self, count: usize, members: usize) -> Result<Vec<Group>> {
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
            largest.try_push(Group {
                canonical,
                documents,
                members: collected(of_group.iter().take(members).map(|(_, number)| *number))?,
            })?;
        }
        Ok(largest)
    }
}

impl Period {
    /// Returns the number of the period that a day is in.
    fn number(self, day: i32) -> i64 {
        let date = Date::from_days(day);
        match self {
            Self::Day => i64::from(day),
            Self::Month => 12 * date.year + i64::from(date.month) - 1,
            Self::Year => date.year,
        }
    }

    fn name(self, number: i64) -> String {
        match self {
            Self::Day => date_name(number as i32),
            Self::Month => format!(
                "{:04}-{:02}",
                number.div_euclid(12),
                number.rem_euclid(12) + 1
            ),
            Self::Year => format!("{number:04}"),
        }
    }
}

/// Returns a day as ISO 8601 writes it, years before the first as year 0 and before.
pub fn date_name(day: i32) -> String {
    let Date { year, month, day } = Date::from_days(day);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row(canonical: u32, similarity: f64) -> Row {
        Row {
            canonical,
            similarity,
            bytes: 10,
            source: None,
            day: None,
        }
    }

    /// Rows 0, 1, 3 and 6, rows 2 and 4, row 5.
    fn census() -> Census {
        let mut rows = [
            row(0, 1.0),
            row(0, 0.9),
            row(2, 1.0),
            row(0, 0.85),
            row(2, 1.0),
            row(5, 1.0),
            row(0, 0.99),
        ];
        for (number, row) in rows.iter_mut().enumerate() {
            row.bytes += number as u32;
            row.source = [Some(0), Some(1), None][number % 3];
            row.day = Some(number as i32);
        }
        Census::new(rows.to_vec()).unwrap()
    }

    #[test]
    fn a_worked_example() {
        let census = census();
        assert_eq!(census.group_count(), 2);
        let total = Tally {
            documents: 7,
            redundant: 4,
            bytes: 91,
            redundant_bytes: 54,
        };
        assert_eq!(census.total(), total);
        assert_eq!(census.sizes(), [("2", 1), ("3", 0), ("4", 1)]);
        let similarities = census.similarities(0.8);
        assert_eq!(similarities.len(), 11);
        let counts: Vec<u64> = similarities.iter().map(|class| class.1).collect();
        assert_eq!(counts, [0, 0, 1, 0, 0, 1, 0, 0, 0, 1, 1]);
        assert_eq!(similarities[2].0, "0.84");
        assert_eq!(census.similarities(1.0).len(), 1);
    }

    #[test]
    fn sources_by_redundance() {
        let by_source = census().by_source().unwrap();
        let of = |tally: &Tally| (tally.documents, tally.redundant);
        let found: Vec<_> = by_source.iter().map(|(s, t)| (*s, of(t))).collect();
        assert_eq!(
            found,
            [(Some(0), (3, 2)), (Some(1), (2, 2)), (None, (2, 0))]
        );
    }

    #[test]
    fn groups_by_size_and_members_by_similarity() {
        let largest = census().largest(9, 2).unwrap();
        let group = |canonical, documents, members: &[u32]| Group {
            canonical,
            documents,
            members: members.to_vec(),
        };
        assert_eq!(largest, [group(0, 4, &[3, 1]), group(2, 2, &[4])]);
        assert_eq!(census().largest(1, 9).unwrap(), [group(0, 4, &[3, 1, 6])]);
    }

    #[test]
    fn the_finest_period_that_fits() {
        let over = |days: &[i32]| {
            let rows = (0u32..).zip(days).map(|(number, day)| Row {
                day: Some(*day),
                ..row(number, 1.0)
            });
            Census::new(rows.collect())
                .unwrap()
                .by_day()
                .unwrap()
                .unwrap()
        };
        let days = over(&[0, 99, 1]);
        assert_eq!((days.period, days.bars.len()), (Period::Day, 100));
        assert_eq!(days.bars[99].0, "2000-04-09");
        assert_eq!(days.bars[2].1, Tally::default());
        let months = over(&[0, 100]);
        assert_eq!((months.period, months.bars.len()), (Period::Month, 4));
        assert_eq!(months.bars[3].0, "2000-04");
        let years = over(&[0, 365 * 9]);
        assert_eq!((years.period, years.bars.len()), (Period::Year, 9));
        let ages = over(&[-100_000, -99_999, 0]);
        assert_eq!((ages.bars.len(), ages.earlier), (100, 2));
        assert_eq!(ages.bars[99].0, "2000");
        assert!(
            Census::new(vec![row(0, 1.0)])
                .unwrap()
                .by_day()
                .unwrap()
                .is_none()
        );
    }

    proptest! {
        #[test]
        fn every_document_is_counted_once(
            rows in prop::collection::vec((0u32..6, 0.5f64..1.0, 0u32..4, -400i32..400), 1..60)
        ) {
            let rows: Vec<Row> = rows.into_iter().enumerate().map(|(number, (canonical, similarity, source, day))| {
                let canonical = if number < 6 { number as u32 } else { canonical };
                Row { canonical, similarity, bytes: 1, source: source.checked_sub(1), day: (source > 0).then_some(day) }
            }).collect();
            let (documents, dated) = (rows.len() as u64, rows.iter().filter(|row| row.day.is_some()).count() as u64);
            let census = Census::new(rows).unwrap();
            let total = census.total();
            prop_assert_eq!(total.documents, documents);
            let members: u64 = census.similarities(0.5).iter().map(|class| class.1).sum();
            prop_assert_eq!(members, total.redundant);
            let sources: u64 = census.by_source().unwrap().iter().map(|(_, tally)| tally.documents).sum();
            prop_assert_eq!(sources, documents);
            let days = census.by_day().unwrap();
            let counted: u64 = days.iter().flat_map(|days| &days.bars).map(|bar| bar.1.documents).sum();
            prop_assert_eq!(counted, dated);
            let groups = census.largest(100, 100).unwrap();
            prop_assert_eq!(groups.len() as u64, census.group_count());
            let shown: usize = groups.iter().map(|group| group.members.len()).sum();
            prop_assert_eq!(shown as u64, total.redundant);
        }
    }
}
