//! Two sessions that use one index, each held between reading something and taking the lock under which it acts on
//! that: at every pair of the points that the access method names, in both orders of release.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use postgres::Client;
use postgres::error::SqlState;
use testbed::server::cluster::Cluster;
use testbed::server::{ScratchCluster, Server};
use testbed::workspace;

use crate::harness::{Outcome, Scale, figure};
use crate::sessions::{Sessions, Step};

/// Sets of five elements, and some that are too large for the log. The function counts the rows that only one of index
/// and scan finds.
const TABLE: &str = "
    CREATE FUNCTION made(number int, length int) RETURNS bigint[] LANGUAGE sql IMMUTABLE AS $$
        SELECT array(SELECT hashint8extended(e, number % 10) FROM generate_series(1, length) e) $$;
    CREATE TABLE pool AS SELECT i AS place, made(i, CASE WHEN i > 5 THEN 5 ELSE 6000 END) AS elements
        FROM generate_series(1, 1019) i;
    CREATE TABLE sets (id bigserial, elements bigint[]);
    CREATE INDEX sets_elements ON sets USING neardup (elements);
    CREATE FUNCTION differing() RETURNS bigint LANGUAGE sql AS $$
        WITH queries AS MATERIALIZED (SELECT made(i, 5) AS query FROM generate_series(0, 1) i),
             scan AS MATERIALIZED (SELECT query, id FROM queries, sets WHERE near_contained(query, elements, 0.9) IS TRUE),
             found AS MATERIALIZED (SELECT query, id FROM queries, sets WHERE near_contained(query, elements, 0.9))
        SELECT (SELECT count(*) FROM (TABLE scan EXCEPT ALL TABLE found) x)
             + (SELECT count(*) FROM (TABLE found EXCEPT ALL TABLE scan) x) $$;
    DO $$ BEGIN
        EXECUTE format('ALTER DATABASE %I SET enable_seqscan = off', current_database());
    END $$";

/// The work of a session on the index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Work {
    /// Waits for transactions that began earlier, so it must come first.
    Build,
    Vacuum,
    /// Creates segments, and merges.
    InsertLarge,
    Insert,
    Look,
    Check,
}

impl Work {
    const ALL: [Work; 6] = [
        Work::Build,
        Work::Vacuum,
        Work::InsertLarge,
        Work::Insert,
        Work::Look,
        Work::Check,
    ];

    fn statement(self) -> &'static str {
        match self {
            Work::Build => "CREATE INDEX CONCURRENTLY built ON sets USING neardup (elements)",
            Work::Vacuum => "VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF, PARALLEL 0) sets",
            Work::InsertLarge => {
                "INSERT INTO sets (elements) SELECT elements FROM pool WHERE place IN (1, 6)"
            }
            Work::Insert => {
                "INSERT INTO sets (elements) SELECT elements FROM pool WHERE place > 5 LIMIT 30"
            }
            Work::Look => "SELECT 1 / (differing() = 0)::int",
            Work::Check => "SELECT near_dup_index_check('sets_elements')",
        }
    }

    /// Returns whether PostgreSQL lets both run at the same time, and one of them writes.
    fn meets(self, other: Work) -> bool {
        let excludes_itself = |work| matches!(work, Work::Build | Work::Vacuum);
        let reads = |work| matches!(work, Work::Look | Work::Check);
        !(excludes_itself(self) && excludes_itself(other) || reads(self) && reads(other))
    }
}

/// A session's work and the point at which it is held.
type Case = (Work, String);

struct Holds {
    directory: PathBuf,
    client: Client,
    sessions: Sessions,
}

impl Holds {
    fn new(cluster: &Cluster, database: &str) -> Result<Holds> {
        let directory = directory(cluster);
        fs::create_dir(&directory)?;
        Ok(Holds {
            directory,
            client: cluster.connect(database)?,
            sessions: Sessions::open(|| cluster.connect(database), 2)?,
        })
    }

