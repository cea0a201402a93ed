//! Many sessions that write while others refresh.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use fastrand::Rng;
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::{Outcome, Scale, figure};
use crate::live::{Kept, TYPES};

const KEPT: Kept = Kept::docs("place, id");

const WRITERS: u64 = 16;
const REFRESHERS: usize = 2;

/// Checks that writers and refreshes cause no errors in each other, and that no change is lost.
pub fn many_writers(server: &Server, scale: Scale) -> Result<Outcome> {
    let duration = Duration::from_secs(scale.of(6, 60));
    let database = Database::with_extension(&server.main, "live_sessions")?;
    let mut client = database.connect()?;
    let compared = fastrand::choice(TYPES).context("there are some")?;
    client.batch_execute(&compared.texts())?;
    client.batch_execute(&compared.fill(
        "CREATE TABLE docs (id int PRIMARY KEY, place int, body text{definition});
         CREATE INDEX ON docs USING neardup ({column} {class});
         SELECT near_dup_track('docs', '{column}', {threshold 0.8}, 'place'{arguments})",
    ))?;
    let (ended, written) = (AtomicBool::new(false), AtomicU64::new(0));
    let refreshes = AtomicU64::new(0);
    thread::scope(|scope| -> Result<()> {
        let mut workers = Vec::new();
        for writer in 0..WRITERS {
            let (ended, written, database) = (&ended, &written, &database);
            workers.push(scope.spawn(move || {
                let done = write(database, writer, ended);
                written.fetch_add(*done.as_ref().unwrap_or(&0), Ordering::Relaxed);
                done.map(|_| ())
            }));
        }
        for _ in 0..REFRESHERS {
            let (ended, refreshes, database) = (&ended, &refreshes, &database);
            workers.push(scope.spawn(move || -> Result<()> {
                let mut client = database.connect()?;
                while !ended.load(Ordering::Relaxed) {
                    client.batch_execute("SELECT near_dup_refresh('docs_clusters')")?;
                    refreshes.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            }));
        }
        let started = Instant::now();
        while started.elapsed() < duration && !workers.iter().any(|worker| worker.is_finished()) {
            thread::sleep(Duration::from_millis(50));
        }
        ended.store(true, Ordering::Relaxed);
        for worker in workers {
            worker.join().expect("workers do not panic")?;
        }
        Ok(())
    })?;
    let law = KEPT.ensure_law(&mut client, false);
    law.with_context(|| format!("column {}", compared.column))?;
    let (written, refreshes) = (written.into_inner(), refreshes.into_inner());
    ensure!(written > 100 && refreshes > 2, "hardly anything was done");
    figure!(
        "{WRITERS} sessions wrote {written} times during {refreshes} refreshes in {} s, 0 differences",
        duration.as_secs()
    );
    Ok(Outcome::Passed)
}

/// Writes rows of its own and common rows, one per statement, until it is told to stop.
fn write(database: &Database<'_>, writer: u64, ended: &AtomicBool) -> Result<u64> {
    let mut client = database.connect()?;
    let mut rng = Rng::with_seed(writer);
    let mut done = 0;
    while !ended.load(Ordering::Relaxed) {
        let id = rng.u32(0..500);
        let text = format!("make_text({}, {})", rng.u32(0..20), rng.u32(0..10));
        let statement = match rng.u32(0..4) {
            0 => format!("INSERT INTO docs VALUES ({id}, {id} % 7, {text}) ON CONFLICT DO NOTHING"),
            1 => format!("UPDATE docs SET body = {text} WHERE id = {id}"),
            2 => format!("UPDATE docs SET place = {} WHERE id = {id}", rng.u32(0..9)),
            _ => format!("DELETE FROM docs WHERE id = {id}"),
        };
        client.batch_execute(&statement)?;
        done += 1;
    }
    Ok(done)
}
