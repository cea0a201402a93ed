//! Calls functions that need memory in proportion to their input while allocations fail: they return an error, or the
//! same result as always.

use neardup::align::{self, Costs, Matching};
use neardup::candidates::{GroupSizes, Tokens, choose};
use neardup::cluster::UnionFind;
use neardup::memory::Grow;
use neardup::minhash::{Header, Signature, Sketch};
use neardup::passages::{
    self, Characters, Classes, Copies, DocumentReader, Frequent, Hashes, Member, Place, Texts,
};
use neardup::shingle::{self, Key, Shingling};
use neardup::simhash::{self, Weighting, Width};
use neardup::text::{self, Fold, Unit};
use neardup::{Error, Result, set};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::ops::Range;

/// Smaller requests never fail: the extension has a reserve for them.
const SMALL: usize = 128 << 10;

#[derive(Debug, Clone, Copy)]
enum Plan {
    Succeed,
    /// Rejects the request after this many.
    One(usize),
    /// Rejects the request after this many, and all later ones.
    From(usize),
    /// Rejects requests that would exceed this total number of bytes.
    Bytes(usize),
}

thread_local! {
    static PLAN: Cell<Plan> = const { Cell::new(Plan::Succeed) };
    /// Number of large requests since the plan was made.
    static REQUESTS: Cell<usize> = const { Cell::new(0) };
    /// Number of bytes allocated since then, and its maximum.
    static TAKEN: Cell<[usize; 2]> = const { Cell::new([0; 2]) };
}

struct Scarce;

#[global_allocator]
static ALLOCATOR: Scarce = Scarce;

/// SAFETY: requests that are not rejected go to the system's allocator.
unsafe impl GlobalAlloc for Scarce {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let [taken, most] = TAKEN.get();
        let taken = taken + layout.size();
        if layout.size() > SMALL {
            let number = REQUESTS.replace(REQUESTS.get() + 1);
            let is_rejected = match PLAN.get() {
                Plan::Succeed => false,
                Plan::One(rejected) => number == rejected,
                Plan::From(first) => number >= first,
                Plan::Bytes(bytes) => taken > bytes,
            };
            if is_rejected {
                return std::ptr::null_mut();
            }
        }
        TAKEN.set([taken, most.max(taken)]);
        // SAFETY: the caller's contract is the same as the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        let [taken, most] = TAKEN.get();
        TAKEN.set([taken.saturating_sub(layout.size()), most]);
        // SAFETY: the memory was allocated by the system.
        unsafe { System.dealloc(memory, layout) };
    }
}

type Run<'a> = &'a dyn Fn() -> Result<u64>;

/// Runs a call under a plan. Returns the result, the number of large requests, and the maximum number of bytes
/// allocated.
fn run_with(plan: Plan, run: Run) -> (Result<u64>, usize, usize) {
    REQUESTS.set(0);
    TAKEN.set([0; 2]);
    PLAN.set(plan);
    let result = run();
    PLAN.set(Plan::Succeed);
    (result, REQUESTS.get(), TAKEN.get()[1])
}

fn check(name: &str, plan: Plan, expected: u64, run: Run) -> bool {
    match run_with(plan, run).0 {
        Ok(found) => assert_eq!(found, expected, "{name}, {plan:?}"),
        Err(Error::OutOfMemory) => return false,
        Err(other) => panic!("{name}, {plan:?}: {other}"),
    }
    true
}

/// Rejects each request once, by itself and with all later ones. Of very many requests, which are alike, rejects only
/// some.
fn reject_each(name: &str, run: Run) {
    let (expected, _, _) = run_with(Plan::Succeed, run);
    let expected = expected.expect(name);
    // Memory that is kept for the next document is already allocated the second time.
    let (_, requests, _) = run_with(Plan::Succeed, run);
    assert!(requests > 0, "{name} takes little memory");
    let mut rejected = 0;
    for number in (0..requests).step_by(1 + requests / 100) {
        rejected += usize::from(!check(name, Plan::One(number), expected, run));
        rejected += usize::from(!check(name, Plan::From(number), expected, run));
    }
    assert!(rejected > 0, "{name} never fails");
}

