//! Random histories of four sessions, fresh ones and used ones, each sometimes held between its search and its passing.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use fastrand::Rng;
use postgres::Client;
use testbed::server::Server;
use testbed::server::database::Database;

use super::interleavings::{LEVELS, Seen, any_table, make_tables};
use super::noted::{ensure_noted, is_noted};
use super::{held_cluster, holds};
use crate::harness::{Outcome, figure};
use crate::sessions::{Sessions, Step};

const SESSIONS: usize = 4;
const RUNS: u32 = 150;

/// Number of documents that the sessions of a run insert; the first exists beforehand.
const DOCUMENTS: u32 = 4;

/// The maximum time in which no session can proceed.
const PATIENCE: Duration = Duration::from_mins(5);

/// The time between two checks for sessions that can proceed.
const PAUSE: Duration = Duration::from_millis(1);

/// Counts the copies among the rows of a run.
const COPIES: &str =
    "SELECT count(*) FROM (SELECT FROM {TABLE} WHERE id / 1000 = {RUN} AND NOT draft
    GROUP BY tenant, body HAVING count(*) > 1) copies";

/// The transactions of a history.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Work {
    /// One INSERT or COPY each, which never deadlocks.
    OneInsert,
    Anything,
}

/// A step of a session.
#[derive(Clone, Debug)]
enum Action {
    Run(String),
    /// Runs a statement that stops before it passes.
    RunHeld(String),
    Release,
}

/// Runs random histories of both kinds. Checks that no copy is accepted, or that each is noted, and that there is no
/// deadlock if every transaction is one INSERT or COPY.
pub fn histories(server: &Server) -> Result<Outcome> {
    let cluster = held_cluster(server, "guard_histories")?;
    let directory = holds(&cluster);
    let database = Database::with_extension(&cluster, "guard_histories")?;
    let mut client = database.connect()?;
    make_tables(&mut client)?;
    let mut sessions = Sessions::open(|| database.connect(), SESSIONS)?;
    let mut rng = Rng::with_seed(38);
    let start = Instant::now();
    for work in [Work::OneInsert, Work::Anything] {
        let mut total = Seen::default();
        for number in 0..RUNS {
            // The library is loaded by the first statement, whatever it is.
            if rng.bool() {
                sessions = Sessions::open(|| database.connect(), SESSIONS)?;
            }
            let run = Run {
                number: number + RUNS * u32::from(work == Work::Anything),
                work,
                table: any_table(&mut rng),
                directory: &directory,
            };
            let seen = run.play(&mut client, &mut sessions, &mut rng);
            total.add(&seen.with_context(|| format!("{run:?}"))?);
        }
        ensure!(
            total.waits > 0 && total.rejections > 0 && total.notes > 0,
            "{} waits, {} rejections, {} notes: nothing was tested",
            total.waits,
            total.rejections,
            total.notes
        );
        figure!(
            "{work:?}: {} histories, no copy but {} that are noted: {} waits, {} rejections, {} deadlocks and serialization failures, {:.1?}",
            total.runs,
            total.notes,
            total.waits,
            total.rejections,
            total.victims,
            start.elapsed()
        );
    }
    Ok(Outcome::Passed)
}

#[derive(Debug)]
struct Run<'d> {
    number: u32,
    work: Work,
    table: String,
    directory: &'d PathBuf,
}

