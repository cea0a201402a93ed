//! Columns of other libraries through the Arrow C data interface, without a copy.
//!
//! Apache Arrow: "The Arrow C data interface", "The Arrow C stream interface" and "The Arrow
//! PyCapsule interface" in its format specification. This module reads columns of strings and bytes.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// `struct ArrowSchema`.
#[repr(C)]
struct Schema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut Schema,
    dictionary: *mut Schema,
    release: Option<unsafe extern "C" fn(*mut Schema)>,
    private_data: *mut c_void,
}

/// `struct ArrowArray`.
#[repr(C)]
struct RawArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const u8,
    children: *mut *mut RawArray,
    dictionary: *mut RawArray,
    release: Option<unsafe extern "C" fn(*mut RawArray)>,
    private_data: *mut c_void,
}

/// `struct ArrowArrayStream`.
#[repr(C)]
struct Stream {
    get_schema: Option<unsafe extern "C" fn(*mut Stream, *mut Schema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut Stream, *mut RawArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut Stream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut Stream)>,
    private_data: *mut c_void,
}

/// A structure that its producer releases. Once released, it has no callback.
trait Released: Sized {
    fn release(&mut self) -> &mut Option<unsafe extern "C" fn(*mut Self)>;
}

macro_rules! released {
    ($($name:ident),*) => {$(
        impl Released for $name {
            fn release(&mut self) -> &mut Option<unsafe extern "C" fn(*mut Self)> {
                &mut self.release
            }
        }
    )*};
}

released!(Schema, RawArray, Stream);

/// Owns a structure of the interface.
struct Owned<T: Released>(T);

impl<T: Released> Owned<T> {
    /// Returns a structure that a producer will fill in.
    ///
    /// # Safety
    /// Zeros are a valid `T`: null pointers, no callback.
    unsafe fn empty() -> Self {
        // SAFETY: guaranteed by the caller.
        Self(unsafe { std::mem::zeroed() })
    }

    /// Takes the structure out of a capsule and leaves a released one there.
    ///
    /// # Errors
    /// ValueError if the capsule has a different name, or was used before.
    ///
    /// # Safety
    /// Capsules of this name hold a `T`.
    unsafe fn take(capsule: &Bound<'_, PyAny>, name: &CStr) -> PyResult<Self> {
        let pointer = capsule.cast::<PyCapsule>()?.pointer_checked(Some(name))?;
        let held = pointer.cast::<T>().as_ptr();
        // SAFETY: the capsule has this name, and the interface lets consumers move the structure out by clearing its
        // callback.
        let mut owned = unsafe { Self(ptr::read(held)) };
        if owned.0.release().is_none() {
            return Err(PyValueError::new_err("the Arrow data was used before"));
        }
        // SAFETY: as above.
        unsafe { *(*held).release() = None };
        Ok(owned)
    }

    fn is_released(&mut self) -> bool {
        self.0.release().is_none()
    }
}

impl<T: Released> Drop for Owned<T> {
    fn drop(&mut self) {
        if let Some(release) = *self.0.release() {
            // SAFETY: the structure belongs to its producer, and was not released before.
            unsafe { release(&mut self.0) };
        }
    }
}

/// The layout of strings, bytes, or the numbers of a dictionary's values.
#[derive(Clone, Copy)]
enum Layout {
    /// 32-bit offsets into one buffer.
    Offsets32,
    /// 64-bit offsets into one buffer.
    Offsets64,
    /// Views of 16 bytes into several buffers; short values are in the view itself.
    Views,
    /// Only NULLs.
    Nulls,
    /// Integers; each takes this many bytes.
    Numbers(usize),
}

/// The layout of a column, and of its dictionary.
#[derive(Clone, Copy)]
struct Layouts {
    own: Layout,
    dictionary: Option<Layout>,
}

impl Layouts {
    /// Returns the layouts of a column.
    ///
    /// # Errors
    /// TypeError for types other than strings and bytes, and dictionaries of them.
    fn of(schema: &Owned<Schema>) -> PyResult<Self> {
        // SAFETY: the dictionary of a schema, if it has one, is a schema that lives as long as it.
        let Some(values) = (unsafe { schema.0.dictionary.as_ref() }) else {
            let own = Layout::of(&schema.0)?;
            return Ok(Self {
                own,
                dictionary: None,
            });
        };
        Ok(Self {
            own: Layout::of_numbers(&schema.0)?,
            dictionary: Some(Layout::of(values)?),
        })
    }
}

