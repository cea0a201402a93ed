//! The snippets of docs/clients.md: each client creates the index and the guard, finds the row, and gets the row that
//! its own row is near.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow, ensure};
use pulldown_cmark::{CodeBlockKind, Event, Tag};
use testbed::server::Server;
use testbed::server::cluster::{Cluster, SUPERUSER};
use testbed::server::database::Database;
use testbed::server::installation::copy_file;
use testbed::{shell, workspace};

use super::python::with_python;
use crate::docs::pages;
use crate::harness::{Missing, Outcome};

const PAGE: &str = "docs/clients.md";

/// The path of the JDBC driver in Debian's package.
const JDBC: &str = "/usr/share/java/postgresql.jar";

/// Runs the sections about Python's drivers and frameworks.
pub fn python(server: &Server) -> Result<Outcome> {
    // Inserted between the migration and the rest.
    const ALEMBIC: &str = "
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import create_engine
with create_engine('postgresql+psycopg:///mydb').begin() as connection:
    with Operations.context(MigrationContext.configure(connection)):
        upgrade()
";
    const SETTINGS: &str = "
import django
from django.conf import settings
place = {'NAME': '<database>', 'HOST': '<socket>', 'USER': 'postgres', 'ENGINE': 'django.db.backends.postgresql'}
settings.configure(INSTALLED_APPS=[], DATABASES={'default': place})
django.setup()
";
    const MODEL: &str = "
from django.db import connection, models
from django.db.migrations.state import ProjectState
with connection.schema_editor() as editor:
    for operation in operations:
        operation.database_forwards('news', editor, ProjectState(), ProjectState())
class Article(models.Model):
    id = models.BigAutoField(primary_key=True)
    body = models.TextField()
    class Meta:
        app_label = 'news'
        db_table = 'articles'
";
    with_python(|python| {
        for (title, before, between) in [
            ("psycopg", "", ""),
            ("asyncpg", "", ""),
            ("SQLAlchemy and Alembic", "", ALEMBIC),
            ("Django", SETTINGS, MODEL),
        ] {
            let snippets = snippets(title, "python")?;
            let (migration, rest) = snippets.split_first().context("no snippet")?;
            let program = [before, migration, between, &rest.concat()].concat();
            run(&server.main, title, "client.py", &program, &mut |file| {
                let mut command = Command::new(python);
                command.arg(file);
                command
            })?;
        }
        Ok(())
    })
}

/// Runs the sections about node-postgres and Drizzle.
pub fn node(server: &Server) -> Result<Outcome> {
    if which::which("npm").is_err() {
        return Ok(Outcome::Skipped(Missing::Client("npm")));
    }
    let directory = npm_packages()?;
    for title in ["node-postgres", "Drizzle"] {
        let program = snippets(title, "js")?.concat();
        run(&server.main, title, "client.mjs", &program, &mut |file| {
            let mut command = Command::new("node");
            // Packages are found in a directory above the program.
            command.arg("--input-type=module").current_dir(directory);
            command
                .arg("--eval")
                .arg(fs::read_to_string(file).unwrap_or_default());
            command
        })?;
    }
    Ok(Outcome::Passed)
}

