//! Pages of hostile documents in a real browser.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use testbed::server::Server;
use testbed::server::database::Database;
use testbed::{shell, workspace};

use super::python;
use crate::harness::{Missing, Outcome};

/// The page's own protection, which is removed so that escaping alone must be sufficient.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// Replaces the page with: whether a script ran, the number of scripts, whether anything is too wide for the window or
/// its column, and whether the columns are separate.
const MEASURE: &str = "<script>addEventListener('load', () => {
    const [a, b] = document.querySelectorAll('article'), [l, r] = [a, b].map(x => x.getBoundingClientRect());
    const wide = [document.documentElement, a, b].some(x => x.scrollWidth > x.clientWidth);
    const apart = l.width > 200 && r.width > 200 && l.height > 100 && (l.right <= r.left || l.bottom <= r.top);
    document.body.textContent = ['measured', !!window.ran, document.scripts.length, wide, apart].join(' ');
})</script>";

/// Checks that no script of a document runs and no layout breaks, on a desktop and on a phone, for pairs of documents
/// and for reports, whose folded parts are printed.
pub fn hostile_documents(server: &Server) -> Result<Outcome> {
    let Some(browser) = Browser::find()? else {
        return Ok(Outcome::Skipped(Missing::Chromium));
    };
    let database = Database::with_extension(&server.main, "page")?;
    let directory = browser.directory.join("pages");
    fs::create_dir_all(&directory)?;
    let made = python::pages(server, &database, &directory)?;
    if !matches!(made, Outcome::Passed) {
        return Ok(made);
    }
    let mut files: Vec<_> = fs::read_dir(&directory)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    files.sort();
    for file in &files {
        let page = unprotected(&fs::read_to_string(file)?)?;
        let is_pair = file
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("pair"));
        let (script, wanted) = match is_pair {
            true => (MEASURE, "false 1 false true"),
            false => (SECTIONS, "false 1 false false"),
        };
        for (size, found) in SIZES.iter().zip(browser.measure(&SIZES, &page, script)?) {
            ensure!(found == wanted, "{} at {size:?}: {found}", file.display());
        }
        if !is_pair {
            let printed = page.replace("@media print", "@media screen");
            let found = browser.measure(&SIZES[..1], &printed, PRINTED)?;
            ensure!(
                found == ["0"],
                "{found:?} folded documents of {} are not printed",
                file.display()
            );
        }
    }
    // The measurement detects the failures that it looks for.
    let mut page = unprotected(&fs::read_to_string(&files[0])?)?;
    page += "<script>ran = true</script><p style='width: 9999px'>wide</p>";
    let found = browser.measure(&SIZES[..1], &page, MEASURE)?;
    ensure!(found[0].starts_with("true 2 true"), "control: {found:?}");
    Ok(Outcome::Passed)
}

/// The width and height of a desktop window, and of a phone's.
const SIZES: [[u32; 2]; 2] = [[1200, 800], [320, 900]];

/// Replaces the page with the number of folded documents that are not visible.
const PRINTED: &str = "<script>addEventListener('load', () => {
    const folded = [...document.querySelectorAll('details:not([open]) article')].slice(0, 1000);
    const hidden = folded.filter(x => x.getBoundingClientRect().height < 30);
    document.body.textContent = ['measured', hidden.length].join(' ');
})</script>";

/// Unfolds a page of moderate size, and replaces it with: whether a script ran, the number of scripts, whether the page
/// is too wide for the window, and whether an article is hardly visible.
const SECTIONS: &str = "<script>addEventListener('load', () => {
    const folded = document.querySelectorAll('details');
    if (folded.length < 1000) folded.forEach(x => x.open = true);
    const root = document.documentElement, wide = root.scrollWidth > root.clientWidth;
    const shown = [...document.querySelectorAll('details[open] article')].map(x => x.getBoundingClientRect());
    const lost = shown.some(x => x.width < 100 || x.height < 30);
    document.body.textContent = ['measured', !!window.ran, document.scripts.length, wide, lost].join(' ');
})</script>";

/// Returns a page without its own protection.
fn unprotected(page: &str) -> Result<String> {
    ensure!(page.contains(POLICY), "the page allows scripts");
    Ok(page.replace(POLICY, ""))
}

/// Returns the browser's program, if there is one.
pub fn browser() -> Option<PathBuf> {
    ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find_map(|name| which::which(name).ok())
}

/// Copies the results that a script has left in the frames.
const HAND_ON: &str = "<script>addEventListener('load', () => {
    document.body.textContent = Array.from(frames, frame => frame.document.body.textContent).join('\\n');
})</script>";

/// A browser, and the directory of its files.
struct Browser {
    program: PathBuf,
    directory: PathBuf,
}

impl Browser {
    fn find() -> Result<Option<Browser>> {
        let directory = workspace::scratch_dir().join("page");
        fs::create_dir_all(&directory)?;
        Ok(browser().map(|program| Browser { program, directory }))
    }

    /// Returns the results of a script in a page, in frames of the given widths and heights, because a window has a
    /// minimum width.
    fn measure(&self, sizes: &[[u32; 2]], page: &str, script: &str) -> Result<Vec<String>> {
        let file = self.directory.join("page.html");
        let source = format!("{page}{script}")
            .replace('&', "&amp;")
            .replace('"', "&quot;");
        let frames = sizes.iter().map(|[width, height]| {
            format!("<iframe style=\"width: {width}px; height: {height}px\" srcdoc=\"{source}\"></iframe>")
        });
        let frames = frames.collect::<String>();
        let frame = format!("<!DOCTYPE html>{frames}{HAND_ON}");
        fs::write(&file, frame)?;
        let mut command = Command::new(&self.program);
        command
            .args("--headless --no-sandbox --disable-gpu --disable-quic --no-first-run".split(' '));
        command.args(["--disable-background-networking", "--disable-sync"]);
        command.args(["--disable-component-update", "--dump-dom"]);
        let profile = self.directory.join("profile");
        command
            .arg("--window-size=1300,1000")
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg(format!("file://{}", file.display()));
        let dumped = shell::run_quietly(&mut command)?;
        let (_, found) = dumped
            .rsplit_once("<body>")
            .context("the page has no body")?;
        let found = found.split('<').next().unwrap_or_default().lines();
        let found = found.filter_map(|line| line.strip_prefix("measured "));
        let found: Vec<String> = found.map(String::from).collect();
        ensure!(found.len() == sizes.len(), "the page was not measured");
        Ok(found)
    }
}