    /// Prepares a table whose rows, or the later ones, have been deleted, and one of whose next few rows begins a page
    /// of the index's row table.
    fn prepare(&mut self, cases: &[&Case]) -> Result<()> {
        let statements = "DROP INDEX IF EXISTS built; TRUNCATE sets";
        self.client.batch_execute(statements)?;
        let has_live_rows =
            |(work, point): &&Case| *work == Work::Look || point == "fetch_sees_row";
        if cases.iter().any(has_live_rows) {
            self.client
                .batch_execute("INSERT INTO sets (elements) SELECT elements FROM pool")?;
        }
        self.client.batch_execute(
            "WITH queue AS (INSERT INTO sets (elements) SELECT elements FROM pool LIMIT 1013 RETURNING id)
             SELECT setval('sets_id_seq', max(id)) FROM queue;
             DELETE FROM sets WHERE id > (SELECT max(id) FROM sets) - 1013",
        )?;
        Ok(())
    }

    fn file(&self, session: usize, point: &str) -> PathBuf {
        self.directory
            .join(format!("{}.{point}", self.sessions.pid(session)))
    }

    /// Starts the work of a session. Returns false if it did not stop at the point.
    fn begin(&mut self, session: usize, (work, point): &Case) -> Result<bool> {
        File::create(self.file(session, point))?;
        Ok(self.sessions.step(session, work.statement())? == Step::Waits)
    }

    fn release(&mut self, session: usize, (_, point): &Case) -> Result<()> {
        fs::remove_file(self.file(session, point))?;
        self.sessions.settle()
    }

    /// Fails if a statement failed, or if an index is damaged, lacks a row, or finds different rows than a scan.
    fn check(&mut self) -> Result<()> {
        self.sessions.finish()?;
        let failures = self.sessions.take_failures();
        ensure!(failures.is_empty(), "{failures:?}");
        self.client.batch_execute(
            "SELECT near_dup_index_check(indexrelid) FROM pg_index WHERE indrelid = 'sets'::regclass",
        )?;
        let differing: i64 = self.client.query_one("SELECT differing()", &[])?.get(0);
        ensure!(differing == 0, "{differing} rows differ");
        Ok(())
    }

    /// Returns the works that reach each point.
    fn cases(&mut self) -> Result<BTreeMap<String, Vec<Work>>> {
        let mut cases = BTreeMap::new();
        for point in points()? {
            let mut works = Vec::new();
            for work in Work::ALL {
                let case = (work, point.clone());
                self.prepare(&[&case])?;
                if self.begin(0, &case)? {
                    works.push(work);
                }
                self.release(0, &case)?;
                self.sessions.finish()?;
            }
            ensure!(!works.is_empty(), "nothing comes to {point}");
            cases.insert(point, works);
        }
        Ok(cases)
    }

    /// Lets two sessions reach their points, and then continue, in both orders.
    fn pair(&mut self, cases: [&Case; 2]) -> Result<()> {
        for order in [[0, 1], [1, 0]] {
            self.prepare(&cases)?;
            self.begin(0, cases[0])?;
            let both_wait = self.begin(1, cases[1])?;
            for session in order {
                self.release(session, cases[session])?;
            }
            self.check()
                .with_context(|| format!("{cases:?}, {order:?} go on"))?;
            if !both_wait {
                break;
            }
        }
        Ok(())
    }
}

