//! The measured server, used through one backend.

use std::cell::{RefCell, RefMut};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use postgres::types::ToSql;
use postgres::{Client, Row, Statement};
use testbed::server::database::Database;

use crate::measure::race::Contender;

/// Settings common to all measurements.
pub const SETTINGS: &str = "SET max_parallel_workers_per_gather = 0; SET max_parallel_maintenance_workers = 0;
    SET jit = off; SET work_mem = '64MB'; SET maintenance_work_mem = '1GB'; SET client_min_messages = warning";

/// A connection whose statements may be timed by several contenders in turn.
pub struct Session(RefCell<Client>);

impl Session {
    pub fn open(database: &Database<'_>) -> Result<Session> {
        Session::of(database.connect()?)
    }

    /// Returns the session of a connection, with the settings of all measurements.
    pub fn of(mut client: Client) -> Result<Session> {
        client.batch_execute(SETTINGS)?;
        Ok(Session(RefCell::new(client)))
    }

    pub fn client(&self) -> RefMut<'_, Client> {
        self.0.borrow_mut()
    }

    pub fn execute(&self, statements: &str) -> Result<()> {
        Ok(self.client().batch_execute(statements)?)
    }

    /// Vacuums tables, as if they had been filled long ago.
    pub fn vacuum(&self, tables: &str) -> Result<()> {
        self.execute(&format!("VACUUM ANALYZE {tables}"))
    }

    pub fn row(&self, query: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Row> {
        Ok(self.client().query_one(query, parameters)?)
    }

    /// Returns a single number.
    pub fn number(&self, query: &str) -> Result<f64> {
        let query = format!("SELECT ({query})::float8");
        Ok(self.row(&query, &[])?.get(0))
    }

    /// Returns the id of the process that serves this connection.
    pub fn pid(&self) -> Result<i32> {
        Ok(self.row("SELECT pg_backend_pid()", &[])?.get(0))
    }

    /// Returns the number of bytes in temporary files of the database that ended sessions and statements have
    /// written.
    pub fn temporary_bytes(&self) -> Result<f64> {
        // A backend that has just ended reports its figures a moment later.
        sleep(Duration::from_millis(200));
        self.number("SELECT temp_bytes FROM pg_stat_database WHERE datname = current_database()")
    }

    /// Returns the seconds that statements take.
    pub fn seconds(&self, statements: &str) -> Result<f64> {
        let mut client = self.client();
        let start = Instant::now();
        client.batch_execute(statements)?;
        Ok(start.elapsed().as_secs_f64())
    }

    /// Returns a contender that runs a query, planned once.
    pub fn contender(&self, name: &str, documents: usize, query: &str) -> Contender<'_> {
        let (query, mut statement) = (query.to_string(), None::<Statement>);
        Contender::new(name, documents, move || {
            let mut client = self.client();
            let statement = match &statement {
                Some(statement) => statement,
                None => statement.insert(client.prepare(&query)?),
            };
            let start = Instant::now();
            client.query(statement, &[])?;
            Ok(start.elapsed().as_secs_f64())
        })
    }
}

/// Runs `work` in many sessions at the same time, each with its number, and returns their results.
pub fn at_once<T: Send>(
    database: &Database<'_>,
    sessions: u64,
    work: &(dyn Fn(u64, Client) -> Result<T> + Sync),
) -> Result<Vec<T>> {
    let clients = (0..sessions).map(|_| database.connect());
    let clients = clients.collect::<Result<Vec<Client>>>()?;
    scope(|scope| {
        let started = (0..).zip(clients);
        let started = started.map(|(session, client)| scope.spawn(move || work(session, client)));
        let started: Vec<_> = started.collect();
        let ended = started.into_iter().map(|session| session.join());
        ended
            .map(|ended| ended.map_err(|_| anyhow!("a session panicked"))?)
            .collect()
    })
}