/// Provides less and less memory.
fn give_less(name: &str, run: Run) {
    let (expected, _, most) = run_with(Plan::Succeed, run);
    let expected = expected.expect(name);
    let rejected =
        (0..64).filter(|part| !check(name, Plan::Bytes(most / 64 * part), expected, run));
    assert!(rejected.count() > 0, "{name} never fails");
    assert!(check(name, Plan::Bytes(2 * most), expected, run), "{name}");
}

fn digest(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Returns `words` words in no particular order, some of them in various alphabets; every `other`th is different.
fn document(words: usize, other: usize) -> Vec<u8> {
    let mut random = 7u64;
    let mut text = String::new();
    for i in 0..words {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let number = random >> 48;
        match i % other {
            0 => text.push_str(&format!("other{number} ")),
            1 => text.push_str(&format!("größer{number}\u{301} ")),
            _ => text.push_str(&format!("word{number:x} ")),
        }
    }
    text.into_bytes()
}

/// Requests are counted for each thread, so that tests do not disturb each other.
#[test]
fn shingles_and_sets() {
    let doc = [&[b'x'; 300_000][..], &document(40_000, 90)].concat();
    let marks = ["a", &"\u{301}\u{323}".repeat(100_000)]
        .concat()
        .into_bytes();
    let key = Key::from_seed(0);
    let shingling = |unit, fold| Shingling::new(3, unit, fold).expect("3 is valid");
    let hashes = |doc: &[u8], shingling: &Shingling| {
        shingle::shingle_hashes(doc, shingling, &key, &mut || ())
    };
    reject_each("words", &|| {
        let mut all = 0;
        text::words(&doc, Fold::Case, &mut || (), &mut |word, _| {
            all ^= digest(word);
            Ok(())
        })?;
        Ok(all)
    });
    for (unit, fold) in [
        (Unit::Word, Fold::Case),
        (Unit::Char, Fold::Marks),
        (Unit::Stop, Fold::None),
    ] {
        let shingling = shingling(unit, fold);
        if unit != Unit::Stop {
            reject_each("shingle_hashes", &|| hashes(&doc, &shingling).map(digest));
        }
        reject_each("shingles", &|| {
            shingle::shingles(&doc, &shingling, usize::MAX, &mut || ()).map(digest)
        });
        if fold == Fold::Case {
            reject_each("marks", &|| hashes(&marks, &shingling).map(digest));
        }
    }
    let words = shingling(Unit::Word, Fold::Case);
    reject_each("winnow", &|| {
        shingle::winnow(&doc, &words, &key, 2, &mut || ()).map(digest)
    });
    let all = hashes(&doc, &words).expect("memory");
    reject_each("shingle_sample", &|| {
        set::shingle_sample(&all, 2, &mut || ()).map(digest)
    });
    reject_each("bucket_sketch", &|| {
        set::bucket_sketch(&all, 50_000, &mut || ()).map(digest)
    });
    reject_each("supershingles", &|| {
        set::supershingles(&all, 7, &mut || ()).map(digest)
    });
    let tokens: Vec<u64> = all.iter().map(|hash| *hash as u64).collect();
    reject_each("sequence_hashes", &|| {
        shingle::sequence_hashes(&tokens, 3).map(digest)
    });
}

#[test]
fn signatures() {
    let doc = document(60_000, 90);
    let repeats = document(100, 9).repeat(1000);
    let key = Key::from_seed(0);
    let words = Shingling::new(1, Unit::Word, Fold::Case).expect("1 is valid");
    for doc in [&doc, &repeats] {
        let (signature, requests, _) = run_with(Plan::Succeed, &|| {
            let mut sketch = Sketch::new(1024);
            shingle::for_each_block(doc, &words, &key, &mut |block| {
                sketch.add(block);
                Ok(())
            })?;
            Ok(digest(sketch.encode(Header::of_document(
                &words,
                1024,
                key.id(),
            ))))
        });
        assert!(
            signature.is_ok() && requests == 0,
            "minhash takes {requests}"
        );
    }
    for weighting in [Weighting::Set, Weighting::Logarithm] {
        reject_each("simhash", &|| {
            let width = Width::new(64)?;
            simhash::document(&doc, &words, &key, width, weighting, &mut || ()).map(digest)
        });
    }
    let text = "minhash:1:word:3:case:128x32:0123456789abcdef:".to_owned() + &"A".repeat(400_000);
    reject_each("the text form", &|| match Signature::parse_text(&text) {
        Err(Error::Corrupt(reason)) => Ok(digest(reason)),
        other => other.map(digest),
    });
}

#[test]
fn pairs_of_documents() {
    let (a, b) = (document(30_000, 90), document(30_000, 110));
    for matching in [Matching::Literal, Matching::Information] {
        reject_each("common_chunks", &|| {
            let chunks = align::common_chunks(&a, &b, 2, matching, &mut || ())?;
            Ok(digest(format!("{chunks:?}").len()))
        });
        reject_each("chunk_similarity", &|| {
            let found = align::chunk_similarity(&a, &b, 2, matching, &mut || ())?;
            Ok(digest(found.common))
        });
    }
    reject_each("longest_common_substring", &|| {
        let found = align::longest_common_substring(&a, &b, &mut || ())?;
        Ok(digest(found))
    });
    reject_each("explain", &|| {
        let found = align::explain(&a, &b, &mut || ())?;
        Ok(digest((found.only_in_a, found.only_in_b)))
    });
    reject_each("explain_segments", &|| {
        let (_, segments) = align::explain_segments([&a, &b], 5, &mut || ())?;
        let parts = segments.iter().flatten();
        let parts = parts.map(|part| (part.bytes.start, part.bytes.end, part.words, part.chunk));
        Ok(parts.fold(0, |sum, part| digest((sum, part))))
    });
}

#[test]
fn edit_distances() {
    let (a, b) = (document(6000, 90), document(6000, 110));
    reject_each("costs that differ", &|| {
        let costs = Costs::new(1, 3, 1)?;
        align::edit_distance(&a[..40_000], &b[..30_000], costs, None, &mut || ()).map(digest)
    });
    // The crate's allocations cannot fail, so the same amount is requested first.
    let chinese = |doc: &[u8]| {
        let han = |byte: &u8| char::from_u32(0x4E00 + u32::from(*byte)).expect("a character");
        doc.iter().map(han).collect::<String>().into_bytes()
    };
    for (a, b) in [(a.clone(), b.clone()), (chinese(&a), chinese(&b))] {
        for substitute in [1, 2] {
            give_less("Levenshtein, longest common subsequence", &|| {
                let costs = Costs::new(1, 1, substitute)?;
                align::edit_distance(&a, &b, costs, Some(2000), &mut || ()).map(digest)
            });
        }
    }
}

#[test]
fn collections() {
    let row = |row: u32| [row % 3, row / 2, 5, 7];
    let mut sizes = GroupSizes::new(1 << 16, 1 << 20).expect("memory");
    let mut tokens = Tokens::new(4, 2, 100_000).expect("memory");
    for (band, token) in (0..100_000).flat_map(|number| row(number).into_iter().enumerate()) {
        sizes.add(GroupSizes::key(band, token), 2);
    }
    for number in 0..100_000 {
        let mut chosen = Vec::new();
        choose(&row(number), 2, &sizes, &mut chosen).expect("memory");
        tokens.push(chosen.into_iter()).expect("memory");
    }
    let group: Vec<u32> = (0..tokens.rows()).collect();
    let met = tokens.keys(0).next().expect("a key");
    reject_each("join_group", &|| {
        let sets = UnionFind::new(tokens.rows())?;
        group.iter().for_each(|row| {
            sets.union(0, *row);
        });
        sets.join_group(&group, group.len(), &mut |x, y| {
            tokens.meet_first(x, y, met)
        })?;
        Ok(u64::from(sets.find(7)))
    });
}

/// Documents, concatenated.
struct Joined<'a> {
    bytes: &'a [u8],
    starts: &'a [u64],
}

