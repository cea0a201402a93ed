//! `near_dup_backfill` while others write.

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

/// Documents with a generated column beside the one that is filled, and a trigger for new ones.
const TABLE: &str = "
    CREATE TABLE articles (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, source text, published date,
        body text, sig minhash_signature,
        twin minhash_signature GENERATED ALWAYS AS (minhash(body)) STORED);
    INSERT INTO articles (source, body)
    SELECT 'old', CASE WHEN i % 50 <> 0 THEN string_agg('word' || (i * 31 + w) % 9973, ' ' ORDER BY w) END
    FROM generate_series(1, 20000) i, generate_series(1, 40) w GROUP BY i;
    CREATE FUNCTION sign_article() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        new.sig := minhash(new.body);
        RETURN new;
    END $$;
    CREATE TRIGGER sign BEFORE INSERT OR UPDATE OF body ON articles
        FOR EACH ROW EXECUTE FUNCTION sign_article()";

const FILL: &str = "CALL near_dup_backfill('articles', 'sig', 'minhash(body)', batch => 200)";

/// Waits longer than any lock of a batch is held on a machine that does other things too.
const PATIENCE: Duration = Duration::from_mins(10);

/// Sessions that insert, change and delete articles until they are told to stop.
struct Writers<'a> {
    database: &'a Database<'a>,
    stop: AtomicBool,
    /// The longest statement since it was last asked for, and what it was.
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

    /// Runs some work while the writers write. Returns its result and the number of their statements.
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
                // Two rows are held for a moment, and the column is not looked at.
                3 => format!("BEGIN; UPDATE articles SET source = 'a' WHERE id = {id}; SELECT pg_sleep(0.005);
                              UPDATE articles SET source = 'b' WHERE id = {id}; COMMIT"),
                _ => format!("UPDATE articles SET source = '{other}' WHERE id = {id}"),
            };
            let started = Instant::now();
            match client.batch_execute(&statement) {
                Ok(()) => {}
                // A constraint that is added rejects rows that are too near.
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

/// Filled while others write, killed in the middle and called again, the column is what a generated one
/// is.
pub fn under_load(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "backfill")?;
    let mut client = database.connect()?;
    client.batch_execute(TABLE)?;
    let writers = Writers::new(&database);
    let (longest, statements) = writers.during(|| {
        kill_in_the_middle(&database, &mut client)?;
        let filled = count(&mut client, "sig IS NOT NULL AND source = 'old'")?;
        ensure!(
            filled > 2000,
            "only {filled} rows are kept of the call that was killed"
        );
        database.connect()?.batch_execute(FILL)?;
        Ok(writers.take_longest())
    })?;
    figure!(
        "longest of {statements} statements beside it: {} ms",
        longest.as_millis()
    );
    let differing = count(&mut client, "sig IS DISTINCT FROM twin")?;
    ensure!(
        differing == 0,
        "{differing} rows differ from the generated column"
    );
    ensure!(
        count(&mut client, "sig IS NOT NULL")? > 10_000,
        "rows are filled"
    );
    Ok(Outcome::Passed)
}

/// Ends the session that fills, when it has filled an eighth.
fn kill_in_the_middle(database: &Database<'_>, client: &mut Client) -> Result<()> {
    let mut filler = database.connect()?;
    let pid: i32 = filler.query_one("SELECT pg_backend_pid()", &[])?.get(0);
    thread::scope(|scope| {
        let call = scope.spawn(move || filler.batch_execute(FILL));
        wait_until(client, "SELECT count(sig) > 2500 FROM articles")?;
        client.execute("SELECT pg_terminate_backend($1)", &[&pid])?;
        let ended = call.join().expect("the call does not panic");
        let error = ended.err().context("the call came to its end")?;
        ensure!(error.code() == Some(&SqlState::ADMIN_SHUTDOWN), "{error:?}");
        Ok(())
    })
}

