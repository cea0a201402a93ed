//! The last result of a call site, kept for a document that comes again: in
//! `ORDER BY sig <=> minhash((SELECT body ...))` it is the same for every row, and PostgreSQL computes
//! it for each.

use crate::pg::query::work_mem_bytes;
use crate::pg::text::Text;
use crate::pg::varlena::{allocate, argument};
use neardup::memory::copied;
use pgrx::callconv::{BoxRet, FcInfo};
use pgrx::memcxt::PgMemoryContexts;
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::varlena::{varatt_is_1b_e, varsize_any, vartag_1b_e};
use pgrx::{IntoDatum, pg_sys};
use std::marker::PhantomData;

/// A document argument, not detoasted before its text is asked for.
pub struct Document<'a> {
    datum: pg_sys::Datum,
    lifetime: PhantomData<&'a [u8]>,
}

argument!(Document, "text");

impl Document<'_> {
    /// # Safety
    /// `datum` is a non-null datum of a text type that outlives the value.
    pub unsafe fn from_raw(datum: pg_sys::Datum) -> Self {
        Self {
            datum,
            lifetime: PhantomData,
        }
    }

    fn text(&self) -> Text<'_> {
        // SAFETY: vouched for by the maker.
        unsafe { Text::from_raw(self.datum) }
    }

    /// Returns the bytes as they are stored: compressed ones of a compressed document, and the pointer to
    /// one that lies out of line, which PostgreSQL itself takes for its value (`datumIsEqual`). None for
    /// pointers into memory, behind which the document may change.
    fn stored(&self) -> Option<&[u8]> {
        let start = self.datum.cast_mut_ptr::<pg_sys::varlena>();
        // SAFETY: a varlena, as the maker vouches, has that many bytes; it outlives the value.
        unsafe {
            if varatt_is_1b_e(start)
                && u32::from(vartag_1b_e(start)) != pg_sys::vartag_external::VARTAG_ONDISK
            {
                return None;
            }
            let len = varsize_any(start);
            Some(std::slice::from_raw_parts(start.cast::<u8>(), len))
        }
    }
}

/// The result of a function through [`remembered`].
pub struct Remembered<T> {
    datum: Option<pg_sys::Datum>,
    result: PhantomData<T>,
}

impl<T> Remembered<T> {
    /// Returns the datum, None for NULL.
    pub fn datum(self) -> Option<pg_sys::Datum> {
        self.datum
    }
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
            // SAFETY: as above.
            Some(datum) => unsafe { fcinfo.return_raw_datum(datum) },
            None => fcinfo.return_null(),
        }
    }
}

/// The memory of a call site. `O` are the options that the result depends on besides the document.
struct Memo<O> {
    /// Of the document of the last call.
    glimpse: Glimpse,
    kept: Option<Kept<O>>,
}

/// Length, beginning and end of a stored document: documents that differ seldom agree in them.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Glimpse {
    len: usize,
    head: [u8; 24],
    tail: [u8; 8],
}

impl Glimpse {
    fn of(stored: &[u8]) -> Self {
        let (mut head, mut tail) = ([0; 24], [0; 8]);
        let (head_len, tail_len) = (stored.len().min(24), stored.len().min(8));
        head[..head_len].copy_from_slice(&stored[..head_len]);
        tail[..tail_len].copy_from_slice(&stored[stored.len() - tail_len..]);
        Self {
            len: stored.len(),
            head,
            tail,
        }
    }
}

/// Arguments and their result: a varlena, None for NULL.
struct Kept<O> {
    options: O,
    document: Vec<u8>,
    result: Option<Vec<u8>>,
}

impl<O> Kept<O> {
    /// Copies the two; None where they take more than work_mem, or memory does not suffice.
    fn new(options: O, document: &[u8], result: Option<&[u8]>) -> Option<Self> {
        if document.len() + result.map_or(0, <[u8]>::len) > work_mem_bytes() {
            return None;
        }
        Some(Self {
            options,
            document: copied(document).ok()?,
            result: match result {
                Some(result) => Some(copied(result).ok()?),
                None => None,
            },
        })
    }
}

/// Returns the result of `compute`, or of the call before if that had the same document and options.
///
/// A call site keeps one document and its result, no larger than work_mem together, and only once a
/// document has come twice in a row: where every row has its own, this costs one comparison a row.
///
/// # Safety
/// `fcinfo` is that of the running call, of a function that always passes options of this type.
pub unsafe fn remembered<O: PartialEq + 'static, T: IntoDatum>(
    fcinfo: pg_sys::FunctionCallInfo,
    document: &Document<'_>,
    options: O,
    compute: impl FnOnce(&Text<'_>, &O) -> Option<T>,
) -> Remembered<T> {
    let fresh = |options: &O| compute(&document.text(), options).and_then(T::into_datum);
    let datum = match document.stored() {
        // SAFETY: vouched for by the caller.
        Some(stored) => unsafe {
            let call = (*fcinfo).flinfo;
            let glimpse = Glimpse::of(stored);
            match (*call).fn_extra.cast::<Memo<O>>().as_mut() {
                None => {
                    let memo = Memo::<O> {
                        glimpse,
                        kept: None,
                    };
                    let mut context = PgMemoryContexts::For((*call).fn_mcxt);
                    (*call).fn_extra = context.leak_and_drop_on_delete(memo).cast();
                    fresh(&options)
                }
                Some(memo) => memo.recall(stored, glimpse, options, fresh),
            }
        },
        None => fresh(&options),
    };
    Remembered {
        datum,
        result: PhantomData,
    }
}

impl<O: PartialEq> Memo<O> {
    fn recall(
        &mut self,
        stored: &[u8],
        glimpse: Glimpse,
        options: O,
        fresh: impl FnOnce(&O) -> Option<pg_sys::Datum>,
    ) -> Option<pg_sys::Datum> {
        if let Some(kept) = &self.kept
            && kept.options == options
            && kept.document == stored
        {
            return kept.result.as_deref().map(palloc_copy);
        }
        let is_again = self.glimpse == glimpse;
        self.glimpse = glimpse;
        self.kept = None;
        let result = fresh(&options);
        if is_again {
            // SAFETY: the result is a new varlena.
            let bytes = result.map(|datum| unsafe {
                let start = datum.cast_mut_ptr::<pg_sys::varlena>();
                std::slice::from_raw_parts(start.cast::<u8>(), varsize_any(start))
            });
            self.kept = Kept::new(options, stored, bytes);
        }
        result
    }
}

fn palloc_copy(value: &[u8]) -> pg_sys::Datum {
    // SAFETY: the allocation has the value's length.
    unsafe {
        let copy = allocate(value.len());
        copy.copy_from_nonoverlapping(value.as_ptr(), value.len());
        pg_sys::Datum::from(copy)
    }
}
