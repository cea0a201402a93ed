//! The Python package: its signatures, its adapters, its types, and the page about it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow, ensure};
use postgres::Client;
use testbed::server::Server;
use testbed::server::database::Database;
use testbed::{shell, workspace};

use crate::harness::{Missing, Outcome, figure};
use crate::known::{Collection, Generated};

const PAGE: &str = "docs/python.md";

/// The command by which docs/python.md installs the package.
const INSTALL: [&str; 3] = ["pip", "install", "./crates/python"];

/// Checks that signatures, SimHashes, fingerprints, functions of them, and errors equal the server's.
pub fn signatures(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "python")?;
    load(&mut database.connect()?)?;
    run("signatures.py", &[dsn(server, &database)])
}

/// Loads documents in many scripts.
fn load(client: &mut Client) -> Result<()> {
    const CORPORA: &[&str] = &["mccormick_2500", "hadith_ar", "song_zh"];
    client.batch_execute("CREATE TABLE docs (id bigint, body text)")?;
    let generated = [Generated::han(), Generated::arabic()].map(Collection::Generated);
    let collections = Collection::all(Generated::english(), CORPORA);
    for collection in collections.into_iter().chain(generated) {
        collection.load(client, "part")?;
        client.batch_execute(
            "INSERT INTO docs SELECT (SELECT count(*) FROM docs) + id, body FROM part
             ORDER BY id LIMIT 500;
             DROP TABLE part",
        )?;
    }
    Ok(())
}

/// Checks that signatures come back from every library as they were sent.
pub fn adapters(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "python")?;
    let arguments = [dsn(server, &database), address(server, &database)];
    run("adapters.py", &arguments)
}

/// Runs the snippets of docs/python.md, and checks that estimates equal datasketch's.
pub fn page(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "python")?;
    let page = workspace::root().join(PAGE).display().to_string();
    let arguments = [dsn(server, &database), address(server, &database), page];
    run("page.py", &arguments)
}

/// Checks calibration, reports and the command `neardup`, and what docs/choosing.md and docs/pairs.md say about them.
pub fn lab(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "lab")?;
    let documents = Database::with_extension(&server.main, "lab_documents")?;
    load(&mut documents.connect()?)?;
    let known = run("lab.py", &[dsn(server, &documents)])?;
    if !matches!(known, Outcome::Passed) {
        return Ok(known);
    }
    let directory = directory().join("lab");
    for page in ["docs/pairs.md", "docs/choosing.md"] {
        commands(server, &database, page, &directory)?;
    }
    Ok(known)
}

/// Runs the commands and snippets of a page in a directory.
pub fn commands(
    server: &Server,
    database: &Database<'_>,
    page: &str,
    directory: &Path,
) -> Result<Outcome> {
    fs::create_dir_all(directory)?;
    let page = workspace::root().join(page).display().to_string();
    let directory = directory.display().to_string();
    run("commands.py", &[dsn(server, database), page, directory])
}

/// Writes pages of hostile documents into a directory.
pub fn pages(server: &Server, database: &Database<'_>, directory: &Path) -> Result<Outcome> {
    let directory = directory.display().to_string();
    run("pages.py", &[dsn(server, database), directory])
}

/// Imports and exports Parquet files with the commands of docs/adopting.md.
pub fn parquet(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "parquet")?;
    let page = workspace::root().join("docs/adopting.md");
    let psql = server.main.psql(&database.name);
    let programs = Path::new(psql.get_program()).parent();
    let programs = programs.context("psql is in a directory")?.display();
    let arguments = [
        dsn(server, &database),
        page.display().to_string(),
        programs.to_string(),
    ];
    run("parquet.py", &arguments)
}

/// Checks that the type hints agree with the code and with the native module.
pub fn types(_: &Server) -> Result<Outcome> {
    with_python(|python| {
        let package = workspace::root().join("crates/python");
        let mut check = Command::new(python);
        check.args(["-m", "mypy", "--cache-dir"]);
        check.arg(directory().join("types")).current_dir(&package);
        shell::run_quietly(&mut check)?;
        check_snippet(python)?;
        let mut stubs = Command::new(python);
        stubs.args(["-m", "mypy.stubtest", "neardup._native"]);
        shell::run_quietly(stubs.current_dir(directory()))?;
        Ok(())
    })
}

/// Checks the types of the snippet of docs/python.md about signatures as a reader would.
fn check_snippet(python: &Path) -> Result<()> {
    let page = fs::read_to_string(workspace::root().join(PAGE))?;
    let (_, rest) = page.split_once("## Signatures").context("a section")?;
    let (_, rest) = rest.split_once("```python\n").context("a snippet")?;
    let (snippet, _) = rest.split_once("```").context("the end of the snippet")?;
    let file = directory().join("snippet.py");
    fs::write(&file, snippet)?;
    let mut check = Command::new(python);
    check.args(["-m", "mypy", "--strict", "--cache-dir"]);
    check.arg(directory().join("types")).arg(file);
    shell::run_quietly(check.current_dir(directory()))?;
    Ok(())
}