impl Layout {
    /// Returns the layout of a dictionary's numbers.
    ///
    /// # Errors
    /// TypeError for types other than integers.
    fn of_numbers(schema: &Schema) -> PyResult<Self> {
        // SAFETY: the format of a schema is a text that ends with a NUL and lives as long as it.
        let format = unsafe { CStr::from_ptr(schema.format) };
        match format.to_bytes() {
            b"c" | b"C" => Ok(Self::Numbers(1)),
            b"s" | b"S" => Ok(Self::Numbers(2)),
            b"i" | b"I" => Ok(Self::Numbers(4)),
            b"l" | b"L" => Ok(Self::Numbers(8)),
            _ => Err(PyTypeError::new_err(format!(
                "an Arrow dictionary has integers, not format {format:?}"
            ))),
        }
    }

    /// Returns the layout of strings or bytes.
    ///
    /// # Errors
    /// TypeError for types other than strings and bytes.
    fn of(schema: &Schema) -> PyResult<Self> {
        // SAFETY: the format of a schema is a text that ends with a NUL and lives as long as it.
        let format = unsafe { CStr::from_ptr(schema.format) };
        match format.to_bytes() {
            b"u" | b"z" => Ok(Self::Offsets32),
            b"U" | b"Z" => Ok(Self::Offsets64),
            b"vu" | b"vz" => Ok(Self::Views),
            b"n" => Ok(Self::Nulls),
            _ => Err(PyTypeError::new_err(format!(
                "an Arrow column of strings or of binary values expected, not of format {format:?}"
            ))),
        }
    }
}

/// A chunk of a column of strings or bytes.
pub struct Array {
    raw: Owned<RawArray>,
    layouts: Layouts,
}

impl Array {
    /// Returns the chunks of a column, or None if it lacks the methods of the interface.
    ///
    /// # Errors
    /// TypeError unless the column has strings or bytes; any exception of the producer.
    pub fn read(column: &Bound<'_, PyAny>) -> PyResult<Option<Vec<Self>>> {
        if column.hasattr("__arrow_c_stream__")? {
            let capsule = column.call_method0("__arrow_c_stream__")?;
            // SAFETY: the interface's name for streams.
            let stream = unsafe { Owned::<Stream>::take(&capsule, c"arrow_array_stream")? };
            return Ok(Some(read_stream(stream)?));
        }
        if column.hasattr("__arrow_c_array__")? {
            let pair = column.call_method0("__arrow_c_array__")?;
            // SAFETY: the interface's names for schemas and arrays.
            let (schema, raw) = unsafe {
                let schema = Owned::<Schema>::take(&pair.get_item(0)?, c"arrow_schema")?;
                let raw = Owned::<RawArray>::take(&pair.get_item(1)?, c"arrow_array")?;
                (schema, raw)
            };
            let layouts = Layouts::of(&schema)?;
            return Ok(Some(vec![Self { raw, layouts }]));
        }
        Ok(None)
    }

    /// Returns the values, or None for NULL.
    pub fn values(&self) -> impl Iterator<Item = PyResult<Option<&[u8]>>> {
        let own = Values {
            raw: &self.raw.0,
            layout: self.layouts.own,
        };
        // SAFETY: the dictionary of an array, if it has one, lives as long as it.
        let dictionary = unsafe { own.raw.dictionary.as_ref() };
        let dictionary = dictionary
            .zip(self.layouts.dictionary)
            .map(|(raw, layout)| Values { raw, layout });
        (0..own.raw.length).map(move |i| match &dictionary {
            None => own.get(i),
            Some(dictionary) => match own.get(i)? {
                None => Ok(None),
                Some(number) => dictionary.get(little_endian(number)),
            },
        })
    }
}

/// Returns the number in up to 8 bytes, without a sign: negative numbers are outside all dictionaries.
fn little_endian(bytes: &[u8]) -> i64 {
    let mut number = [0; 8];
    number[..bytes.len()].copy_from_slice(bytes);
    i64::from_le_bytes(number)
}

/// The values of an array whose layout is one of strings, bytes or numbers.
#[derive(Clone, Copy)]
struct Values<'a> {
    raw: &'a RawArray,
    layout: Layout,
}

