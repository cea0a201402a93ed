//! Lookups in an index ten times as large as memory: the pages that they touch and read, and how often they wait for
//! slow storage.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use postgres::Client;
use testbed::documents::generator::Generator;
use testbed::documents::load_generated;
use testbed::server::cluster::Cluster;
use testbed::server::slow_storage::SlowStorage;

use super::lookup::plan;
use crate::context::Bench;
use crate::measure::race::quantile;
use crate::measure::session::Session;
use crate::report::table::{Table, row};

/// The number of lookups that fill the memory with the pages that all lookups read, and the number of measured lookups.
const WARMING: usize = 100;
const LOOKUPS: usize = 100;

/// The database; it survives the server's restarts.
const DATABASE: &str = "postgres";

/// The time of a read.
const DELAY: Duration = Duration::from_millis(5);

/// The share of the rows that is inserted after the index is built.
const INSERTED: u64 = 10;

/// The least memory that a server starts with, in kB.
const LEAST_KB: f64 = 1024.0;

/// Returns the table of this subject.
pub fn measure(bench: &Bench<'_>) -> Result<Vec<Table>> {
    let documents = bench.scale.documents;
    let about = format!(
        "Lookups at 0.8 of a document among {documents}, of which a tenth was inserted after the index was built, with \
         shared_buffers of a tenth of the index: pages of index and table that a lookup touches and reads, and the \
         number of times that it waits for them one after the other. Each read takes 5 ms in the last columns, reads that \
         are asked for ahead take them together; the slope is the time that they add, in reads. Without asking: \
         `effective_io_concurrency` of 0. Medians of {LOOKUPS} lookups."
    );
    let columns = "how | index, MB | touched | read | waits | ms | ms, slow storage | slope";
    let mut table = Table::new("cold.lookups", about, columns);
    let mut cluster = bench.cluster("cold")?;
    cluster.start()?;
    let (lookups, kilobytes) = prepare(bench, &Session::of(cluster.connect(DATABASE)?)?)?;
    cluster.stop()?;
    let memory = format!("{}kB", (kilobytes / 10.0).max(LEAST_KB) as u64);
    cluster.configure(&[("shared_buffers", &memory)])?;
    let storage = SlowStorage::under(&mut cluster)?;
    for (how, concurrency) in [("asked ahead", 1), ("without asking", 0)] {
        SlowStorage::set_delay(&mut cluster, Duration::ZERO);
        let quick = cold(&cluster, &storage, concurrency, &lookups)?;
        SlowStorage::set_delay(&mut cluster, DELAY);
        let slow = cold(&cluster, &storage, concurrency, &lookups)?;
        let slope = (slow.seconds - quick.seconds) / DELAY.as_secs_f64();
        let milliseconds = [quick.seconds * 1e3, slow.seconds * 1e3];
        let megabytes = kilobytes / 1024.0;
        let [touched, read, waits] = quick.pages;
        table.push(row![
            how,
            megabytes,
            touched,
            read,
            waits,
            milliseconds[0],
            milliseconds[1],
            slope
        ]);
    }
    Ok(vec![table])
}

/// Creates the table and its index; returns the lookups, and the size of the index in kB.
fn prepare(bench: &Bench<'_>, session: &Session) -> Result<(Vec<String>, f64)> {
    session.execute("CREATE EXTENSION pg_neardup")?;
    let documents = bench.scale.documents;
    let generator = Generator::new(bench.words, plan(documents));
    load_generated(&mut session.client(), "generated", &generator)?;
    let of = |condition: &str| {
        format!("SELECT id, minhash(body) AS sig FROM generated WHERE {condition}")
    };
    session.execute(&format!(
        "CREATE TABLE docs AS {}",
        of(&format!("id % {INSERTED} > 0"))
    ))?;
    session.execute("CREATE INDEX measured ON docs USING neardup (sig)")?;
    for part in 0..INSERTED {
        let condition = format!("id % {INSERTED} = 0 AND id / {INSERTED} % {INSERTED} = {part}");
        session.execute(&format!("INSERT INTO docs {}", of(&condition)))?;
    }
    session.vacuum("docs")?;
    let query = format!(
        "SELECT format('EXECUTE lookup (%L)', sig) FROM docs ORDER BY hashint8(id) LIMIT {}",
        WARMING + LOOKUPS
    );
    let lookups = session.client().query(&query, &[])?;
    let size = session.number("SELECT pg_relation_size('measured') / 1024")?;
    Ok((lookups.iter().map(|row| row.get(0)).collect(), size))
}

/// Medians over lookups of a restarted server.
struct Cold {
    seconds: f64,
    /// Pages touched and read, and waits.
    pages: [f64; 3],
}

fn cold(
    cluster: &Cluster,
    storage: &SlowStorage,
    concurrency: u32,
    lookups: &[String],
) -> Result<Cold> {
    cluster.start()?;
    let mut client = cluster.connect(DATABASE)?;
    client.batch_execute(&format!(
        "SET enable_seqscan = off; SET enable_bitmapscan = off; SET plan_cache_mode = force_generic_plan;
         SET effective_io_concurrency = {concurrency};
         PREPARE lookup (minhash_signature) AS SELECT id FROM docs WHERE near_dup(sig, $1, 0.8)"
    ))?;
    let (warming, measured) = lookups.split_at(WARMING.min(lookups.len() / 2));
    client.batch_execute(&warming.join(";"))?;
    let process = client.query_one("SELECT pg_backend_pid()", &[])?.get(0);
    let waits =
        || Ok::<_, anyhow::Error>(storage.reads(process)?.last().map_or(0, |read| read.waits));
    let (mut pages, mut seconds) = ([const { Vec::new() }; 3], Vec::new());
    for lookup in measured {
        let (before, start) = (waits()?, Instant::now());
        let (hit, read) = pages_of(&mut client, lookup)?;
        seconds.push(start.elapsed().as_secs_f64());
        let waited = (waits()? - before) as f64;
        for (all, number) in pages.iter_mut().zip([hit + read, read, waited]) {
            all.push(number);
        }
    }
    drop(client);
    cluster.stop()?;
    Ok(Cold {
        seconds: quantile(&seconds, 0.5),
        pages: pages.map(|all| quantile(&all, 0.5)),
    })
}

/// Returns how many pages a lookup finds in shared buffers, and how many it reads.
fn pages_of(client: &mut Client, lookup: &str) -> Result<(f64, f64)> {
    let explained = client.query(
        &format!("EXPLAIN (ANALYZE, BUFFERS, TIMING OFF) {lookup}"),
        &[],
    )?;
    let lines: Vec<String> = explained.iter().map(|row| row.get(0)).collect();
    let buffers = lines.iter().find(|line| line.contains("Buffers: shared"));
    let buffers = buffers.context("EXPLAIN names no buffers")?;
    let number = |name: &str| {
        let (_, rest) = buffers.split_once(name)?;
        rest.split(' ').next()?.parse().ok()
    };
    Ok((
        number("hit=").unwrap_or(0.0),
        number("read=").unwrap_or(0.0),
    ))
}
