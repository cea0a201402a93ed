//! Recall and cost of SimHash on the corpora: `cargo bench -p neardup --bench simhash`.
//!
//! The corpora are expected in `$NEARDUP_CORPORA`, or else in `../shared/corpora` next to the workspace. Without them,
//! nothing is measured.

use flate2::read::GzDecoder;
use neardup::hamming::distance;
use neardup::hash::{GOLDEN, Key, split_mix};
use neardup::shingle::{Shingling, for_each_block};
use neardup::simhash::{Weighting, Width, document};
use neardup::text::{Fold, Unit};
use std::collections::HashMap;
use std::fs::File;
use std::hint::black_box;
use std::io::Read;
use std::path::PathBuf;
use std::time::Instant;

const WEIGHTINGS: [(&str, Weighting); 3] = [
    ("tf", Weighting::Frequency),
    ("log", Weighting::Logarithm),
    ("set", Weighting::Set),
];

const ROUNDS: usize = 9;

/// Number of random pairs with which labeled pairs are compared.
const RANDOM_PAIRS: usize = 200_000;

fn main() {
    let corpora = std::env::var_os("NEARDUP_CORPORA").map_or_else(
        || {
            PathBuf::from(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../../shared/corpora"
            ))
        },
        PathBuf::from,
    );
    if !corpora.is_dir() {
        println!("skipped: no corpora");
        return;
    }
    let news = Corpus::read(&corpora, "mccormick_2500");
    speed(&news);
    for (name, weighting) in WEIGHTINGS {
        println!(
            "ROC AUC, mccormick_2500, {name}: {:.5}",
            news.roc_auc(weighting)
        );
    }
    println!("| corpus | weighting | distance | recall at J >= 0.8 | pairs | of them J >= 0.5 |");
    println!("|---|---|---|---|---|---|");
    for name in ["reuters21578", "newsgroups20"] {
        let corpus = Corpus::read(&corpora, name);
        for (weighting_name, weighting) in WEIGHTINGS {
            corpus.print_found(name, weighting_name, weighting);
        }
    }
}

struct Corpus {
    docs: Vec<(u64, Vec<u8>)>,
    /// Labeled pairs, by positions in `docs`.
    truth: Vec<(usize, usize)>,
    /// Every pair of documents whose sets of three-word shingles have a Jaccard similarity of 0.5 or more.
    exact: HashMap<(usize, usize), f64>,
}

impl Corpus {
    fn read(corpora: &std::path::Path, name: &str) -> Self {
        let lines = |file: &str| {
            let mut bytes = Vec::new();
            if let Ok(file) = File::open(corpora.join(name).join(file)) {
                GzDecoder::new(file)
                    .read_to_end(&mut bytes)
                    .expect("a readable corpus");
            }
            let lines = bytes
                .split(|byte| *byte == b'\n')
                .filter(|line| !line.is_empty());
            lines.map(<[u8]>::to_vec).collect::<Vec<_>>()
        };
        let number =
            |field: &[u8]| -> f64 { String::from_utf8_lossy(field).parse().expect("a number") };
        let docs: Vec<(u64, Vec<u8>)> = lines("docs.tsv.gz")
            .into_iter()
            .map(|line| {
                let tab = line
                    .iter()
                    .position(|byte| *byte == b'\t')
                    .expect("two columns");
                (number(&line[..tab]) as u64, unescaped(&line[tab + 1..]))
            })
            .collect();
        let places: HashMap<u64, usize> = docs.iter().zip(0..).map(|(doc, i)| (doc.0, i)).collect();
        let pairs = |file: &str| -> Vec<((usize, usize), f64)> {
            let pair = |line: Vec<u8>| {
                let fields: Vec<f64> = line.split(|byte| *byte == b'\t').map(number).collect();
                let place = |id: f64| places[&(id as u64)];
                let (a, b) = (place(fields[0]), place(fields[1]));
                ((a.min(b), a.max(b)), fields.get(2).copied().unwrap_or(1.0))
            };
            lines(file).into_iter().map(pair).collect()
        };
        let truth = pairs("truth.tsv.gz")
            .into_iter()
            .map(|(pair, _)| pair)
            .collect();
        let exact = pairs("exact_w3.tsv.gz").into_iter().collect();
        Self { docs, truth, exact }
    }

    /// `None` for an empty document.
    fn simhashes(&self, weighting: Weighting) -> Vec<Option<[u8; 8]>> {
        let simhash = |(_, doc): &(u64, Vec<u8>)| {
            let bits = simhash(doc, 1, weighting)?;
            Some(bits.as_raw_slice().try_into().expect("64 bits"))
        };
        self.docs.iter().map(simhash).collect()
    }

