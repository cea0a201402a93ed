//! The operator class `text_ops`: `text <@ _ball`, `text %> _ball` and `text <% _ball`, which compare documents
//! exactly.
//!
//! Every shingle of a document makes a key; for long documents, every shingle of a sample. So one index serves every
//! threshold. Candidates are compared by their texts. The row table stores the number of shingles of each document.

use super::options::{ClassOptions, DEFAULT, Declared, read_options};
use super::{CONTAINED, CONTAINS, ComparedClass, KeySearch, Keyed, ValueParameters};
use crate::index::ball::{DocumentCenter, Within};
use crate::pg::prelude::*;
use neardup::bands::{ContainmentSearch, FEWEST_KEYS, MOST_KEYS, ShingleKeys};
use neardup::postings::Needed;
use neardup::shingle::{MAX_K, Shingling};
use neardup::text::{Fold, Unit};
use pgrx::Internal;
use pgrx::prelude::*;
use std::mem::offset_of;

/// The parameters of every document: all documents are comparable.
pub const PARAMETERS: ValueParameters = [0; 16];

/// `text_ops` with the options of an index column.
#[derive(Clone, Copy)]
pub struct DocumentClass {
    pub keys: ShingleKeys,
}

impl DocumentClass {
    /// Returns the class with the `options` of an index column, or None if they are out of range, which only a damaged
    /// catalog can cause.
    ///
    /// # Safety
    /// `options` is NULL or the parsed options of an index column of this class.
    pub unsafe fn from_options(options: *mut pg_sys::bytea) -> Option<Self> {
        let stored = read_options(options);
        let unit = Unit::from_repr(stored.unit.try_into().ok()?)?;
        let fold = Fold::from_repr(stored.fold.try_into().ok()?)?;
        let shingling = Shingling::new(i64::from(stored.k), unit, fold).ok()?;
        Self::new(shingling, stored.keys.try_into().ok()?, stored.seed)
    }

    /// Returns the class with at most `most` keys per document, or None if `most` is out of range.
    pub fn new(shingling: Shingling, most: usize, seed: i32) -> Option<Self> {
        let keys = ShingleKeys::new(shingling, most, seed.into())?;
        Some(Self { keys })
    }

    /// Returns the search for documents that contain, are contained in, or resemble `center`, depending on the
    /// operator's `strategy`.
    fn search_by(&self, strategy: u16, center: &DocumentCenter) -> KeySearch {
        if center.set.is_empty() {
            return KeySearch::Nothing;
        }
        // A center cut into other shingles must be compared with every row.
        if center.shingling != self.keys.shingling {
            return KeySearch::Everything;
        }
        let (set, threshold, check) = (&center.set, center.threshold, &mut check_interrupts);
        match strategy {
            CONTAINS => {
                let search = self.keys.search_containing(set, threshold, check);
                let ContainmentSearch { keys, least } = search.or_raise();
                let needed = Needed::Elements(least);
                KeySearch::Keys { keys, needed }
            }
            CONTAINED => {
                let search = self.keys.search_contained(set, threshold, check);
                let ContainmentSearch { keys, least } = search.or_raise();
                let needed = Needed::OwnShare {
                    share: threshold,
                    members: set.len(),
                    sampled: least,
                };
                KeySearch::Keys { keys, needed }
            }
            _ => match self.keys.search(set, threshold, check).or_raise() {
                None => KeySearch::Everything,
                Some(search) => KeySearch::Keys {
                    needed: Needed::Resembling {
                        similarity: threshold,
                        members: search.members,
                        least: search.least,
                        levels: search.levels,
                    },
                    keys: search.keys,
                },
            },
        }
    }
}

impl ComparedClass for DocumentClass {
    unsafe fn keys(&self, value: pg_sys::Datum, keys: &mut Vec<u32>) -> Keyed {
        let doc = Text::from_raw(value);
        let of_doc = self.keys.of_document(&doc, &mut check_interrupts);
        let (of_doc, size) = of_doc.or_raise();
        keys.try_extend_from_slice(&of_doc).or_raise();
        (PARAMETERS, Some(size))
    }

    fn documents(&self) -> Option<DocumentClass> {
        Some(*self)
    }

    fn keys_of(&self, center: &Within<'_>, keys: &mut Vec<u32>) -> Option<Keyed> {
        let Within::Document(center) = center else {
            return None;
        };
        let of_set = self.keys.of_set(&center.set, &mut check_interrupts);
        let (of_set, size) = of_set.or_raise();
        keys.try_extend_from_slice(&of_set).or_raise();
        Some((PARAMETERS, Some(size)))
    }

    fn search_for(&self, strategy: u16, ball: &Within<'_>) -> Option<(KeySearch, ValueParameters)> {
        match ball {
            Within::Document(center) => Some((self.search_by(strategy, center), PARAMETERS)),
            _ => None,
        }
    }

    fn describe(&self, _parameters: &ValueParameters) -> String {
        String::from("a document")
    }
}

/// Declares the options of `text_ops`.
#[pg_extern(immutable, parallel_safe, strict, name = "_document_options")]
fn document_options(mut relopts: Internal) {
    // SAFETY: PostgreSQL calls this with its options; the offsets belong to fields of their types.
    unsafe {
        let declared = Declared::begin(&mut relopts);
        let limits = [DEFAULT.keys, FEWEST_KEYS as i32, MOST_KEYS as i32];
        let description =
            c"most keys of a document; a longer one has the keys of a sample of its shingles";
        declared.integer(c"keys", description, limits, offset_of!(ClassOptions, keys));
        let limits = [DEFAULT.k, 1, MAX_K as i32];
        let offset = offset_of!(ClassOptions, k);
        declared.integer(c"k", c"units of a shingle", limits, offset);
        let limits = [DEFAULT.seed, i32::MIN, i32::MAX];
        let offset = offset_of!(ClassOptions, seed);
        declared.integer(c"seed", c"seed of the keys", limits, offset);
        let units = [
            (c"word", Unit::Word as i32),
            (c"char", Unit::Char as i32),
            (c"stop", Unit::Stop as i32),
            // SQL's grammar turns an unquoted char into this type name.
            (c"pg_catalog.bpchar", Unit::Char as i32),
        ];
        let folds = [
            (c"none", Fold::None as i32),
            (c"case", Fold::Case as i32),
            (c"marks", Fold::Marks as i32),
        ];
        let description = c"how documents are cut into shingles";
        let valid = c"Valid units are \"word\", \"char\" and \"stop\".";
        let offset = offset_of!(ClassOptions, unit);
        declared.choice([c"unit", description, valid], &units, DEFAULT.unit, offset);
        let valid = c"Valid folds are \"none\", \"case\" and \"marks\".";
        let offset = offset_of!(ClassOptions, fold);
        declared.choice([c"fold", description, valid], &folds, DEFAULT.fold, offset);
    }
}

pgrx::extension_sql_file!(
    "../../../sql/index/neardup_document.sql",
    name = "neardup_document",
    requires = [
        "ball",
        near_dup_documents,
        "neardup_access_method",
        document_options
    ]
);
