//! The compared column of an index, as the planner describes it.

use crate::index::kind::Kind;
use pgrx::{PgList, pg_sys};

/// The last key column of an index. If the index is one of ours, this is the compared column.
#[derive(Clone, Copy)]
pub struct PlannedColumn {
    pub index: *mut pg_sys::IndexOptInfo,
    pub at: usize,
}

impl PlannedColumn {
    /// # Safety
    /// `index` is the planner's description of an index, and outlives the result.
    pub unsafe fn of(index: *mut pg_sys::IndexOptInfo) -> Self {
        let at = (*index).nkeycolumns as usize - 1;
        Self { index, at }
    }

    /// Returns the compared columns of `kind` in the indexes of `rel`.
    ///
    /// # Safety
    /// The planner's structures stay valid while the columns are used.
    pub unsafe fn all_of(
        rel: *mut pg_sys::RelOptInfo,
        kind: Kind,
    ) -> impl Iterator<Item = PlannedColumn> {
        let indexes = PgList::<pg_sys::IndexOptInfo>::from_pg((*rel).indexlist);
        let places = 0..indexes.len();
        let columns = places.filter_map(move |place| indexes.get_ptr(place));
        let columns = columns.map(|index| PlannedColumn::of(index));
        columns.filter(move |column| column.is_of(kind))
    }

    /// Returns the parsed options of the column's operator class, or NULL for a hypothetical index without them.
    pub fn options(&self) -> *mut pg_sys::bytea {
        // SAFETY: the array, if any, has an element for every column.
        unsafe {
            match (*self.index).opclassoptions {
                options if options.is_null() => std::ptr::null_mut(),
                options => *options.add(self.at),
            }
        }
    }

    pub fn family(&self) -> pg_sys::Oid {
        // SAFETY: the array has an element for every column.
        unsafe { *(*self.index).opfamily.add(self.at) }
    }

    /// Returns the first kind that fits the column's values, or None if there is none, as for constraint keys.
    pub fn kind(&self) -> Option<Kind> {
        Kind::ALL.into_iter().find(|&kind| self.is_of(kind))
    }

    /// Returns whether the column's values are of `kind`.
    pub fn is_of(&self, kind: Kind) -> bool {
        // SAFETY: the array has an element for every column.
        let type_ = unsafe { *(*self.index).opcintype.add(self.at) };
        kind.has_family(self.family(), type_)
    }
}
