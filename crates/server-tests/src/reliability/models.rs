//! Models of the protocols, which spin checks in every order, and with each mistake that they guard against.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use testbed::server::Server;
use testbed::{shell, workspace};

use crate::harness::{Missing, Outcome, Scale, figure};

/// The models in `tests/models`, each with the mistakes that can be inserted.
const MODELS: [(&str, &[&str]); 3] = [
    (
        "guard",
        &[
            "ASKS_PROGRESS_FIRST",
            "NO_SECOND_QUESTION",
            "NO_LAST_LOOK",
            "RELEASES_FIRST",
            "ANNOUNCES_LATE",
        ],
    ),
    (
        "partitions",
        &[
            "NO_LOCK",
            "LOCKS_LATE",
            "NO_SECOND_LIST",
            "LISTS_FIRST",
            "SKIPS_ENDED",
        ],
    ),
    (
        "pages",
        &["KIND_ONLY", "LEAF_LATER", "FREES_EARLY", "LOG_LAST"],
    ),
];

/// Checks that each model holds in every order, and that each mistake is detected.
pub fn every_order(_: &Server, _: Scale) -> Result<Outcome> {
    if which::which("spin").is_err() || which::which("cc").is_err() {
        return Ok(Outcome::Skipped(Missing::Spin));
    }
    for (model, mistakes) in MODELS {
        let found = check(model, None)?;
        ensure!(found.contains("errors: 0"), "{model}: {found}");
        let states = found.lines().find(|line| line.contains("states, stored"));
        let states = states.and_then(|line| line.split_whitespace().next());
        for mistake in mistakes {
            let found = check(model, Some(mistake))?;
            ensure!(
                found.contains("assertion violated"),
                "{model} with {mistake}: {found}"
            );
        }
        figure!(
            "{model}: {} states, {} mistakes found",
            states.context("spin counts states")?,
            mistakes.len()
        );
    }
    Ok(Outcome::Passed)
}

/// Returns the report of spin's verifier for a model.
fn check(model: &str, mistake: Option<&str>) -> Result<String> {
    let dir = workspace::scratch_dir().join(format!("models/{model}"));
    fs::create_dir_all(&dir)?;
    let source = workspace::root().join(format!("tests/models/{model}.pml"));
    let mut generate = Command::new("spin");
    generate.args(mistake.map(|name| format!("-D{name}")));
    shell::run_quietly(generate.arg("-a").arg(source).current_dir(&dir))?;
    let mut compile = Command::new("cc");
    compile.args([
        "-O2",
        "-w",
        "-DSAFETY",
        "-DCOLLAPSE",
        "-o",
        "verifier",
        "pan.c",
    ]);
    shell::run_quietly(compile.current_dir(&dir))?;
    let mut verify = Command::new(dir.join("verifier"));
    shell::run_quietly(verify.arg("-m100000").current_dir(&dir))
}
