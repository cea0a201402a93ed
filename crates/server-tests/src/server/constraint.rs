//! The exclusion constraint: whatever sessions do at the same time, no two near-duplicates are committed, and no
//! session gets an error other than those that PostgreSQL promises.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use postgres::Client;
use postgres::error::SqlState;
use testbed::server::cluster::Cluster;
use testbed::server::database::Database;
use testbed::server::{Server, memory};

use crate::harness::{Outcome, figure};
use crate::sessions::{Sessions, orders};

const TABLE: &str = "
    CREATE FUNCTION document(n int) RETURNS text IMMUTABLE LANGUAGE sql AS $$
        SELECT string_agg('word' || n * 100 + i, ' ') FROM generate_series(1, 60) i $$;
    CREATE TABLE docs (id int PRIMARY KEY, tenant int, sig minhash_signature)";

const CONSTRAINT: &str = "ALTER TABLE docs ADD CONSTRAINT no_near_dup
    EXCLUDE USING neardup (tenant WITH =, near_dup_key(sig, 0.85) WITH %)";

const COPIES: &str = "SELECT count(*) FROM docs a JOIN docs b
    ON a.id < b.id AND a.tenant = b.tenant AND near_dup(a.sig, b.sig, 0.85) IS TRUE";

/// The rows that exist before a pair of transactions: document 1 in tenant 1, and two others.
const BEFORE: &str = "TRUNCATE docs; INSERT INTO docs VALUES
    (1, 1, minhash(document(1))), (2, 1, minhash(document(2))), (3, 2, minhash(document(1)))";

const LEVELS: [&str; 3] = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];

/// The changes that a transaction makes to document 1 in tenant 1; `{}` is a number that only its session uses.
const CHANGES: &[&str] = &[
    "INSERT INTO docs VALUES ({}, 1, minhash(document(1) || ' edited'))",
    "INSERT INTO docs VALUES ({}, 1, minhash(document(1))) ON CONFLICT DO NOTHING",
    "INSERT INTO docs VALUES ({}, 1, minhash(document(7)))",
    "UPDATE docs SET id = {} WHERE id = 1",
    "UPDATE docs SET sig = minhash(document(7) || ' edited') WHERE id = 2",
    "UPDATE docs SET sig = minhash(document(1)) WHERE id = 2",
    "UPDATE docs SET tenant = 1 WHERE id = 3",
    "UPDATE docs SET tenant = 2 WHERE id = 1",
    "DELETE FROM docs WHERE id = 1",
    "SAVEPOINT s; DELETE FROM docs WHERE id = 1; ROLLBACK TO s",
    "SAVEPOINT s; INSERT INTO docs VALUES ({}, 1, minhash(document(7))); ROLLBACK TO s",
];

/// The errors that a constraint may raise.
const PROMISED: [SqlState; 3] = [
    SqlState::EXCLUSION_VIOLATION,
    SqlState::T_R_SERIALIZATION_FAILURE,
    SqlState::T_R_DEADLOCK_DETECTED,
];

/// Documents of 20 kB, each sharing three quarters of its words with all others, and a constraint that must compare
/// them.
const TEMPLATE: &str = "
    CREATE TABLE docs (id int, body text);
    ALTER TABLE docs ADD EXCLUDE USING neardup (near_dup_key(body, 0.8, 1) WITH %);
    CREATE FUNCTION add_docs(first int, last int) RETURNS void LANGUAGE sql AS $$
        INSERT INTO docs SELECT i, string_agg(CASE WHEN w <= 2580 THEN 'shared' || w ELSE i || 'x' || w END, ' ')
        FROM generate_series(first, last) i, generate_series(1, 3000) w GROUP BY i $$";

/// Unrelated documents, and constraints on them and on their signatures.
const UNRELATED: &str = "
    CREATE TABLE pool AS SELECT i AS id, body, minhash(body) AS sig FROM generate_series(1, 22000) i,
        LATERAL (SELECT string_agg(md5(i || ' ' || w), ' ') AS body FROM generate_series(1, 12) w) d;
    CREATE TABLE of_sig (v minhash_signature, EXCLUDE USING neardup (near_dup_key(v, 0.9) WITH %));
    CREATE TABLE of_body (v text, EXCLUDE USING neardup (near_dup_key(v, 0.9) WITH %))";

