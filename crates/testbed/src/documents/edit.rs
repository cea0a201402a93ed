//! Edits that make a near-duplicate of a document.

use fastrand::Rng;
use serde::Serialize;

use super::draft::Draft;
use super::words::Words;

/// A known edit. The last four are the changes that Henzinger (SIGIR 2006) found harmless in web pages: something
/// changes from visit to visit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Edit {
    Copy,
    Substitution,
    Insertion,
    HeaderAndFooter,
    Truncation,
    Shuffle,
    Boilerplate,
    SessionId,
    Timestamp,
    VisitorCount,
    ServerName,
}

impl Edit {
    /// All edits.
    pub const ALL: &[Edit] = &[
        Edit::Copy,
        Edit::Substitution,
        Edit::Insertion,
        Edit::HeaderAndFooter,
        Edit::Truncation,
        Edit::Shuffle,
        Edit::Boilerplate,
        Edit::SessionId,
        Edit::Timestamp,
        Edit::VisitorCount,
        Edit::ServerName,
    ];

    /// The edits that keep nearly every shingle.
    pub const SLIGHT: &[Edit] = &[
        Edit::Copy,
        Edit::SessionId,
        Edit::Timestamp,
        Edit::VisitorCount,
        Edit::ServerName,
    ];

    /// Edits the draft.
    pub fn apply<'a>(self, draft: &mut Draft<'a>, words: &'a Words, rng: &mut Rng) {
        match self {
            Edit::Copy => {}
            Edit::Substitution => substitute(draft, words, rng),
            Edit::Insertion => insert(draft, words, rng),
            Edit::HeaderAndFooter => {
                draft.head.push(line(words, rng.usize(5..20), rng));
                draft.foot.push(line(words, rng.usize(5..20), rng));
            }
            Edit::Truncation => {
                let kept = draft.sentences.len() as f64 * (0.5 + 0.45 * rng.f64());
                draft.sentences.truncate(kept.ceil() as usize);
            }
            Edit::Shuffle => rng.shuffle(&mut draft.sentences),
            Edit::Boilerplate => {
                // One of ten texts that very different documents share.
                let mut common = Rng::with_seed(rng.u64(..10));
                draft.foot.push(line(words, 40, &mut common));
            }
            Edit::SessionId => draft.head.push(format!("sid={:016x}", rng.u64(..))),
            Edit::Timestamp => draft.head.push(timestamp(rng)),
            Edit::VisitorCount => {
                let count = rng.u32(1..1_000_000);
                draft.foot.push(format!("You are visitor number {count}"));
            }
            Edit::ServerName => {
                let number = rng.u32(1..1000);
                draft.foot.push(format!("Served by www{number}"));
            }
        }
    }
}

/// Returns the number of words to change: up to a twentieth.
fn some(draft: &Draft<'_>, rng: &mut Rng) -> usize {
    rng.usize(1..=(draft.length() / 20).max(1))
}

fn substitute<'a>(draft: &mut Draft<'a>, words: &'a Words, rng: &mut Rng) {
    for _ in 0..some(draft, rng) {
        let (sentence, at) = draft.place(rng.usize(..draft.length()));
        draft.sentences[sentence][at] = words.draw(rng);
    }
}

fn insert<'a>(draft: &mut Draft<'a>, words: &'a Words, rng: &mut Rng) {
    for _ in 0..some(draft, rng) {
        let (sentence, at) = draft.place(rng.usize(..draft.length()));
        draft.sentences[sentence].insert(at, words.draw(rng));
    }
}

fn line(words: &Words, length: usize, rng: &mut Rng) -> String {
    let line: Vec<&str> = (0..length).map(|_| words.draw(rng)).collect();
    line.join(" ")
}

fn timestamp(rng: &mut Rng) -> String {
    let (day, hour, minute) = (rng.u32(1..29), rng.u32(..24), rng.u32(..60));
    format!("Retrieved 2026-11-{day:02} {hour:02}:{minute:02}")
}