/// Runs the section about JDBC, which can only connect by TCP.
pub fn jdbc(server: &Server) -> Result<Outcome> {
    const BEFORE: &str = "import java.sql.*;
import org.postgresql.util.PSQLException;
class Client { public static void main(String[] arguments) throws Exception {
";
    if which::which("java").is_err() || !Path::new(JDBC).exists() {
        return Ok(Outcome::Skipped(Missing::Client("libpostgresql-jdbc-java")));
    }
    // An address of its own, so that parallel runs can use the same port.
    let process = std::process::id();
    let host = format!("127.9.{}.{}", process >> 8 & 0xFF, process & 0xFF | 1);
    let cluster = server.scratch_cluster("jdbc")?;
    cluster.create(&[("listen_addresses", &host)])?;
    cluster.start()?;
    let program = [BEFORE, &snippets("JDBC", "java")?.concat(), "}}"].concat();
    let program = program.replace(
        "//localhost/mydb",
        &format!("//{host}/<database>?user={SUPERUSER}"),
    );
    run(&cluster, "JDBC", "Client.java", &program, &mut |file| {
        let mut command = Command::new("java");
        command.args(["-cp", JDBC]).arg(file);
        command
    })?;
    Ok(Outcome::Passed)
}

/// Runs the section about sqlx.
pub fn sqlx(server: &Server) -> Result<Outcome> {
    let program = sqlx_program()?;
    run(
        &server.main,
        "sqlx",
        "address",
        "postgresql:///mydb",
        &mut |file| {
            let mut command = Command::new(program);
            command.arg(fs::read_to_string(file).unwrap_or_default());
            command
        },
    )?;
    Ok(Outcome::Passed)
}

/// Installs the packages from npm that the clients need.
pub fn prepare_node() {
    if which::which("npm").is_ok() {
        // The test reports an error.
        let _ = npm_packages();
    }
}

/// Builds the client with sqlx.
pub fn prepare_sqlx() {
    // The test reports an error.
    let _ = sqlx_program();
}

/// Runs a client's program in a database with the page's table, and compares its output with psql's.
fn run(
    cluster: &Cluster,
    title: &str,
    name: &str,
    program: &str,
    command: &mut dyn FnMut(&Path) -> Command,
) -> Result<()> {
    let page = fs::read_to_string(workspace::root().join(PAGE))?;
    let (_, table) = page.split_once("```sql\n").context("no table")?;
    let (table, _) = table.split_once("CREATE INDEX").context("no index")?;
    let row = page.lines().find(|line| line.starts_with("  1 | "));
    let row = row.context("psql finds no row")?.trim().replace(" | ", " ");
    let detail = page.lines().find_map(|line| line.strip_prefix("DETAIL:  "));
    let expected = format!("{row}\n{}", detail.context("psql is told no detail")?);

    let database = Database::with_extension(cluster, "clients")?;
    database.connect()?.batch_execute(table)?;
    let socket = cluster.socket_dir().display().to_string();
    let address = format!(":///{}?host={socket}&user={SUPERUSER}", database.name);
    let program = program
        .replace(":///mydb", &address)
        .replace("<database>", &database.name)
        .replace("<socket>", &socket);
    let file = directory().join(name);
    fs::create_dir_all(directory())?;
    fs::write(&file, program)?;
    let printed = shell::run_quietly(&mut command(&file)).context(title.to_string())?;
    ensure!(
        printed == expected,
        "{title} prints\n{printed}\npsql\n{expected}"
    );
    Ok(())
}

/// Returns the blocks in one language of a section of the page.
fn snippets(title: &str, language: &str) -> Result<Vec<String>> {
    let page = fs::read_to_string(workspace::root().join(PAGE))?;
    let heading = format!("\n## {title}\n");
    let (_, section) = page.split_once(&heading).context(heading.clone())?;
    let section = section.split("\n## ").next().unwrap_or_default();
    let mut snippets = Vec::new();
    let mut is_code = false;
    for (event, _) in pages::parse(section) {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                is_code = &*info == language
            }
            Event::Text(code) if is_code => snippets.push(code.to_string()),
            Event::End(_) => is_code = false,
            _ => {}
        }
    }
    ensure!(!snippets.is_empty(), "{title} has no block in {language}");
    Ok(snippets)
}

fn directory() -> PathBuf {
    workspace::scratch_dir().join("clients")
}

fn sources() -> PathBuf {
    workspace::root().join("tests/clients")
}

/// Returns the directory with the packages of npm, which are installed once per run.
fn npm_packages() -> Result<&'static Path> {
    static PACKAGES: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let install = || {
        let directory = directory().join("node");
        copy_file(
            &sources().join("package.json"),
            &directory.join("package.json"),
        )?;
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund"]);
        shell::run_behind("Installing clients from npm", npm.current_dir(&directory))?;
        Ok(directory)
    };
    once(&PACKAGES, install)
}

/// Returns the program of the section about sqlx, which takes the address of the database. It is built once per run.
fn sqlx_program() -> Result<&'static Path> {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let build = || {
        let directory = directory().join("sqlx");
        let snippets = snippets("sqlx", "rust")?.concat();
        let address = "&std::env::args().nth(1).unwrap()";
        let program = format!(
            "#[tokio::main(flavor = \"current_thread\")]\n\
             async fn main() -> Result<(), sqlx::Error> {{\n{}Ok(())\n}}\n",
            snippets.replace("\"postgresql:///mydb\"", address)
        );
        for file in ["Cargo.toml", "Cargo.lock"] {
            copy_file(&sources().join("sqlx").join(file), &directory.join(file))?;
        }
        fs::create_dir_all(directory.join("src"))?;
        fs::write(directory.join("src/main.rs"), program)?;
        let mut cargo = workspace::cargo();
        cargo.args(["build", "--locked"]).current_dir(&directory);
        cargo.env("CARGO_TARGET_DIR", directory.join("target"));
        shell::run_behind("Building a client with sqlx", &cargo)?;
        Ok(directory.join("target/debug/client"))
    };
    once(&PROGRAM, build)
}

fn once(
    cell: &'static OnceLock<Result<PathBuf, String>>,
    make: impl FnOnce() -> Result<PathBuf>,
) -> Result<&'static Path> {
    let made = cell.get_or_init(|| make().map_err(|error| format!("{error:#}")));
    made.as_deref().map_err(|error| anyhow!("{error}"))
}