pub fn dsn(server: &Server, database: &Database<'_>) -> String {
    let socket = server.main.socket_dir().display();
    format!("host={socket} user=postgres dbname={}", database.name)
}

fn address(server: &Server, database: &Database<'_>) -> String {
    let socket = server.main.socket_dir().display();
    format!("postgresql://postgres@/{}?host={socket}", database.name)
}

/// Runs a program of tests/python, whose last line of output is a figure.
fn run(program: &str, arguments: &[String]) -> Result<Outcome> {
    with_python(|python| {
        let program = workspace::root().join("tests/python").join(program);
        let said = shell::run_quietly(Command::new(python).arg(program).args(arguments))?;
        figure!("{}", said.lines().last().unwrap_or_default());
        Ok(())
    })
}

pub fn with_python(test: impl FnOnce(&Path) -> Result<()>) -> Result<Outcome> {
    match python() {
        Ok(python) => test(python).map(|()| Outcome::Passed),
        Err(Lack::Missing(lack)) => Ok(Outcome::Skipped(Missing::Python(lack.clone()))),
        Err(Lack::Failed(error)) => Err(anyhow!("{error}")),
    }
}

/// Prepares the Python environment of the tests.
pub fn prepare() {
    // Each test reports missing parts.
    let _ = python();
}

/// The reason why there is no Python to run tests with.
enum Lack {
    /// The machine has no Python, or none that can have the packages.
    Missing(String),
    /// The package cannot be installed.
    Failed(String),
}

/// Returns the Python of a virtual environment that has the package, installed once per run, and the libraries that it
/// works with.
fn python() -> Result<&'static Path, &'static Lack> {
    static PYTHON: OnceLock<Result<PathBuf, Lack>> = OnceLock::new();
    let made = PYTHON.get_or_init(|| {
        let python = environment().map_err(|error| Lack::Missing(format!("{error:#}")))?;
        install(&python).map_err(|error| Lack::Failed(format!("{error:#}")))?;
        Ok(python)
    });
    made.as_ref().map(PathBuf::as_path)
}

fn directory() -> PathBuf {
    workspace::scratch_dir().join("python")
}

/// Creates the virtual environment, or recreates it if the list of libraries has changed.
fn environment() -> Result<PathBuf> {
    let environment = directory().join("environment");
    let python = environment.join("bin/python");
    let requirements = workspace::root().join("tests/python/requirements.txt");
    let wanted = fs::read_to_string(&requirements)?;
    let stamp = environment.join("requirements.txt");
    if fs::read_to_string(&stamp).unwrap_or_default() != wanted {
        let base = interpreter().context("no Python")?;
        let create = ["-m", "venv", "--clear"];
        let mut create_environment = Command::new(base);
        let what = "Making a virtual environment of Python";
        shell::run_behind(what, create_environment.args(create).arg(&environment))
            .context("Python makes no virtual environments")?;
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--requirement"]);
        let what = "Installing the libraries of the Python package's tests";
        shell::run_behind(what, pip.arg(&requirements)).context("Python lacks packages")?;
        fs::write(&stamp, wanted)?;
    }
    Ok(python)
}

/// Installs packages into a separate virtual environment, and returns its Python.
pub fn environment_with(environment: &Path, packages: &[&str]) -> Result<PathBuf> {
    let python = environment.join("bin/python");
    if !python.exists() {
        let base = interpreter().context("no Python")?;
        shell::run_quietly(Command::new(base).args(["-m", "venv"]).arg(environment))?;
    }
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install"]).args(packages);
    workspace::forget_own_build(pip.current_dir(workspace::root()));
    shell::run_with_progress(&format!("Installing {}", packages.join(" ")), &mut pip)?;
    Ok(python)
}

/// Installs the package with the command from the page.
fn install(python: &Path) -> Result<()> {
    let page = fs::read_to_string(workspace::root().join(PAGE))?;
    let command = INSTALL.join(" ");
    let is_there = page.lines().any(|line| line == command);
    ensure!(is_there, "{PAGE} has no line \"{command}\"");
    let mut pip = Command::new(python);
    pip.arg("-m").args(INSTALL).arg("--verbose");
    workspace::forget_own_build(pip.current_dir(workspace::root()));
    shell::run_behind("Building the Python package", &pip)
}

fn interpreter() -> Option<PathBuf> {
    let named = std::env::var_os("NEARDUP_PYTHON").map(PathBuf::from);
    named.or_else(|| which::which("python3").ok())
}