/// Checks that a row that is compared with ten times as many others, none of which conflicts with it, takes no more
/// memory, and neither does a statement with ten times as many rows.
pub fn compares_in_little_memory(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "constraint_memory")?;
    let mut client = database.connect()?;
    client.batch_execute(TEMPLATE)?;
    let mut peak = |rows: std::ops::Range<i32>| -> Result<u64> {
        let (first, last) = (rows.start, rows.end);
        client.execute("SELECT add_docs($1, $2)", &[&first, &(last - 1)])?;
        let mut session = database.connect()?;
        let pid: i32 = session.query_one("SELECT pg_backend_pid()", &[])?.get(0);
        let add = "SELECT add_docs($1, $1)";
        memory::peak(pid, || Ok(session.execute(add, &[&last]).map(drop)?))
    };
    let [few, many] = [peak(1..20)?, peak(21..200)?];
    ensure!(
        many <= few + 2048,
        "{few} kB beside 20 rows, {many} kB beside 200"
    );
    figure!("{few} kB beside 20 rows, {many} kB beside 200");
    client.batch_execute(UNRELATED)?;
    for column in ["sig", "body"] {
        let inserting = |first: i32, last: i32| -> Result<u64> {
            let mut session = database.connect()?;
            let pid: i32 = session.query_one("SELECT pg_backend_pid()", &[])?.get(0);
            let insert = format!(
                "INSERT INTO of_{column} SELECT {column} FROM pool WHERE id BETWEEN {first} AND {last}"
            );
            memory::peak(pid, || Ok(session.batch_execute(&insert)?))
        };
        let [few, many] = [inserting(1, 2000)?, inserting(2001, 22000)?];
        // A kilobyte kept for each row would be 18 MB.
        ensure!(
            many <= few + 8192,
            "{few} kB for 2 000 rows, {many} kB for 20 000, by {column}"
        );
        figure!("{few} kB for 2 000 rows of {column}, {many} kB for 20 000");
    }
    Ok(Outcome::Passed)
}

fn copies(client: &mut Client) -> Result<i64> {
    Ok(client.query_one(COPIES, &[])?.get(0))
}

/// Turns a statement on a table of signatures into one on a table of signatures or of documents.
type Form = fn(&str) -> String;

fn on_signatures(statement: &str) -> String {
    statement.to_string()
}

fn on_documents(statement: &str) -> String {
    let statement = statement.replace("minhash_signature", "text");
    statement.replace("minhash(", "(")
}

/// Tries all pairs of changes, in all orders, at three isolation levels, with immediate and with deferred checks, and
/// with one of the two transactions prepared before it is committed; for documents, at the level where a transaction
/// sees the commits of others.
pub fn interleavings(server: &Server) -> Result<Outcome> {
    let cluster = server.scratch_cluster("constraint")?;
    cluster.create(&[
        ("max_prepared_transactions", "4"),
        ("deadlock_timeout", "10ms"),
    ])?;
    cluster.start()?;
    interleave(&cluster, on_signatures, &LEVELS)?;
    interleave(&cluster, on_documents, &LEVELS[..1])?;
    Ok(Outcome::Passed)
}

