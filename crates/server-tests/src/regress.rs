//! The SQL tests, run by the server's own `pg_regress`: `tests/pg_regress/sql/NAME.sql` against
//! `tests/pg_regress/expected/NAME.out` (or `NAME_1.out`...), each in a database of its own.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use libtest_mimic::Trial;
use testbed::server::Server;
use testbed::server::cluster::SUPERUSER;
use testbed::server::database::Database;
use testbed::{shell, workspace};

use crate::harness::{Outcome, trial};
use crate::shared;

/// Returns every SQL test as a trial, sorted by name.
pub fn trials() -> Result<Vec<Trial>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(tests_dir().join("sql"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "sql") {
            let stem = path.file_stem().context("a file without a name")?;
            names.push(stem.to_string_lossy().into_owned());
        }
    }
    names.sort();
    let trial = |name: String| {
        trial(format!("regress::{name}"), move || {
            let server = shared::server();
            SqlTest { name, server }.run()
        })
    };
    Ok(names.into_iter().map(trial).collect())
}

struct SqlTest {
    name: String,
    server: &'static Server,
}

impl SqlTest {
    fn run(&self) -> Result<Outcome> {
        match shared::is_blessing() {
            true => self.bless(),
            false => self.check(),
        }
    }

    fn check(&self) -> Result<Outcome> {
        if !self.expected().exists() {
            bail!(
                "there is no expected output; accept the present one by: cargo xtask test {} --bless",
                self.name
            );
        }
        if self.execute()? {
            return Ok(Outcome::Passed);
        }
        let diff = self.output_dir().join("regression.diffs");
        bail!(
            "{}",
            fs::read_to_string(diff).unwrap_or_else(|_| "the output differs".into())
        )
    }

    fn bless(&self) -> Result<Outcome> {
        if !self.expected().exists() {
            fs::create_dir_all(tests_dir().join("expected"))?;
            fs::write(self.expected(), "")?;
        }
        if !self.execute()? {
            let result = self.output_dir().join(format!("results/{}.out", self.name));
            fs::copy(result, self.expected()).context("there is no result")?;
            println!("accepted the output of {}", self.name);
        }
        Ok(Outcome::Passed)
    }

    /// Runs the test; returns whether the output is as expected.
    fn execute(&self) -> Result<bool> {
        let database = format!("regress_{}", self.name);
        let database = Database::with_extension(&self.server.main, &database)?;
        let output_dir = self.output_dir();
        if output_dir.exists() {
            fs::remove_dir_all(&output_dir)?;
        }
        fs::create_dir_all(&output_dir)?;
        let cluster = &self.server.main;
        let mut command: Command = cluster.client_program(&self.server.pg.pg_regress()?);
        command
            .arg("--use-existing")
            .arg(format!("--dbname={}", database.name))
            .arg(format!(
                "--bindir={}",
                cluster.installation.bindir.display()
            ))
            .arg(format!("--inputdir={}", tests_dir().display()))
            .arg(format!("--outputdir={}", output_dir.display()))
            .arg(format!("--host={}", cluster.socket_dir().display()))
            .arg(format!("--user={SUPERUSER}"))
            .arg(&self.name)
            .current_dir(workspace::root())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        shell::run_status(&mut command)
    }

    fn expected(&self) -> PathBuf {
        tests_dir().join(format!("expected/{}.out", self.name))
    }

    fn output_dir(&self) -> PathBuf {
        workspace::scratch_dir().join("regress").join(&self.name)
    }
}

fn tests_dir() -> PathBuf {
    workspace::root().join("tests/pg_regress")
}
