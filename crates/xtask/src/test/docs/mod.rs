//! The documentation: its examples run, its reference lists every object, its links lead somewhere.

mod catalog;
mod examples;
mod links;
mod pages;
mod reference;
mod samples;
mod subjects;

use anyhow::Result;

use super::tally::Tally;
use crate::server::Server;

/// Checks README.md and `docs/`; `bless` writes the examples' outputs and the reference.
pub fn run(server: &Server, bless: bool, tally: &mut Tally) -> Result<()> {
    println!("Running the examples of the documentation");
    let pages = pages::read()?;
    for page in pages.iter().filter(|page| page.name != reference::NAME) {
        examples::run(server, page, bless, tally)?;
    }
    let pages = pages::read()?;
    tally.record("reference", || reference::check(server, &pages, bless));
    for page in pages::read()? {
        tally.record(&format!("links of {}", page.name), || links::check(&page));
    }
    Ok(())
}