fn interleave(cluster: &Cluster, form: Form, levels: &[&str]) -> Result<()> {
    let database = Database::with_extension(cluster, "constraint")?;
    let mut client = database.connect()?;
    client.batch_execute(&form(TABLE))?;
    let mut sessions = Sessions::open(|| database.connect(), 2)?;
    let (mut runs, mut rejected, mut deadlocks) = (0, 0, 0);
    for deferrable in ["", " DEFERRABLE INITIALLY DEFERRED"] {
        client.batch_execute("ALTER TABLE docs DROP CONSTRAINT IF EXISTS no_near_dup")?;
        client.batch_execute(&format!("{CONSTRAINT}{deferrable}"))?;
        // ON CONFLICT cannot use a deferrable constraint.
        let is_possible = |change: &&&str| deferrable.is_empty() || !change.contains("CONFLICT");
        let changes = CHANGES.iter().filter(is_possible);
        let changes: Vec<String> = changes.map(|change| form(change)).collect();
        for (number, level) in levels.iter().enumerate() {
            for (first, a) in changes.iter().enumerate() {
                for (second, b) in changes.iter().enumerate() {
                    let orders = orders(2, 3);
                    let order = &orders[(number + first * 7 + second * 3) % orders.len()];
                    client.batch_execute(&form(BEFORE))?;
                    let failures = run_pair(&mut sessions, [a, b], level, order)?;
                    let what = format!("{level}{deferrable}, {a} and {b}, {order:?}");
                    ensure!(
                        failures.iter().all(|state| PROMISED.contains(state)),
                        "{what}: {failures:?}"
                    );
                    let copies = copies(&mut client)?;
                    ensure!(copies == 0, "{what}: {copies} copies after {failures:?}");
                    runs += 1;
                    rejected += failures.len();
                    let is_deadlock =
                        |state: &&SqlState| **state == SqlState::T_R_DEADLOCK_DETECTED;
                    deadlocks += failures.iter().filter(is_deadlock).count();
                }
            }
        }
    }
    client.batch_execute("SELECT near_dup_index_check('no_near_dup')")?;
    figure!("{runs} pairs of transactions, {rejected} rejected, {deadlocks} of them by deadlock");
    Ok(())
}

/// Runs two transactions of one change each, with their steps in a given order. The second is prepared before it is
/// committed. Returns the errors of the statements.
fn run_pair(
    sessions: &mut Sessions,
    changes: [&str; 2],
    level: &str,
    order: &[usize],
) -> Result<Vec<SqlState>> {
    let begin = format!("BEGIN ISOLATION LEVEL {level}");
    for session in [0, 1] {
        // Takes the snapshot before any change, if the level keeps it.
        sessions.step(session, &format!("{begin}; SELECT count(*) FROM docs"))?;
    }
    let mut steps = [0, 1].map(|session| {
        let number = (100 + session).to_string();
        let change = changes[session].replace("{}", &number);
        let ends = [
            &["COMMIT"][..],
            &["PREPARE TRANSACTION 'second'", "COMMIT PREPARED 'second'"],
        ];
        let ends = ends[session].iter().map(ToString::to_string);
        [change]
            .into_iter()
            .chain(ends)
            .collect::<VecDeque<String>>()
    });
    for &session in order {
        let statement = steps[session].pop_front().context("a step too many")?;
        sessions.step(session, &statement)?;
    }
    sessions.finish()?;
    let mut failures = sessions.take_failures();
    // A failed transaction cannot be prepared, which is not an error, nor committed.
    if failures.len() > 1 {
        failures.retain(|state| *state != SqlState::UNDEFINED_OBJECT);
    }
    Ok(failures)
}

/// Checks that a partitioned table can have a constraint in PostgreSQL 17 or later if its partition key is compared by
/// `=`, and that a partition can have its own in every version.
pub fn partitioned(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "constraint_partitioned")?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE parts (id int, tenant int, sig minhash_signature) PARTITION BY LIST (tenant);
         CREATE TABLE part_1 PARTITION OF parts FOR VALUES IN (1);
         CREATE TABLE part_2 PARTITION OF parts FOR VALUES IN (2)",
    )?;
    let without_key =
        "ALTER TABLE parts ADD EXCLUDE USING neardup (near_dup_key(sig, 0.85) WITH %)";
    let error = client.batch_execute(without_key).err();
    let state = error.as_ref().and_then(|error| error.code());
    ensure!(state == Some(&SqlState::FEATURE_NOT_SUPPORTED), "{error:?}");
    let whole = "ALTER TABLE parts ADD EXCLUDE USING neardup (tenant WITH =, near_dup_key(sig, 0.85) WITH %)";
    let is_whole = client.batch_execute(whole).is_ok();
    let version: i32 = client
        .query_one("SELECT current_setting('server_version_num')::int", &[])?
        .get(0);
    ensure!(is_whole == (version >= 170_000), "{version}: {is_whole}");
    if !is_whole {
        client.batch_execute(&whole.replace("TABLE parts", "TABLE part_1"))?;
    }
    let insert = |id: i32, tenant: i32| {
        format!("INSERT INTO parts VALUES ({id}, {tenant}, minhash('some words of a document'))")
    };
    client.batch_execute(&insert(1, 1))?;
    client.batch_execute(&insert(2, 2))?;
    let rejected = client.batch_execute(&insert(3, 1)).err();
    let state = rejected.as_ref().and_then(|error| error.code());
    ensure!(
        state == Some(&SqlState::EXCLUSION_VIOLATION),
        "{rejected:?}"
    );
    Ok(Outcome::Passed)
}

