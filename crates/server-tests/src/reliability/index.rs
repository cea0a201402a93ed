//! The access method in every kind of trouble: full disks, damaged pages, cancelled statements, and
//! every kind of table.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use fastrand::Rng;
use postgres::Client;
use postgres::error::SqlState;
use testbed::server::Server;
use testbed::server::cluster::Cluster;
use testbed::server::database::Database;
use testbed::server::memory;

use super::collection;
use crate::harness::{Outcome, Scale, figure};

/// Bytes beyond which a session may write no file: more than a segment of the WAL.
const FULL: u64 = 17 << 20;

/// Signatures of many keys and few bytes, so that the index is the file that grows.
const MANY_KEYS: &str = "
    CREATE TABLE docs (id serial PRIMARY KEY, sig minhash_signature);
    CREATE FUNCTION made(count int) RETURNS SETOF minhash_signature LANGUAGE sql AS $$
        SELECT minhash_pack(minhash_set(array(SELECT hashint8extended(e * 17, i / 8) FROM generate_series(1, 30) e)
                                        || i::bigint, slots => 1024), 1)
        FROM generate_series(1, count) i $$";

/// Checks that a build and inserts that find the disk full end with an error; afterwards the index is
/// whole, and goes on when there is room again.
pub fn disk_full(server: &Server, scale: Scale) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "disk_full")?;
    let mut client = database.connect()?;
    client.batch_execute(MANY_KEYS)?;
    let index = "CREATE INDEX docs_sig ON docs USING neardup (sig minhash_ops (threshold = 0.5))";
    client.batch_execute("INSERT INTO docs (sig) SELECT made(45000)")?;
    let mut limited = database.connect()?;
    limit_files(&mut limited)?;
    ensure_full(limited.batch_execute(index))?;
    client.batch_execute(&format!("TRUNCATE docs; {index}"))?;
    let (mut failed, rounds) = (0, scale.of(3, 6));
    for round in 0..rounds {
        let mut limited = database.connect()?;
        limit_files(&mut limited)?;
        let mut inserts = 0;
        let outcome = loop {
            let outcome = limited.batch_execute("INSERT INTO docs (sig) SELECT made(1500)");
            inserts += 1;
            ensure!(inserts < 100, "the disk is never full");
            if outcome.is_err() {
                break outcome;
            }
        };
        ensure_full(outcome)?;
        failed += 1;
        check_answers(&mut client, "docs", "docs_sig").with_context(|| format!("round {round}"))?;
        // Without free pages it may be small enough.
        let reindexed = limited.batch_execute("REINDEX INDEX docs_sig");
        if reindexed.is_err() {
            ensure_full(reindexed)?;
        }
        match round % 3 {
            0 => client.batch_execute("INSERT INTO docs (sig) SELECT made(700)")?,
            1 => run_each(
                &mut client,
                "DELETE FROM docs WHERE id % 2 = 0; VACUUM docs",
            )?,
            _ => run_each(&mut client, "DELETE FROM docs; VACUUM docs")?,
        }
        client.batch_execute("INSERT INTO docs (sig) SELECT made(100)")?;
        check_answers(&mut client, "docs", "docs_sig")
            .with_context(|| format!("room again, round {round}"))?;
    }
    figure!("{failed} inserts met a full disk, 0 differences");
    Ok(Outcome::Passed)
}

/// Runs statements one by one: VACUUM wants no transaction around it.
fn run_each(client: &mut Client, statements: &str) -> Result<()> {
    for statement in statements.split(';') {
        client.batch_execute(statement)?;
    }
    Ok(())
}

/// Limits the files that a session's backend writes.
fn limit_files(client: &mut Client) -> Result<()> {
    let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[])?.get(0);
    let command =
        format!("COPY (SELECT WHERE false) TO PROGRAM 'prlimit --pid={pid} --fsize={FULL}'");
    Ok(client.batch_execute(&command)?)
}

fn ensure_full(outcome: Result<(), postgres::Error>) -> Result<()> {
    let Err(error) = outcome else {
        bail!("the disk is not full");
    };
    let error = error.as_db_error().context("the connection is lost")?;
    ensure!(error.message().contains("File too large"), "{error}");
    Ok(())
}

/// Checks an index's pages, and that it answers as a scan does.
fn check_answers(client: &mut Client, table: &str, index: &str) -> Result<()> {
    client.batch_execute(&format!("SELECT near_dup_index_check('{index}')"))?;
    let wrong = wrong_answers(client, table)?;
    ensure!(wrong == 0, "{wrong} answers differ from the scan's");
    Ok(())
}

