//! Many sessions that insert the same documents at the same time: with the guard, with the constraint, and with both
//! while only one session inserts at a time.

use std::time::{Duration, Instant};

use anyhow::Result;
use fastrand::Rng;
use postgres::Client;
use postgres::error::SqlState;
use testbed::progress::bar;
use testbed::server::database::Database;

use crate::context::Bench;
use crate::measure::session::at_once;
use crate::report::table::{Table, row};

const SESSIONS: u64 = 16;

/// Numbers of rows in a statement.
const SIZES: [usize; 4] = [1, 10, 50, 500];

/// The share of rows that are copies of recent ones, in percent.
const COPIES: u32 = 30;

/// Number of days; in partitioned tables, each has its own partition.
const DAYS: u64 = 60;

const LOCK: &str = "SELECT pg_advisory_xact_lock(1)";

/// A way to keep near-duplicates out of a table `docs (day, body)`.
struct Way {
    name: &'static str,
    tables: &'static str,
    objects: &'static str,
    insert: &'static str,
}

const FLAT: &str = "CREATE TABLE docs (day date, body text);";

const PARTED: &str = "CREATE TABLE docs (day date, body text) PARTITION BY RANGE (day);
    DO $$ BEGIN
        FOR day IN 0 .. 59 LOOP
            EXECUTE format('CREATE TABLE docs_%s PARTITION OF docs FOR VALUES FROM (%L) TO (%L)',
                day, date '2024-01-01' + day, date '2024-01-02' + day);
        END LOOP;
    END $$;";

const GUARD: &str =
    "CREATE INDEX ON docs USING neardup (body); SELECT near_dup_protect('docs', 'body', 0.8)";

const WINDOW: &str = "CREATE INDEX ON docs USING neardup (body);
    SELECT near_dup_protect('docs', 'body', 0.8, within => 'day', by => interval '1 day')";

const CONSTRAINT: &str =
    "ALTER TABLE docs ADD EXCLUDE USING neardup (near_dup_key(body, 0.8) WITH %)";

/// Leaves out rows for which a lookup finds a near row; a near row that is inserted in the meantime makes the
/// statement fail.
const NEW: &str = "INSERT INTO docs (day, body)
    SELECT DISTINCT ON (body) date '2024-01-01' + day, body FROM unnest($1::int[], $2::text[]) AS new (day, body)
    WHERE NOT EXISTS (SELECT FROM docs WHERE near_dup(docs.body, new.body, 0.8))";

const NEW_WITHIN: &str = "INSERT INTO docs (day, body)
    SELECT DISTINCT ON (body) day, body
    FROM (SELECT date '2024-01-01' + day AS day, body FROM unnest($1::int[], $2::text[]) AS new (day, body)) AS new
    WHERE NOT EXISTS (SELECT FROM docs WHERE near_dup(docs.body, new.body, 0.8)
        AND docs.day BETWEEN new.day - 1 AND new.day + 1)";

const ALL: &str = "INSERT INTO docs (day, body)
    SELECT date '2024-01-01' + day, body FROM unnest($1::int[], $2::text[]) AS new (day, body)
    ON CONFLICT DO NOTHING";

const WAYS: [Way; 3] = [
    Way {
        name: "guard",
        tables: FLAT,
        objects: GUARD,
        insert: NEW,
    },
    Way {
        name: "constraint, ON CONFLICT DO NOTHING",
        tables: FLAT,
        objects: CONSTRAINT,
        insert: ALL,
    },
    Way {
        name: "guard within a day, 60 partitions",
        tables: PARTED,
        objects: WINDOW,
        insert: NEW_WITHIN,
    },
];

/// The number of concurrent sessions, whether a statement takes an advisory lock at its first attempt, and when it is
/// retried.
const AT_ONCE: [(&str, [bool; 2]); 3] = [
    ("all", [false, false]),
    ("all, one of those that try again", [false, true]),
    ("one", [true, true]),
];

/// Returns the only table of this subject.
pub fn measure(bench: &Bench<'_>) -> Result<Vec<Table>> {
    let time = Duration::from_secs(bench.scale.rounds as u64);
    measure_for(bench, time, &SIZES)
}