impl Run<'_> {
    fn document(&self, number: u32) -> String {
        format!(
            "document {number} of the history {} and no other",
            self.number
        )
    }

    /// Returns the values of one to three rows of different documents, for a session.
    fn rows(&self, session: usize, statement: u32, rng: &mut Rng) -> Vec<(u32, u32, String)> {
        let mut documents: Vec<u32> = (0..DOCUMENTS).collect();
        rng.shuffle(&mut documents);
        documents.truncate(rng.usize(1..4));
        let row = |(place, document): (usize, u32)| {
            let id =
                self.number * 1000 + 100 + session as u32 * 100 + statement * 10 + place as u32;
            (id, rng.u32(1..3), self.document(document))
        };
        documents.into_iter().enumerate().map(row).collect()
    }

    fn insertion(&self, session: usize, statement: u32, rng: &mut Rng) -> String {
        let rows = self.rows(session, statement, rng);
        if rng.u32(..4) == 0 {
            let lines = rows
                .iter()
                .map(|(id, part, body)| format!("echo {id},1,{part},{body};"));
            return format!(
                "COPY {} (id, tenant, part, body) FROM PROGRAM '{}' (FORMAT csv)",
                self.table,
                lines.collect::<String>()
            );
        }
        let values = rows
            .iter()
            .map(|(id, part, body)| format!("({id}, 1, {part}, '{body}')"));
        format!(
            "INSERT INTO {} (id, tenant, part, body) VALUES {}",
            self.table,
            values.collect::<Vec<_>>().join(", ")
        )
    }

    /// Returns a random statement.
    fn statement(&self, session: usize, statement: u32, rng: &mut Rng) -> String {
        let table = &self.table;
        let there = self.number * 1000 + rng.u32(..4);
        let body = self.document(rng.u32(..DOCUMENTS));
        match rng.u32(..10) {
            8 | 9 => {
                format!("UPDATE {table} SET draft = NOT draft WHERE id IN ({there}, {there} + 1)")
            }
            0 => format!("UPDATE {table} SET body = '{body}' WHERE id = {there}"),
            1 => format!("UPDATE {table} SET part = 3 - part, tenant = 1 WHERE id = {there}"),
            2 => format!("DELETE FROM {table} WHERE id = {there}"),
            3 => format!(
                "SAVEPOINT s; {}; ROLLBACK TO s",
                self.insertion(session, statement, rng)
            ),
            4 => format!(
                "SAVEPOINT s; {}; RELEASE s",
                self.insertion(session, statement, rng)
            ),
            _ => self.insertion(session, statement, rng),
        }
    }

    /// Returns the steps of a session's transaction.
    fn actions(&self, session: usize, rng: &mut Rng) -> VecDeque<Action> {
        let level = LEVELS[rng.usize(..LEVELS.len())];
        let mut actions = VecDeque::from([Action::Run(format!("BEGIN ISOLATION LEVEL {level}"))]);
        let count = match self.work {
            Work::OneInsert => 1,
            Work::Anything => rng.u32(1..4),
        };
        for number in 0..count {
            let statement = match self.work {
                Work::OneInsert => self.insertion(session, number, rng),
                Work::Anything => self.statement(session, number, rng),
            };
            match rng.bool() {
                true => actions.extend([Action::RunHeld(statement), Action::Release]),
                false => actions.push_back(Action::Run(statement)),
            }
        }
        let ends: &[&str] = match rng.u32(..6) {
            0 => &["ROLLBACK"],
            1 => &["PREPARE TRANSACTION 'p{N}'", "COMMIT PREPARED 'p{N}'"],
            2 => &["PREPARE TRANSACTION 'p{N}'", "ROLLBACK PREPARED 'p{N}'"],
            _ => &["COMMIT"],
        };
        let end = |end: &&str| Action::Run(end.replace("{N}", &session.to_string()));
        actions.extend(ends.iter().map(end));
        actions
    }

    fn play(&self, client: &mut Client, sessions: &mut Sessions, rng: &mut Rng) -> Result<Seen> {
        let first = self.number * 1000;
        let table = &self.table;
        client.batch_execute(&format!(
            "INSERT INTO {table} (id, tenant, part, body, draft) VALUES ({first}, 1, 1, '{0}', false), ({first} + 1, 2, 2, '{0}', false),
                ({first} + 2, 1, 1, 'the third of {first}', false), ({first} + 3, 1, 2, '{0}', true)",
            self.document(0)
        ))?;
        let mut actions: Vec<_> = (0..SESSIONS)
            .map(|session| self.actions(session, rng))
            .collect();
        let mut waits = 0;
        let mut last_step = Instant::now();
        loop {
            // A session that waits for another one proceeds after it; a held session waits for its release.
            let can_go = |session: &usize| match actions[*session].front() {
                Some(Action::Release) => true,
                Some(_) => sessions.state(*session) != Step::Waits,
                None => false,
            };
            let ready: Vec<usize> = (0..SESSIONS).filter(can_go).collect();
            let Some(session) = rng.choice(ready) else {
                if actions.iter().all(VecDeque::is_empty) {
                    break;
                }
                // All remaining sessions wait for deadlock detection.
                ensure!(last_step.elapsed() < PATIENCE, "all sessions wait");
                thread::sleep(PAUSE);
                sessions.settle()?;
                continue;
            };
            last_step = Instant::now();
            let hold = self
                .directory
                .join(format!("{}.guard_has_searched", sessions.pid(session)));
            match actions[session].pop_front() {
                Some(Action::Run(statement)) => {
                    waits += u32::from(sessions.step(session, &statement)? == Step::Waits);
                }
                Some(Action::RunHeld(statement)) => {
                    File::create(&hold)?;
                    sessions.step(session, &statement)?;
                }
                Some(Action::Release) => {
                    fs::remove_file(&hold)?;
                    sessions.settle()?;
                }
                None => {}
            }
        }
        sessions.finish()?;
        let mut seen = Seen::of(waits, &sessions.take_failures())?;
        ensure!(
            seen.victims == 0 || self.work == Work::Anything,
            "{} deadlocks and serialization failures",
            seen.victims
        );
        if is_noted(table) {
            let condition = format!("{{ID}} / 1000 = {}", self.number);
            seen.notes = ensure_noted(client, table, &condition)?;
            return Ok(seen);
        }
        let copies = COPIES
            .replace("{TABLE}", table)
            .replace("{RUN}", &self.number.to_string());
        let copies: i64 = client.query_one(&copies, &[])?.get(0);
        ensure!(copies == 0, "{copies} copies");
        Ok(seen)
    }
}
