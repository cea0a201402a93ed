//! The operator class `text_ops` of an index's last column: `text <@ _ball`, the truth about
//! documents. In the columns before it is one of equality.
//!
//! The keys are the bands of a signature that is stored nowhere; which documents an index finds depends
//! on them by a chance of 1e-9 alone, and every candidate is compared by its text.
#![allow(clippy::disallowed_methods, reason = "64 keys")]

use super::options::{ClassOptions, DEFAULT, Declared, read_options};
use super::{ComparedClass, KeySearch, ValueParameters, shorten};
use crate::index::ball::Within;
use crate::pg::error::{OrRaise, check_interrupts, invalid};
use crate::pg::text::Text;
use neardup::bands::{DocumentKeys, LOWEST_THRESHOLD};
use neardup::memory::{Grow, copied};
use neardup::shingle::{MAX_K, Shingling};
use neardup::text::{Fold, Unit};
use pgrx::prelude::*;
use pgrx::{Internal, pg_sys};
use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::mem::offset_of;

/// All documents compare.
pub const PARAMETERS: ValueParameters = [0; 16];

/// `text_ops` with the options of an index column.
#[derive(Clone, Copy)]
pub struct DocumentClass {
    pub keys: DocumentKeys,
    pub threshold: f64,
}

impl DocumentClass {
    /// Returns the class with an index column's options; None if they are out of range, which only a
    /// damaged catalog can bring about.
    ///
    /// # Safety
    /// `options` is NULL or the parsed options of an index column of this class.
    pub unsafe fn from_options(options: *mut pg_sys::bytea) -> Option<Self> {
        // SAFETY: vouched for by the caller.
        let stored = unsafe { read_options(options) };
        let unit = Unit::from_repr(stored.unit.try_into().ok()?)?;
        let fold = Fold::from_repr(stored.fold.try_into().ok()?)?;
        let shingling = Shingling::new(i64::from(stored.k), unit, fold).ok()?;
        Self::new(shingling, stored.threshold, i64::from(stored.seed))
    }

    /// Returns None for a threshold out of range.
    pub fn new(shingling: Shingling, threshold: f64, seed: i64) -> Option<Self> {
        let keys = DocumentKeys::new(shingling, threshold, seed)?;
        Some(Self { keys, threshold })
    }

    /// Appends the keys of a document in UTF-8, in any thread; `check` is called often.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn push_keys(
        &self,
        doc: &[u8],
        keys: &mut Vec<u32>,
        check: &mut dyn FnMut(),
    ) -> neardup::Result<()> {
        let of_doc = self.keys.of_document(doc, check)?;
        keys.try_extend(of_doc.into_iter().map(shorten))
    }
}

impl ComparedClass for DocumentClass {
    unsafe fn keys(&self, value: pg_sys::Datum, keys: &mut Vec<u32>) -> ValueParameters {
        // SAFETY: vouched for by the caller.
        let doc = unsafe { Text::from_raw(value) };
        self.push_keys(&doc, keys, &mut check_interrupts).or_raise();
        PARAMETERS
    }

    fn documents(&self) -> Option<DocumentClass> {
        Some(*self)
    }

    fn keys_of(&self, center: &Within<'_>, keys: &mut Vec<u32>) -> Option<ValueParameters> {
        let Within::Document(center) = center else {
            return None;
        };
        let of_set = self.keys.of_set(&center.set, &mut check_interrupts);
        keys.extend(of_set.or_raise().into_iter().map(shorten));
        Some(PARAMETERS)
    }

    /// A center cut into other shingles has to be compared with every row.
    fn search_for(&self, _: u16, ball: &Within<'_>) -> Option<(KeySearch, ValueParameters)> {
        let Within::Document(center) = ball else {
            return None;
        };
        let search = if center.set.is_empty() {
            KeySearch::Nothing
        } else if center.shingling != *self.keys.shingling() {
            KeySearch::Everything
        } else {
            let keys = keys_of_last(&self.keys, &center.set);
            KeySearch::of(keys, self.keys.occurrence(center.threshold))
        };
        Some((search, PARAMETERS))
    }

    fn describe(&self, _parameters: &ValueParameters) -> String {
        String::from("a document")
    }
}

/// The most shingles of a document whose keys are remembered.
const REMEMBERED: usize = 1 << 14;

/// A set of shingle hashes with its keys.
struct Signed {
    by: DocumentKeys,
    set: Vec<i64>,
    keys: Vec<u64>,
}

thread_local! {
    static LAST: RefCell<Option<Signed>> = const { RefCell::new(None) };
}

/// Returns the keys of a set of shingle hashes. Those of the last set are remembered: a plan asks for them several
/// times for each partition, and so does each scan.
fn keys_of_last(by: &DocumentKeys, set: &[i64]) -> Vec<u64> {
    let known = LAST.with_borrow(|last| {
        let last = last.as_ref()?;
        (last.by == *by && last.set == set).then(|| last.keys.clone())
    });
    known.unwrap_or_else(|| {
        let keys = by.of_set(set, &mut check_interrupts).or_raise();
        if set.len() <= REMEMBERED {
            LAST.set(Some(Signed {
                by: *by,
                set: copied(set).or_raise(),
                keys: keys.clone(),
            }));
        }
        keys
    })
}

/// Declares the options of `text_ops`.
#[pg_extern(immutable, parallel_safe, strict, name = "_document_options")]
fn document_options(mut relopts: Internal) {
    // SAFETY: PostgreSQL calls this with its options; the offsets belong to fields of their types.
    unsafe {
        let declared = Declared::begin(&mut relopts);
        declared.threshold(c"lowest resemblance for which the keys are chosen");
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
            // SQL's grammar takes char without quotes for the name of a type.
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
        declared.checked_by(check_options);
    }
}

/// Checks the threshold.
///
/// # Errors
/// ERROR `invalid_parameter_value` for a threshold outside 0.5 <= threshold <= 1.
#[pg_guard]
unsafe extern "C-unwind" fn check_options(
    stored: *mut c_void,
    _options: *mut pg_sys::relopt_value,
    _count: c_int,
) {
    // SAFETY: PostgreSQL passes the options that it has just filled in.
    check_threshold(unsafe { read_options(stored.cast()) }.threshold);
}

/// # Errors
/// As of [`check_options`].
pub fn check_threshold(threshold: f64) {
    if !(LOWEST_THRESHOLD..=1.0).contains(&threshold) {
        invalid(
            &format!("threshold {threshold} is out of range for an index of documents"),
            &format!(
                "Valid values are {LOWEST_THRESHOLD} to 1. An index on shingle_hashes(body) serves every threshold."
            ),
        );
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
