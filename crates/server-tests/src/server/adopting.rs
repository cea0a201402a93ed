//! The examples of the page on adopting, run while other sessions write.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use fastrand::Rng;
use postgres::Client;
use postgres::error::SqlState;
use testbed::server::Server;
use testbed::server::database::Database;

use crate::docs::examples;
use crate::docs::pages;
use crate::harness::{Outcome, figure};

/// Sessions that insert, change and delete articles until they are told to stop.
struct Writers<'a> {
    database: &'a Database<'a>,
    stop: AtomicBool,
    /// The longest statement since the last call of [`Writers::take_longest`]: its duration and its text.
    longest: Mutex<(Duration, String)>,
}

impl<'a> Writers<'a> {
    const SESSIONS: u64 = 3;

    fn new(database: &'a Database<'a>) -> Writers<'a> {
        Writers {
            database,
            stop: AtomicBool::new(false),
            longest: Mutex::default(),
        }
    }

    /// Runs `work` while the writers write. Returns its result and the number of the writers' statements.
    fn during<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<(T, u64)> {
        thread::scope(|scope| {
            let writers: Vec<_> = (0..Self::SESSIONS)
                .map(|seed| scope.spawn(move || self.write(seed)))
                .collect();
            let result = work();
            self.stop.store(true, Ordering::Relaxed);
            let mut statements = 0;
            for writer in writers {
                statements += writer.join().expect("a writer does not panic")?;
            }
            Ok((result?, statements))
        })
    }

    fn write(&self, seed: u64) -> Result<u64> {
        let mut rng = Rng::with_seed(seed);
        let mut client = self.database.connect()?;
        let mut statements = 0;
        while !self.stop.load(Ordering::Relaxed) {
            let (id, other) = (rng.u32(1..22_000), rng.u32(1..22_000));
            let statement = match rng.u8(0..8) {
                0 => format!("INSERT INTO articles (source, body) VALUES ('new', 'article {id} of writer {seed} {other}')"),
                1 => {
                    let word: String = std::iter::repeat_with(|| rng.lowercase()).take(9).collect();
                    format!("UPDATE articles SET body = body || ' {word}' WHERE id = {id}")
                }
                2 => format!("DELETE FROM articles WHERE id = {id}"),
                // Locks two rows for a moment, without reading the column.
                3 => format!("BEGIN; UPDATE articles SET source = 'a' WHERE id = {id}; SELECT pg_sleep(0.005);
                              UPDATE articles SET source = 'b' WHERE id = {id}; COMMIT"),
                _ => format!("UPDATE articles SET source = '{other}' WHERE id = {id}"),
            };
            let started = Instant::now();
            match client.batch_execute(&statement) {
                Ok(()) => {}
                // A new constraint rejects rows that are too near.
                Err(error) if error.code() == Some(&SqlState::EXCLUSION_VIOLATION) => {}
                Err(error) => return Err(error).context(statement),
            }
            let took = started.elapsed();
            let mut longest = self.longest.lock().expect("no writer has panicked");
            if took > longest.0 {
                *longest = (took, statement);
            }
            statements += 1;
        }
        Ok(statements)
    }

    /// Returns the longest statement since the last call.
    fn take_longest(&self) -> Duration {
        std::mem::take(&mut *self.longest.lock().expect("no writer has panicked")).0
    }
}

fn count(client: &mut Client, condition: &str) -> Result<i64> {
    let query = format!("SELECT count(*) FROM articles WHERE {condition}");
    Ok(client.query_one(&query, &[])?.get(0))
}

/// Runs the examples of the page from top to bottom while other sessions write.
pub fn typed(server: &Server) -> Result<Outcome> {
    let pages = pages::read()?;
    let page = pages.iter().find(|page| page.name == "docs/adopting.md");
    let page = page.context("there is a page on adopting")?;
    let mut typed = examples::parse(&page.text);
    typed.retain(|example| example.is_run);
    let [first, rest @ ..] = &typed[..] else {
        bail!("the page has no examples");
    };
    let database = Database::with_extension(&server.main, "adopting")?;
    run(&database, &first.sql)?;
    let writers = Writers::new(&database);
    let (_, statements) = writers.during(|| {
        for example in rest {
            if example.fails() {
                database.psql(&example.sql)?;
            } else {
                run(&database, &example.sql)?;
            }
        }
        Ok(())
    })?;
    figure!(
        "longest of {statements} statements beside it: {} ms",
        writers.take_longest().as_millis()
    );
    let mut client = database.connect()?;
    let wrong = count(&mut client, "sig IS DISTINCT FROM minhash(body)")?;
    ensure!(
        wrong == 0,
        "{wrong} signatures are not those of the documents"
    );
    let pairs =
        "SELECT count(*) FROM near_dup_pairs(NULL::bigint, 'SELECT id, sig FROM articles', 0.9)";
    let pairs: i64 = client.query_one(pairs, &[])?.get(0);
    ensure!(pairs == 0, "{pairs} pairs of copies are left");
    Ok(Outcome::Passed)
}

/// Runs an example in psql; an error fails the test.
fn run(database: &Database<'_>, sql: &str) -> Result<()> {
    let printed = database.psql(sql)?;
    ensure!(!printed.contains("ERROR:"), "{sql}\n{printed}");
    Ok(())
}
