//! The listed places in the characters of their documents, each compared with its passage.

use super::numbering::Passages;
use super::place::{Place, Visit};
use super::sort::Scratch;
use crate::Result;
use crate::memory::{Grow, filled};
use crate::text::{Fold, words};
use std::ops::Range;

/// Places of a document that are looked up together: of one with more all words are gone through
/// several times.
const BATCH: usize = 1 << 14;

/// The documents of a collection, in UTF-8, which can be read in any order.
pub trait Documents {
    /// Returns the bytes of a document.
    fn length(&self, document: usize) -> usize;
    /// Appends bytes of a document.
    ///
    /// # Errors
    /// `OutOfMemory`.
    fn read(&mut self, document: usize, bytes: Range<usize>, into: &mut Vec<u8>) -> Result<()>;
}

/// A listed place, and its characters, counted from 0 in its document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub place: Place,
    pub characters: Range<u32>,
}

/// Visits the listed places, in the order of [`Passages::for_each`].
///
/// The words of each are compared with those of the passage's first place. Returns false if they
/// differ, that is, if different words had the same hash: no more places are visited, and the search
/// has to be made again with other hashes.
///
/// Time linear in the documents that have places, and in the text of the places; memory for the
/// longest document, for 16384 places, and 24 bytes a passage.
///
/// # Errors
/// `OutOfMemory`; those of `visit`.
pub fn list<S: Scratch>(
    passages: Passages<S>,
    documents: &mut dyn Documents,
    fold: Fold,
    check: &mut dyn FnMut(),
    visit: &mut Visit<'_, Listed>,
) -> Result<bool> {
    let mut lister = Lister {
        documents,
        fold,
        document: usize::MAX,
        text: Vec::new(),
        batch: Vec::new(),
        firsts: Vec::new(),
        is_true: true,
    };
    passages.for_each(check, &mut |place, check| lister.push(place, check, visit))?;
    lister.flush(check, visit)?;
    Ok(lister.is_true)
}

/// The first place of a passage.
struct First {
    document: u32,
    /// The number of its first word.
    word: u64,
    source: Source,
}

/// The stretch of text behind the words of a place.
#[derive(Debug, Clone, Copy, Default)]
struct Source {
    /// First and last byte, the latter exclusive.
    bytes: [u32; 2],
    characters: [u32; 2],
    /// The word before or behind is made from one of these characters, too.
    is_shared: bool,
}

impl Source {
    fn bytes(&self) -> Range<usize> {
        self.bytes[0] as usize..self.bytes[1] as usize
    }
}

struct Lister<'a> {
    documents: &'a mut dyn Documents,
    fold: Fold,
    /// The document of the batch, and its text.
    document: usize,
    text: Vec<u8>,
    batch: Vec<Place>,
    /// Of every passage so far: their first places come in the order of their numbers.
    firsts: Vec<First>,
    is_true: bool,
}

impl Lister<'_> {
    fn push(
        &mut self,
        place: &Place,
        check: &mut dyn FnMut(),
        visit: &mut Visit<'_, Listed>,
    ) -> Result<()> {
        if self.batch.len() == BATCH || self.document != place.document {
            self.flush(check, visit)?;
        }
        if self.document != place.document {
            self.document = place.document;
            self.text.clear();
            let length = self.documents.length(place.document);
            self.documents
                .read(place.document, 0..length, &mut self.text)?;
        }
        self.batch.try_push(*place)
    }

    fn flush(&mut self, check: &mut dyn FnMut(), visit: &mut Visit<'_, Listed>) -> Result<()> {
        let batch = std::mem::take(&mut self.batch);
        let sources = sources(&self.text, self.fold, &batch, check)?;
        for (place, source) in batch.iter().zip(sources) {
            check();
            self.is_true = self.is_true && self.is_of_passage(place, source, check)?;
            if self.is_true {
                let [start, end] = source.characters;
                let listed = Listed {
                    place: *place,
                    characters: start..end,
                };
                visit(&listed, check)?;
            }
        }
        self.batch = batch;
        self.batch.clear();
        Ok(())
    }

    /// Returns whether a place has the words of the passage's first place.
    fn is_of_passage(
        &mut self,
        place: &Place,
        source: Source,
        check: &mut dyn FnMut(),
    ) -> Result<bool> {
        let Some(first) = self.firsts.get(place.passage as usize - 1) else {
            self.firsts.try_push(First {
                document: place.document as u32,
                word: place.word,
                source,
            })?;
            return Ok(true);
        };
        let here = &self.text[source.bytes()];
        let mut there = Vec::new();
        self.documents
            .read(first.document as usize, first.source.bytes(), &mut there)?;
        let all = 0..u64::MAX;
        if !source.is_shared && !first.source.is_shared {
            let is_same =
                here == there || same_words(self.fold, [here, &there], [all.clone(), all], check)?;
            if is_same {
                return Ok(true);
            }
        }
        // Characters around a place may take part in folding it.
        there.clear();
        let length = self.documents.length(first.document as usize);
        self.documents
            .read(first.document as usize, 0..length, &mut there)?;
        let places = [place.word, first.word].map(|word| word..word + place.words);
        same_words(self.fold, [&self.text, &there], places, check)
    }
}