fn wait_until(client: &mut Client, question: &str) -> Result<()> {
    let started = Instant::now();
    while !client.query_one(question, &[])?.get::<_, bool>(0) {
        ensure!(started.elapsed() < PATIENCE, "not so: {question}");
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

fn count(client: &mut Client, condition: &str) -> Result<i64> {
    let query = format!("SELECT count(*) FROM articles WHERE {condition}");
    Ok(client.query_one(&query, &[])?.get(0))
}

/// A row that somebody holds keeps nobody from the other rows of its batch, and is filled when it is
/// let go.
pub fn waits_for_nobody(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "backfill_locked")?;
    let (mut holder, mut other) = (database.connect()?, database.connect()?);
    let mut filler = database.connect()?;
    holder.batch_execute(TABLE)?;
    holder.batch_execute("BEGIN; UPDATE articles SET source = 'held' WHERE id = 7")?;
    thread::scope(|scope| {
        let call = scope.spawn(move || filler.batch_execute(FILL));
        wait_until(
            &mut other,
            "SELECT count(*) = 1 FROM articles WHERE sig IS NULL AND body IS NOT NULL",
        )?;
        ensure!(!call.is_finished(), "it waits for the row");
        other.batch_execute(
            "SET lock_timeout = '1ms'; UPDATE articles SET source = 'free' WHERE id IN (6, 8)",
        )?;
        holder.batch_execute("COMMIT")?;
        call.join().expect("the call does not panic")?;
        anyhow::Ok(())
    })?;
    let left = count(&mut other, "sig IS DISTINCT FROM twin")?;
    ensure!(left == 0, "{left} rows are not filled");
    Ok(Outcome::Passed)
}

/// A table that is dropped between two batches ends the call, and nothing else.
pub fn table_dropped(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "backfill_dropped")?;
    let mut client = database.connect()?;
    client.batch_execute(TABLE)?;
    thread::scope(|scope| {
        let call = "CALL near_dup_backfill('articles', 'sig', 'minhash(body)', batch => 200, pause => 0.2)";
        let fill = scope.spawn(|| run(&database, call));
        wait_until(&mut client, "SELECT count(sig) >= 400 FROM articles")?;
        client.batch_execute("DROP TABLE articles")?;
        fill.join().expect("the call does not panic")
    })?;
    client.batch_execute("SELECT minhash('a text')")?;
    Ok(Outcome::Passed)
}

/// It goes on only when the replica has what was filled.
pub fn waits_for_replicas(server: &Server) -> Result<Outcome> {
    let primary = server.scratch_cluster("backfill_primary")?;
    primary.create(&[])?;
    primary.start()?;
    let mut client = primary.connect("postgres")?;
    client.batch_execute("CREATE EXTENSION pg_neardup")?;
    client.batch_execute(TABLE)?;
    let replica = server.scratch_cluster("backfill_replica")?;
    replica.create_replica_of(&primary)?;
    let mut reader = replica.connect("postgres")?;
    let mut filler = primary.connect("postgres")?;
    reader.batch_execute("SELECT pg_wal_replay_pause()")?;
    wait_until(
        &mut reader,
        "SELECT pg_get_wal_replay_pause_state() = 'paused'",
    )?;
    thread::scope(|scope| {
        let call = scope.spawn(move || {
            filler.batch_execute(
                "CALL near_dup_backfill('articles', 'sig', 'minhash(body)', wait_for_replicas => true)",
            )
        });
        wait_until(&mut client, "SELECT count(sig) > 0 FROM articles")?;
        thread::sleep(Duration::from_millis(500));
        let filled = count(&mut client, "sig IS NOT NULL")?;
        reader.batch_execute("SELECT pg_wal_replay_resume()")?;
        ensure!(
            filled <= 1000,
            "{filled} rows are filled before the replica has the first batch"
        );
        call.join().expect("the call does not panic")?;
        anyhow::Ok(())
    })?;
    replica.wait_for(&primary)?;
    let missing = count(&mut reader, "sig IS DISTINCT FROM twin")?;
    ensure!(missing == 0, "{missing} rows differ on the replica");
    Ok(Outcome::Passed)
}

/// The page on adopting, typed from top to bottom while others write.
pub fn adopting_typed(server: &Server) -> Result<Outcome> {
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

/// Types an example into psql; an error fails the test.
fn run(database: &Database<'_>, sql: &str) -> Result<()> {
    let printed = database.psql(sql)?;
    ensure!(!printed.contains("ERROR:"), "{sql}\n{printed}");
    Ok(())
}