impl Texts for Joined<'_> {
    fn document(&self, byte: u64) -> (u32, Range<u64>) {
        let number = self.starts.partition_point(|start| *start <= byte) - 1;
        let end = self.starts.get(number + 1);
        let end = end.map_or(self.bytes.len() as u64, |end| *end);
        (number as u32, self.starts[number]..end)
    }

    fn read(&mut self, bytes: Range<u64>, into: &mut Vec<u8>) -> Result<()> {
        into.try_extend_from_slice(&self.bytes[bytes.start as usize..bytes.end as usize])
    }
}

/// Returns a digest of the copied passages in the documents that begin at `starts`, and of the most frequent ones.
fn copied(bytes: &[u8], starts: &[u64], min_words: usize) -> Result<u64> {
    let check = &mut || ();
    let mut texts = Joined { bytes, starts };
    let mut characters = Characters::default();
    characters.push(bytes)?;
    let reader = DocumentReader::new(min_words, Fold::Case, Hashes::from_seed(0));
    let (mut classes, mut copies) = (Classes::new(usize::MAX), Copies::new(reader)?);
    let mut all = 0;
    for &start in starts {
        let whole = texts.document(start).1;
        let doc = &bytes[whole.start as usize..whole.end as usize];
        all ^= digest(reader.winnow([doc].into_iter(), check)?.fingerprints);
        let all_repeat = std::iter::repeat(true);
        reader.windows((doc, start), all_repeat, check, &mut |window| {
            let Member::Copy(first) = classes.add(window, &|_| whole.end)? else {
                return Ok(());
            };
            let window = Place(window[1]);
            if !copies.is_within(window) {
                let row = copies.passage(window, Place(first), &mut texts, &mut || ())?;
                let row = row.expect("the words are the same");
                all ^= digest((
                    row.words,
                    row.source,
                    characters.count(row.bytes, &mut texts)?,
                ));
            }
            Ok(())
        })?;
    }
    let (mut repeated, mut frequent) = (Vec::new(), Frequent::new(reader, 9));
    repeated.try_extend(classes.repeated())?;
    repeated.sort_unstable();
    for (window, documents, places) in repeated {
        frequent.add((Place(window), documents, places), &mut texts, check)?;
    }
    for passage in frequent.passages(&mut texts, check)? {
        all ^= digest((passage.documents, passage.places, passage.bytes));
    }
    Ok(all)
}

#[test]
fn passages_of_documents() {
    let mut twice = document(12_000, 90);
    let half = twice.len() as u64;
    twice.extend_from_within(..);
    reject_each("copied_passages", &|| copied(&twice, &[0, half], 6));
    let doc = document(40_000, 90);
    let text = std::str::from_utf8(&doc).expect("a text");
    reject_each("cut_passages", &|| {
        let spans = [5..10, 100..200_000].into_iter();
        passages::cut(text, spans, "replacement", usize::MAX, &mut || ()).map(digest)
    });
}

/// Apart from the document, a row takes as much memory as one a hundredth as long.
#[test]
fn a_row_of_one_word_takes_little_memory() {
    let most = |words: usize| {
        let row = b"a ".repeat(words);
        let (found, _, most) = run_with(Plan::Succeed, &|| copied(&row, &[0], 50));
        found.expect("memory");
        most.saturating_sub(row.len())
    };
    let (few, many) = (most(20_000), most(2_000_000));
    assert!(many < few + (4 << 20), "{few} bytes, then {many}");
}
