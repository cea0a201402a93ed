//! Pages of hostile documents in a real browser.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use testbed::server::Server;
use testbed::server::database::Database;
use testbed::{shell, workspace};

use crate::harness::{Missing, Outcome};

/// Documents that try to set `ran`, to get out of their column, or to hide the rest.
const HOSTILE: &[&str] = &[
    "E'<script>ran = true</script> <img src=x onerror=\"ran = true\"> <svg onload=\"ran = true\">'",
    "E'</div></article></main></style></title><script>ran = true</script><style>*{display:none}</style>'",
    "E'\" onmouseover=\"ran = true\" style=\"width: 9999px\" x=\" \\' onfocus=ran=true autofocus'",
    "E'&lt;script&gt;ran = true&lt;/script&gt; &#60;script&#62;ran=true&#60;/script&#62; <!-- &amp; ]]>'",
    "E'a\\u202Eevil\\u202C \\u2066isolate \\u200F\\u05D0\\u05D1 \\x01\\x1b[31m \\u2028\\uFFFE \\u200B\\uFEFF'",
    "repeat('w', 1 << 20)",
    "repeat('word ', (1 << 20) / 5)",
];

/// The page's own protection, taken out so that escaping alone has to hold.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// Leaves nothing in the page but: whether a script ran, the number of scripts, whether anything
/// is too wide for the window or its column, whether the columns are apart from each other.
const MEASURE: &str = "<script>addEventListener('load', () => {
    const [a, b] = document.querySelectorAll('article'), [l, r] = [a, b].map(x => x.getBoundingClientRect());
    const wide = [document.documentElement, a, b].some(x => x.scrollWidth > x.clientWidth);
    const apart = l.width > 200 && r.width > 200 && l.height > 100 && (l.right <= r.left || l.bottom <= r.top);
    document.body.textContent = ['measured', !!window.ran, document.scripts.length, wide, apart].join(' ');
})</script>";

/// No script runs and no layout breaks, on a desk and on a phone.
pub fn hostile_documents(server: &Server) -> Result<Outcome> {
    let Some(browser) = Browser::find()? else {
        return Ok(Outcome::Skipped(Missing::Chromium));
    };
    let database = Database::with_extension(&server.main, "page")?;
    let mut client = database.connect()?;
    let mut page = String::new();
    for document in HOSTILE {
        let query = format!(
            "SELECT diff_html(d, 'one two three four five ' || d) FROM (VALUES ({document})) v (d)"
        );
        page = client.query_one(&query, &[])?.get(0);
        page = unprotected(&page)?;
        for size in SIZES {
            let found = browser.measure(size, &page, MEASURE)?;
            ensure!(
                found == "false 1 false true",
                "{document} at {size:?}: {found}"
            );
        }
    }
    // The measurement sees what it looks for.
    page += "<script>ran = true</script><p style='width: 9999px'>wide</p>";
    let found = browser.measure(SIZES[0], &page, MEASURE)?;
    ensure!(found.starts_with("true 2 true"), "control: {found}");
    Ok(Outcome::Passed)
}

/// Rows of reports, as columns key, document, source and day.
const REPORTS: &[(&str, &str)] = &[
    (
        "hostile",
        "SELECT d || i, repeat(d || ' ', 3) || i, d, date '2025-01-01' + i FROM hostile, generate_series(1, 4) i",
    ),
    (
        "right to left",
        "SELECT 'مفتاح ' || i, repeat('نص عربي طويل مع كلمات كثيرة و English بينها ', 20) || i, 'مصدر', date '2025-01-01' + i
         FROM generate_series(1, 30) i",
    ),
    (
        "no document",
        "SELECT '', '', '', date '2025-01-01' WHERE false",
    ),
    (
        "ten thousand groups",
        "SELECT i::text, 'group ' || i / 2 || (SELECT string_agg(' word' || i / 2 || '-' || w, '') FROM generate_series(1, 30) w)
             || CASE WHEN i % 2 = 0 THEN '' ELSE ' and more' END,
             'source ' || i % 200, date '2000-01-01' + i
         FROM generate_series(0, 19999) i",
    ),
];

