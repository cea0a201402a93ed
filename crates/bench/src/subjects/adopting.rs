//! The steps of adopting the extension while others write: how long each step takes, and how long a writer has to
//! wait.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use fastrand::Rng;
use postgres::Client;
use testbed::documents::edit::Edit;
use testbed::documents::generator::{Generator, Plan};
use testbed::documents::load_generated;
use testbed::progress::bar;
use testbed::server::database::Database;

use crate::context::Bench;
use crate::measure::race::quantile;
use crate::measure::session::Session;
use crate::report::table::{Table, row};

const WRITERS: u64 = 2;

/// A table that is written to.
const TABLE: &str = "ALTER TABLE docs SET LOGGED; ALTER TABLE docs ADD PRIMARY KEY (id);
    CREATE FUNCTION sign() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        new.sig := minhash(new.body);
        RETURN new;
    END $$;
    CREATE PROCEDURE fill(batch int) LANGUAGE plpgsql AS $$
    BEGIN
        FOR part IN 0 .. (SELECT max(id) FROM docs) / batch LOOP
            WITH free AS (SELECT id FROM docs WHERE id BETWEEN part * batch AND (part + 1) * batch - 1
                          FOR NO KEY UPDATE SKIP LOCKED)
            UPDATE docs d SET sig = minhash(d.body) FROM free WHERE d.id = free.id;
            COMMIT;
        END LOOP;
    END $$";

/// Steps and their statements.
const STEPS: &[(&str, &str)] = &[
    ("nothing", "SELECT pg_sleep(1)"),
    (
        "ADD COLUMN",
        "ALTER TABLE docs ADD COLUMN sig minhash_signature",
    ),
    (
        "CREATE TRIGGER",
        "CREATE TRIGGER sign BEFORE INSERT OR UPDATE OF body ON docs FOR EACH ROW EXECUTE FUNCTION sign()",
    ),
    ("filling it in batches", "CALL fill(1000)"),
    (
        "CREATE INDEX CONCURRENTLY",
        "CREATE INDEX CONCURRENTLY docs_sig ON docs USING neardup (sig)",
    ),
    (
        "near_dup_protect",
        "SELECT near_dup_protect('docs', 'sig', 0.9)",
    ),
    (
        "ADD CONSTRAINT ... EXCLUDE",
        "ALTER TABLE docs ADD CONSTRAINT no_copies EXCLUDE USING neardup (near_dup_key(sig, 0.9) WITH %)",
    ),
    (
        "a stored generated column",
        "ALTER TABLE docs ADD COLUMN twin minhash_signature GENERATED ALWAYS AS (minhash(body)) STORED",
    ),
];

/// Returns all tables of this subject.
pub fn measure(bench: &Bench<'_>) -> Result<Vec<Table>> {
    let cluster = bench.started_cluster()?;
    let database = Database::with_extension(&cluster, "adopting")?;
    let session = Session::open(&database)?;
    let documents = bench.scale.documents;
    let plan = Plan::new(documents, Vec::new(), Edit::SLIGHT);
    load_generated(
        &mut session.client(),
        "docs",
        &Generator::new(bench.words, plan),
    )?;
    session.execute(TABLE)?;
    session.vacuum("docs")?;
    let about = format!(
        "{documents} generated documents; {WRITERS} sessions update one row at a time as fast as they can. The longest time that \
         one of these updates has taken meanwhile is what the locks of a step cost."
    );
    let columns = [
        "step",
        "seconds",
        "updates",
        "median update, ms",
        "longest update, ms",
    ];
    let mut table = Table::new("adopting.steps", about, &columns);
    let progress = bar(STEPS.len() as u64, "adopting")?;
    let writers = &Writers::new(&database, documents);
    thread::scope(|scope| {
        let sessions: Vec<_> = (0..WRITERS)
            .map(|writer| scope.spawn(move || writers.write(writer)))
            .collect();
        let measured = STEPS.iter().try_for_each(|(step, statement)| {
            let started = Instant::now();
            session.execute(statement)?;
            let (seconds, updates) = (started.elapsed().as_secs_f64(), writers.begun_by_now());
            let [median, longest] = match updates.is_empty() {
                true => [0.0, 0.0],
                false => [0.5, 1.0].map(|share| quantile(&updates, share)),
            };
            table.push(row![*step, seconds, updates.len() as f64, median, longest]);
            progress.inc(1);
            anyhow::Ok(())
        });
        writers.stop.store(true, Ordering::Relaxed);
        for session in sessions {
            session.join().expect("a writer does not panic")?;
        }
        measured
    })?;
    progress.finish_and_clear();
    Ok(vec![table])
}

/// Sessions that write until they are stopped.
struct Writers<'a> {
    database: &'a Database<'a>,
    documents: u64,
    stop: AtomicBool,
    updates: Mutex<Vec<Update>>,
}

/// An update that has ended.
struct Update {
    writer: u64,
    begun: Instant,
    milliseconds: f64,
}

impl<'a> Writers<'a> {
    fn new(database: &'a Database<'a>, documents: u64) -> Writers<'a> {
        Writers {
            database,
            documents,
            stop: AtomicBool::new(false),
            updates: Mutex::default(),
        }
    }

    fn write(&self, writer: u64) -> Result<()> {
        let mut rng = Rng::with_seed(writer);
        let mut client: Client = self.database.connect()?;
        while !self.stop.load(Ordering::Relaxed) {
            let id = rng.u64(0..self.documents);
            let update = format!("UPDATE docs SET others = others + 1 WHERE id = {id}");
            let begun = Instant::now();
            if let Err(error) = client.batch_execute(&update) {
                self.stop.store(true, Ordering::Relaxed);
                return Err(error).context(update);
            }
            let milliseconds = begun.elapsed().as_secs_f64() * 1e3;
            self.updates().push(Update {
                writer,
                begun,
                milliseconds,
            });
        }
        Ok(())
    }

    /// Returns the milliseconds of the updates that have begun by now, after all of these have ended.
    fn begun_by_now(&self) -> Vec<f64> {
        let now = Instant::now();
        let is_later = |update: &Update| update.begun > now;
        let has_gone_on = |writer| {
            let updates = self.updates();
            updates
                .iter()
                .any(|update| update.writer == writer && is_later(update))
        };
        while !self.stop.load(Ordering::Relaxed) && !(0..WRITERS).all(has_gone_on) {
            thread::sleep(Duration::from_millis(1));
        }
        let mut updates = self.updates();
        let (later, begun) = std::mem::take(&mut *updates)
            .into_iter()
            .partition(is_later);
        *updates = later;
        begun
            .iter()
            .map(|update: &Update| update.milliseconds)
            .collect()
    }

    fn updates(&self) -> MutexGuard<'_, Vec<Update>> {
        self.updates.lock().expect("no writer panics")
    }
}
