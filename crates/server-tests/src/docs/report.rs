//! `docs/examples/report.html`: the page that the command in `docs/report.md` makes, and its picture.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail, ensure};
use testbed::server::database::Database;
use testbed::{shell, workspace};

use crate::harness::Outcome;
use crate::server::page::browser;
use crate::server::python;
use crate::shared;

const PAGE: &str = "docs/report.md";
const EXAMPLE: &str = "docs/examples/report.html";
const PICTURE: &str = "docs/images/report.png";

/// Fails unless the file equals the command's output, or writes it and draws its picture.
pub fn check() -> Result<Outcome> {
    let root = workspace::root();
    let database = Database::with_extension(&shared::server().main, "report")?;
    let directory = workspace::scratch_dir().join("report");
    let made = python::commands(shared::server(), &database, PAGE, &directory)?;
    if !matches!(made, Outcome::Passed) {
        return Ok(made);
    }
    let page = fs::read_to_string(directory.join("report.html"))?;
    if shared::is_blessing() {
        fs::create_dir_all(root.join("docs/examples"))?;
        fs::write(root.join(EXAMPLE), &page)?;
        match browser() {
            Some(browser) => draw(&browser, &page, &root.join(PICTURE))?,
            None => println!("{PICTURE} stays as it is: Chromium is not installed"),
        }
        return Ok(Outcome::Passed);
    }
    if fs::read_to_string(root.join(EXAMPLE)).unwrap_or_default() != page {
        bail!("{EXAMPLE} is out of date; after changes: cargo xtask test docs --bless");
    }
    ensure!(root.join(PICTURE).exists(), "there is no {PICTURE}");
    Ok(Outcome::Passed)
}

/// Draws the upper part of the page, with the first side-by-side view unfolded.
fn draw(browser: &Path, page: &str, picture: &Path) -> Result<()> {
    let directory = workspace::scratch_dir().join("report");
    fs::create_dir_all(&directory)?;
    let file = directory.join("picture.html");
    let page = page.replacen(
        "<details><summary>Side by side",
        "<details open><summary>Side by side",
        1,
    );
    fs::write(&file, page)?;
    let mut command = Command::new(browser);
    command
        .args("--headless --no-sandbox --disable-gpu --no-first-run --hide-scrollbars".split(' '))
        .arg("--window-size=1200,2600")
        .arg(format!(
            "--user-data-dir={}",
            directory.join("profile").display()
        ))
        .arg(format!("--screenshot={}", picture.display()))
        .arg(format!("file://{}", file.display()));
    shell::run_quietly(&mut command)?;
    Ok(())
}