/// Returns the stretch of text behind the words of each place.
fn sources(
    text: &[u8],
    fold: Fold,
    places: &[Place],
    check: &mut dyn FnMut(),
) -> Result<Vec<Source>> {
    let mut sources = filled(Source::default(), places.len())?;
    // The first and the last word of every place: word, place, side.
    let mut wanted: Vec<(u64, u32, usize)> = Vec::new();
    for (number, place) in (0..).zip(places) {
        wanted.try_push((place.word, number, 0))?;
        wanted.try_push((place.word + place.words - 1, number, 1))?;
    }
    wanted.sort_unstable();
    let mut wanted = wanted.into_iter().peekable();
    let (mut number, mut counted, mut characters, mut last_end) = (0, 0, 0, 0);
    let mut open_ends: Vec<u32> = Vec::new();
    words(text, fold, check, &mut |_, bytes| {
        let is_shared = bytes.start < last_end;
        if is_shared {
            open_ends
                .drain(..)
                .for_each(|end| sources[end as usize].is_shared = true);
        }
        open_ends.clear();
        last_end = bytes.end;
        while let Some((_, place, side)) = wanted.next_if(|next| next.0 == number) {
            characters += count(&text[counted..bytes.start]);
            counted = bytes.start;
            let source = &mut sources[place as usize];
            match side {
                0 => {
                    source.bytes[0] = bytes.start as u32;
                    source.characters[0] = characters;
                    source.is_shared |= is_shared;
                }
                _ => {
                    source.bytes[1] = bytes.end as u32;
                    source.characters[1] = characters + count(&text[bytes.clone()]);
                    open_ends.try_push(place)?;
                }
            }
        }
        number += 1;
        Ok(())
    })?;
    Ok(sources)
}

/// Returns whether two ranges of words are the same.
fn same_words(
    fold: Fold,
    texts: [&[u8]; 2],
    ranges: [Range<u64>; 2],
    check: &mut dyn FnMut(),
) -> Result<bool> {
    let [here, there] = texts;
    let [in_here, in_there] = ranges;
    let mut expected = Vec::new();
    let mut number = 0;
    words(there, fold, check, &mut |word, _| {
        if in_there.contains(&number) {
            expected.try_extend_from_slice(word.as_bytes())?;
            expected.try_push(BETWEEN_WORDS)?;
        }
        number += 1;
        Ok(())
    })?;
    let mut rest = Some(&expected[..]);
    number = 0;
    words(here, fold, check, &mut |word, _| {
        if in_here.contains(&number) {
            rest = rest
                .and_then(|rest| rest.strip_prefix(word.as_bytes()))
                .and_then(|rest| rest.strip_prefix(&[BETWEEN_WORDS]));
        }
        number += 1;
        Ok(())
    })?;
    Ok(rest.is_some_and(<[u8]>::is_empty))
}

/// No byte of a word.
const BETWEEN_WORDS: u8 = 0xFF;

/// Returns all but continuation bytes.
fn count(text: &[u8]) -> u32 {
    text.iter().filter(|byte| **byte & 0xC0 != 0x80).count() as u32
}

#[cfg(test)]
mod tests {
    use super::super::{Candidates, Fingerprints, Hashes, Numbering, Reader};
    use super::*;

    struct NoScratch;

    impl Scratch for NoScratch {
        fn create() -> Self {
            unreachable!("a few words are sorted in memory")
        }

        fn append(&mut self, _: &[u8]) {}

        fn read(&mut self, _: u64, _: &mut [u8]) {}
    }

    struct Texts<'a>(&'a [&'a str]);

    impl Documents for Texts<'_> {
        fn length(&self, document: usize) -> usize {
            self.0[document].len()
        }

        fn read(&mut self, document: usize, bytes: Range<usize>, into: &mut Vec<u8>) -> Result<()> {
            into.try_extend_from_slice(&self.0[document].as_bytes()[bytes])
        }
    }

    fn outcome(documents: &[&str], hashes: Hashes) -> (bool, usize) {
        let check = &mut || ();
        let docs = || documents.iter().map(|document| document.as_bytes());
        let reader = Reader::new(4, Fold::Case, hashes);
        let mut fingerprints = Fingerprints::<NoScratch>::new(reader, 0);
        let read = reader.winnow(docs(), check).expect("memory");
        fingerprints.add(&read, check).expect("memory");
        let repeated = fingerprints.repeated(check).expect("memory");
        let mut candidates = Candidates::<NoScratch>::new(0);
        let found = candidates.find(&repeated, 0, docs(), check);
        found.expect("memory");
        let batches = candidates.batches(repeated, check);
        let (mut batches, search) = batches.expect("memory");
        let mut numbering = Numbering::<NoScratch>::new(0);
        while let Some(batch) = batches.next(check).expect("memory") {
            let found = search.places(&batch, check).expect("memory");
            numbering.add(found, check).expect("memory");
        }
        let passages = numbering.passages(search, check).expect("memory");
        let mut places = 0;
        let visit = &mut |_: &Listed, _: &mut dyn FnMut()| {
            places += 1;
            Ok(())
        };
        let is_true = list(passages, &mut Texts(documents), Fold::Case, check, visit);
        (is_true.expect("memory"), places)
    }

    #[test]
    fn different_words_of_one_hash_are_noticed() {
        // The same words, so the same anchor, in another order.
        let different = ["one two three four", "two three one four"];
        assert_eq!(outcome(&different, Hashes::weak()), (false, 1));
        assert_eq!(outcome(&different, Hashes::from_seed(0)), (true, 0));
        let same = ["One two three, four", "one two three four"];
        assert_eq!(outcome(&same, Hashes::weak()), (true, 2));
    }
}
