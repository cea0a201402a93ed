//! Keeps the last result of a call site, in case the same document comes again. In `ORDER BY sig <=> minhash((SELECT
//! body ...))`, the document is the same for every row, and PostgreSQL would compute its signature each time.

use crate::pg::call::Call;
use crate::pg::settings::work_mem_bytes;
use crate::pg::text::Text;
use crate::pg::varlena::{argument, new_value, stored};
use neardup::memory::copied;
use pgrx::callconv::{BoxRet, FcInfo};
use pgrx::memcxt::PgMemoryContexts;
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::varlena::{varatt_is_1b_e, vartag_1b_e};
use pgrx::{IntoDatum, pg_sys};
use std::any::Any;
use std::marker::PhantomData;

/// A document argument, detoasted only when its text is needed.
pub struct Document<'a> {
    datum: pg_sys::Datum,
    lifetime: PhantomData<&'a [u8]>,
}

argument!(Document, "text");

impl Document<'_> {
    /// Returns the document in a datum, without detoasting it.
    ///
    /// # Safety
    /// `datum` is a non-null datum of a text type that outlives the value.
    pub unsafe fn from_raw(datum: pg_sys::Datum) -> Self {
        Self {
            datum,
            lifetime: PhantomData,
        }
    }

    fn text(&self) -> Text<'_> {
        // SAFETY: guaranteed by the caller of `from_raw`.
        unsafe { Text::from_raw(self.datum) }
    }

    /// Returns the bytes as stored: compressed if the document is compressed, and the TOAST pointer if it is stored out
    /// of line. PostgreSQL itself compares such pointers in place of values (`datumIsEqual`). Returns None for pointers
    /// into memory, where the document may change.
    fn stored(&self) -> Option<&[u8]> {
        let start = self.datum.cast_mut_ptr::<pg_sys::varlena>();
        // SAFETY: the caller of `from_raw` guaranteed a varlena that outlives the value. It has that many bytes.
        unsafe {
            if varatt_is_1b_e(start)
                && u32::from(vartag_1b_e(start)) != pg_sys::vartag_external::VARTAG_ONDISK
            {
                return None;
            }
            Some(stored(start))
        }
    }
}

/// The result of [`remembered`].
pub struct Remembered<T> {
    datum: Option<pg_sys::Datum>,
    result: PhantomData<T>,
}

// SAFETY: the SQL type is that of `T`.
unsafe impl<T: SqlTranslatable> SqlTranslatable for Remembered<T> {
    const TYPE_IDENT: &'static str = T::TYPE_IDENT;
    const TYPE_ORIGIN: TypeOrigin = T::TYPE_ORIGIN;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = T::ARGUMENT_SQL;
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> = T::RETURN_SQL;
}

// SAFETY: the datum is a palloc'd value of the SQL type of `T`.
unsafe impl<T> BoxRet for Remembered<T> {
    unsafe fn box_into<'fcx>(self, fcinfo: &mut FcInfo<'fcx>) -> pgrx::datum::Datum<'fcx> {
        match self.datum {
            Some(datum) => fcinfo.return_raw_datum(datum),
            None => fcinfo.return_null(),
        }
    }
}

/// The memory of a call site. `O` holds the options that the result depends on in addition to the document; `K` is the
/// type of the kept result.
pub struct Memo<O, K> {
    /// The glimpse of the last call's document.
    glimpse: Option<Glimpse>,
    kept: Option<KeptResult<O, K>>,
}

impl<O, K> Default for Memo<O, K> {
    fn default() -> Self {
        Self {
            glimpse: None,
            kept: None,
        }
    }
}

/// Length and end of a stored document. Different documents rarely have the same ones.
type Glimpse = (usize, Option<[u8; 16]>);

/// A document and options, with their result.
struct KeptResult<O, K> {
    options: O,
    document: Vec<u8>,
    result: K,
}

/// Returns the value that a call site keeps between calls, initially the default.
///
/// # Panics
/// Panics if the call site already keeps a value of another type.
pub fn memory<M: Default + 'static>(call: &mut Call) -> &mut M {
    // SAFETY: only this function sets the pointer. Its target lives as long as the call site. There is one call at a
    // time, and it is borrowed as long as the value.
    let kept: &mut Box<dyn Any> = unsafe {
        let site = &mut *(*call.fcinfo()).flinfo;
        if site.fn_extra.is_null() {
            let kept: Box<dyn Any> = Box::new(M::default());
            let mut context = PgMemoryContexts::For(site.fn_mcxt);
            site.fn_extra = context.leak_and_drop_on_delete(kept).cast();
        }
        &mut *site.fn_extra.cast()
    };
    kept.downcast_mut().expect("a function keeps one type")
}

/// Returns the result of `compute`, or the result of the previous call if that had the same document and options.
pub fn remembered<O: PartialEq + 'static, T: IntoDatum>(
    mut call: Call,
    document: &Document<'_>,
    options: O,
    compute: impl FnOnce(&Text<'_>, &O) -> Option<T>,
) -> Remembered<T> {
    let memo = memory::<Memo<O, Option<Vec<u8>>>>(&mut call);
    let datum = memo.get(
        document,
        options,
        |doc, options| compute(doc, options).and_then(T::into_datum),
        |datum, most_bytes| match datum {
            Some(datum) => {
                // SAFETY: the result is a new varlena.
                let bytes = unsafe { stored(datum.cast_mut_ptr()) };
                kept_bytes(bytes, most_bytes).map(Some)
            }
            None => Some(None),
        },
        |kept| kept.as_deref().map(new_value),
    );
    Remembered {
        datum,
        result: PhantomData,
    }
}

impl<O: PartialEq, K> Memo<O, K> {
    /// Returns the result of `compute`, or the kept result if that was for the same document and options. `keep` copies
    /// a result for `read`, or returns None if it takes more than the given number of bytes.
    ///
    /// Keeps one document with its result, together no larger than work_mem, and only once a document has come twice in
    /// a row. If every row has its own document, this costs one comparison per row.
    pub fn get<R>(
        &mut self,
        document: &Document<'_>,
        options: O,
        compute: impl FnOnce(&Text<'_>, &O) -> R,
        keep: impl FnOnce(&R, usize) -> Option<K>,
        read: impl FnOnce(&K) -> R,
    ) -> R {
        let Some(stored) = document.stored() else {
            return compute(&document.text(), &options);
        };
        if let Some(kept) = &self.kept
            && kept.options == options
            && kept.document == stored
        {
            return read(&kept.result);
        }
        let glimpse = Some((stored.len(), stored.last_chunk().copied()));
        let is_again = std::mem::replace(&mut self.glimpse, glimpse) == glimpse;
        self.kept = None;
        let result = compute(&document.text(), &options);
        if is_again {
            self.kept = work_mem_bytes()
                .checked_sub(stored.len())
                .and_then(|most_bytes| {
                    Some(KeptResult {
                        result: keep(&result, most_bytes)?,
                        document: copied(stored).ok()?,
                        options,
                    })
                });
        }
        result
    }
}

/// Returns a copy of `result`, or None if it takes more than `most_bytes` or if there is not enough memory.
pub fn kept_bytes<T: Copy>(result: &[T], most_bytes: usize) -> Option<Vec<T>> {
    let fits = size_of_val(result) <= most_bytes;
    fits.then(|| copied(result).ok()).flatten()
}
