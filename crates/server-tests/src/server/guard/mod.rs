//! The guard under concurrency: if many sessions insert near-duplicates at the same time, one of them succeeds.

mod altered;
mod histories;
mod interleavings;
mod moments;
mod noted;
mod restored;
mod statements;
mod truth;
mod updates;

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Result, ensure};
use fastrand::Rng;
use postgres::error::SqlState;
use postgres::{Client, IsolationLevel};
use testbed::server::database::Database;
use testbed::server::{ScratchCluster, Server};

use crate::harness::{Outcome, figure};

pub use altered::altered;
pub use histories::histories;
pub use interleavings::every_order;
pub use moments::{
    changed_key, changed_while_searched, excepted_meanwhile, first_to_pass, hot_update,
    passed_meanwhile, prepared_transaction, triggers, twin_index,
};
pub use noted::most_similar;
pub use restored::{restored, strangers};
pub use statements::{
    added_during_a_long_look, attached_while_waiting, detached_while_waiting,
    few_searches_behind_the_gate, odd_transactions, passes_in_its_statement,
};
pub use truth::truth;
pub use updates::keep_pairs;

const SESSIONS: u64 = 16;

const TABLE: &str = "CREATE TABLE docs (id bigserial PRIMARY KEY, body text,
        sig minhash_signature GENERATED ALWAYS AS (minhash(body)) STORED);
    CREATE INDEX ON docs USING neardup (sig);
    SELECT near_dup_protect('docs', 'sig', 0.8)";

const LEVELS: [IsolationLevel; 3] = [
    IsolationLevel::ReadCommitted,
    IsolationLevel::RepeatableRead,
    IsolationLevel::Serializable,
];

/// Returns a document of few words, not near those of other numbers.
fn document(number: u64) -> String {
    let word = |word: u64| format!("w{}x{word}", number);
    (0..20).map(word).collect::<Vec<_>>().join(" ")
}

/// Returns a document with one word added, or none.
fn variant(rng: &mut Rng, number: u64) -> String {
    match rng.bool() {
        true => document(number),
        false => format!("{} edit{}", document(number), rng.u32(..)),
    }
}

/// Runs `work` in 16 sessions at the same time; each gets its number, from 1.
fn in_sessions<T: Send>(
    database: &Database<'_>,
    work: impl Fn(u64, Client) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    std::thread::scope(|scope| {
        let start = |session| {
            let work = &work;
            scope.spawn(move || work(session, database.connect()?))
        };
        let sessions: Vec<_> = (1..=SESSIONS).map(start).collect();
        let results = sessions.into_iter().map(|session| session.join());
        results
            .map(|result| result.unwrap_or_else(|_| anyhow::bail!("a session panicked")))
            .collect()
    })
}

fn ensure_once(client: &mut Client, documents: u64) -> Result<()> {
    let row = client.query_one(
        "SELECT (SELECT count(*) FROM near_dup_pairs(NULL::bigint, 'SELECT id, sig FROM docs', 0.8)),
                (SELECT count(*) FROM docs WHERE body ~ '^w')",
        &[],
    )?;
    let (pairs, rows): (i64, i64) = (row.get(0), row.get(1));
    ensure!(pairs == 0, "{pairs} pairs of near-duplicates");
    ensure!(
        rows as u64 == documents,
        "{rows} rows of {documents} documents"
    );
    Ok(())
}

/// Makes rows wait for a moment when they are in the table and the index but the guard has not checked them yet, so
/// that there are many such rows.
const MOMENT: &str = "CREATE FUNCTION moment() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM pg_sleep(0.003);
        RETURN NULL;
    END $$;
    CREATE TRIGGER a_moment AFTER INSERT ON docs FOR EACH ROW EXECUTE FUNCTION moment()";

/// A single table, and a table with a partition for each session.
const TABLES: [&str; 2] = [
    TABLE,
    "CREATE TABLE docs (id bigserial, part int DEFAULT 0, body text,
        sig minhash_signature GENERATED ALWAYS AS (minhash(body)) STORED) PARTITION BY LIST (part);
    DO $$ BEGIN
        FOR part IN 1 .. 16 LOOP
            EXECUTE format('CREATE TABLE docs_%s PARTITION OF docs FOR VALUES IN (%s)', part, part);
        END LOOP;
    END $$;
    CREATE INDEX ON docs USING neardup (sig);
    SELECT near_dup_protect('docs', 'sig', 0.8)",
];

