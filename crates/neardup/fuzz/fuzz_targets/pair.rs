//! Comparisons of a pair of documents.

#![no_main]

#[expect(dead_code, reason = "each target calls one of the checks")]
#[path = "../../tests/hostile/mod.rs"]
mod hostile;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hostile::pair(bytes));