/// Returns the points that the access method names.
fn points() -> Result<BTreeSet<String>> {
    let mut points = BTreeSet::new();
    for file in fs::read_dir(workspace::root().join("src/index/am"))? {
        let text = fs::read_to_string(file?.path())?;
        let named = text.split("hold::point(\"").skip(1);
        points.extend(named.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
    }
    Ok(points)
}

/// Returns a cluster whose sessions are held at the points for which there is a file in [`directory`].
fn cluster(server: &Server, name: &str) -> Result<ScratchCluster> {
    let mut cluster = server.scratch_cluster(name)?;
    let directory = directory(&cluster);
    cluster.set_environment("NEARDUP_HOLDS", &directory.to_string_lossy());
    Ok(cluster)
}

/// Starts such a cluster, with [`TABLE`].
fn started(server: &Server, name: &str) -> Result<(ScratchCluster, Holds)> {
    let cluster = cluster(server, name)?;
    cluster.create(&[("autovacuum", "off")])?;
    cluster.start()?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute("CREATE EXTENSION pg_neardup")?;
    client.batch_execute(TABLE)?;
    let holds = Holds::new(&cluster, "postgres")?;
    Ok((cluster, holds))
}

fn directory(cluster: &Cluster) -> PathBuf {
    cluster.socket_dir().join("holds")
}

/// Tests every pair of points, or one of seven of them.
pub fn every_pair(server: &Server, scale: Scale) -> Result<Outcome> {
    let (_cluster, mut holds) = started(server, "holds")?;
    let mut cases: Vec<Case> = Vec::new();
    for (point, works) in holds.cases()? {
        cases.extend(works.into_iter().map(|work| (work, point.clone())));
    }
    cases.sort();
    let mut pairs = Vec::new();
    for (place, first) in cases.iter().enumerate() {
        let others = cases[place..].iter();
        pairs.extend(
            others
                .filter(|case| first.0.meets(case.0))
                .map(|second| [first, second]),
        );
    }
    let step = scale.of(7, 1);
    let drawn = pairs.iter().skip(fastrand::usize(..step)).step_by(step);
    let count = drawn.len();
    for &pair in drawn {
        holds.pair(pair)?;
    }
    figure!("{count} of {} pairs, {} points", pairs.len(), cases.len());
    Ok(Outcome::Passed)
}

/// Inserts twenty sets, which fill a page of the log.
const INSERT: &str =
    "INSERT INTO sets (elements) SELECT made(i, 100) FROM generate_series(1, 20) i";

/// Checks that a check on a replica finds no damage if a merge continues after it has read the metapage, for each step
/// of a merge.
pub fn check_beside_replay(server: &Server, _: Scale) -> Result<Outcome> {
    let primary = server.quiet_cluster("holds_primary", &[("wal_level", "replica")])?;
    let mut client = primary.connect("postgres")?;
    client.batch_execute("CREATE EXTENSION pg_neardup")?;
    client.batch_execute(&TABLE.replace("current_database()", "'postgres'"))?;
    let replica = cluster(server, "holds_replica")?;
    replica.create_replica_of(&primary)?;
    let merging = "SELECT merging FROM near_dup_index_stats('sets_elements')";
    while client.query_one(merging, &[])?.get::<_, i32>(0) == 0 {
        client.batch_execute(INSERT)?;
    }
    replica.wait_for(&primary)?;
    let mut holds = Holds::new(&replica, "postgres")?;
    let case = (Work::Check, "search_reads_metapage".to_owned());
    let mut steps = 0;
    while client.query_one(merging, &[])?.get::<_, i32>(0) > 0 {
        ensure!(holds.begin(0, &case)?, "the check does not wait");
        client.batch_execute(INSERT)?;
        replica.wait_for(&primary)?;
        holds.release(0, &case)?;
        holds.check().with_context(|| format!("step {steps}"))?;
        steps += 1;
    }
    figure!("{steps} steps of a merge");
    Ok(Outcome::Passed)
}

/// Checks that a check that has begun to read lets sixteen sessions insert rows for which they change segments, and
/// lets a VACUUM merge, and then finds no damage.
pub fn check_beside_writers(server: &Server, _: Scale) -> Result<Outcome> {
    const WRITERS: usize = 16;
    let (cluster, mut holds) = started(server, "holds_writers")?;
    let case = (Work::Check, "search_reads_metapage".to_owned());
    holds.prepare(&[&case])?;
    ensure!(holds.begin(0, &case)?, "the check does not wait");
    let mut writers = Vec::new();
    for _ in 0..WRITERS {
        let mut writer = cluster.connect("postgres")?;
        writer.batch_execute("SET lock_timeout = '100ms'; BEGIN")?;
        writer.batch_execute(Work::InsertLarge.statement())?;
        writer.batch_execute(Work::Insert.statement())?;
        writers.push(writer);
    }
    for mut writer in writers {
        writer.batch_execute("COMMIT")?;
    }
    holds.client.batch_execute(Work::Vacuum.statement())?;
    holds.release(0, &case)?;
    holds.check()?;
    figure!("{WRITERS} writers");
    Ok(Outcome::Passed)
}

/// Checks that a session that finds the log full waits for the right to merge longer than its `lock_timeout`, and gets
/// it before the session that merges ends its share.
pub fn writers_beside_merges(server: &Server, _: Scale) -> Result<Outcome> {
    let (_cluster, mut holds) = started(server, "holds_merges")?;
    let merging = "SELECT merging FROM near_dup_index_stats('sets_elements')";
    while holds.client.query_one(merging, &[])?.get::<_, i32>(0) == 0 {
        holds.client.batch_execute(INSERT)?;
    }
    let [merges, makes_room] = [(0, "merge_fills_leaf"), (1, "flush_reads_log")]
        .map(|(session, point)| holds.file(session, point));
    File::create(&merges)?;
    ensure!(
        holds.sessions.step(0, INSERT)? == Step::Waits,
        "the first session does not merge"
    );
    File::create(&makes_room)?;
    let fills = format!(
        "SET lock_timeout = '1ms'; {}",
        INSERT.replace("20)", "2000)")
    );
    holds.sessions.step(1, &fills)?;
    thread::sleep(Duration::from_millis(20));
    ensure!(
        holds.sessions.state(1) == Step::Waits,
        "the second session does not wait for room"
    );
    fs::remove_file(merges)?;
    holds.sessions.settle()?;
    let blocking = "SELECT pg_blocking_pids($1)";
    let pids: Vec<i32> = holds
        .client
        .query_one(blocking, &[&holds.sessions.pid(0)])?
        .get(0);
    ensure!(
        pids == [holds.sessions.pid(1)],
        "the first session does not let the second make room"
    );
    fs::remove_file(makes_room)?;
    holds.check()?;
    Ok(Outcome::Passed)
}

/// Checks that a sample of rows that must be given up, because merges reuse its pages, closes the table.
pub fn sample_beside_merges(server: &Server, _: Scale) -> Result<Outcome> {
    let (cluster, mut holds) = started(server, "holds_sample")?;
    holds
        .client
        .batch_execute(&INSERT.replace("20)", "2000)"))?;
    let case = (Work::Vacuum, "sample_draws_rows".to_owned());
    ensure!(holds.begin(0, &case)?, "no sample is drawn");
    holds
        .client
        .batch_execute(&INSERT.replace("20)", "10000)"))?;
    holds.release(0, &case)?;
    holds.check()?;
    let log = fs::read_to_string(cluster.log_file())?;
    ensure!(!log.contains(" leak: "), "{log}");
    Ok(Outcome::Passed)
}

/// Checks that after a sample is canceled, the next insert does not draw it again.
pub fn sample_canceled(server: &Server, _: Scale) -> Result<Outcome> {
    let (_cluster, mut holds) = started(server, "holds_canceled")?;
    for session in [0, 1] {
        File::create(holds.file(session, "sample_draws_rows"))?;
    }
    let step = holds.sessions.step(0, &INSERT.replace("20)", "2000)"))?;
    ensure!(step == Step::Waits, "no sample is drawn: {step:?}");
    let cancel = "SELECT pg_cancel_backend($1)";
    holds.client.execute(cancel, &[&holds.sessions.pid(0)])?;
    holds.sessions.finish()?;
    let failures = holds.sessions.take_failures();
    ensure!(failures == [SqlState::QUERY_CANCELED], "{failures:?}");
    let step = holds.sessions.step(1, &INSERT.replace("20)", "200)"))?;
    ensure!(step == Step::Done, "another sample is drawn: {step:?}");
    holds.check()?;
    Ok(Outcome::Passed)
}
