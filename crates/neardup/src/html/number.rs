//! Numbers as pages show them.

use std::fmt;

/// A number with commas between thousands.
pub(crate) struct Number<'n>(pub &'n u64);

impl fmt::Display for Number<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self.0 {
            number @ 0..1000 => write!(f, "{number}"),
            number => write!(f, "{},{:03}", Number(&(number / 1000)), number % 1000),
        }
    }
}

/// A share from 0 to 1 in percent, with one decimal.
pub(crate) struct Percent<'p>(pub &'p f64);

impl fmt::Display for Percent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        rounded(f, 100.0 * *self.0, 100.0, 1)?;
        f.write_str("\u{a0}%")
    }
}

/// A similarity from 0 to 1, with three decimals.
pub(crate) struct ThreeDecimals<'s>(pub &'s f64);

impl fmt::Display for ThreeDecimals<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        rounded(f, *self.0, 1.0, 3)
    }
}

/// Writes a value from 0 to `whole`, as "<" or ">" another one where rounding would make it either.
fn rounded(f: &mut fmt::Formatter<'_>, value: f64, whole: f64, decimals: usize) -> fmt::Result {
    let written = |value: f64| format!("{value:.decimals$}");
    let (text, least) = (written(value), 0.1f64.powi(decimals as i32));
    if value > 0.0 && text == written(0.0) {
        write!(f, "<\u{a0}{}", written(least))
    } else if value < whole && text == written(whole) {
        write!(f, ">\u{a0}{}", written(whole - least))
    } else {
        f.write_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_between_thousands() {
        let cases = [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
            (20_000_000, "20,000,000"),
        ];
        for (number, text) in cases {
            assert_eq!(Number(&number).to_string(), text);
        }
    }

    #[test]
    fn only_all_is_all_and_only_nothing_is_nothing() {
        let similarity = |value: f64| ThreeDecimals(&value).to_string();
        assert_eq!(similarity(1.0), "1.000");
        assert_eq!(similarity(0.99995), ">\u{a0}0.999");
        assert_eq!(similarity(0.9994), "0.999");
        assert_eq!(similarity(7.0 / 9.0), "0.778");
        assert_eq!(similarity(0.0), "0.000");
        assert_eq!(similarity(1e-9), "<\u{a0}0.001");
        let percent = |part: u64, all: u64| Percent(&(part as f64 / all as f64)).to_string();
        assert_eq!(percent(33_663, 33_715), "99.8\u{a0}%");
        assert_eq!(percent(9999, 10_000), ">\u{a0}99.9\u{a0}%");
        assert_eq!(percent(1, 10_000), "<\u{a0}0.1\u{a0}%");
        assert_eq!(percent(0, 1), "0.0\u{a0}%");
    }
}
