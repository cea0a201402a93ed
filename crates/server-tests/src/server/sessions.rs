//! Tests the basis of the other concurrency tests: sessions take their steps in the given order.

use anyhow::{Result, ensure};
use postgres::error::SqlState;
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::Outcome;
use crate::sessions::{Sessions, Step, orders};

/// Checks that a session is seen to wait, and continues when the other one lets it; of a deadlock, one session is the
/// victim.
pub fn wait_for_each_other(server: &Server) -> Result<Outcome> {
    let database = Database::create(&server.main, "sessions", "")?;
    database
        .connect()?
        .batch_execute("CREATE TABLE t (id int PRIMARY KEY)")?;
    let mut sessions = Sessions::open(|| database.connect(), 2)?;
    let mut expect = |session, statement: &str, expected: Step| {
        let step = sessions.step(session, statement)?;
        ensure!(step == expected, "{session}: {statement}: {step:?}");
        Ok(())
    };
    expect(0, "BEGIN; INSERT INTO t VALUES (1)", Step::Done)?;
    expect(1, "INSERT INTO t VALUES (2)", Step::Done)?;
    expect(1, "INSERT INTO t VALUES (1)", Step::Waits)?;
    expect(1, "INSERT INTO t VALUES (3)", Step::Waits)?;
    expect(0, "COMMIT", Step::Done)?;
    ensure!(
        sessions.state(1) == Step::Done,
        "the waiting session went on"
    );
    let failed = sessions.step(1, "INSERT INTO t VALUES (1)")?;
    ensure!(
        failed == Step::Failed(SqlState::UNIQUE_VIOLATION),
        "{failed:?}"
    );

    for session in [0, 1] {
        let insert = format!(
            "SET deadlock_timeout = '10ms'; BEGIN; INSERT INTO t VALUES ({})",
            10 + session
        );
        sessions.step(session, &insert)?;
    }
    for session in [0, 1] {
        sessions.step(session, &format!("INSERT INTO t VALUES ({})", 11 - session))?;
    }
    for session in [0, 1] {
        sessions.step(session, "COMMIT")?;
    }
    sessions.finish()?;
    let rows: i64 = database
        .connect()?
        .query_one("SELECT count(*) FROM t WHERE id >= 10", &[])?
        .get(0);
    ensure!(
        rows == 2,
        "{rows} rows of two transactions, one of them a deadlock's victim"
    );
    ensure!(orders(2, 2).len() == 6, "six orders of two and two steps");
    Ok(Outcome::Passed)
}
