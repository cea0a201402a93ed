//! A collection in memory, and its passages.

pub mod definition;

use neardup::Result;
use neardup::passages::{
    Classes, CopiedPassage, Copies, DocumentReader, Frequent, FrequentPassage, Hashes, Member,
    Place, Texts, Window,
};
use neardup::text::Fold;
use std::collections::HashMap;
use std::ops::Range;

/// Documents, concatenated.
pub struct Collection {
    bytes: Vec<u8>,
    starts: Vec<u64>,
}

impl Collection {
    pub fn new<D: AsRef<[u8]>>(documents: &[D]) -> Self {
        let (mut bytes, mut starts) = (Vec::new(), vec![0]);
        for document in documents {
            bytes.extend_from_slice(document.as_ref());
            starts.push(bytes.len() as u64);
        }
        Self { bytes, starts }
    }

    /// Returns the beginning of every document, and the end of the last.
    pub fn starts(&self) -> &[u64] {
        &self.starts
    }

    fn documents(&self) -> impl Iterator<Item = &[u8]> {
        let ranges = self.starts.windows(2);
        ranges.map(|range| &self.bytes[range[0] as usize..range[1] as usize])
    }
}

impl Texts for &Collection {
    fn document(&self, byte: u64) -> (u32, Range<u64>) {
        let number = self.starts.partition_point(|start| *start <= byte) - 1;
        (number as u32, self.starts[number]..self.starts[number + 1])
    }

    fn read(&mut self, bytes: Range<u64>, into: &mut Vec<u8>) -> Result<()> {
        into.try_reserve(bytes.end as usize - bytes.start as usize)?;
        into.extend_from_slice(&self.bytes[bytes.start as usize..bytes.end as usize]);
        Ok(())
    }
}

/// Visits the windows whose fingerprints repeat, in order.
fn for_each_window(
    collection: &Collection,
    reader: &DocumentReader,
    visit: &mut dyn FnMut(Window) -> Result<()>,
) -> Result<()> {
    let check = &mut || ();
    let read = reader.winnow(collection.documents(), check)?;
    let mut times: HashMap<u64, u32> = HashMap::new();
    for fingerprint in &read.fingerprints {
        *times.entry(*fingerprint).or_default() += 1;
    }
    let mut fingerprints = read.fingerprints.iter();
    let documents = collection.documents().zip(&collection.starts);
    for ((doc, start), count) in documents.zip(read.counts) {
        let own = fingerprints.by_ref().take(count as usize);
        let mut repeats = own.map(|fingerprint| times[fingerprint] > 1);
        reader.windows((doc, *start), repeats.by_ref(), check, visit)?;
        assert_eq!(repeats.next(), None, "fingerprints of {doc:?}");
    }
    Ok(())
}

/// A copied window and the first window of its class.
type CopiedWindow = [u64; 2];

/// The first of several equal windows, and the numbers of documents and places that contain it.
type RepeatedWindow = (u64, u32, u32);

/// Returns the copied windows and the repeated ones of all classes, in order.
fn classes(
    collection: &Collection,
    reader: &DocumentReader,
    room: usize,
) -> Result<(Vec<CopiedWindow>, Vec<RepeatedWindow>)> {
    let end = |place| Place::new((&collection).document(Place(place).byte()).1.end, 0).0;
    let (mut copies, mut repeated) = (Vec::new(), Vec::new());
    let mut windows = Vec::new();
    for_each_window(collection, reader, &mut |window| {
        windows.try_reserve(1)?;
        windows.push(window);
        Ok(())
    })?;
    while !windows.is_empty() {
        let mut classes = Classes::new(room);
        let mut left = Vec::new();
        for window in windows {
            match classes.add(window, &end)? {
                Member::Copy(source) => {
                    copies.try_reserve(1)?;
                    copies.push([window[1], source]);
                }
                Member::Original => {}
                Member::Excluded => {
                    left.try_reserve(1)?;
                    left.push(window);
                }
            }
        }
        repeated.extend(classes.repeated());
        windows = left;
    }
    copies.sort_unstable();
    repeated.sort_unstable();
    Ok((copies, repeated))
}

/// Returns the rows; None if different words had the same hash. `room` is the number of classes in a table.
pub fn copies(
    mut collection: &Collection,
    min_words: usize,
    fold: Fold,
    (hashes, room): (Hashes, usize),
) -> Result<Option<Vec<CopiedPassage>>> {
    let reader = DocumentReader::new(min_words, fold, hashes);
    let (mut copies, mut rows) = (Copies::new(reader)?, Vec::new());
    for [window, first] in classes(collection, &reader, room)?.0 {
        if !copies.is_within(Place(window)) {
            let places = [window, first].map(Place);
            let row = copies.passage(places[0], places[1], &mut collection, &mut || ())?;
            let Some(row) = row else {
                return Ok(None);
            };
            rows.push(row);
        }
    }
    Ok(Some(rows))
}

/// Returns the most frequent passages.
pub fn frequent(
    mut collection: &Collection,
    min_words: usize,
    fold: Fold,
    (room, most): (usize, usize),
) -> Result<Vec<FrequentPassage>> {
    let reader = DocumentReader::new(min_words, fold, Hashes::from_seed(0));
    let mut frequent = Frequent::new(reader, most);
    for (window, documents, places) in classes(collection, &reader, room)?.1 {
        let window = (Place(window), documents, places);
        frequent.add(window, &mut collection, &mut || ())?;
    }
    frequent.passages(&mut collection, &mut || ())
}
