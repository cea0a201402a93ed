//! The peer gaoya. `cargo xtask bench` sends it one request per line, like `worker.py`.

use std::error::Error;
use std::fmt::Write as _;
use std::hint::black_box;
use std::io::BufRead;
use std::time::Instant;

use gaoya::minhash::{MinHashIndex, MinHasher, MinHasher32, calculate_minhash_params};
use serde::Deserialize;
use serde_json::{Value, json};

const SLOTS: usize = 128;

#[derive(Deserialize)]
struct Request {
    task: String,
    peer: String,
    documents: String,
    threshold: Option<f64>,
    into: Option<String>,
}

fn main() -> Result<(), Box<dyn Error>> {
    for line in std::io::stdin().lock().lines() {
        let reply = answer(&line?).unwrap_or_else(|error| json!({ "error": error.to_string() }));
        println!("{reply}");
    }
    Ok(())
}

fn answer(line: &str) -> Result<Value, Box<dyn Error>> {
    let request: Request = serde_json::from_str(line)?;
    let text = std::fs::read_to_string(&request.documents)?;
    let documents: Vec<&str> = text.lines().collect();
    if request.task == "pairs" {
        let into = request.into.ok_or("no file to write to")?;
        let threshold = request.threshold.ok_or("no threshold")?;
        let start = Instant::now();
        let pairs = pairs(&documents, threshold);
        let seconds = start.elapsed().as_secs_f64();
        std::fs::write(into, pairs)?;
        return Ok(json!({ "seconds": seconds }));
    }
    Ok(json!({ "seconds": sign(&documents, request.peer.ends_with("with shingling")) }))
}

/// Returns the seconds of signing all documents, from their text or from their shingles.
fn sign(documents: &[&str], with_shingling: bool) -> f64 {
    let hasher = MinHasher32::new(SLOTS);
    if with_shingling {
        let start = Instant::now();
        for text in documents {
            black_box(hasher.create_signature(shingles(text).iter()));
        }
        return start.elapsed().as_secs_f64();
    }
    let sets: Vec<Vec<String>> = documents.iter().map(|text| shingles(text)).collect();
    let start = Instant::now();
    for set in &sets {
        black_box(hasher.create_signature(set.iter()));
    }
    start.elapsed().as_secs_f64()
}

/// Returns the shingles of three words; a repeated element changes no minimum.
fn shingles(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    match words.len() {
        0..3 => vec![words.join(" ")],
        _ => words.windows(3).map(|three| three.join(" ")).collect(),
    }
}

fn pairs(documents: &[&str], threshold: f64) -> String {
    let hasher = MinHasher32::new(SLOTS);
    let (bands, width) = calculate_minhash_params(threshold, SLOTS);
    let mut index: MinHashIndex<u32, usize> = MinHashIndex::new(bands, width, threshold);
    let mut pairs = String::new();
    for (key, text) in documents.iter().enumerate() {
        let mut signature = hasher.create_signature(shingles(text).iter());
        signature.truncate(bands * width);
        for (other, similarity) in index.query_owned_return_similarity(&signature) {
            let _ = writeln!(pairs, "{other}\t{key}\t{similarity}");
        }
        index.insert(key, signature);
    }
    pairs
}
