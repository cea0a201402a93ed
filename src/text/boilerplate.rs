//! Boilerplate: shingles that many documents of a collection share.

use crate::options;
use crate::pg::helpers::in_pieces;
use crate::pg::partitions::Partitions;
use crate::pg::prelude::*;
use neardup::parts::Parts;
use neardup::set::sort;
use neardup::shingle::{Key, Shingling, for_each_block, for_each_shingle, shingle_hashes};
use pgrx::prelude::*;
use std::collections::HashMap;

/// Implements `common_shingles(query, min_documents, k, unit, fold, seed, params)`: returns the shingles that at least
/// `min_documents` documents of the query have, in the words of the first of these documents. Counts the documents with
/// each shingle by sorting. Sorting, and keeping the documents, spills from `work_mem` to temporary files. Takes 40
/// bytes of memory for each shingle that it returns.
///
/// # Errors
/// `invalid_parameter_value` for `min_documents` below 1 and for bad options; `datatype_mismatch` unless the query
/// yields one column of text.
#[pg_extern(sql = false)]
fn common_shingles(call: Call) {
    let mut boilerplate = Boilerplate {
        least: options::integer(&call, 1, "min_documents", 1, i32::MAX),
        shingling: options::shingling_arguments(&call, 2),
        key: Key::from_seed(call.get(5, "seed")),
        documents: Records::new(work_mem_bytes() / 4),
    };
    let hashes = boilerplate.read(&call);
    let mut documents_of = HashMap::new();
    boilerplate.for_each_common(hashes, &mut |hash, documents| {
        documents_of.try_reserve(1).or_raise();
        documents_of.insert(hash, documents);
    });
    let mut rows = call.rows();
    boilerplate.for_each_shingle(&mut |hash, shingle| {
        if let Some(documents) = documents_of.remove(&hash) {
            let text = NewText(copied(shingle.as_bytes()).or_raise()).into_datum();
            rows.put_and_free([text, documents.into_datum(), hash.into_datum()], &[text]);
        }
    });
}

/// Documents, and the minimum number of them that must have a shingle for it to be common.
struct Boilerplate {
    least: i32,
    shingling: Shingling,
    key: Key,
    documents: Records,
}

impl Boilerplate {
    /// Calls `visit` with the hash of every common shingle, in ascending order, and the number of documents that have
    /// it.
    fn for_each_common(&self, hashes: Partitions, visit: &mut dyn FnMut(i64, i64)) {
        let least = self.least as usize;
        let work = |mut hashes: Vec<u64>, check: &mut dyn FnMut()| {
            sort(&mut hashes, check);
            let same = hashes.chunk_by(|a, b| a == b);
            let common = same.filter(|same| same.len() >= least);
            collected(common.map(|same| ((same[0] ^ SIGN) as i64, same.len() as i64)))
        };
        hashes.work_on("counting shingles", &work, None, &mut |counts| {
            for (hash, documents) in counts {
                visit(hash, documents);
            }
        });
    }

    /// Reads the documents of the query in the first argument of `call`. Returns the hashes of their shingle sets. A hash
    /// occurs once for each document that has it.
    fn read(&mut self, call: &Call) -> Partitions {
        let query = Query::open(call, 0, "query");
        let [document] = query.exactly("Its only column is the document.");
        let document = document.of_documents("only");
        let mut hashes = Partitions::within(work_mem_bytes() / 2, None);
        let (shingling, key, documents) = (&self.shingling, &self.key, &mut self.documents);
        let divider = hashes.divider();
        let work = |(_, texts): (Vec<()>, Parts<u8>), check: &mut dyn FnMut()| {
            let mut entries = Vec::new();
            for text in texts.iter() {
                let set = shingle_hashes(text, shingling, key, check)?;
                entries.try_extend(set.into_iter().map(|hash| hash as u64 ^ SIGN))?;
            }
            divider.divide(&entries)
        };
        let mut take = |divided: Result<Parts<u8>>| hashes.put(divided.or_raise());
        in_pieces(0, &work, &mut take, |put| {
            query.for_each("reading", &mut |row| {
                let Some(doc) = row.get(document) else { return };
                // SAFETY: the column is of type text or one stored like it.
                let doc = &*unsafe { Text::from_raw(doc) };
                documents.push(doc);
                put((), &mut |docs| docs.try_extend_from_slice(doc).or_raise());
            });
        });
        hashes
    }

    /// Calls `visit` with the hash and the text of every shingle of every document.
    fn for_each_shingle(&mut self, visit: &mut dyn FnMut(i64, &str)) {
        let (mut hashes, mut buffer): (Vec<u64>, _) = (Vec::new(), Vec::new());
        for document in 0..self.documents.len() {
            let doc = self.documents.read(document, &mut buffer);
            hashes.clear();
            let read = for_each_block(doc, &self.shingling, &self.key, &mut |block| {
                check_interrupts();
                hashes.try_extend_from_slice(block)
            });
            read.or_raise();
            let mut in_order = hashes.iter();
            let read = for_each_shingle(doc, &self.shingling, &mut check_interrupts, &mut |text| {
                if let Some(&hash) = in_order.next() {
                    visit(hash as i64, text);
                }
                Ok(())
            });
            read.or_raise();
        }
    }
}

/// The sign bit of a hash, flipped so that unsigned entries sort as the signed hashes do.
const SIGN: u64 = 1 << 63;

pgrx::extension_sql_file!("../../sql/text/boilerplate.sql", name = "boilerplate");