/// Returns the rows that only one of index and scan returns.
fn wrong_answers(client: &mut Client, table: &str) -> Result<i64, postgres::Error> {
    client.batch_execute("SET enable_seqscan = off; SET plan_cache_mode = force_custom_plan")?;
    let pairs = format!(
        "SELECT q.id AS q, d.id FROM queries q, {table} d WHERE near_dup(d.sig, q.sig, 0.8)"
    );
    let query = format!(
        "WITH queries AS MATERIALIZED (SELECT * FROM {table} ORDER BY hashint4(id) LIMIT 20),
              scan AS MATERIALIZED ({pairs} IS TRUE), found AS MATERIALIZED ({pairs})
         SELECT (SELECT count(*) FROM (TABLE scan EXCEPT ALL TABLE found) x)
              + (SELECT count(*) FROM (TABLE found EXCEPT ALL TABLE scan) x)"
    );
    Ok(client.query_one(&query, &[])?.get(0))
}

/// Statements on a table and its index whose pages are damaged.
const ON_DAMAGED: &[&str] = &[
    "SELECT * FROM near_dup_index_stats('INDEX')",
    "SELECT count(*) FROM TABLE WHERE near_dup(sig, (SELECT sig FROM docs WHERE id = 7), 0.3)",
    "INSERT INTO TABLE SELECT id, sig FROM docs",
    "DELETE FROM TABLE WHERE id % 3 = 0",
    "VACUUM TABLE",
    "INSERT INTO TABLE SELECT id, sig FROM docs WHERE id < 900",
    "VACUUM TABLE",
];

/// Bits flipped in pages of every kind: an error that says so, or right answers; never a crash, nor a
/// loop without end. What the check lets pass answers as the scan does.
pub fn damage_is_noticed(server: &Server, scale: Scale) -> Result<Outcome> {
    let cluster = server.scratch_cluster("damage")?;
    cluster.create(&[("autovacuum", "off")])?;
    cluster.start()?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute("CREATE EXTENSION pg_neardup")?;
    collection::create(&mut client)?;
    collection::insert(&mut client, 1, 2500)?;
    let copies = scale.of(40, 120);
    let mut files = Vec::new();
    for copy in 0..copies {
        let fill = format!(
            "CREATE TABLE docs_{copy} AS SELECT id, sig FROM docs WHERE id <= 500;
             CREATE INDEX index_{copy} ON docs_{copy} USING neardup (sig);
             INSERT INTO docs_{copy} SELECT id, sig FROM docs WHERE id > 500;
             DELETE FROM docs_{copy} WHERE id % 9 = 0; VACUUM docs_{copy};
             INSERT INTO docs_{copy} SELECT id + 9000, sig FROM docs WHERE id < 300"
        );
        run_each(&mut client, &fill)?;
        let path = format!("SELECT pg_relation_filepath('index_{copy}')");
        let path: String = client.query_one(&path, &[])?.get(0);
        files.push(cluster.data_dir().join(path));
    }
    drop(client);
    cluster.stop()?;
    let mut rng = Rng::with_seed(1);
    let mut damaged = Vec::new();
    for (copy, file) in files.iter().enumerate() {
        damaged.push(damage(file, copy, &mut rng)?);
    }
    cluster.start()?;
    let mut noticed = 0;
    for (copy, what) in damaged.iter().enumerate() {
        noticed += usize::from(work_on(&cluster, copy).with_context(|| what.clone())?);
    }
    let log = fs::read_to_string(cluster.log_file())?;
    ensure!(!log.contains("terminated by signal"), "a backend died");
    ensure!(noticed > 0, "no damage was noticed");
    figure!("{copies} damaged indexes: {noticed} noticed, the others answered as the scan does");
    Ok(Outcome::Passed)
}

/// The offset of a page's kind.
const KIND_AT: usize = 8192 - 8;

