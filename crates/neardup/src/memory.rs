//! Allocations proportional to the input. If one fails, the caller gets an error and the process continues.
//!
//! `clippy.toml` disallows the methods of the standard library that these functions replace. They are allowed where
//! a constant bounds their memory; the exception states the bound.

use crate::{Error, Result};

/// Returns an empty list with room for `capacity` elements.
///
/// # Errors
/// `OutOfMemory`.
pub fn with_room<T>(capacity: usize) -> Result<Vec<T>> {
    let mut list = Vec::new();
    list.try_reserve_exact(capacity)?;
    Ok(list)
}

/// Returns a list of `length` copies of `value`.
///
/// # Errors
/// `OutOfMemory`.
#[allow(clippy::disallowed_methods, reason = "reserved in advance")]
pub fn filled<T: Clone>(value: T, length: usize) -> Result<Vec<T>> {
    let mut list = with_room(length)?;
    list.resize(length, value);
    Ok(list)
}

/// Returns a copy of a slice.
///
/// # Errors
/// `OutOfMemory`.
#[allow(clippy::disallowed_methods, reason = "reserved in advance")]
pub fn copied<T: Clone>(slice: &[T]) -> Result<Vec<T>> {
    let mut list = with_room(slice.len())?;
    list.extend_from_slice(slice);
    Ok(list)
}

/// Returns the bytes of all `parts`, one after the other.
///
/// # Errors
/// `OutOfMemory`.
pub fn joined(parts: &[&[u8]]) -> Result<Vec<u8>> {
    let mut bytes = with_room(parts.iter().map(|part| part.len()).sum())?;
    for part in parts {
        bytes.try_extend_from_slice(part)?;
    }
    Ok(bytes)
}

/// Returns the elements of an iterator as a list.
///
/// # Errors
/// `OutOfMemory`.
pub fn collected<T>(elements: impl IntoIterator<Item = T>) -> Result<Vec<T>> {
    let elements = elements.into_iter();
    let mut list = with_room(elements.size_hint().0)?;
    list.try_extend(elements)?;
    Ok(list)
}

/// Growing lists, with an error if memory runs out.
pub trait Grow<T> {
    /// Appends `element`.
    ///
    /// # Errors
    /// `OutOfMemory`; the list is unchanged.
    fn try_push(&mut self, element: T) -> Result<()>;

    /// Appends all `elements`.
    ///
    /// # Errors
    /// `OutOfMemory`; the list holds the elements up to the one that did not fit.
    fn try_extend(&mut self, elements: impl IntoIterator<Item = T>) -> Result<()>;

    /// Appends copies of all `elements`.
    ///
    /// # Errors
    /// `OutOfMemory`; the list is unchanged.
    fn try_extend_from_slice(&mut self, elements: &[T]) -> Result<()>
    where
        T: Clone;
}

#[allow(clippy::disallowed_methods, reason = "reserved in advance")]
impl<T> Grow<T> for Vec<T> {
    #[inline]
    fn try_push(&mut self, element: T) -> Result<()> {
        self.try_reserve(1)?;
        self.push(element);
        Ok(())
    }

    fn try_extend(&mut self, elements: impl IntoIterator<Item = T>) -> Result<()> {
        let elements = elements.into_iter();
        self.try_reserve(elements.size_hint().0)?;
        for element in elements {
            self.try_push(element)?;
        }
        Ok(())
    }

    fn try_extend_from_slice(&mut self, elements: &[T]) -> Result<()>
    where
        T: Clone,
    {
        self.try_reserve(elements.len())?;
        self.extend_from_slice(elements);
        Ok(())
    }
}

/// Growing texts, with an error if memory runs out.
pub trait GrowText {
    /// Appends `text`.
    ///
    /// # Errors
    /// `OutOfMemory`; the text is unchanged.
    fn try_push_str(&mut self, text: &str) -> Result<()>;

    /// Appends `c`.
    ///
    /// # Errors
    /// `OutOfMemory`; the text is unchanged.
    fn try_push(&mut self, c: char) -> Result<()>;
}

#[allow(clippy::disallowed_methods, reason = "reserved in advance")]
impl GrowText for String {
    #[inline]
    fn try_push_str(&mut self, text: &str) -> Result<()> {
        self.try_reserve(text.len())?;
        self.push_str(text);
        Ok(())
    }

    #[inline]
    fn try_push(&mut self, c: char) -> Result<()> {
        self.try_reserve(c.len_utf8())?;
        self.push(c);
        Ok(())
    }
}

/// Keeps the first error of steps in callbacks that cannot return one.
#[derive(Debug, Default)]
pub struct FirstError(Option<Error>);

impl FirstError {
    /// Runs `step`, unless an earlier step failed.
    #[inline]
    pub fn run(&mut self, step: impl FnOnce() -> Result<()>) {
        if self.0.is_none() {
            self.0 = step().err();
        }
    }

    /// Returns the outcome of all steps.
    ///
    /// # Errors
    /// The first error of any step.
    pub fn into_result(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}
