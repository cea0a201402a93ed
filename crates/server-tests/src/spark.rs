//! The Python package on Spark.

use std::fs;
use std::process::Command;

use anyhow::Result;
use libtest_mimic::Trial;
use testbed::server::Server;
use testbed::server::database::Database;
use testbed::{shell, workspace};

use crate::harness::{Missing, Outcome, figure, trial};
use crate::known::{Collection, Generated};
use crate::server::python;
use crate::shared;

/// The corpora to compare, if they are present.
const CORPORA: &[&str] = &["reuters21578", "newsgroups20", "licenses"];

/// Documents of 60 words of their own and 120 words of a template.
const LISTINGS: &str = "
    CREATE TABLE listings AS
    SELECT id, string_agg(CASE WHEN n <= 60 THEN 'w' || hashint8extended(id * 1000 + n, 0) ELSE 't' || n END, ' '
                          ORDER BY n) AS body
    FROM generate_series(1::bigint, 3000) id, generate_series(1, 180) n GROUP BY id;
    INSERT INTO listings SELECT id + 3000, body || ' edited' FROM listings WHERE id % 10 = 0";

/// Returns the tests, if they are requested: the versions of PySpark.
pub fn trials() -> Vec<Trial> {
    if std::env::var_os("NEARDUP_SPARK").is_none() {
        return Vec::new();
    }
    let versions = [
        ("pyspark_3", "pyspark>=3.5,<4"),
        ("pyspark_4", "pyspark>=4,<5"),
    ];
    let test = |(name, version)| {
        trial(format!("spark::{name}"), move || {
            run(shared::server(), name, version)
        })
    };
    versions.into_iter().map(test).collect()
}

/// Compares the pairs and clusters of collections with the server's.
fn run(server: &Server, name: &str, version: &str) -> Result<Outcome> {
    if which::which("java").is_err() {
        return Ok(Outcome::Skipped(Missing::Client("Java")));
    }
    let database = Database::with_extension(&server.main, "spark")?;
    let mut client = database.connect()?;
    let (mut collections, generated) = (Vec::new(), Generated::english());
    let template = Collection::Generated(Generated::template());
    for collection in Collection::all(generated, CORPORA)
        .into_iter()
        .chain([template])
    {
        let table = format!("docs_{}", collections.len());
        collection.load(&mut client, &table)?;
        collections.push(table);
    }
    client.batch_execute(LISTINGS)?;
    collections.push("listings".to_string());
    let directory = workspace::scratch_dir().join("spark");
    fs::create_dir_all(&directory)?;
    let made = python::environment_with(
        &directory.join(name),
        &["./crates/python[spark]", version, "psycopg[binary]==3.3.9"],
    )?;
    let program = workspace::root().join("tests/python/spark.py");
    let mut command = Command::new(made);
    command
        .arg(program)
        .arg(python::dsn(server, &database))
        .arg(&directory);
    let said = shell::run_quietly(command.args(collections))?;
    figure!("{}", said.lines().last().unwrap_or_default());
    Ok(Outcome::Passed)
}
