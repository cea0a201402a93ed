//! Days as dates of the Gregorian calendar.

/// Days from 1 March of year 0 to 1 January 2000, from which PostgreSQL counts.
const EPOCH: i64 = 730_425;

/// Days of 400 years, after which the calendar repeats.
const CYCLE: i64 = 146_097;

/// A day, also before the calendar began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date {
    pub year: i64,
    pub month: u8,
    pub day: u8,
}

impl Date {
    /// Returns the date so many days after 1 January 2000.
    ///
    /// Years are counted from March, so that the day that leap years have more is their last.
    pub fn from_days(days: i32) -> Self {
        let days = i64::from(days) + EPOCH;
        let (cycle, of_cycle) = (days.div_euclid(CYCLE), days.rem_euclid(CYCLE));
        let leap_days = of_cycle / 1460 - of_cycle / 36_524 + of_cycle / (CYCLE - 1);
        let of_400 = (of_cycle - leap_days) / 365;
        let of_year = of_cycle - (365 * of_400 + of_400 / 4 - of_400 / 100);
        let from_march = (5 * of_year + 2) / 153;
        let month = if from_march < 10 {
            from_march + 3
        } else {
            from_march - 9
        };
        Self {
            year: 400 * cycle + of_400 + i64::from(month <= 2),
            month: month as u8,
            day: (of_year - (153 * from_march + 2) / 5 + 1) as u8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_that_postgresql_knows() {
        let date = |days| {
            let Date { year, month, day } = Date::from_days(days);
            (year, month, day)
        };
        assert_eq!(date(0), (2000, 1, 1));
        assert_eq!(date(59), (2000, 2, 29));
        assert_eq!(date(60), (2000, 3, 1));
        assert_eq!(date(-1), (1999, 12, 31));
        assert_eq!(date(9496), (2025, 12, 31));
        assert_eq!(date(-10_957), (1970, 1, 1));
        assert_eq!(date(-36_465), (1900, 3, 1));
        assert_eq!(date(-36_466), (1900, 2, 28));
        assert_eq!(date(36_584), (2100, 3, 1));
        assert_eq!(date(36_583), (2100, 2, 28));
        assert_eq!(date(-730_485), (0, 1, 1));
    }

    /// Every day of 1200 years follows the one before it.
    #[test]
    fn no_day_is_left_out() {
        let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let mut before = Date::from_days(-300_001);
        for days in -300_000..140_000 {
            let Date { year, month, day } = before;
            let length = match month {
                2 => 28 + u8::from(is_leap(year)),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            let next = match (month, day) {
                (12, 31) => (year + 1, 1, 1),
                (_, day) if day == length => (year, month + 1, 1),
                _ => (year, month, day + 1),
            };
            before = Date::from_days(days);
            assert_eq!((before.year, before.month, before.day), next);
        }
    }
}
