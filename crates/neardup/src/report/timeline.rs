//! Documents over time.

use super::census::Census;
use super::chart::{Bar, Chart};
use crate::Result;
use crate::memory::collected;
use std::fmt;
use std::ops::Range;

/// Periods in a chart, at most.
const PERIODS: i64 = 50;

/// A day of the Gregorian calendar; the year before 1 is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Date {
    pub year: i32,
    pub month: u8,
    pub day: u8,
}

/// Writes the date as ISO 8601 does.
impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { year, month, day } = self;
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

/// The time span of a bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Period {
    Day,
    Month,
    Year,
}

/// The day of a document, and whether it is redundant.
type Day = (i32, bool);

/// Documents over time: one bar for every period, even without documents, of a stretch that holds nearly all
/// documents; and one bar each for all before and all after it.
pub struct Timeline {
    pub chart: Chart,
    /// Documents without a day.
    pub undated: u64,
}

impl Timeline {
    /// Returns the documents by day, month or year: by the finest unit that needs few enough bars for all documents
    /// except a few stray ones. None if no document has a day.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn new(census: &Census, date_of: fn(i32) -> Date) -> Result<Option<Self>> {
        let dated = census.documents();
        let mut days: Vec<Day> =
            collected(dated.filter_map(|(facts, is_redundant)| Some((facts.day?, is_redundant))))?;
        days.sort_unstable();
        // One document in a hundred may be stray, and one of at least ten: a single wrong date does not stretch the
        // chart.
        let stray = (days.len() / 100).max(usize::from(days.len() >= 10));
        let periods = [Period::Day, Period::Month, Period::Year].into_iter();
        let stretches = periods.map(|period| (period, period.stretch(&days, date_of)));
        let is_enough = |(period, shown): &(Period, Range<usize>)| {
            *period == Period::Year || days.len() - shown.len() <= stray
        };
        let found = stretches.into_iter().find(is_enough);
        let Some((period, shown)) = found.filter(|(_, shown)| !shown.is_empty()) else {
            return Ok(None);
        };
        let (title, column) = match period {
            Period::Day => ("Documents by day", "Day"),
            Period::Month => ("Documents by month", "Month"),
            Period::Year => ("Documents by year", "Year"),
        };
        Ok(Some(Self {
            chart: Chart {
                title,
                columns: [column, "Documents", "Redundant"],
                bars: period.bars(&days, shown, date_of)?,
            },
            undated: census.total().documents - days.len() as u64,
        }))
    }
}

impl Period {
    /// Returns the number of the period that contains a day.
    fn number(self, day: i32, date_of: fn(i32) -> Date) -> i64 {
        let Date { year, month, .. } = date_of(day);
        match self {
            Self::Day => day.into(),
            Self::Month => 12 * i64::from(year) + i64::from(month) - 1,
            Self::Year => year.into(),
        }
    }

    fn name(self, number: i64, date_of: fn(i32) -> Date) -> String {
        let (year, month) = (number.div_euclid(12), number.rem_euclid(12) + 1);
        match self {
            Self::Day => date_of(number as i32).to_string(),
            Self::Month => format!("{year:04}-{month:02}"),
            Self::Year => format!("{number:04}"),
        }
    }

    /// Returns the stretch of `days` that holds the most documents among those that fit into one chart; the last of
    /// several equal ones.
    fn stretch(self, days: &[Day], date_of: fn(i32) -> Date) -> Range<usize> {
        let (mut start, mut most) = (0, 0..0);
        let number = |&(day, _): &Day| self.number(day, date_of);
        for (end, day) in days.iter().enumerate() {
            while number(day) - number(&days[start]) >= PERIODS {
                start += 1;
            }
            if end + 1 - start >= most.len() {
                most = start..end + 1;
            }
        }
        most
    }

    /// Returns one bar for each period of the days shown, and one each for all days before and all days after them,
    /// if there are any.
    fn bars(self, days: &[Day], shown: Range<usize>, date_of: fn(i32) -> Date) -> Result<Vec<Bar>> {
        let number = |&(day, _): &Day| self.number(day, date_of);
        let (first, last) = (number(&days[shown.start]), number(&days[shown.end - 1]));
        let name = |place: i64| match place {
            _ if place < first => format!("before {}", self.name(first, date_of)),
            _ if place > last => format!("after {}", self.name(last, date_of)),
            _ => self.name(place, date_of),
        };
        let begin = first - i64::from(shown.start > 0);
        let end = last + i64::from(shown.end < days.len());
        let mut bars = collected((begin..=end).map(|place| Bar {
            label: name(place),
            all: 0,
            part: 0,
        }))?;
        for day in days {
            let bar = &mut bars[(number(day).clamp(begin, end) - begin) as usize];
            bar.all += 1;
            bar.part += u64::from(day.1);
        }
        Ok(bars)
    }
}

#[cfg(test)]
mod tests {
    use super::super::census::{CensusRow, Facts};
    use super::*;

    /// Returns a date of a calendar with months of 30 days.
    fn date_of(day: i32) -> Date {
        Date {
            year: 2000 + day.div_euclid(360),
            month: (day.rem_euclid(360) / 30 + 1) as u8,
            day: (day.rem_euclid(30) + 1) as u8,
        }
    }

    fn timeline(days: impl IntoIterator<Item = i32>) -> Timeline {
        let rows = (0u32..).zip(days).map(|(number, day)| CensusRow {
            canonical: number,
            similarity: 1.0,
            facts: Facts {
                day: Some(day),
                ..Facts::default()
            },
        });
        let census = Census::new(rows.collect(), vec![Facts::default()]).unwrap();
        Timeline::new(&census, date_of).unwrap().unwrap()
    }

    #[test]
    fn the_finest_period_that_fits() {
        let days = timeline([0, 49, 1]);
        assert_eq!(days.chart.title, "Documents by day");
        assert_eq!(days.chart.bars.len(), 50);
        assert_eq!(days.chart.bars[49].label, "2000-02-20");
        assert_eq!((days.chart.bars[2].all, days.undated), (0, 1));
        let months = timeline([0, 100]).chart;
        assert_eq!((months.title, months.bars.len()), ("Documents by month", 4));
        assert_eq!(months.bars[3].label, "2000-04");
        let years = timeline([0, 360 * 9]).chart;
        assert_eq!((years.title, years.bars.len()), ("Documents by year", 10));
        let ages = timeline([-100_000, -99_999, 0]).chart;
        assert_eq!((&*ages.bars[0].label, ages.bars[0].all), ("1722", 2));
        assert_eq!((&*ages.bars[1].label, ages.bars[1].all), ("after 1722", 1));
    }

    #[test]
    fn stray_dates_do_not_stretch_the_chart() {
        let month = || (0..1000).map(|i| i % 40);
        let ends = |days: &mut dyn Iterator<Item = i32>| {
            let bars = timeline(days).chart.bars;
            [&bars[0], &bars[bars.len() - 1]].map(|bar| format!("{} {}", bar.label, bar.all))
        };
        let far = ends(&mut month().chain([2_921_579]));
        assert_eq!(far, ["2000-01-01 25", "after 2000-02-10 1"]);
        let old = ends(&mut month().chain([-700_000; 10]));
        assert_eq!(old, ["before 2000-01-01 10", "2000-02-10 25"]);
        // More than one document in a hundred is not stray.
        assert_eq!(ends(&mut month().chain([-360; 20]))[0], "1999-01 20");
        let [_, last] = ends(&mut (0..9).chain([i32::MAX - 1]));
        assert_eq!(last, "after 2000-01-09 1");
    }
}
