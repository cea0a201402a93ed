//! A peer in a separate process, which gets one request per line in JSON.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use testbed::shell;

use crate::score::Scored;

/// A running worker; it ends when it is dropped.
pub struct Worker {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Worker {
    /// Starts the program, limited to one thread if it supports that.
    pub fn start(command: &mut Command) -> Result<Worker> {
        let single = [
            "RAYON_NUM_THREADS",
            "OMP_NUM_THREADS",
            "OPENBLAS_NUM_THREADS",
        ];
        command.envs(single.map(|name| (name, "1")));
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run {}", shell::describe(command)))?;
        let output = BufReader::new(child.stdout.take().context("no output")?);
        Ok(Worker {
            input: child.stdin.take(),
            child,
            output,
        })
    }

    /// Sends a request and waits for the answer.
    pub fn ask(&mut self, request: &Value) -> Result<Value> {
        let input = self.input.as_mut().context("no input")?;
        writeln!(input, "{request}")?;
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            bail!("it ended");
        }
        let answer: Value = serde_json::from_str(&line)?;
        match answer.get("error") {
            Some(error) => bail!("{error}"),
            None => Ok(answer),
        }
    }

    /// Returns the seconds in which the peer signs the documents of a file.
    pub fn sign(&mut self, peer: &str, documents: &Path) -> Result<f64> {
        seconds(&self.ask(&json!({ "task": "sign", "peer": peer, "documents": documents }))?)
    }

    /// Returns the seconds from text to pairs, and the pairs with the peer's estimates.
    pub fn pairs(
        &mut self,
        peer: &str,
        documents: &Path,
        threshold: f64,
    ) -> Result<(f64, Vec<Scored>)> {
        let into = documents.with_extension("pairs");
        let request = json!({ "task": "pairs", "peer": peer, "documents": documents,
                              "threshold": threshold, "into": into });
        let seconds = seconds(&self.ask(&request)?)?;
        let text = std::fs::read_to_string(&into)?;
        let pairs: Option<Vec<_>> = text.lines().map(pair).collect();
        Ok((seconds, pairs.context("a line that is no pair")?))
    }
}

fn seconds(answer: &Value) -> Result<f64> {
    answer["seconds"].as_f64().context("no seconds")
}

/// Returns the pair in a line: two numbers of documents, the smaller first, and the similarity.
fn pair(line: &str) -> Option<Scored> {
    let mut fields = line.split('\t');
    let (a, b): (u32, u32) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some((a.min(b), a.max(b), fields.next()?.parse().ok()?))
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}
