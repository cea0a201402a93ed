//! `diff_html` of hostile documents in a real browser.

use std::fs;
use std::path::Path;
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
    let Some(browser) = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find_map(|name| which::which(name).ok())
    else {
        return Ok(Outcome::Skipped(Missing::Chromium));
    };
    let directory = workspace::scratch_dir().join("page");
    fs::create_dir_all(&directory)?;
    let database = Database::with_extension(&server.main, "page")?;
    let mut client = database.connect()?;
    let mut page = String::new();
    for document in HOSTILE {
        let query = format!(
            "SELECT diff_html(d, 'one two three four five ' || d) FROM (VALUES ({document})) v (d)"
        );
        page = client.query_one(&query, &[])?.get(0);
        ensure!(page.contains(POLICY), "the page allows scripts");
        page = page.replace(POLICY, "");
        for size in ["1200,800", "500,900"] {
            let found = measure(&browser, &directory, size, &page)?;
            ensure!(
                found == "false 1 false true",
                "{document} at {size}: {found}"
            );
        }
    }
    // The measurement sees what it looks for.
    page += "<script>ran = true</script><p style='width: 9999px'>wide</p>";
    let found = measure(&browser, &directory, "1200,800", &page)?;
    ensure!(found.starts_with("true 2 true"), "control: {found}");
    Ok(Outcome::Passed)
}

/// What [`MEASURE`] finds in a window of the given size.
fn measure(browser: &Path, directory: &Path, size: &str, page: &str) -> Result<String> {
    let file = directory.join("page.html");
    fs::write(&file, format!("{page}{MEASURE}"))?;
    let mut command = Command::new(browser);
    command.args("--headless --no-sandbox --disable-gpu --disable-quic --no-first-run".split(' '));
    command.args(["--disable-background-networking", "--disable-sync"]);
    command.args(["--disable-component-update", "--dump-dom"]);
    command
        .arg(format!("--window-size={size}"))
        .arg(format!(
            "--user-data-dir={}",
            directory.join("profile").display()
        ))
        .arg(format!("file://{}", file.display()));
    let dumped = shell::run_quietly(&mut command)?;
    let (_, found) = dumped
        .rsplit_once("<body>measured ")
        .context("the page was not measured")?;
    Ok(found.split('<').next().unwrap_or_default().to_string())
}