/// A table without near-duplicates, and a function that updates the existing row or inserts one.
const PUT: &str = "CREATE TABLE notices (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body text, seen int DEFAULT 1,
        EXCLUDE USING neardup (near_dup_key(body, 0.9) WITH %));
    CREATE FUNCTION put_notice(new_body text) RETURNS bigint LANGUAGE plpgsql AS $$
    DECLARE
        place bigint;
    BEGIN
        LOOP
            UPDATE notices SET seen = seen + 1
            WHERE id = (SELECT id FROM notices WHERE near_dup(body, new_body, 0.9)
                        ORDER BY resemblance(body, new_body) DESC, id LIMIT 1)
            RETURNING id INTO place;
            IF place IS NULL THEN
                INSERT INTO notices (body) VALUES (new_body) ON CONFLICT DO NOTHING RETURNING id INTO place;
            END IF;
            IF place IS NOT NULL THEN
                RETURN place;
            END IF;
        END LOOP;
    END $$";

/// Checks that sessions that add the same documents at the same time create one row for each, and count every call.
pub fn put(server: &Server) -> Result<Outcome> {
    const DOCUMENTS: i64 = 10;
    const CALLS: i64 = 200;
    let database = Database::with_extension(&server.main, "constraint_put")?;
    let mut client = database.connect()?;
    client.batch_execute(PUT)?;
    let sessions = (0..4)
        .map(|_| database.connect())
        .collect::<Result<Vec<_>>>()?;
    thread::scope(|scope| {
        let put = |mut client: Client| {
            (0..CALLS).try_for_each(|call| {
                let words =
                    "SELECT string_agg('word' || $1::bigint * 100 + i, ' ') FROM generate_series(1, 60) i";
                let statement = format!("SELECT put_notice(({words}))");
                client.execute(&statement, &[&(call % DOCUMENTS)]).map(drop)
            })
        };
        let threads: Vec<_> = sessions
            .into_iter()
            .map(|client| scope.spawn(move || put(client)))
            .collect();
        threads.into_iter().try_for_each(|thread| {
            let ended = thread.join().map_err(|_| anyhow!("a session panicked"))?;
            ended.context("a call failed")
        })
    })?;
    let row = client.query_one("SELECT count(*), sum(seen)::bigint FROM notices", &[])?;
    let found: (i64, i64) = (row.get(0), row.get(1));
    ensure!(found == (DOCUMENTS, 4 * CALLS), "{found:?}");
    Ok(Outcome::Passed)
}

const SESSIONS: usize = 16;

/// The statements of many concurrent sessions; `{d}` is a document, `{n}` a number used only once.
const WORK: &[&str] = &[
    "INSERT INTO docs VALUES ({n}, 1, minhash(document({d}) || ' edited'))",
    "INSERT INTO docs VALUES ({n}, 1, minhash(document({d}))) ON CONFLICT DO NOTHING",
    "INSERT INTO docs SELECT {n} + i, 1, minhash(document(({d} + i * 7) % 40)) FROM generate_series(0, 3) i
         ON CONFLICT DO NOTHING",
    "MERGE INTO docs USING (SELECT {n} AS n) s ON id = n
         WHEN NOT MATCHED THEN INSERT VALUES (n, 1, minhash(document({d})))",
    "UPDATE docs SET id = {n} WHERE id = (SELECT min(id) FROM docs WHERE id % 7 = {d} % 7)",
    "UPDATE docs SET sig = minhash(document({d})) WHERE id = (SELECT max(id) FROM docs WHERE id % 7 = {d} % 7)",
    "SAVEPOINT s; INSERT INTO docs VALUES ({n}, 1, minhash(document({d}))); ROLLBACK TO s;
         INSERT INTO docs VALUES ({n}, 1, minhash(document(({d} + 1) % 40)))",
    "DELETE FROM docs WHERE id = (SELECT max(id) FROM docs WHERE id % 11 = {d} % 11)",
    "DO $$ BEGIN EXECUTE format('COPY docs FROM PROGRAM %L',
         format('echo %L', concat_ws(E'\\t', {n}, 1, minhash(document({d}))))); END $$",
];

