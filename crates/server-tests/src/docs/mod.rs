//! The documentation: its examples are run, its reference lists every object, and its links have valid targets.

mod catalog;
pub mod examples;
mod guards;
mod links;
pub mod pages;
mod reference;
mod replica;
mod report;
mod samples;
mod subjects;

use anyhow::Result;
use libtest_mimic::Trial;

use crate::harness::trial;

/// Returns every example, the reference, and the links of every page as trials.
pub fn trials() -> Result<Vec<Trial>> {
    let pages = pages::read()?;
    let mut trials = Vec::new();
    for page in pages.iter().filter(|page| page.name != reference::NAME) {
        trials.extend(examples::trials(page));
    }
    trials.push(trial("docs::reference".to_string(), reference::check));
    trials.push(trial("docs::replica".to_string(), replica::check));
    trials.push(trial("docs::report".to_string(), report::check));
    for page in pages {
        let name = format!("docs::links of {}", page.name);
        trials.push(trial(name, move || links::check(&page)));
    }
    Ok(trials)
}