impl<'a> Values<'a> {
    /// Returns value `i`, or None for NULL.
    ///
    /// # Errors
    /// ValueError if the array has no such value.
    fn get(self, i: i64) -> PyResult<Option<&'a [u8]>> {
        if !(0..self.raw.length).contains(&i) {
            return Err(PyValueError::new_err("invalid numbers in the Arrow data"));
        }
        let i = (self.raw.offset + i) as usize;
        if self.is_null(i) {
            return Ok(None);
        }
        // SAFETY: the value is one of the array's, and not NULL.
        unsafe { self.value(i) }.map(Some)
    }

    fn is_null(self, i: usize) -> bool {
        if matches!(self.layout, Layout::Nulls) {
            return true;
        }
        // SAFETY: arrays of these types have a bitmap of valid values, or NULL if all are valid.
        unsafe {
            let bitmap = self.buffer(0);
            !bitmap.is_null() && *bitmap.add(i / 8) >> (i % 8) & 1 == 0
        }
    }

    /// # Safety
    /// The array has the value `i`, offset included, and it is not NULL.
    unsafe fn value(self, i: usize) -> PyResult<&'a [u8]> {
        // SAFETY: the producer guarantees a layout of the format specification.
        unsafe {
            match self.layout {
                Layout::Offsets32 => {
                    let offsets = self.buffer(1).cast::<i32>();
                    let [start, end] = [i, i + 1].map(|i| offsets.add(i).read_unaligned());
                    self.slice(2, i64::from(start), i64::from(end))
                }
                Layout::Offsets64 => {
                    let offsets = self.buffer(1).cast::<i64>();
                    let [start, end] = [i, i + 1].map(|i| offsets.add(i).read_unaligned());
                    self.slice(2, start, end)
                }
                Layout::Views => {
                    let view = self.buffer(1).add(16 * i);
                    let [length, _, buffer, start] =
                        [0, 4, 8, 12].map(|at| view.add(at).cast::<i32>().read_unaligned());
                    if (0..=12).contains(&length) {
                        return Ok(std::slice::from_raw_parts(view.add(4), length as usize));
                    }
                    let (start, end) = (i64::from(start), i64::from(start) + i64::from(length));
                    self.slice(2 + i64::from(buffer), start, end)
                }
                Layout::Nulls => Ok(&[]),
                Layout::Numbers(bytes) => {
                    let number = self.buffer(1).add(bytes * i);
                    Ok(std::slice::from_raw_parts(number, bytes))
                }
            }
        }
    }

    /// # Safety
    /// The buffer has `end` bytes.
    unsafe fn slice(self, buffer: i64, start: i64, end: i64) -> PyResult<&'a [u8]> {
        if !(2..self.raw.n_buffers).contains(&buffer) || start < 0 || end < start {
            return Err(PyValueError::new_err("invalid offsets in the Arrow data"));
        }
        if start == end {
            return Ok(&[]);
        }
        let (start, length) = (start as usize, (end - start) as usize);
        // SAFETY: guaranteed by the caller; the buffers live as long as the array.
        unsafe {
            let bytes = self.buffer(buffer as usize).add(start);
            Ok(std::slice::from_raw_parts(bytes, length))
        }
    }

    /// # Safety
    /// The array has this buffer.
    unsafe fn buffer(self, number: usize) -> *const u8 {
        // SAFETY: guaranteed by the caller.
        unsafe { *self.raw.buffers.add(number) }
    }
}

fn read_stream(mut stream: Owned<Stream>) -> PyResult<Vec<Array>> {
    let broken = || PyValueError::new_err("the Arrow stream lacks a callback");
    let get_schema = stream.0.get_schema.ok_or_else(broken)?;
    let get_next = stream.0.get_next.ok_or_else(broken)?;
    // SAFETY: structures of pointers and numbers; a producer fills in the structure that it is given.
    let layouts = unsafe {
        let mut schema = Owned::<Schema>::empty();
        let code = get_schema(&mut stream.0, &mut schema.0);
        check(&mut stream, code)?;
        Layouts::of(&schema)?
    };
    let mut chunks = Vec::new();
    loop {
        // SAFETY: as above.
        let mut raw = unsafe { Owned::<RawArray>::empty() };
        // SAFETY: as above.
        let code = unsafe { get_next(&mut stream.0, &mut raw.0) };
        check(&mut stream, code)?;
        if raw.is_released() {
            return Ok(chunks);
        }
        chunks.push(Array { raw, layouts });
    }
}

/// Raises the producer's message about its last failure.
fn check(stream: &mut Owned<Stream>, code: c_int) -> PyResult<()> {
    if code == 0 {
        return Ok(());
    }
    let message = stream.0.get_last_error.map_or(ptr::null(), |last| {
        // SAFETY: the callback may be called after a failure; its text lives until the next call.
        unsafe { last(&mut stream.0) }
    });
    let message = match message.is_null() {
        true => format!("the Arrow stream failed with code {code}"),
        // SAFETY: a text that ends with a NUL.
        false => unsafe { CStr::from_ptr(message) }
            .to_string_lossy()
            .into_owned(),
    };
    Err(PyValueError::new_err(message))
}
