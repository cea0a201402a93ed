//! Sessions driven statement by statement, in exactly the order that a test specifies: a statement is started after the
//! previous one has ended, or waits for another session.

use std::collections::VecDeque;
use std::error::Error as _;
use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use postgres::error::SqlState;
use postgres::{Client, Error};

/// The state of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Done,
    Failed(SqlState),
    /// Waits for another session, or for a statement of its own that waits for one.
    Waits,
}

/// The maximum time between two changes in the states of the sessions.
const PATIENCE: Duration = Duration::from_mins(5);

/// The time between two checks for waiting sessions.
const PAUSE: Duration = Duration::from_micros(500);

/// Finds the sessions among these backends that wait for others, including prepared transactions, or are held.
const WAITING: &str =
    "SELECT place::int FROM unnest($1::int[]) WITH ORDINALITY AS backends (pid, place)
    WHERE pg_blocking_pids(pid) && array_append($1, 0)
       OR (SELECT wait_event_type FROM pg_stat_get_activity(pid)) = 'Extension'";

/// Sessions of one database.
pub struct Sessions {
    sessions: Vec<Session>,
    endings: Receiver<(usize, Result<(), Error>)>,
    failures: Vec<SqlState>,
    observer: Client,
}

struct Session {
    pid: i32,
    statements: Sender<String>,
    /// Statements to run after the current one.
    queue: VecDeque<String>,
    is_running: bool,
    /// The state of the last statement.
    ending: Step,
}

impl Sessions {
    /// Opens sessions, numbered from 0.
    pub fn open(connect: impl Fn() -> Result<Client>, count: usize) -> Result<Sessions> {
        let (results, endings) = mpsc::channel();
        let mut sessions = Vec::new();
        for number in 0..count {
            let mut client = connect()?;
            let pid = client.query_one("SELECT pg_backend_pid()", &[])?.get(0);
            let (statements, script) = mpsc::channel::<String>();
            let results = results.clone();
            thread::spawn(move || {
                for statement in script {
                    let result = client.batch_execute(&statement);
                    if result.is_err() {
                        // The error arrives before the server has rolled back, so that others could still be seen
                        // waiting.
                        let _ = client.batch_execute("");
                    }
                    if results.send((number, result)).is_err() {
                        break;
                    }
                }
            });
            sessions.push(Session {
                pid,
                statements,
                queue: VecDeque::new(),
                is_running: false,
                ending: Step::Done,
            });
        }
        let observer = connect()?;
        Ok(Sessions {
            sessions,
            endings,
            failures: Vec::new(),
            observer,
        })
    }

    /// Runs a statement. Returns its state when every session has ended its own statement or waits.
    pub fn step(&mut self, session: usize, statement: &str) -> Result<Step> {
        self.sessions[session]
            .queue
            .push_back(statement.to_string());
        self.run(false)?;
        Ok(self.state(session))
    }

    /// Waits until every session has ended its statement or waits.
    pub fn settle(&mut self) -> Result<()> {
        self.run(false)
    }

    /// Returns the process that serves a session.
    pub fn pid(&self, session: usize) -> i32 {
        self.sessions[session].pid
    }

    /// Waits until every session has ended its statements.
    pub fn finish(&mut self) -> Result<()> {
        self.run(true)
    }

    /// Returns the state of the last statement of a session.
    pub fn state(&self, session: usize) -> Step {
        let session = &self.sessions[session];
        match session.is_running || !session.queue.is_empty() {
            true => Step::Waits,
            false => session.ending.clone(),
        }
    }

    /// Returns the errors of all statements since the last call, in order.
    pub fn take_failures(&mut self) -> Vec<SqlState> {
        std::mem::take(&mut self.failures)
    }

    /// Lets the sessions work until none is running, or, if `wholly`, until none waits either.
    fn run(&mut self, wholly: bool) -> Result<()> {
        let mut last_change = Instant::now();
        // A session seen waiting once may wait for a lock that is released immediately.
        let mut waited = Vec::new();
        loop {
            self.start_statements()?;
            let running: Vec<usize> = (0..self.sessions.len())
                .filter(|&number| self.sessions[number].is_running)
                .collect();
            if running.is_empty() {
                return Ok(());
            }
            match self.endings.recv_timeout(PAUSE) {
                Ok((number, result)) => {
                    let session = &mut self.sessions[number];
                    session.is_running = false;
                    session.ending = ending(result)?;
                    if let Step::Failed(code) = &session.ending {
                        self.failures.push(code.clone());
                    }
                    last_change = Instant::now();
                    waited.clear();
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => bail!("the sessions are gone"),
            }
            let waiting = self.waiting()?;
            if !wholly && waiting == running && waited == running {
                return Ok(());
            }
            waited = waiting;
            ensure!(
                last_change.elapsed() < PATIENCE,
                "sessions {running:?} run and {waited:?} wait for {PATIENCE:?}"
            );
        }
    }

    fn start_statements(&mut self) -> Result<()> {
        for session in self
            .sessions
            .iter_mut()
            .filter(|session| !session.is_running)
        {
            if let Some(statement) = session.queue.pop_front() {
                session
                    .statements
                    .send(statement)
                    .context("a session is gone")?;
                session.is_running = true;
            }
        }
        Ok(())
    }

    fn waiting(&mut self) -> Result<Vec<usize>> {
        let pids: Vec<i32> = self.sessions.iter().map(|session| session.pid).collect();
        let rows = self.observer.query(WAITING, &[&pids])?;
        Ok(rows
            .iter()
            .map(|row| row.get::<_, i32>(0) as usize - 1)
            .collect())
    }
}

fn ending(result: Result<(), Error>) -> Result<Step> {
    match result {
        Ok(()) => Ok(Step::Done),
        Err(error) => match error.code() {
            Some(code) => Ok(Step::Failed(code.clone())),
            None => Err(error.into()),
        },
    }
}

/// Returns whether an error is that of a terminated session. Either the server reports it, or the connection is lost
/// before its message arrives; this depends on chance.
pub fn is_ended(error: &Error) -> bool {
    match error.code() {
        Some(code) => [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN].contains(code),
        None => {
            error.is_closed()
                || error
                    .source()
                    .is_some_and(|source| source.is::<io::Error>())
        }
    }
}

/// Returns all orders in which two sessions can take `first` and `second` steps, as the numbers of the sessions.
pub fn orders(first: usize, second: usize) -> Vec<Vec<usize>> {
    if first == 0 || second == 0 {
        return vec![[vec![0; first], vec![1; second]].concat()];
    }
    let after = |session: usize, rest: Vec<Vec<usize>>| {
        rest.into_iter()
            .map(move |rest| [vec![session], rest].concat())
    };
    after(0, orders(first - 1, second))
        .chain(after(1, orders(first, second - 1)))
        .collect()
}
