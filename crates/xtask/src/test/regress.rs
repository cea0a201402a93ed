//! The SQL tests, run by the server's own `pg_regress`: `tests/pg_regress/sql/NAME.sql` against
//! `tests/pg_regress/expected/NAME.out` (or `NAME_1.out`...), each in a database of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::Selection;
use super::tally::{Outcome, Tally};
use crate::server::Server;
use crate::server::database::Database;
use crate::{shell, workspace};

/// The names of all SQL tests, sorted.
pub fn names() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(tests_dir().join("sql")).into_iter().flatten() {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "sql") {
            names.extend(
                path.file_stem()
                    .map(|stem| stem.to_string_lossy().into_owned()),
            );
        }
    }
    names.sort();
    Ok(names)
}

/// Runs the selected SQL tests, or accepts their output.
pub fn run(server: &Server, selection: &Selection, bless: bool, tally: &mut Tally) -> Result<()> {
    println!("Running the SQL tests");
    let program = server.pg.pg_regress()?;
    let template = Database::with_extension(&server.main, "regress_template")?;
    for name in names()?.iter().filter(|name| selection.takes(name)) {
        let test = SqlTest {
            name,
            program: &program,
            server,
            template: &template.name,
        };
        tally.record(name, || if bless { test.bless() } else { test.check() });
    }
    Ok(())
}

struct SqlTest<'a> {
    name: &'a str,
    program: &'a Path,
    server: &'a Server,
    template: &'a str,
}

impl SqlTest<'_> {
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

    /// Runs the test; tells whether the output is as expected.
    fn execute(&self) -> Result<bool> {
        let options = format!("TEMPLATE \"{}\"", self.template);
        let database = Database::create(
            &self.server.main,
            &format!("regress_{}", self.name),
            &options,
        )?;
        let output_dir = self.output_dir();
        if output_dir.exists() {
            fs::remove_dir_all(&output_dir)?;
        }
        fs::create_dir_all(&output_dir)?;
        let cluster = &self.server.main;
        let mut command: Command = cluster.client_program(self.program);
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
            .arg(format!("--user={}", crate::server::cluster::SUPERUSER))
            .arg(self.name)
            .current_dir(workspace::root())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        shell::run_status(&mut command)
    }

    fn expected(&self) -> PathBuf {
        tests_dir().join(format!("expected/{}.out", self.name))
    }

    fn output_dir(&self) -> PathBuf {
        workspace::scratch_dir().join("regress").join(self.name)
    }
}

fn tests_dir() -> PathBuf {
    workspace::root().join("tests/pg_regress")
}
