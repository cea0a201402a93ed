//! The writer that all parts of a page share.

use super::escape;
use crate::Result;
use crate::memory::{FirstError, GrowText};
use std::fmt;

/// A page as far as it is written.
#[derive(Default)]
pub(crate) struct Page {
    text: String,
    /// Set when the page does not fit into memory; [`Page::finish`] returns it.
    error: FirstError,
}

impl Page {
    /// Makes an empty page with room for `bytes`.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn new(bytes: usize) -> Result<Self> {
        let mut page = Self::default();
        page.text.try_reserve_exact(bytes)?;
        Ok(page)
    }

    /// Writes what comes before the first style rule of the page's own.
    pub fn begin(&mut self, title: &[u8]) {
        self.push(concat!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
            "<meta http-equiv=\"Content-Security-Policy\" ",
            "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<title>"
        ));
        escape::append_plain(self, title);
        self.push(concat!("</title>\n<style>\n", include_str!("base.css")));
    }

    /// Appends text.
    pub fn push(&mut self, text: &str) {
        self.error.run(|| self.text.try_push_str(text));
    }

    /// Appends formatted text.
    pub fn write(&mut self, text: fmt::Arguments<'_>) {
        fmt::Write::write_fmt(self, text).expect("writing to a page does not fail");
    }

    /// Appends text of a document, so that a browser shows it as text.
    pub fn text(&mut self, text: &[u8]) {
        escape::append(self, text);
    }

    /// Appends a name, which may be in another direction than what surrounds it.
    pub fn name(&mut self, name: &[u8]) {
        self.push("<bdi>");
        self.text(name);
        self.push("</bdi>");
    }

    /// Returns the number of bytes written.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Returns the text.
    ///
    /// # Errors
    /// `OutOfMemory`, if a part did not fit.
    pub fn finish(self) -> Result<String> {
        self.error.into_result()?;
        Ok(self.text)
    }
}

impl fmt::Write for Page {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text);
        Ok(())
    }
}