/// Flips bits of one page, in turn of every kind that is there; says where.
fn damage(file: &PathBuf, turn: usize, rng: &mut Rng) -> Result<String> {
    let bytes = fs::read(file)?;
    let kind = |page: &[u8]| u16::from_le_bytes([page[KIND_AT], page[KIND_AT + 1]]);
    let pages: Vec<&[u8]> = bytes.chunks_exact(8192).collect();
    let mut kinds: Vec<u16> = pages.iter().map(|page| kind(page)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let wanted = kinds[turn % kinds.len()];
    let of_kind: Vec<usize> = (0..pages.len())
        .filter(|&block| kind(pages[block]) == wanted)
        .collect();
    let block = of_kind[rng.usize(..of_kind.len())];
    // Near the beginning is what leads to other pages.
    let most = [64, 512, 8192][rng.usize(..3)];
    let mut changed = pages[block].to_vec();
    let mut places = Vec::new();
    for _ in 0..rng.usize(1..4) {
        let at = rng.usize(..most);
        changed[at] ^= rng.u8(1..);
        places.push(at);
    }
    let writable = OpenOptions::new().write(true).open(file)?;
    writable.write_all_at(&changed, block as u64 * 8192)?;
    Ok(format!(
        "copy {turn}: bytes {places:?} of block {block}, kind {wanted}"
    ))
}

/// Returns whether the damage was noticed; fails where it is neither noticed nor harmless.
fn work_on(cluster: &Cluster, copy: usize) -> Result<bool> {
    let mut client = cluster.connect("postgres")?;
    // As on a server without page checksums.
    client.batch_execute("SET ignore_checksum_failure = on; SET client_min_messages = error; SET statement_timeout = '30s'")?;
    let (table, index) = (format!("docs_{copy}"), format!("index_{copy}"));
    let mut noticed = false;
    let check = format!("SELECT near_dup_index_check('{index}')");
    let is_sound = !is_refused(client.batch_execute(&check)).context("check")?;
    noticed |= !is_sound;
    match wrong_answers(&mut client, &table) {
        Ok(wrong) => ensure!(wrong == 0 || !is_sound, "{wrong} wrong answers"),
        Err(error) => noticed |= is_refused(Err(error)).context("lookups")?,
    }
    for statement in ON_DAMAGED {
        let statement = statement.replace("TABLE", &table).replace("INDEX", &index);
        let outcome = client.batch_execute(&statement);
        noticed |= is_refused(outcome).with_context(|| statement.clone())?;
    }
    client.batch_execute(&format!("REINDEX INDEX {index}"))?;
    check_answers(&mut client, &table, &index)?;
    Ok(noticed)
}

/// Returns whether a statement ended because data are damaged; fails at any other error.
fn is_refused(outcome: Result<(), postgres::Error>) -> Result<bool> {
    let Err(error) = outcome else {
        return Ok(false);
    };
    match error.code() {
        Some(&SqlState::INDEX_CORRUPTED | &SqlState::DATA_CORRUPTED) => Ok(true),
        _ => Err(error.into()),
    }
}

/// Builds, inserts with merging, VACUUM and lookups, cancelled at any time.
pub fn cancelled_anywhere(server: &Server, scale: Scale) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "index_cancel")?;
    let mut client = database.connect()?;
    collection::create(&mut client)?;
    collection::insert(&mut client, 1, 2000)?;
    client.batch_execute(
        "CREATE TABLE more AS SELECT id, sig FROM docs; ALTER TABLE docs ALTER sig DROP EXPRESSION",
    )?;
    let statements = [
        "INSERT INTO docs (id, sig) SELECT (SELECT max(id) FROM docs) + id, sig FROM more",
        "DELETE FROM docs WHERE id > 4000",
        "VACUUM docs",
        "REINDEX INDEX docs_sig",
        "SELECT count(*) FROM more m JOIN docs d ON near_dup(d.sig, m.sig, 0.8)",
    ];
    let mut rng = Rng::with_seed(2);
    let mut victim = database.connect()?;
    let mut cancelled = 0;
    for round in 0..scale.of(60, 200) {
        let statement = statements[round % statements.len()];
        // The timeout of before may end this, too, and stays then.
        let timeout = format!("SET statement_timeout = '{}ms'", rng.u32(1..40));
        for statement in [&timeout, statement] {
            if let Err(error) = victim.batch_execute(statement) {
                let code = error.code();
                ensure!(
                    code == Some(&SqlState::QUERY_CANCELED),
                    "{statement}: {error}"
                );
                cancelled += 1;
            }
        }
        if round % 10 == 9 {
            collection::ensure_index_equals_scan(&mut client)?;
        }
    }
    client.batch_execute("VACUUM docs")?;
    collection::ensure_index_equals_scan(&mut client)?;
    ensure!(cancelled > 0, "nothing was cancelled");
    figure!("{cancelled} statements cancelled, 0 differences");
    Ok(Outcome::Passed)
}

