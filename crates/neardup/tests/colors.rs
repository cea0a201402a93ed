//! Contrast of the colors of HTML pages, by the formulas of WCAG 2.1: text at 4.5 to 1, and parts of
//! pictures at 3 to 1.

const STYLE: &str = include_str!("../templates/base.css");

type Color = [f64; 3];

/// The variables of a theme.
struct Theme(&'static str);

impl Theme {
    fn value(&self, name: &str) -> &str {
        let (_, rest) = self.0.split_once(&format!("--{name}: ")).expect(name);
        rest.split(';').next().expect("a value")
    }

    fn color(&self, name: &str) -> Color {
        let digits = self.value(name).strip_prefix('#').expect(name);
        let each = digits.len() / 3;
        [0, 1, 2].map(|place| {
            let digits = &digits[place * each..][..each];
            let value = u8::from_str_radix(digits, 16).expect(name);
            f64::from(value) / if each == 1 { 15.0 } else { 255.0 }
        })
    }

    /// Returns the color of a chunk with this hue and the lightness of a variable.
    fn chunk(&self, hue: f64, lightness: &str) -> Color {
        let percent = |name: &str| -> f64 {
            let value = self.value(name).strip_suffix('%').expect(name);
            value.parse::<f64>().expect(name) / 100.0
        };
        let (saturation, lightness) = (percent("s"), percent(lightness));
        let most = saturation * lightness.min(1.0 - lightness);
        [0.0, 8.0, 4.0].map(|shift: f64| {
            let place = (shift + hue / 30.0) % 12.0;
            lightness - most * (place - 3.0).min(9.0 - place).clamp(-1.0, 1.0)
        })
    }
}

fn luminance(color: Color) -> f64 {
    let linear = color.map(|value| match value {
        0.0..=0.040_45 => value / 12.92,
        value => ((value + 0.055) / 1.055).powf(2.4),
    });
    0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
}

fn contrast(a: Color, b: Color) -> f64 {
    let [a, b] = [a, b].map(|color| luminance(color) + 0.05);
    a.max(b) / a.min(b)
}

fn mixed(over: Color, under: Color, share: f64) -> Color {
    [0, 1, 2].map(|place| share * over[place] + (1.0 - share) * under[place])
}

#[test]
fn text_and_pictures_stand_out() {
    let (light, dark) = STYLE.split_once("@media").expect("a dark theme");
    for theme in [Theme(light), Theme(dark)] {
        let grounds = ["page", "paper"].map(|name| theme.color(name));
        for ground in grounds {
            for ink in ["ink", "quiet", "link", "del", "ins"] {
                let found = contrast(theme.color(ink), ground);
                assert!(found >= 4.5, "{ink}: {found}");
            }
            assert!(contrast(theme.color("bar"), ground) >= 3.0);
            for hue in 190..=310 {
                let edge = theme.chunk(hue.into(), "edge");
                let ribbon = mixed(edge, ground, 0.85);
                assert!(contrast(edge, ground) >= 3.0, "{hue}");
                assert!(contrast(ribbon, ground) >= 3.0, "{hue}");
                let tint = theme.chunk(hue.into(), "l");
                assert!(contrast(theme.color("ink"), tint) >= 4.5, "{hue}");
            }
        }
    }
    assert!(STYLE.contains("var(--edge) / .85)"));
}
