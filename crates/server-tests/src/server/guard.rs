//! The guard under concurrency: of many sessions that insert near-duplicates at once, one wins.
//!
//! Each isolation level takes `NEARDUP_GUARD_SECONDS` (default 3; 60 for the whole test).

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use postgres::error::SqlState;
use postgres::{Client, IsolationLevel};
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::Outcome;

const SESSIONS: u64 = 16;
const DOCUMENTS: u64 = 500;
const WORDS: u64 = 120;

const TABLE: &str = "CREATE TABLE docs (id bigserial PRIMARY KEY, body text,
        sig minhash_signature GENERATED ALWAYS AS (minhash(body)) STORED);
    CREATE INDEX ON docs USING gin (sig) WITH (fastupdate = off);
    CREATE TRIGGER guard BEFORE INSERT OR UPDATE ON docs
        FOR EACH ROW EXECUTE FUNCTION near_dup_guard('sig', '0.8', 'reject');
    CREATE TABLE refused (body text)";

/// A small generator of numbers (xorshift, Marsaglia 2003).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }

    /// One of the documents, with about two of its words replaced.
    fn variant(&mut self) -> String {
        let document = self.roll(DOCUMENTS);
        let word = |word: u64| match self.roll(WORDS / 2) {
            0 => format!("edit{}", self.roll(1 << 40)),
            _ => format!("w{}", (document * 7919 + word * 31) % 60_000),
        };
        (0..WORDS).map(word).collect::<Vec<_>>().join(" ")
    }
}

/// What a session has seen.
#[derive(Default)]
struct Seen {
    /// Documents refused with nothing else inserted in their transaction.
    refused: Vec<String>,
    inserted: u64,
    /// Transactions ended by a deadlock or a serialization failure.
    retried: u64,
}

/// 16 sessions insert variants of the same documents at random, at every isolation level.
pub fn one_of_many_wins(server: &Server) -> Result<Outcome> {
    let seconds = std::env::var("NEARDUP_GUARD_SECONDS")
        .ok()
        .and_then(|seconds| seconds.parse().ok())
        .unwrap_or(3);
    for level in [
        IsolationLevel::ReadCommitted,
        IsolationLevel::RepeatableRead,
        IsolationLevel::Serializable,
    ] {
        let database = Database::with_extension(&server.main, "guard")?;
        database.connect()?.batch_execute(TABLE)?;
        let end = Instant::now() + Duration::from_secs(seconds);
        let seen = std::thread::scope(|scope| {
            let sessions: Vec<_> = (1..=SESSIONS)
                .map(|session| {
                    let database = &database;
                    scope.spawn(move || insert_until(database, level, session, end))
                })
                .collect();
            let results = sessions.into_iter().map(|session| session.join());
            results
                .map(|result| result.unwrap_or_else(|_| anyhow::bail!("a session panicked")))
                .collect::<Result<Vec<Seen>>>()
        })?;
        check(&database, &seen)?;
    }
    Ok(Outcome::Passed)
}

