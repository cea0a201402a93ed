//! HTML pages from templates, without scripts, external resources or markup from the documents.

mod text;

pub(crate) use text::{HtmlText, beginning};
pub(crate) use text::{Number, Percent, ThreeDecimals};

use crate::memory::GrowText;
use crate::{Error, Result};
use askama::Template;
use std::cell::RefCell;
use std::fmt;

/// A page while it is written: its template can ask for the length so far.
#[derive(Default)]
pub(crate) struct HtmlPage(RefCell<String>);

impl HtmlPage {
    /// Returns the number of bytes written.
    pub fn len(&self) -> usize {
        self.0.borrow().len()
    }

    /// Writes the template and returns the page.
    ///
    /// # Errors
    /// `OutOfMemory`, and any error of an expression of the template.
    pub fn render(&self, template: &impl Template) -> Result<String> {
        match template.render_into(&mut &*self) {
            Ok(()) => Ok(self.0.take()),
            Err(askama::Error::Custom(error)) => {
                Err(error.downcast().map_or(Error::OutOfMemory, |error| *error))
            }
            // Writing to memory fails in no other way.
            Err(_) => Err(Error::OutOfMemory),
        }
    }
}

impl fmt::Write for &HtmlPage {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut page = self.0.borrow_mut();
        page.try_push_str(text).map_err(|_| fmt::Error)
    }
}
