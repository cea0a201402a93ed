//! Compares rows one pair at a time.

use crate::collection::compare::KeptRows;
use crate::collection::documents::{
    record_reader, set_of_document, set_record, share_of_work_mem_bytes,
};
use crate::collection::reading::Collection;
use crate::collection::rows::RecordKind;
use crate::pg::prelude::*;
use neardup::shingle::Shingling;

/// Computes the similarities of a collection's rows.
pub struct RowSimilarity {
    /// None unless the documents are texts.
    sets: Option<Sets>,
    kind: RecordKind,
    kept: KeptRows,
}

impl RowSimilarity {
    pub fn of(collection: &Collection) -> Self {
        let shingling = collection.shingling();
        let kind = match shingling {
            Some(_) => RecordKind::Set,
            None => collection.record_kind(),
        };
        Self {
            sets: shingling.map(|shingling| Sets {
                shingling,
                computed: Records::new(share_of_work_mem_bytes()),
                record_of: filled(0, collection.rows() as usize).or_raise(),
            }),
            kind,
            kept: KeptRows::new(kind),
        }
    }

    /// Returns the similarity of `rows`, or None if it is below `threshold`.
    pub fn at_least(
        &mut self,
        collection: &mut Collection,
        rows: [u32; 2],
        threshold: f64,
    ) -> Option<f64> {
        let mut read = |row: u32, record: &mut Vec<u8>| match &mut self.sets {
            Some(sets) => sets.read(collection, row, record),
            None => collection.reader()(row, record),
        };
        let [x, y] = rows.map(|row| self.kept.row(row, &mut read).0);
        let similarity = x.similarity(&y, self.kind, threshold, &mut check_interrupts);
        similarity.or_raise()
    }

    /// Keeps `set`, the set of `row`, which was computed elsewhere.
    pub fn keep(&mut self, row: u32, set: &[i64]) {
        if let Some(sets) = &mut self.sets {
            sets.keep(row, set);
        }
    }
}

/// The sets of texts. Each is computed once, when it is first needed.
struct Sets {
    shingling: Shingling,
    computed: Records,
    /// For each row, the number of its record plus one, or 0 until its set is computed.
    record_of: Vec<u32>,
}

impl Sets {
    /// Appends the record of a row's set to `record`.
    fn read(&mut self, collection: &mut Collection, row: u32, record: &mut Vec<u8>) {
        if self.record_of[row as usize] == 0 {
            let mut text = Vec::new();
            collection.reader()(row, &mut text);
            let set = set_of_document(&text, Some(self.shingling), &mut check_interrupts);
            self.keep(row, &set.or_raise());
        }
        let number = self.record_of[row as usize] - 1;
        record_reader(&mut self.computed, None)(number, record);
    }

    fn keep(&mut self, row: u32, set: &[i64]) {
        if self.record_of[row as usize] == 0 {
            self.computed.push(&set_record(set).or_raise());
            self.record_of[row as usize] = self.computed.len() as u32;
        }
    }
}
