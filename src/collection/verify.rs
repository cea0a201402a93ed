//! Compares rows one pair at a time.

use crate::collection::compare::KeptRows;
use crate::collection::documents::{
    record_reader, set_of_document, set_record, share_of_work_mem_bytes,
};
use crate::collection::reading::Collection;
use crate::collection::rows::RecordKind;
use crate::pg::prelude::*;
use neardup::shingle::Shingling;

/// The similarities of a collection's rows, with the sets and rows kept to compute them.
pub struct RowSimilarity {
    /// How the rows are cut into sets if they are texts.
    shingling: Option<Shingling>,
    /// The sets of texts. Each is computed once, when it is first needed.
    computed: Records,
    /// For each text, the number of its record in `computed` plus one, or 0 until its set is computed.
    record_of: Vec<u32>,
    kind: RecordKind,
    kept: KeptRows,
}

impl RowSimilarity {
    pub fn of(collection: &Collection) -> Self {
        let shingling = collection.shingling();
        let (kind, texts) = match shingling {
            Some(_) => (RecordKind::Set, collection.rows()),
            None => (collection.record_kind(), 0),
        };
        Self {
            shingling,
            computed: Records::new(share_of_work_mem_bytes()),
            record_of: filled(0, texts as usize).or_raise(),
            kind,
            kept: KeptRows::new(kind),
        }
    }

    /// Returns the similarity of `rows`, or None if it is below `threshold` or if the rows are bit strings of different
    /// lengths.
    pub fn at_least(
        &mut self,
        collection: &mut Collection,
        rows: [u32; 2],
        threshold: f64,
    ) -> Option<f64> {
        for row in rows {
            if self.shingling.is_some() && self.record_of[row as usize] == 0 {
                let mut text = Vec::new();
                collection.reader()(row, &mut text);
                let set = set_of_document(&text, self.shingling, &mut check_interrupts);
                self.keep(row, &set.or_raise());
            }
        }
        let mut read = |row: u32, record: &mut Vec<u8>| match self.record_of.get(row as usize) {
            Some(number) => record_reader(&mut self.computed, None)(number - 1, record),
            None => collection.reader()(row, record),
        };
        let [x, y] = rows.map(|row| self.kept.row(row, &mut read).0);
        let similarity = x.similarity(&y, self.kind, threshold, &mut check_interrupts);
        similarity.or_raise()
    }

    /// Stores `set`, the set of the text `row`, unless it is stored already.
    pub fn keep(&mut self, row: u32, set: &[i64]) {
        if self.record_of[row as usize] == 0 {
            self.computed.push(&set_record(set).or_raise());
            self.record_of[row as usize] = self.computed.len() as u32;
        }
    }
}