fn insert_until(
    database: &Database<'_>,
    level: IsolationLevel,
    session: u64,
    end: Instant,
) -> Result<Seen> {
    let mut client = database.connect()?;
    let mut dice = Dice(session.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let mut seen = Seen::default();
    while Instant::now() < end {
        insert_some(&mut client, level, &mut dice, &mut seen)?;
    }
    Ok(seen)
}

/// One to three documents in a transaction.
fn insert_some(
    client: &mut Client,
    level: IsolationLevel,
    dice: &mut Dice,
    seen: &mut Seen,
) -> Result<()> {
    let mut transaction = client.build_transaction().isolation_level(level).start()?;
    for number in 0..1 + dice.roll(3) {
        let body = dice.variant();
        let result = transaction.execute("INSERT INTO docs (body) VALUES ($1)", &[&body]);
        let Err(error) = result else {
            continue;
        };
        let code = error.code().cloned();
        if code == Some(SqlState::EXCLUSION_VIOLATION) {
            if number == 0 {
                seen.refused.push(body);
            }
        } else if code == Some(SqlState::T_R_DEADLOCK_DETECTED)
            || code == Some(SqlState::T_R_SERIALIZATION_FAILURE)
        {
            seen.retried += 1;
        } else {
            return Err(error.into());
        }
        transaction.rollback()?;
        return Ok(());
    }
    transaction.commit()?;
    seen.inserted += 1;
    Ok(())
}

/// No two rows are near-duplicates, and every refusal had a reason.
fn check(database: &Database<'_>, seen: &[Seen]) -> Result<()> {
    let mut client = database.connect()?;
    let mut writer = client.copy_in("COPY refused FROM stdin")?;
    for body in seen.iter().flat_map(|seen| &seen.refused) {
        std::io::Write::write_all(&mut writer, format!("{body}\n").as_bytes())?;
    }
    writer.finish()?;
    let row = client.query_one(
        "SELECT (SELECT count(*) FROM near_dup_pairs(NULL::bigint, 'SELECT id, sig FROM docs', 0.8)),
                (SELECT count(*) FROM refused r WHERE NOT EXISTS (
                     SELECT FROM docs d WHERE near_dup(d.sig, minhash(r.body), 0.8))),
                (SELECT count(*) FROM docs), (SELECT count(*) FROM refused)",
        &[],
    )?;
    let (pairs, groundless): (i64, i64) = (row.get(0), row.get(1));
    let (rows, refused): (i64, i64) = (row.get(2), row.get(3));
    ensure!(
        pairs == 0,
        "{pairs} pairs of near-duplicates among {rows} rows"
    );
    ensure!(
        groundless == 0,
        "{groundless} of {refused} refusals without a near-duplicate"
    );
    ensure!(
        refused > 0 && rows > 0,
        "{rows} rows, {refused} refusals: nothing was tested"
    );
    Ok(())
}

/// One transaction of many inserts does not fill the lock table, and leaves no lock behind.
pub fn bulk_load(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "guard_bulk")?;
    let mut client = database.connect()?;
    client.batch_execute(TABLE)?;
    client.batch_execute(
        "BEGIN;
         INSERT INTO docs (body) SELECT 'document ' || n || ' of ' || md5(n::text) || ' and '
             || md5((n + 1000000)::text) FROM generate_series(1, 20000) n;",
    )?;
    let held: i64 = client
        .query_one(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'userlock'",
            &[],
        )?
        .get(0);
    ensure!(held == 0, "{held} locks after the statement");
    client.batch_execute("COMMIT")?;
    Ok(Outcome::Passed)
}

/// Of a transaction that is prepared the other session waits for the end, holding no lock of it.
pub fn prepared_transaction(server: &Server) -> Result<Outcome> {
    let cluster = server.scratch_cluster("guard_prepared")?;
    cluster.create(&[("max_prepared_transactions", "4")])?;
    cluster.start()?;
    let database = Database::with_extension(&cluster, "guard_prepared")?;
    let mut first = database.connect()?;
    let mut second = database.connect()?;
    first.batch_execute(TABLE)?;
    second.batch_execute("SET statement_timeout = '300ms'")?;
    for (end, outcome) in [
        ("ROLLBACK PREPARED", None),
        ("COMMIT PREPARED", Some(SqlState::EXCLUSION_VIOLATION)),
    ] {
        let insert = format!("INSERT INTO docs (body) VALUES ('one of two words {end}')");
        first.batch_execute(&format!("BEGIN; {insert}; PREPARE TRANSACTION 'p'"))?;
        let code =
            |result: Result<(), postgres::Error>| result.err().and_then(|e| e.code().cloned());
        let waiting = code(second.batch_execute(&insert));
        ensure!(
            waiting == Some(SqlState::QUERY_CANCELED),
            "{waiting:?} instead of waiting for the prepared transaction"
        );
        first.batch_execute(&format!("{end} 'p'"))?;
        let ended = code(second.batch_execute(&insert));
        ensure!(ended == outcome, "{ended:?} after {end}");
    }
    Ok(Outcome::Passed)
}
