//! `cargo xtask test`: the checks, the tests and the documentation's examples.

mod checks;
mod docs;
mod regress;
mod reliability;
mod server_tests;
mod tally;

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::pg_config::{PgConfig, PostgresChoice};
use crate::server::Server;
use crate::setup;
use reliability::Scale;
use tally::Tally;

#[derive(clap::Args)]
pub struct Options {
    /// A part (fmt, clippy, unit, regress, server, reliability, docs) or one test of
    /// regress, server or reliability; reliability tests run whole when they are named
    name: Option<String>,
    /// Accept the present output as the expected one (regress and docs)
    #[arg(long)]
    bless: bool,
}

/// The parts, in the order in which they run: the quickest to fail first.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Fmt,
    Clippy,
    Unit,
    Regress,
    Server,
    Reliability,
    Docs,
}

impl Part {
    const ALL: [(Part, &str); 7] = [
        (Part::Fmt, "fmt"),
        (Part::Clippy, "clippy"),
        (Part::Unit, "unit"),
        (Part::Regress, "regress"),
        (Part::Server, "server"),
        (Part::Reliability, "reliability"),
        (Part::Docs, "docs"),
    ];

    fn needs_server(self) -> bool {
        !matches!(self, Part::Fmt | Part::Clippy | Part::Unit)
    }
}

/// What to run: some parts, each whole or one test of it.
struct Selection {
    parts: Vec<Part>,
    only: Option<String>,
}

impl Selection {
    fn new(name: Option<&str>) -> Result<Selection> {
        let all = Part::ALL.map(|(part, _)| part);
        let Some(name) = name else {
            return Ok(Selection {
                parts: all.to_vec(),
                only: None,
            });
        };
        if let Some((part, _)) = Part::ALL.iter().find(|(_, text)| *text == name) {
            return Ok(Selection {
                parts: vec![*part],
                only: None,
            });
        }
        let mut parts = Vec::new();
        if regress::names()?.iter().any(|test| test == name) {
            parts.push(Part::Regress);
        }
        if server_tests::ALL.iter().any(|test| test.name == name) {
            parts.push(Part::Server);
        }
        if reliability::ALL.iter().any(|test| test.name == name) {
            parts.push(Part::Reliability);
        }
        if parts.is_empty() {
            bail!(
                "there is no test {name}; there are: {}",
                known_names()?.join(", ")
            );
        }
        Ok(Selection {
            parts,
            only: Some(name.to_string()),
        })
    }

    fn takes(&self, name: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == name)
    }
}

fn known_names() -> Result<Vec<String>> {
    let mut names: Vec<String> = Part::ALL.map(|(_, text)| text.to_string()).to_vec();
    names.extend(regress::names()?);
    names.extend(server_tests::ALL.iter().map(|test| test.name.to_string()));
    names.extend(reliability::ALL.iter().map(|test| test.name.to_string()));
    Ok(names)
}

/// Runs the selected tests; the last line tells how many passed and failed.
pub fn run(choice: &PostgresChoice, options: &Options) -> Result<ExitCode> {
    let selection = Selection::new(options.name.as_deref())?;
    let pg = setup::ensure(choice)?;
    let mut tally = Tally::default();
    for part in selection.parts.iter().filter(|part| !part.needs_server()) {
        run_check(*part, &pg, &mut tally)?;
    }
    if selection.parts.iter().any(|part| part.needs_server()) {
        let server = Server::start(pg)?;
        for part in &selection.parts {
            match part {
                Part::Regress => regress::run(&server, &selection, options.bless, &mut tally)?,
                Part::Server => server_tests::run(&server, &selection, &mut tally),
                Part::Reliability => {
                    let scale = match options.name {
                        Some(_) => Scale::Whole,
                        None => Scale::Quick,
                    };
                    reliability::run(&server, &selection, scale, &mut tally);
                }
                Part::Docs => docs::run(&server, options.bless, &mut tally)?,
                Part::Fmt | Part::Clippy | Part::Unit => {}
            }
        }
    }
    Ok(tally.finish())
}

fn run_check(part: Part, pg: &PgConfig, tally: &mut Tally) -> Result<()> {
    match part {
        Part::Fmt => checks::fmt(tally),
        Part::Clippy => checks::clippy(pg, tally),
        Part::Unit => checks::unit(tally),
        _ => Ok(()),
    }
}