/// Lets 16 sessions insert the same documents row by row, into their own partitions if there are any, either all in one
/// session or each in a fresh one. Checks that each document is accepted once, and that there is no deadlock.
pub fn row_by_row(server: &Server) -> Result<Outcome> {
    const DOCUMENTS: u64 = 150;
    for (table, is_fresh) in tables() {
        let start = Instant::now();
        let rejected = burst(server, table, is_fresh, |session| {
            let mut rng = Rng::with_seed(session);
            let row = move |number| vec![variant(&mut rng, number)];
            (0..DOCUMENTS).map(row).collect()
        })?;
        ensure!(
            rejected == (SESSIONS - 1) * DOCUMENTS,
            "{rejected} rejections for {DOCUMENTS} documents in {SESSIONS} sessions"
        );
        figure!(
            "{} inserts in {SESSIONS} sessions: {DOCUMENTS} accepted, {rejected} rejected, no deadlock, {:.1?}",
            SESSIONS * DOCUMENTS,
            start.elapsed()
        );
    }
    Ok(Outcome::Passed)
}

/// Lets 16 sessions insert documents in statements of many rows, in random order, by INSERT or by COPY in fresh
/// sessions. Some documents are common to all. Checks that no near-duplicates are accepted, and that there is no
/// deadlock.
pub fn bursts(server: &Server) -> Result<Outcome> {
    const STATEMENTS: u64 = 20;
    /// Number of statements of fresh sessions, in which each row passes by itself.
    const FRESH: u64 = 6;
    for (table, is_fresh) in tables() {
        let statements = if is_fresh { FRESH } else { STATEMENTS };
        let start = Instant::now();
        let rejected = burst(server, table, is_fresh, |session| {
            let mut rng = Rng::with_seed(session);
            let mut statement = |number: u64| {
                let own = 1000 * (1 + number + STATEMENTS * session);
                let mut numbers: Vec<u64> = (own..own + rng.u64(..50)).collect();
                if rng.bool() {
                    let first = rng.u64(..300);
                    numbers.extend(first..first + 5);
                }
                rng.shuffle(&mut numbers);
                numbers
                    .iter()
                    .map(|number| variant(&mut rng, *number))
                    .collect()
            };
            (0..statements).map(&mut statement).collect()
        })?;
        ensure!(rejected > 0, "no rejections: nothing was tested");
        figure!(
            "{} statements in {SESSIONS} sessions, {rejected} rejected, no deadlock, {:.1?}",
            SESSIONS * statements,
            start.elapsed()
        );
    }
    Ok(Outcome::Passed)
}

/// Returns the tables, each for lasting sessions and for fresh ones.
fn tables() -> impl Iterator<Item = (&'static str, bool)> {
    let both = |table| [(table, false), (table, true)];
    TABLES.into_iter().flat_map(both)
}

