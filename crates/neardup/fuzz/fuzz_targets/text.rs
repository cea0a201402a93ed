//! The path from a text to its words, shingles, sketch and bits.

#![no_main]

#[expect(dead_code, reason = "each target calls one of the checks")]
#[path = "../../tests/hostile/mod.rs"]
mod hostile;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hostile::text(bytes));