    /// Returns the probability that a labeled pair is closer than a random one; equal distances count half.
    fn roc_auc(&self, weighting: Weighting) -> f64 {
        let simhashes = self.simhashes(weighting);
        let apart = |(a, b): (usize, usize)| Some(distance(&simhashes[a]?, &simhashes[b]?));
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_add(GOLDEN);
            (split_mix(state) % self.docs.len() as u64) as usize
        };
        let negatives: Vec<u32> = (0..RANDOM_PAIRS)
            .map(|_| (random(), random()))
            .filter(|(a, b)| a != b && !self.exact.contains_key(&(*a.min(b), *a.max(b))))
            .filter_map(apart)
            .collect();
        let positives: Vec<u32> = self.truth.iter().copied().filter_map(apart).collect();
        let wins = |positive: &u32| -> f64 {
            let score = |negative: &u32| match positive.cmp(negative) {
                std::cmp::Ordering::Less => 1.0,
                std::cmp::Ordering::Equal => 0.5,
                std::cmp::Ordering::Greater => 0.0,
            };
            negatives.iter().map(score).sum()
        };
        let won: f64 = positives.iter().map(wins).sum();
        won / (positives.len() * negatives.len()) as f64
    }

    /// Prints one line of the table for each distance, from all pairs of documents.
    fn print_found(&self, name: &str, weighting_name: &str, weighting: Weighting) {
        const DISTANCES: [u32; 2] = [3, 6];
        let simhashes: Vec<(usize, u64)> = self
            .simhashes(weighting)
            .into_iter()
            .enumerate()
            .filter_map(|(i, bits)| Some((i, u64::from_be_bytes(bits?))))
            .collect();
        let mut pairs = [0; 2];
        let mut similar = [0; 2];
        let mut near = [0; 2];
        for (place, (a, a_bits)) in simhashes.iter().enumerate() {
            for (b, b_bits) in &simhashes[place + 1..] {
                let apart = (a_bits ^ b_bits).count_ones();
                if apart > DISTANCES[1] {
                    continue;
                }
                let jaccard = self.exact.get(&(*a, *b)).copied().unwrap_or(0.0);
                for (i, _) in DISTANCES.iter().enumerate().filter(|(_, d)| apart <= **d) {
                    pairs[i] += 1;
                    similar[i] += u32::from(jaccard >= 0.5);
                    near[i] += u32::from(jaccard >= 0.8);
                }
            }
        }
        let all_near = self
            .exact
            .values()
            .filter(|jaccard| **jaccard >= 0.8)
            .count();
        for (i, distance) in DISTANCES.iter().enumerate() {
            println!(
                "| {name} | {weighting_name} | {distance} | {:.2} | {} | {:.0} % |",
                f64::from(near[i]) / all_near as f64,
                pairs[i],
                100.0 * f64::from(similar[i]) / f64::from(pairs[i]),
            );
        }
    }
}

/// COPY's text format doubles backslashes; the corpora use no other escape.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut after_backslash = false;
    for byte in field {
        after_backslash = *byte == b'\\' && !after_backslash;
        if !after_backslash {
            bytes.push(*byte);
        }
    }
    bytes
}

type Bits = bitvec::vec::BitVec<u8, bitvec::order::Msb0>;

fn simhash(doc: &[u8], k: i64, weighting: Weighting) -> Option<Bits> {
    let shingling = words(k);
    let width = Width::new(64).expect("a valid width");
    document(
        doc,
        &shingling,
        &Key::from_seed(0),
        width,
        weighting,
        &mut || (),
    )
    .expect("memory")
}

fn words(k: i64) -> Shingling {
    Shingling::new(k, Unit::Word, Fold::Case).expect("a valid k")
}

/// Prints the median times for a document.
fn speed(corpus: &Corpus) {
    let time = |what: String, run: &mut dyn FnMut(&[u8])| {
        let mut rounds: Vec<f64> = (0..ROUNDS)
            .map(|_| {
                let start = Instant::now();
                corpus.docs.iter().for_each(|(_, doc)| run(doc));
                start.elapsed().as_secs_f64() * 1e6 / corpus.docs.len() as f64
            })
            .collect();
        rounds.sort_by(f64::total_cmp);
        println!("{what}: {:.2} us a document", rounds[ROUNDS / 2]);
    };
    for k in [1, 3] {
        let key = Key::from_seed(0);
        time(format!("shingle hashes, k = {k}"), &mut |doc| {
            for_each_block(doc, &words(k), &key, &mut |hashes| {
                black_box(hashes);
                Ok(())
            })
            .unwrap();
        });
        for (name, weighting) in WEIGHTINGS {
            time(format!("SimHash, k = {k}, {name}"), &mut |doc| {
                black_box(simhash(doc, k, weighting));
            });
        }
    }
}