/// Runs the statements of 16 sessions at the same time, given as the documents that each inserts: INSERTs in lasting
/// sessions, or a COPY in a fresh session each. Returns the number of rejected statements. Fails if a session gets a
/// deadlock, or if a near-duplicate is accepted.
fn burst(
    server: &Server,
    table: &str,
    is_fresh: bool,
    statements: impl Fn(u64) -> Vec<Vec<String>> + Sync,
) -> Result<u64> {
    let database = Database::with_extension(&server.main, "guard_burst")?;
    let mut client = database.connect()?;
    client.batch_execute(&format!("{table}; {MOMENT}"))?;
    let column = if table.contains("PARTITION") {
        "part"
    } else {
        "id"
    };
    let rejected = in_sessions(&database, |session, mut client| {
        let mut rejected = 0;
        for (number, documents) in (1..).zip(statements(session)) {
            let first = if column == "id" {
                session << 32 | number << 16
            } else {
                session
            };
            let insert = format!(
                "INSERT INTO docs ({column}, body)
                 SELECT {first} + (n - 1) * ('{column}' = 'id')::int, d FROM unnest($1::text[]) WITH ORDINALITY u (d, n)"
            );
            let outcome = match is_fresh {
                true => {
                    client = database.connect()?;
                    let step = u64::from(column == "id");
                    copy(
                        &mut client,
                        column,
                        (0..).map(|row| first + row * step),
                        &documents,
                    )
                }
                false => client.execute(&insert, &[&documents]),
            };
            match outcome {
                Ok(_) => {}
                Err(error) if error.code() == Some(&SqlState::EXCLUSION_VIOLATION) => rejected += 1,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(rejected)
    })?;
    let pairs =
        "SELECT count(*) FROM near_dup_pairs(NULL::bigint, 'SELECT id, sig FROM docs', 0.8)";
    let pairs: i64 = client.query_one(pairs, &[])?.get(0);
    ensure!(pairs == 0, "{pairs} pairs of near-duplicates");
    Ok(rejected.into_iter().sum())
}

/// Copies documents into the table, with the values of a column.
fn copy(
    client: &mut Client,
    column: &str,
    values: impl Iterator<Item = u64>,
    documents: &[String],
) -> std::result::Result<u64, postgres::Error> {
    let rows = values.zip(documents);
    let lines: Vec<_> = rows
        .map(|(value, body)| format!("{value}\t{body}\n"))
        .collect();
    let mut writer = client.copy_in(&format!("COPY docs ({column}, body) FROM STDIN"))?;
    let written = writer.write_all(lines.concat().as_bytes());
    // An ERROR of the server is returned at the end.
    let finished = writer.finish();
    debug_assert!(written.is_ok() || finished.is_err());
    finished
}

/// Lets 16 sessions insert the same documents in every possible way, at every isolation level, while the index is
/// rebuilt again and again. Checks that each document is accepted once, and that no errors occur other than the
/// documented ones.
pub fn every_way(server: &Server) -> Result<Outcome> {
    const DOCUMENTS: u64 = 40;
    let cluster = prepared_cluster(server, "guard_every_way")?;
    for level in LEVELS {
        let database = Database::with_extension(&cluster, "guard")?;
        let name = &database.name;
        let mut client = database.connect()?;
        client.batch_execute(&format!(
            "{TABLE}; ALTER DATABASE {name} SET deadlock_timeout = '50ms';
             ALTER DATABASE {name} SET statement_timeout = '10min'"
        ))?;
        let start = Instant::now();
        let is_over = AtomicBool::new(false);
        let failures = std::thread::scope(|scope| {
            scope.spawn(|| reindex_until(&is_over, database.connect()?));
            let failures = in_sessions(&database, |session, mut client| {
                let mut rng = Rng::with_seed(session);
                let mut numbers: Vec<u64> = (0..DOCUMENTS).collect();
                rng.shuffle(&mut numbers);
                let mut failures = 0;
                for number in numbers {
                    if rng.u32(..4) == 0 {
                        client = database.connect()?;
                    }
                    while !bring(&mut client, level, session, number, &mut rng)? {
                        failures += 1;
                    }
                }
                Ok(failures)
            });
            is_over.store(true, Ordering::Relaxed);
            failures
        })?;
        ensure_once(&mut client, DOCUMENTS)?;
        figure!(
            "{level:?}: {} documents brought by {SESSIONS} sessions, {} deadlocks and serialization failures, {:.1?}",
            SESSIONS * DOCUMENTS,
            failures.iter().sum::<u64>(),
            start.elapsed()
        );
    }
    Ok(Outcome::Passed)
}

/// Rebuilds the index concurrently until the others have finished. It may become a deadlock's victim.
fn reindex_until(is_over: &AtomicBool, mut client: Client) -> Result<()> {
    while !is_over.load(Ordering::Relaxed) {
        let _ = client.batch_execute("REINDEX INDEX CONCURRENTLY docs_sig_idx");
    }
    Ok(())
}

/// Inserts a document. Returns whether it is in the table now, whichever session inserted it; if not, the transaction
/// was chosen as a victim.
fn bring(
    client: &mut Client,
    level: IsolationLevel,
    session: u64,
    number: u64,
    rng: &mut Rng,
) -> Result<bool> {
    let id = 1_000_000 + (session << 32) + rng.u64(..1 << 31);
    let body = variant(rng, number);
    let values = format!("({id}, '{body}')");
    let insert = format!("INSERT INTO docs (id, body) VALUES {values}");
    let own = format!("INSERT INTO docs (id, body) VALUES ({id}, 'own {id}')");
    let mut steps = match rng.u32(..9) {
        0 => vec![insert],
        1 => vec![format!("{insert} ON CONFLICT (id) DO NOTHING")],
        2 => vec![format!(
            "{insert} ON CONFLICT (id) DO UPDATE SET body = excluded.body"
        )],
        3 => vec![format!(
            "MERGE INTO docs USING (VALUES {values}) AS new (id, body) ON docs.id = new.id
             WHEN NOT MATCHED THEN INSERT (id, body) VALUES (new.id, new.body)"
        )],
        4 => vec![
            own,
            format!("UPDATE docs SET body = '{body}' WHERE id = {id}"),
        ],
        5 => vec![insert, format!("UPDATE docs SET id = -id WHERE id = {id}")],
        6 => vec![
            format!("SAVEPOINT s; {insert}"),
            format!("ROLLBACK TO s; {insert}"),
        ],
        7 => vec![format!(
            "COPY docs (id, body) FROM PROGRAM 'echo {id},{body}' (FORMAT csv)"
        )],
        _ => vec![
            insert.clone(),
            format!("DELETE FROM docs WHERE id = {id}"),
            insert,
        ],
    };
    let level = match level {
        IsolationLevel::ReadCommitted => "READ COMMITTED",
        IsolationLevel::RepeatableRead => "REPEATABLE READ",
        _ => "SERIALIZABLE",
    };
    steps.insert(0, format!("BEGIN ISOLATION LEVEL {level}"));
    match rng.u32(..4) {
        0 => {
            steps.push(format!("PREPARE TRANSACTION 'p{id}'"));
            steps.push(format!("COMMIT PREPARED 'p{id}'"));
        }
        _ => steps.push("COMMIT".to_string()),
    }
    for step in steps {
        let Err(error) = client.batch_execute(&step) else {
            continue;
        };
        client.batch_execute("ROLLBACK")?;
        return match error.code() {
            Some(&SqlState::EXCLUSION_VIOLATION) => Ok(true),
            Some(&SqlState::T_R_DEADLOCK_DETECTED | &SqlState::T_R_SERIALIZATION_FAILURE) => {
                Ok(false)
            }
            _ => Err(anyhow::Error::new(error).context(step)),
        };
    }
    Ok(true)
}

/// Checks that one transaction of many inserts takes no more locks than one of a few.
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
            "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid()",
            &[],
        )?
        .get(0);
    ensure!(held < 20, "{held} locks after the statement");
    client.batch_execute("COMMIT")?;
    Ok(Outcome::Passed)
}

/// Starts a cluster that allows prepared transactions.
fn prepared_cluster(server: &Server, name: &str) -> Result<ScratchCluster> {
    let cluster = server.scratch_cluster(name)?;
    cluster.create(&[("max_prepared_transactions", "20")])?;
    cluster.start()?;
    Ok(cluster)
}

/// Starts a cluster that allows prepared transactions, and whose sessions are held at the points for which there is a
/// file in [`holds`].
pub fn held_cluster(server: &Server, name: &str) -> Result<ScratchCluster> {
    let mut cluster = server.scratch_cluster(name)?;
    let directory = holds(&cluster);
    cluster.set_environment("NEARDUP_HOLDS", &directory.to_string_lossy());
    cluster.create(&[("max_prepared_transactions", "20")])?;
    cluster.start()?;
    fs::create_dir(&directory)?;
    Ok(cluster)
}

pub fn holds(cluster: &ScratchCluster) -> PathBuf {
    cluster.socket_dir().join("holds")
}
