//! PostgreSQL's own sort over values of any type that has an order.

use crate::pg::error::raise;
use crate::pg::sort::{PairSort, ValueOrder};
use crate::pg::value::{Keys, Layout};
use pgrx::{PgSqlErrorCode, pg_sys};

/// Sorts values, each with a number.
pub struct ValueSort {
    sort: PairSort,
    order: *mut pg_sys::TypeCacheEntry,
}

impl ValueSort {
    /// # Errors
    /// ERROR `undefined_function` if values of that type have no order.
    pub fn begin(value_type: pg_sys::Oid) -> Self {
        let order = order_of(value_type);
        // SAFETY: cache entries are never freed; the setting is one of the backend.
        let (of_values, memory) = unsafe {
            let (less, collation) = ((*order).lt_opr, (*order).typcollation);
            let of_values = ValueOrder {
                type_: value_type,
                less,
                collation,
            };
            (of_values, pg_sys::work_mem)
        };
        let sort = PairSort::begin(&of_values, 1, memory);
        Self { sort, order }
    }

    pub fn put(&mut self, value: pg_sys::Datum, number: i64) {
        self.sort.put(value, number);
    }

    /// Appends the distinct values to `keys`, ascending, and visits every number with the place of
    /// its value among them.
    pub fn for_each(mut self, keys: &mut Keys, visit: &mut dyn FnMut(u32, i64)) {
        self.sort.sort();
        let mut last = None;
        while let Some((value, number)) = self.sort.next() {
            if last.is_none_or(|last| !self.same(last, value)) {
                keys.push(Some(value));
                self.hold(value, &mut last);
            }
            visit(keys.len() as u32 - 1, number);
        }
        self.sort.end();
    }

    /// Copies a value to compare the next ones with, instead of the one before.
    fn hold(&self, value: pg_sys::Datum, held: &mut Option<pg_sys::Datum>) {
        // SAFETY: values are of the type of the sort; the one before was copied here.
        unsafe {
            let (by_value, length) = ((*self.order).typbyval, (*self.order).typlen);
            let layout = Layout { by_value, length };
            let before = held.replace(layout.copy(value));
            if let Some(before) = before.filter(|_| !by_value) {
                pg_sys::pfree(before.cast_mut_ptr());
            }
        }
    }

    fn same(&self, a: pg_sys::Datum, b: pg_sys::Datum) -> bool {
        // SAFETY: both are of the type whose comparison function this is.
        let order = unsafe {
            let function = &mut (*self.order).cmp_proc_finfo;
            pg_sys::FunctionCall2Coll(function, (*self.order).typcollation, a, b)
        };
        order.value() as i32 == 0
    }
}

fn order_of(value_type: pg_sys::Oid) -> *mut pg_sys::TypeCacheEntry {
    // SAFETY: raises an ERROR if there is no such type; cache entries are never freed.
    let (order, ordered) = unsafe {
        let wanted = pg_sys::TYPECACHE_LT_OPR | pg_sys::TYPECACHE_CMP_PROC_FINFO;
        let order = pg_sys::lookup_type_cache(value_type, wanted as i32);
        (order, (*order).lt_opr != pg_sys::InvalidOid)
    };
    if !ordered {
        raise(
            PgSqlErrorCode::ERRCODE_UNDEFINED_FUNCTION,
            "keys of this type have no order",
            "Valid are types with a default B-tree operator class.",
        );
    }
    order
}