/// Returns this table, with each way measured for a time with statements of these numbers of rows.
pub fn measure_for(bench: &Bench<'_>, time: Duration, sizes: &[usize]) -> Result<Vec<Table>> {
    let cluster = bench.started_cluster()?;
    let progress = bar((WAYS.len() * AT_ONCE.len() * sizes.len()) as u64, "bursts")?;
    let about = format!(
        "{SESSIONS} sessions insert for {:?} documents of 40 words, {COPIES} % of them copies of recent ones: rows \
         offered by statements that succeeded, a second, over all sessions. A statement that is \
         rejected or runs into a deadlock is tried again.",
        time
    );
    let columns = "rows a statement | way | sessions at once | rows a second | statements | rejected | deadlocks";
    let mut table = Table::new("guard.bursts", about, columns);
    for &size in sizes {
        for (way, (together, locks)) in WAYS
            .iter()
            .flat_map(|way| AT_ONCE.map(|together| (way, together)))
        {
            let database = Database::with_extension(&cluster, "bursts")?;
            let mut client = database.connect()?;
            client.batch_execute(&format!("{} {}", way.tables, way.objects))?;
            let start = Instant::now();
            let seen = at_once(&database, SESSIONS, &|session, client| {
                run(client, (way, locks), session, size, time)
            })?;
            let seconds = start.elapsed().as_secs_f64();
            let sum = |number: fn(&Seen) -> i64| seen.iter().map(number).sum::<i64>();
            let statements = sum(|seen| seen.statements);
            table.push(row![
                size as i64,
                way.name,
                together,
                (statements * size as i64) as f64 / seconds,
                statements,
                sum(|seen| seen.rejected),
                sum(|seen| seen.deadlocks)
            ]);
            progress.inc(1);
        }
    }
    progress.finish_and_clear();
    Ok(vec![table])
}

#[derive(Default)]
struct Seen {
    statements: i64,
    rejected: i64,
    deadlocks: i64,
}

/// Inserts statement after statement until the time is over.
fn run(
    mut client: Client,
    (way, locks): (&Way, [bool; 2]),
    session: u64,
    size: usize,
    time: Duration,
) -> Result<Seen> {
    let start = Instant::now();
    let mut rng = Rng::with_seed(session);
    let insert = client.prepare(way.insert)?;
    let (mut seen, mut tried) = (Seen::default(), 0);
    while start.elapsed() < time {
        tried += 1;
        let (days, bodies) = rows(&mut rng, session, tried, size, start.elapsed());
        let (mut is_done, mut is_again) = (false, false);
        while !is_done && start.elapsed() < time {
            let mut transaction = client.transaction()?;
            if locks[usize::from(is_again)] {
                transaction.batch_execute(LOCK)?;
            }
            let ended = transaction.execute(&insert, &[&days, &bodies]);
            match ended.and_then(|_| transaction.commit()) {
                Ok(()) => is_done = true,
                Err(error) if error.code() == Some(&SqlState::EXCLUSION_VIOLATION) => {
                    seen.rejected += 1
                }
                Err(error) if error.code() == Some(&SqlState::T_R_DEADLOCK_DETECTED) => {
                    seen.deadlocks += 1;
                }
                Err(error) => return Err(error.into()),
            }
            is_again = true;
        }
        seen.statements += i64::from(is_done);
    }
    Ok(seen)
}

/// Returns the rows of a statement: stories that only this session has, and stories that all sessions have now.
fn rows(
    rng: &mut Rng,
    session: u64,
    statement: u64,
    size: usize,
    now: Duration,
) -> (Vec<i32>, Vec<String>) {
    let row = |number| {
        let story = match rng.u32(..100) < COPIES {
            true => now.as_millis() as u64 / 100 * 64 + rng.u64(..64),
            false => (session + 1) << 48 | statement << 16 | number as u64,
        };
        let mut words = Rng::with_seed(story);
        let word = |_| format!("{:x}", words.u32(..));
        let body = (0..40).map(word).collect::<Vec<_>>().join(" ");
        ((story % DAYS) as i32, body)
    };
    (0..size).map(row).unzip()
}
