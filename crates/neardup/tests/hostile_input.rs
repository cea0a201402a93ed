//! Random and mutated bytes for all code that reads bytes: the fuzzer's checks without a fuzzer.

use crate::hostile;
use neardup::hash::{GOLDEN, Key, split_mix};
use neardup::minhash::{Header, Signature, Sketch, combine};
use neardup::shingle::{Shingling, for_each_block};
use neardup::text::{Fold, Unit};

/// Fragments of texts that trigger special cases.
const FRAGMENTS: &[&[u8]] = &[
    b"the quick brown fox jumps over the lazy dog ",
    b"to be or not to be, that is the question. ",
    b" \t\r\n",
    b"0123 4567,89.",
    b"<script>&amp;\"'</script>",
    b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "Straße ﬁne Ａ１ ½ ǅ İı Σς ".as_bytes(),
    "e\u{301}\u{327}\u{301} \u{301} a\u{345}\u{3B9}".as_bytes(),
    "\u{AD}\u{200B}\u{200D}\u{202E}\u{FEFF}\u{2060}".as_bytes(),
    "我爱北京 カタカナ ภาษาไทย ကမ္ဘာ 한국어".as_bytes(),
    "مُحَمَّد שָׁלוֹם हिन्दी \u{FDFA}".as_bytes(),
    "\u{1F468}\u{200D}\u{1F469} \u{10FFFF}\u{E000}\u{378}".as_bytes(),
    b"\xFF\xFE\xC3\xED\xA0\x80\xF0\x9F\xF4\x90\x80\x80\xC0\x80",
];

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(GOLDEN);
        (split_mix(self.0) >> 16) as usize % sides
    }

    fn byte(&mut self) -> u8 {
        self.roll(256) as u8
    }

    /// Changes, cuts, repeats or inserts a few bytes.
    fn mutate(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..self.roll(4) {
            let at = self.roll(bytes.len() + 1);
            match self.roll(5) {
                0 => bytes.truncate(at),
                1 => bytes.insert(at, self.byte()),
                2 => bytes.extend_from_within(at..),
                _ => bytes
                    .iter_mut()
                    .skip(at)
                    .take(1)
                    .for_each(|byte| *byte = self.byte()),
            }
        }
    }

    /// Returns options, followed by fragments of texts.
    fn document(&mut self) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..5).map(|_| self.byte()).collect();
        for _ in 0..self.roll(8) {
            bytes.extend(FRAGMENTS[self.roll(FRAGMENTS.len())]);
        }
        self.mutate(&mut bytes);
        bytes
    }

    /// Returns the stored form or the text form of a signature.
    fn signature(&mut self) -> Vec<u8> {
        let unit = [Unit::Word, Unit::Char, Unit::Stop][self.roll(3)];
        let fold = [Fold::None, Fold::Case, Fold::Marks][self.roll(3)];
        let shingling = Shingling::new(1 + self.roll(5) as i64, unit, fold).unwrap();
        let key = Key::from_seed(0);
        let mut sketch = Sketch::new(1 + self.roll(40));
        for_each_block(&self.document(), &shingling, &key, &mut |block| {
            sketch.add(block);
            Ok(())
        })
        .unwrap();
        let header = Header::of_document(&shingling, sketch.slots().len(), key.id());
        let whole = sketch.encode(header);
        let bits = [1, 2, 4, 8, 16, 32][self.roll(6)];
        let packed = combine::pack(&Signature::from_bytes(&whole).unwrap(), bits).unwrap();
        let mut bytes = match self.roll(2) {
            0 => packed,
            _ => Signature::from_bytes(&packed)
                .unwrap()
                .to_string()
                .into_bytes(),
        };
        self.mutate(&mut bytes);
        bytes
    }
}

/// Returns the number of runs of a check: `NEARDUP_HOSTILE_RUNS`, or by default the number that takes a second or two.
fn runs(default: usize) -> usize {
    let asked = std::env::var("NEARDUP_HOSTILE_RUNS").ok();
    asked.and_then(|runs| runs.parse().ok()).unwrap_or(default)
}

#[test]
fn signatures() {
    let mut dice = Dice(1);
    (0..runs(50_000)).for_each(|_| hostile::signature(&dice.signature()));
}

#[test]
fn texts() {
    let mut dice = Dice(2);
    (0..runs(10_000)).for_each(|_| hostile::text(&dice.document()));
}

#[test]
fn pairs() {
    let mut dice = Dice(3);
    (0..runs(5_000)).for_each(|_| hostile::pair(&dice.document()));
}
