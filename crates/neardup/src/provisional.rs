//! Stands in for the text pipeline until it lands: ASCII words only.

use crate::shingle::{Key, Shingling, combine};

pub fn for_each_block(doc: &[u8], shingling: &Shingling, key: &Key, sink: &mut dyn FnMut(&[u64])) {
    let lower = doc.to_ascii_lowercase();
    let words: Vec<u64> = lower
        .split(|b| !b.is_ascii_alphanumeric())
        .filter(|w| !w.is_empty())
        .map(|w| key.token_hash(w))
        .collect();
    let k = shingling.k.min(words.len()).max(1);
    sink(&words.windows(k).map(combine).collect::<Vec<_>>());
}