/// Checks that a report's parts are read as they were written, on a desk and on a phone.
pub fn report(server: &Server) -> Result<Outcome> {
    let Some(browser) = Browser::find()? else {
        return Ok(Outcome::Skipped(Missing::Chromium));
    };
    let database = Database::with_extension(&server.main, "page_report")?;
    let mut client = database.connect()?;
    let hostile = HOSTILE
        .iter()
        .map(|document| format!("SELECT {document}::text AS d"));
    let hostile: Vec<String> = hostile.collect();
    client.batch_execute(&format!(
        "CREATE TABLE hostile AS {}; UPDATE hostile SET d = left(d, 20000)",
        hostile.join(" UNION ALL ")
    ))?;
    for (name, rows) in REPORTS {
        let query = format!(
            "SELECT k::text, minhash(b::text), b::text, s::text AS source, y AS day FROM ({rows}) r (k, b, s, y)"
        );
        let row = client.query_one(
            "SELECT near_dup_report(NULL::text, $1, 0.5, $2, 10000)",
            &[&query, &"<script>ran = true</script>\u{202e}<b>A title</b>"],
        )?;
        let page = unprotected(row.get(0))?;
        for size in SIZES {
            let found = browser.measure(size, &page, SECTIONS)?;
            ensure!(
                found == "false 1 false false",
                "{name} at {size:?}: {found}"
            );
        }
        let printed = page.replace("@media print", "@media screen");
        let found = browser.measure(SIZES[0], &printed, PRINTED)?;
        ensure!(
            found == "0",
            "{found} folded documents of {name} are not printed"
        );
    }
    Ok(Outcome::Passed)
}

/// Checks the page of one document beside several.
pub fn several_documents(server: &Server) -> Result<Outcome> {
    let Some(browser) = Browser::find()? else {
        return Ok(Outcome::Skipped(Missing::Chromium));
    };
    let database = Database::with_extension(&server.main, "page_several")?;
    let mut client = database.connect()?;
    for others in [HOSTILE.join(", "), "NULL".to_string()] {
        let query = format!("SELECT diff_html({}, ARRAY[{others}]::text[])", HOSTILE[1]);
        let page = unprotected(client.query_one(&query, &[])?.get(0))?;
        for size in SIZES {
            let found = browser.measure(size, &page, SECTIONS)?;
            ensure!(
                found == "false 1 false false",
                "{others} at {size:?}: {found}"
            );
        }
    }
    Ok(Outcome::Passed)
}

/// Width and height of a desk's window, and of a phone's.
const SIZES: [[u32; 2]; 2] = [[1200, 800], [320, 900]];

/// Leaves nothing in the page but the number of documents that are folded and not to be seen.
const PRINTED: &str = "<script>addEventListener('load', () => {
    const folded = [...document.querySelectorAll('details:not([open]) article')].slice(0, 1000);
    const hidden = folded.filter(x => x.getBoundingClientRect().height < 30);
    document.body.textContent = ['measured', hidden.length].join(' ');
})</script>";

/// Unfolds a page of moderate size, and leaves nothing in it but: whether a script ran, the number of
/// scripts, whether the page is too wide for the window, whether an article is hardly to be seen.
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

/// Takes over what a script has left in the frame.
const HAND_ON: &str = "<script>addEventListener('load', () => {
    document.body.textContent = frames[0].document.body.textContent;
})</script>";

/// A browser, and where it keeps its files.
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

    /// Returns the result of a script in a page, in a frame of the given width and height: a window has a
    /// least width.
    fn measure(&self, [width, height]: [u32; 2], page: &str, script: &str) -> Result<String> {
        let file = self.directory.join("page.html");
        let source = format!("{page}{script}")
            .replace('&', "&amp;")
            .replace('"', "&quot;");
        let frame = format!(
            "<!DOCTYPE html><iframe style=\"width: {width}px; height: {height}px\" srcdoc=\"{source}\"></iframe>{HAND_ON}"
        );
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
            .rsplit_once("<body>measured ")
            .context("the page was not measured")?;
        Ok(found.split('<').next().unwrap_or_default().to_string())
    }
}
