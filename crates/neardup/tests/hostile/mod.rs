//! Checks that hold for any bytes. The fuzzer and the mutation test call them.

use std::collections::HashSet;

use neardup::align::{
    Costs, Matching, chunk_similarity, common_chunks, edit_distance, explain, explain_segments,
    longest_common_substring,
};
use neardup::bands::{Bands, HammingBlocks, band_keys};
use neardup::hash::Key;
use neardup::minhash::{Header, Signature, Sketch, combine, estimate, interval, measures};
use neardup::shingle::{Shingling, for_each_block, shingle_hashes, shingles, winnow};
use neardup::simhash::{self, Weighting, Width};
use neardup::text::{Fold, Unit, words};

/// Checks a signature as stored or received, and its text form.
pub fn signature(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(parsed) = Signature::parse_text(text)
    {
        received(&parsed);
    }
    if Signature::from_foreign_bytes(bytes).is_ok() {
        received(bytes);
    }
    let Ok(stored) = Signature::from_bytes(bytes) else {
        return;
    };
    // Stored slots are not checked one by one, so measures must accept any values.
    let own = estimate(&stored, &stored).expect("it is comparable with itself");
    assert_eq!(own, if stored.header.empty { 0.0 } else { 1.0 });
    let limits = interval::interval(&stored, &stored, 0.95).expect("comparable");
    assert!(0.0 <= limits.low && limits.low <= limits.high && limits.high <= 1.0);
    let _ = measures::containment(&stored, &stored);
    let _ = measures::cardinality(&stored);
    let _ = combine::union(&stored, &stored);
    combine::bits(&stored);
    for bits in [1, 2, 4, 8, 16, 32] {
        if let Ok(packed) = combine::pack(&stored, bits) {
            Signature::from_bytes(&packed).expect("a packed signature is one");
        }
    }
    let header = stored.header;
    for threshold in [f64::MIN_POSITIVE, 0.5, 0.8, 1.0] {
        let slots = usize::from(header.slots);
        let bands = Bands::for_threshold(slots, u32::from(header.slot_bits), threshold);
        assert!(band_keys(&stored, &bands).count() <= slots);
    }
}

/// Accepted bytes can be recovered from their text form.
fn received(bytes: &[u8]) {
    let signature = Signature::from_foreign_bytes(bytes).expect("it was accepted");
    let text = signature.to_string();
    let again = Signature::parse_text(&text).expect("the text form is read again");
    assert_eq!(again, bytes, "{text}");
}

/// Checks the path from a text to its words, shingles, sketch and bits. The first bytes choose the options.
pub fn text(bytes: &[u8]) {
    let Some((&[k, options, window, size], doc)) = bytes.split_first_chunk() else {
        return;
    };
    let unit = [Unit::Word, Unit::Char, Unit::Stop][usize::from(options % 3)];
    let fold = [Fold::None, Fold::Case, Fold::Marks][usize::from(options / 3 % 3)];
    let weighting = [Weighting::Frequency, Weighting::Logarithm, Weighting::Set];
    let shingling = Shingling::new(i64::from(k) + 1, unit, fold).expect("1 to 256");
    let (key, idle) = (Key::from_seed(i64::from(options)), &mut || {});

    words(doc, fold, idle, &mut |word, place| {
        assert!(!word.is_empty() && place.start <= place.end && place.end <= doc.len());
        Ok(())
    })
    .expect("memory");
    let hashes = shingle_hashes(doc, &shingling, &key, idle).expect("memory");
    assert!(hashes.is_sorted_by(|a, b| a < b), "sorted and distinct");
    let texts = shingles(doc, &shingling, usize::MAX, idle).expect("no limit");
    assert_eq!(texts.len(), hashes.len(), "a shingle, a hash");
    let fingerprints =
        winnow(doc, &shingling, &key, usize::from(window) + 1, idle).expect("memory");
    let known: HashSet<i64> = hashes.iter().copied().collect();
    assert!(fingerprints.iter().all(|hash| known.contains(hash)));

    let slots = 4 * usize::from(size) + 1;
    let mut sketch = Sketch::new(slots);
    for_each_block(doc, &shingling, &key, &mut |block| {
        sketch.add(block);
        Ok(())
    })
    .expect("memory");
    let mut of_set = Sketch::new(slots);
    of_set.add(&hashes.iter().map(|hash| *hash as u64).collect::<Vec<_>>());
    assert_eq!(
        sketch.slots(),
        of_set.slots(),
        "order and repeats do not count"
    );
    let stored = sketch.encode(Header::of_document(&shingling, slots, key.id()));
    assert_eq!(
        Signature::from_bytes(&stored).expect("own").header.empty,
        hashes.is_empty()
    );
    received(&stored);

    let width = Width::new(64 * (i64::from(size % 64) + 1)).expect("64 to 4096");
    let weighting = weighting[usize::from(options / 9 % 3)];
    let bits = simhash::document(doc, &shingling, &key, width, weighting, idle).expect("short");
    assert_eq!(bits.is_none(), hashes.is_empty());
    if let Some(bits) = bits {
        assert_eq!(bits.len(), width.bits());
        let blocks = HammingBlocks::new(3, 5).expect("valid");
        assert_eq!(blocks.keys(&bits).expect("few").len(), 10);
    }
}

/// Compares a pair of documents. The first bytes choose the options, and determine where the rest is cut in two.
pub fn pair(bytes: &[u8]) {
    let Some((&[options, cut, insert, delete, substitute], docs)) = bytes.split_first_chunk()
    else {
        return;
    };
    let (a, b) = docs.split_at(docs.len() * usize::from(cut) / 255);
    let idle = &mut || {};
    let min_words = i64::from(options % 8) + 1;
    for matching in [Matching::Literal, Matching::Information] {
        let found = chunk_similarity(a, b, min_words, matching, idle).expect("short");
        assert!((0.0..=1.0).contains(&found.s_j()) && (0.0..=1.0).contains(&found.s_l()));
        for chunk in common_chunks(a, b, min_words, matching, idle).expect("short") {
            assert!(chunk.a.bytes.end <= a.len() && chunk.b.bytes.end <= b.len());
            assert!(i64::from(chunk.words) >= min_words);
        }
    }
    let longest = longest_common_substring(a, b, idle).expect("short");
    assert!(longest.start <= longest.end && longest.end <= a.len());
    let told = explain(a, b, idle).expect("short");
    assert!((0.0..=1.0).contains(&told.similarity));
    let (_, segments) = explain_segments([a, b], min_words, idle).expect("short");
    for (doc, segments) in [a, b].into_iter().zip(segments) {
        let ends = segments.iter().fold(0, |end, segment| {
            assert_eq!(segment.bytes.start, end);
            segment.bytes.end
        });
        assert_eq!(ends, doc.len());
    }

    let costs = [insert, delete, substitute].map(i64::from);
    let there = Costs::new(costs[0], costs[1], costs[2]).expect("valid");
    let back = Costs::new(costs[1], costs[0], costs[2]).expect("valid");
    let distance = edit_distance(a, b, there, None, idle).expect("short");
    assert_eq!(
        distance,
        edit_distance(b, a, back, None, idle).expect("short")
    );
    let distance = distance.expect("there is no limit");
    let mut limited = |max| edit_distance(a, b, there, Some(max), idle).expect("short");
    assert_eq!(limited(distance), Some(distance));
    if distance > 0 {
        assert_eq!(limited(distance - 1), None);
    }
}