/// Unlogged and temporary tables, tablespaces, and builds beside writers.
pub fn every_kind_of_table(server: &Server, scale: Scale) -> Result<Outcome> {
    let cluster = server.scratch_cluster("index_tables")?;
    // The unlogged table is there after the crash.
    cluster.create(&[("synchronous_commit", "on")])?;
    cluster.start()?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute("CREATE EXTENSION pg_neardup")?;
    let place = cluster.socket_dir().join("elsewhere");
    let make = format!(
        "COPY (SELECT WHERE false) TO PROGRAM 'mkdir {}'",
        place.display()
    );
    client.batch_execute(&make)?;
    client.batch_execute(&format!(
        "CREATE TABLESPACE elsewhere LOCATION '{}'",
        place.display()
    ))?;
    collection::create(&mut client)?;
    collection::insert(&mut client, 1, 1200)?;
    for change in [
        "ALTER INDEX docs_sig SET TABLESPACE elsewhere",
        "REINDEX INDEX CONCURRENTLY docs_sig",
        "REINDEX (TABLESPACE pg_default) INDEX docs_sig",
        "ALTER TABLE docs SET TABLESPACE elsewhere",
        "CLUSTER docs USING docs_pkey",
    ] {
        client.batch_execute(change)?;
        collection::ensure_index_equals_scan(&mut client).with_context(|| change)?;
    }
    beside_writers(&cluster, &mut client, scale.of(3, 15))?;
    for kind in ["TEMPORARY", "UNLOGGED"] {
        let fill = format!(
            "CREATE {kind} TABLE other (id int, sig minhash_signature);
             CREATE INDEX other_sig ON other USING neardup (sig);
             INSERT INTO other SELECT id, sig FROM docs WHERE id <= 1200;
             DELETE FROM other WHERE id % 4 = 0; VACUUM other; INSERT INTO other SELECT id, sig FROM docs LIMIT 300"
        );
        run_each(&mut client, &fill)?;
        check_answers(&mut client, "other", "other_sig").with_context(|| kind)?;
        if kind == "TEMPORARY" {
            client.batch_execute("DROP TABLE other")?;
        }
    }
    drop(client);
    cluster.crash()?;
    cluster.start()?;
    let mut client = cluster.connect("postgres")?;
    check_answers(&mut client, "other", "other_sig")?;
    client.batch_execute(
        "INSERT INTO other SELECT id, sig FROM docs WHERE id <= 1200; ALTER TABLE other SET LOGGED",
    )?;
    check_answers(&mut client, "other", "other_sig").context("unlogged, after a crash")?;
    Ok(Outcome::Passed)
}

/// Concurrent builds while rows come, change and go.
fn beside_writers(cluster: &Cluster, client: &mut Client, builds: u32) -> Result<()> {
    const WRITES: [&str; 2] = [
        "INSERT INTO docs SELECT i, make_body(i) FROM generate_series((SELECT max(id) + 1 FROM docs), (SELECT max(id) + 5 FROM docs)) i",
        "DELETE FROM docs WHERE id IN (SELECT id FROM docs WHERE id > 1200 ORDER BY random() LIMIT 3)",
    ];
    let done = std::sync::atomic::AtomicBool::new(false);
    let is_done = || done.load(std::sync::atomic::Ordering::Relaxed);
    thread::scope(|scope| {
        let mut writers = Vec::new();
        for write in WRITES {
            let mut writer = cluster.connect("postgres")?;
            writers.push(scope.spawn(move || -> Result<()> {
                while !is_done() {
                    writer.batch_execute(write)?;
                    thread::sleep(Duration::from_millis(2));
                }
                Ok(())
            }));
        }
        let mut build = || -> Result<()> {
            for _ in 0..builds {
                client.batch_execute("REINDEX INDEX CONCURRENTLY docs_sig")?;
                client.batch_execute("DROP INDEX CONCURRENTLY docs_sig")?;
                client.batch_execute(
                    "CREATE INDEX CONCURRENTLY docs_sig ON docs USING neardup (sig)",
                )?;
            }
            Ok(())
        };
        let built = build();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        for writer in writers {
            writer.join().expect("a writer does not panic")?;
        }
        built
    })?;
    collection::ensure_index_equals_scan(client)?;
    Ok(())
}

/// Checks that a build keeps to its memory, however many rows there are.
pub fn build_within_memory(server: &Server, scale: Scale) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "index_memory")?;
    let mut client = database.connect()?;
    let rows = scale.of(10_000, 40_000);
    client.batch_execute(&format!(
        "CREATE TABLE docs AS SELECT i AS id,
             minhash_set(array(SELECT hashint8extended(e, i) FROM generate_series(1, 10) e)) AS sig
         FROM generate_series(1, 10 * {rows}) i"
    ))?;
    let mut peaks = Vec::new();
    for part in [10, 1] {
        let mut client = database.connect()?;
        client.batch_execute("SET maintenance_work_mem = '4MB'; SET max_parallel_maintenance_workers = 0; SELECT minhash('a')")?;
        let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[])?.get(0);
        let build = format!("CREATE INDEX ON docs USING neardup (sig) WHERE id % {part} = 0");
        peaks.push(memory::peak(pid, || Ok(client.batch_execute(&build)?))?);
    }
    ensure!(
        peaks[1] < peaks[0] + 4096,
        "{peaks:?} kB for {rows} rows and for ten times as many"
    );
    figure!(
        "a build of {rows} rows takes {} kB, of ten times as many {} kB",
        peaks[0],
        peaks[1]
    );
    Ok(Outcome::Passed)
}
