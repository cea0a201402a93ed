//! The access method under full disks and canceled statements, and on every kind of table.

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

/// Maximum size in bytes of a file that a session may write: more than a segment of the WAL.
const FULL: u64 = 17 << 20;

/// Signatures of many keys and few bytes, so that the index is the file that grows.
const MANY_KEYS: &str = "
    CREATE TABLE docs (id serial PRIMARY KEY, sig minhash_signature);
    CREATE FUNCTION made(count int) RETURNS SETOF minhash_signature LANGUAGE sql AS $$
        SELECT minhash_pack(minhash(array(SELECT hashint8extended(e * 17, i / 8) FROM generate_series(1, 30) e)
                                        || i::bigint, slots => 1024), 1)
        FROM generate_series(1, count) i $$";

/// Checks that a build and inserts that find the disk full end with an error, and that afterward the index is
/// undamaged, and work continues when there is space again.
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
        // Without free pages, the index may be small enough.
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

/// Runs statements one by one, because VACUUM cannot run in a transaction.
pub fn run_each(client: &mut Client, statements: &str) -> Result<()> {
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

/// The condition between two rows of signatures.
pub const NEAR: &str = "near_dup(d.sig, q.sig, 0.8)";

/// Checks the pages of an index on signatures, and that it gives the same answers as a scan.
fn check_answers(client: &mut Client, table: &str, index: &str) -> Result<()> {
    client.batch_execute(&format!("SELECT near_dup_index_check('{index}')"))?;
    let wrong = wrong_answers(client, table, NEAR)?;
    ensure!(wrong == 0, "{wrong} answers differ from the scan's");
    Ok(())
}

/// Returns the number of pairs of rows q and d that only one of index and scan returns.
pub fn wrong_answers(
    client: &mut Client,
    table: &str,
    condition: &str,
) -> Result<i64, postgres::Error> {
    client.batch_execute("SET enable_seqscan = off; SET plan_cache_mode = force_custom_plan")?;
    let pairs = format!("SELECT q.id AS q, d.id FROM queries q, {table} d WHERE ({condition})");
    let query = format!(
        "WITH queries AS MATERIALIZED (SELECT * FROM {table} ORDER BY hashint4(id) LIMIT 20),
              scan AS MATERIALIZED ({pairs} IS TRUE), found AS MATERIALIZED ({pairs})
         SELECT (SELECT count(*) FROM (TABLE scan EXCEPT ALL TABLE found) x)
              + (SELECT count(*) FROM (TABLE found EXCEPT ALL TABLE scan) x)"
    );
    Ok(client.query_one(&query, &[])?.get(0))
}

/// Cancels builds, inserts with merging, VACUUM and lookups at any time.
pub fn canceled_anywhere(server: &Server, scale: Scale) -> Result<Outcome> {
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
    let mut canceled = 0;
    for round in 0..scale.of(60, 200) {
        let statement = statements[round % statements.len()];
        // The earlier timeout may end this statement, too, and then stays in effect.
        let timeout = format!("SET statement_timeout = '{}ms'", rng.u32(1..40));
        for statement in [&timeout, statement] {
            if let Err(error) = victim.batch_execute(statement) {
                let code = error.code();
                ensure!(
                    code == Some(&SqlState::QUERY_CANCELED),
                    "{statement}: {error}"
                );
                canceled += 1;
            }
        }
        if round % 10 == 9 {
            collection::ensure_index_equals_scan(&mut client)?;
        }
    }
    client.batch_execute("VACUUM docs")?;
    collection::ensure_index_equals_scan(&mut client)?;
    ensure!(canceled > 0, "nothing was canceled");
    figure!("{canceled} statements canceled, 0 differences");
    Ok(Outcome::Passed)
}

/// Tests unlogged and temporary tables, tablespaces, and builds while other sessions write.
pub fn every_kind_of_table(server: &Server, scale: Scale) -> Result<Outcome> {
    let cluster = server.scratch_cluster("index_tables")?;
    // The unlogged table exists after the crash.
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

/// Tests concurrent builds while rows are inserted, updated and deleted.
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

/// Checks that a build stays within its memory, no matter how many rows there are, with helpers and without.
pub fn build_within_memory(server: &Server, scale: Scale) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "index_memory")?;
    let mut client = database.connect()?;
    let rows = scale.of(10_000, 40_000);
    client.batch_execute(&format!(
        "CREATE TABLE docs AS SELECT i AS id,
             minhash(array(SELECT hashint8extended(e, i) FROM generate_series(1, 10) e)) AS sig,
             repeat(md5(i::text) || ' ', 3) || i AS body
         FROM generate_series(1, 10 * {rows}) i"
    ))?;
    for (column, helpers) in [("sig", 0), ("body", 0), ("body", 2)] {
        let mut peaks = Vec::new();
        for part in [10, 1] {
            let mut client = database.connect()?;
            client.batch_execute(&format!(
                "SET maintenance_work_mem = '4MB'; SET max_parallel_maintenance_workers = {helpers}; SELECT minhash('a')"
            ))?;
            let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[])?.get(0);
            let build =
                format!("CREATE INDEX ON docs USING neardup ({column}) WHERE id % {part} = 0");
            peaks.push(memory::peak(pid, || Ok(client.batch_execute(&build)?))?);
        }
        ensure!(
            peaks[1] < peaks[0] + 4096,
            "{peaks:?} kB for {column} of {rows} rows and of ten times as many, {helpers} helpers"
        );
        figure!(
            "a build on {column} of {rows} rows with {helpers} helpers takes {} kB, of ten times as many {} kB",
            peaks[0],
            peaks[1]
        );
    }
    Ok(Outcome::Passed)
}