/// Lets 16 sessions insert, change and remove 40 documents at every isolation level. Checks that there are never two of
/// the same document, by signatures and by the documents.
pub fn many_sessions(server: &Server) -> Result<Outcome> {
    let cluster = server.scratch_cluster("constraint_sessions")?;
    cluster.create(&[
        ("max_prepared_transactions", "16"),
        ("deadlock_timeout", "10ms"),
    ])?;
    cluster.start()?;
    burst(&cluster, on_signatures)?;
    burst(&cluster, on_documents)?;
    Ok(Outcome::Passed)
}

fn burst(cluster: &Cluster, form: Form) -> Result<()> {
    let database = Database::with_extension(cluster, "constraint_sessions")?;
    let mut client = database.connect()?;
    client.batch_execute(&form(TABLE))?;
    client.batch_execute(CONSTRAINT)?;
    for level in LEVELS {
        client.batch_execute("TRUNCATE docs")?;
        let (end, rejected) = (Instant::now() + Duration::from_secs(2), AtomicU64::new(0));
        let goes_on = || Instant::now() < end || rejected.load(Ordering::Relaxed) == 0;
        let counts: Vec<Result<[u64; 4]>> = thread::scope(|scope| {
            let sessions: Vec<_> = (0..SESSIONS)
                .map(|number| {
                    let client = database.connect();
                    let goes_on = &goes_on;
                    let rejected = &rejected;
                    scope.spawn(move || work(client?, (level, form), number, goes_on, rejected))
                })
                .collect();
            let joined = sessions.into_iter().map(|session| session.join());
            joined
                .map(|result| result.unwrap_or_else(|_| bail!("a session panicked")))
                .collect()
        });
        let mut total = [0; 4];
        for counts in counts {
            for (sum, count) in total.iter_mut().zip(counts?) {
                *sum += count;
            }
        }
        let copies = copies(&mut client)?;
        ensure!(copies == 0, "{level}: {copies} copies");
        let [done, rejected, unserializable, deadlocks] = total;
        ensure!(done > 0 && rejected > 0, "{level}: {total:?}");
        figure!(
            "{level}: {done} changes, {rejected} rejected, {unserializable} not serializable, \
             {deadlocks} deadlocks"
        );
    }
    client.batch_execute("SELECT near_dup_index_check('no_near_dup')")?;
    Ok(())
}

/// Works as long as `goes_on` returns true. Every eighth transaction is prepared before it is committed. Adds
/// rejections to `rejected`. Returns the numbers of changes that succeeded, were rejected, could not be serialized, and
/// were ended by a deadlock.
fn work(
    mut client: Client,
    (level, form): (&str, Form),
    session: usize,
    goes_on: &(dyn Fn() -> bool + Sync),
    rejected: &AtomicU64,
) -> Result<[u64; 4]> {
    let mut counts = [0; 4];
    for change in (0..).take_while(|_| goes_on()) {
        let dice = fastrand::usize(0..40 * WORK.len());
        let number = 1000 + change * SESSIONS * 4 + session * 4;
        let statement = form(WORK[dice / 40])
            .replace("{n}", &number.to_string())
            .replace("{d}", &(dice % 40).to_string());
        let commit = match change % 8 {
            0 => format!("PREPARE TRANSACTION '{session}'; COMMIT PREPARED '{session}'"),
            _ => "COMMIT".to_string(),
        };
        let done = client
            .batch_execute(&format!("BEGIN ISOLATION LEVEL {level}"))
            .and_then(|()| client.batch_execute(&statement))
            .and_then(|()| {
                let mut ends = commit.split("; ");
                ends.try_for_each(|end| client.batch_execute(end))
            });
        let Err(error) = done else {
            counts[0] += 1;
            continue;
        };
        let state = error.code().cloned();
        let place = PROMISED
            .iter()
            .position(|promised| state.as_ref() == Some(promised));
        let place = place.with_context(|| format!("{level}: {statement}: {error}"))?;
        counts[1 + place] += 1;
        rejected.fetch_max(counts[1], Ordering::Relaxed);
        client.batch_execute("ROLLBACK")?;
    }
    Ok(counts)
}
