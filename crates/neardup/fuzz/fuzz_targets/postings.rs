//! Damaged pages of postings.

#![no_main]

#[path = "../../tests/hostile/postings.rs"]
mod hostile;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    hostile::payload(bytes);
    hostile::damaged(bytes);
});
