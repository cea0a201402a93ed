//! Bars as inline SVG, with the same figures in a table.

use super::grouped;
use crate::html::Page;

/// A bar, of which a part is marked.
pub struct Bar {
    pub label: String,
    pub all: u64,
    pub part: u64,
}

/// A picture of bars.
pub struct Chart<'c> {
    pub title: &'c str,
    /// Of the table: the labels, the bars, and their parts, if there are such.
    pub columns: [&'c str; 3],
    pub bars: &'c [Bar],
}

const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 200.0;

/// Room above the bars for figures, and below for labels.
const ABOVE: f64 = 20.0;
const BELOW: f64 = 20.0;

/// The width of a digit.
const LETTER: f64 = 6.5;

/// Up to so many bars have their figure above and their label below.
const LABELED: usize = 12;

impl Chart<'_> {
    pub fn write(&self, page: &mut Page) {
        let [labels, all, part] = self.columns;
        page.write(format_args!(
            "<figure>\n<figcaption>{}</figcaption>\n",
            self.title
        ));
        self.picture(page);
        page.write(format_args!(
            "<details><summary>The figures as a table</summary>\n<table>\n<caption>{}</caption>\n<thead><tr>\
             <th scope=\"col\">{labels}</th><th scope=\"col\" class=\"n\">{all}</th>",
            self.title
        ));
        if !part.is_empty() {
            page.write(format_args!("<th scope=\"col\" class=\"n\">{part}</th>"));
        }
        page.push("</tr></thead>\n<tbody>\n");
        for bar in self.bars {
            page.write(format_args!(
                "<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td>",
                bar.label,
                grouped(bar.all)
            ));
            if !part.is_empty() {
                page.write(format_args!("<td class=\"n\">{}</td>", grouped(bar.part)));
            }
            page.push("</tr>\n");
        }
        page.push("</tbody>\n</table>\n</details>\n</figure>\n");
    }

    fn picture(&self, page: &mut Page) {
        let (Some(first), Some(last)) = (self.bars.first(), self.bars.last()) else {
            return;
        };
        let highest = self.bars.iter().max_by_key(|bar| bar.all).unwrap_or(first);
        page.write(format_args!(
            "<svg class=\"chart\" viewBox=\"0 0 440 200\" role=\"img\" aria-label=\"{}: {} bars from {} to {}, the highest {} at {}. \
             The figures follow as a table.\">\n",
            self.title,
            self.bars.len(),
            first.label,
            last.label,
            grouped(highest.all),
            highest.label
        ));
        let floor = HEIGHT - BELOW;
        let step = WIDTH / self.bars.len() as f64;
        let width = (step * 0.8).min(60.0);
        let scale = (floor - ABOVE) / highest.all.max(1) as f64;
        let is_labeled = |place: usize| {
            self.bars.len() <= LABELED
                || [0, self.bars.len() / 2, self.bars.len() - 1].contains(&place)
        };
        let mut marked = false;
        for (place, bar) in self.bars.iter().enumerate() {
            let middle = step * (place as f64 + 0.5);
            for (class, count) in [("all", bar.all), ("part", bar.part)] {
                let height = count as f64 * scale;
                if count > 0 {
                    page.write(format_args!(
                        "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>",
                        middle - width / 2.0,
                        floor - height
                    ));
                }
            }
            let is_highest = !marked && bar.all == highest.all;
            marked |= is_highest;
            let figure = grouped(bar.all);
            if bar.all > 0 && (self.bars.len() <= LABELED || is_highest) {
                page.write(format_args!(
                    "<text x=\"{:.1}\" y=\"{:.1}\">{figure}</text>",
                    inside(middle, &figure),
                    floor - bar.all as f64 * scale - 5.0
                ));
            }
            if is_labeled(place) {
                page.write(format_args!(
                    "<text x=\"{:.1}\" y=\"{:.1}\">{}</text>\n",
                    inside(middle, &bar.label),
                    HEIGHT - 5.0,
                    bar.label
                ));
            }
        }
        page.write(format_args!(
            "<line x1=\"0\" x2=\"440\" y1=\"{floor}\" y2=\"{floor}\"/>\n</svg>\n"
        ));
    }
}

/// Returns the place for the middle of a text, near this one, where it does not leave the picture.
fn inside(middle: f64, text: &str) -> f64 {
    let half = LETTER * text.len() as f64 / 2.0;
    middle.clamp(half, WIDTH - half)
}
