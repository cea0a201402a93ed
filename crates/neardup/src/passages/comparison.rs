//! The words of places, compared with the words of their passage's first place.

use super::listing::{DocumentTexts, Listed, Located, Stretch};
use super::place::{PassagePlace, VisitPlace};
use crate::Result;
use crate::memory::Grow;
use crate::text::{Fold, words};
use std::ops::Range;

/// The comparison of places with the first of their passages. 32 bytes a passage.
pub struct PlaceComparison {
    fold: Fold,
    /// Of every passage so far: their first places come in the order of their numbers.
    firsts: Vec<First>,
}

/// The first place of a passage.
struct First {
    document: u32,
    /// The number of its first word.
    word: u64,
    source: Stretch,
}

impl PlaceComparison {
    /// Returns one for documents none of whose places has been visited.
    pub fn new(fold: Fold) -> Self {
        Self {
            fold,
            firsts: Vec::new(),
        }
    }

    /// Visits the next places, which come in the order of [`super::Passages::for_each`].
    ///
    /// The words of each are compared with the words of the passage's first place. Returns false if they
    /// differ, that is, if different words had the same hash: no more places are visited, and the search
    /// has to be made again with other hashes. Time linear in the text of the places.
    ///
    /// # Errors
    /// `OutOfMemory`; the errors of `visit`.
    pub fn visit(
        &mut self,
        located: &Located,
        documents: &mut dyn DocumentTexts,
        check: &mut dyn FnMut(),
        visit: &mut VisitPlace<'_, Listed>,
    ) -> Result<bool> {
        let mut sources = located.sources.iter();
        for (text, places) in located.listing.documents() {
            for (place, source) in places.iter().zip(&mut sources) {
                check();
                if !self.is_of_passage(text, (place, source), documents, check)? {
                    return Ok(false);
                }
                let [start, end] = source.characters;
                let listed = Listed {
                    place: *place,
                    characters: start..end,
                };
                visit(&listed)?;
            }
        }
        Ok(true)
    }

    /// Returns whether a place has the words of the passage's first place.
    fn is_of_passage(
        &mut self,
        text: &[u8],
        (place, source): (&PassagePlace, &Stretch),
        documents: &mut dyn DocumentTexts,
        check: &mut dyn FnMut(),
    ) -> Result<bool> {
        let Some(first) = self.firsts.get(place.passage as usize - 1) else {
            self.firsts.try_push(First {
                document: place.document as u32,
                word: place.word,
                source: *source,
            })?;
            return Ok(true);
        };
        let here = &text[source.bytes()];
        let mut there = Vec::new();
        documents.read(first.document as usize, first.source.bytes(), &mut there)?;
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
        let length = documents.length(first.document as usize);
        documents.read(first.document as usize, 0..length, &mut there)?;
        let places = [place.word, first.word].map(|word| word..word + place.words);
        same_words(self.fold, [text, &there], places, check)
    }
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

#[cfg(test)]
mod tests {
    use super::super::{
        DocumentReader, Fingerprints, Hashes, Listing, Numbering, WindowCandidates,
    };
    use super::*;

    struct GivenTexts<'a>(&'a [&'a str]);

    impl DocumentTexts for GivenTexts<'_> {
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
        let reader = DocumentReader::new(4, Fold::Case, hashes);
        let mut fingerprints = Fingerprints::<Vec<u8>>::new(reader, 0);
        let read = reader.winnow(docs(), check).expect("memory");
        fingerprints.add(&read, check).expect("memory");
        let repeated = fingerprints.repeated(&mut |_| check()).expect("memory");
        let mut candidates = WindowCandidates::<Vec<u8>>::new(&repeated, 0).expect("memory");
        let found = candidates.find(&repeated, 0, docs(), check);
        found.expect("memory");
        while let Some(part) = candidates.next_part(&repeated, check).expect("memory") {
            let found = repeated.boundaries::<Vec<u8>>(part, check).expect("memory");
            candidates.add_boundaries(found).expect("memory");
        }
        let batches = candidates.batches(repeated, &mut |_| check());
        let (mut batches, search) = batches.expect("memory");
        let mut numbering = Numbering::<Vec<u8>>::new(0);
        while let Some(batch) = batches.next(check).expect("memory") {
            let found = search.places(&batch, check).expect("memory");
            numbering.add(found, check).expect("memory");
        }
        let passages = numbering
            .passages(search, &mut |_| check())
            .expect("memory");
        let mut places = 0;
        let visit = &mut |_: &Listed| {
            places += 1;
            Ok(())
        };
        let (mut listing, texts) = (Listing::default(), &mut GivenTexts(documents));
        let all = passages.for_each(check, &mut |place| listing.push(place, texts));
        all.expect("memory");
        let located = listing.locate(Fold::Case, check).expect("memory");
        let is_true = PlaceComparison::new(Fold::Case).visit(&located, texts, check, visit);
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
