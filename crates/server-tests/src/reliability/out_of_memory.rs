//! When memory runs out, the statement fails and the server continues.

use std::fs;

use anyhow::{Context, Result, bail, ensure};
use postgres::Client;
use postgres::error::SqlState;
use testbed::server::Server;
use testbed::server::database::Database;

use crate::harness::{Outcome, Scale, figure};

/// Statements whose memory grows with their documents.
const STATEMENTS: &[&str] = &[
    "SELECT minhash(a) FROM big",
    "SELECT minhash(repeat('a', 4000000) || a, 5, 'char', 'marks') FROM big",
    "SELECT minhash(a, shingle_hashes(b)) FROM big",
    "SELECT simhash(a), simhash(a, weighting => 'set') FROM big",
    "SELECT cardinality(shingles(a)) FROM big",
    "SELECT cardinality(shingle_hashes(a)), cardinality(winnow(a, 3, 4)) FROM big",
    "SELECT cardinality(supershingles(bucket_sketch(shingle_hashes(a), 100000), 3)) FROM big",
    "SELECT resemblance(a, b), containment(a, b) FROM big",
    "SELECT jaccard(string_to_array(a, ' '), string_to_array(b, ' ')) FROM big",
    "SELECT jaccard(shingle_hashes(a), shingle_hashes(b)) FROM big",
    "SELECT count(*) FROM common_shingles('SELECT a FROM big', 1)",
    "SELECT count(*) FROM big, common_chunks(a, b)",
    "SELECT count(*) FROM big, common_chunks(a, b, 5, 'information')",
    "SELECT chunk_similarity(a, b) FROM big",
    "SELECT length(longest_common_substring(a, b)) FROM big",
    "SELECT edit_distance(left(a, 200000), left(b, 200000), max => 500) FROM big",
    "SELECT edit_distance(left(a, 20000), left(b, 20000), 1, 3, 2, 500) FROM big",
    "SELECT near_dup_explain(a, b) FROM big",
    "SELECT minhash(to_tsvector('simple', left(a, 300000))) FROM big",
    "SELECT count(*) FROM near_dup_sample_pairs(NULL::int, 'SELECT id, body FROM many')",
    "SELECT count(*) FROM copied_passages(NULL::int, 'SELECT 1, a FROM big UNION ALL SELECT 2, b FROM big', 4)",
    "SELECT count(*) FROM copied_passages(NULL::int, 'SELECT id, body FROM many', 2)",
    "SELECT count(*) FROM frequent_passages('SELECT a FROM big UNION ALL SELECT b FROM big', 4)",
    "SELECT count(*) FROM near_dup_distinct(NULL::int, 'SELECT 1, a FROM big UNION ALL SELECT 2, b FROM big', 0.5)",
    "SELECT count(*) FROM near_dup_distinct(NULL::int, 'SELECT id, body FROM many', 0.5, 10000)",
    "SELECT count(*) FROM big, split_text(a, 'sentence')",
    "SELECT length(cut_passages(a, '{[5,10)}')) FROM big",
    "SELECT count(*) FROM near_dup_pairs(NULL::int, 'SELECT id, sig, body FROM many', 0.5)",
    "SELECT count(*) FROM near_dup_pairs(NULL::int, 'SELECT id, body FROM many', 0.5)",
    "SELECT count(*) FROM near_dup_pairs(NULL::int, 'SELECT id, body FROM many', 0.5,
                                         exceptions => 'SELECT id, id + 1 FROM many', most => 3)",
    "SELECT count(*) FROM near_dup_pairs(NULL::int, 'SELECT i, a || i FROM big, generate_series(1, 4) i', 0.5)",
    "SELECT count(*) FROM near_dup_clusters(NULL::int, 'SELECT id, sig FROM many', 0.5)",
    "CREATE INDEX made ON big USING neardup (a); SELECT near_dup_index_check('made'); DROP INDEX made",
    "CREATE INDEX made ON many USING neardup (body); SELECT near_dup_index_check('made'); DROP INDEX made",
    "SELECT near_dup_track('many', 'sig', 0.9, clusters => 'more'); DROP TABLE more",
    "UPDATE many SET sig = minhash(body || ' changed') WHERE id % 9 = 0; SELECT near_dup_refresh('many_clusters')",
    "SELECT near_dup_refresh('many_clusters', true)",
    "UPDATE many SET body = body || ' changed' WHERE id % 9 = 0; SELECT near_dup_refresh('by_text')",
    "SELECT near_dup_refresh('by_text', true)",
];

/// Two documents of WORDS words that share most of their words, and a thousand small ones.
const TABLES: &str = "
    SELECT setseed(0.5);
    CREATE TABLE big AS
        SELECT string_agg(w, ' ' ORDER BY i) AS a,
               string_agg(CASE WHEN i % 100 = 0 THEN 'other' ELSE w END, ' ' ORDER BY i) AS b
        FROM (SELECT i, md5((random() * 1e5)::int::text) AS w FROM generate_series(1, WORDS) i) s;
    CREATE TABLE many AS
        SELECT id, body, minhash(body) AS sig
        FROM (SELECT id, (SELECT string_agg('word' || (id / 4 * 40 + w), ' ')
                          FROM generate_series(1, 40) w) || ' ' || id AS body
              FROM generate_series(1, 2000) id) s;
    ALTER TABLE many ADD PRIMARY KEY (id);
    CREATE INDEX ON many USING neardup (sig);
    CREATE INDEX ON many USING neardup (body);
    SELECT near_dup_track('many', 'sig', 0.8), near_dup_track('many', 'body', 0.8, clusters => 'by_text');
    ALTER TABLE big ALTER a SET STORAGE EXTERNAL, ALTER b SET STORAGE EXTERNAL;";

/// Statements that run other statements, whose errors pass through several callers, each of which copies them while
/// memory is short.
const NESTED: &[&str] = &[
    "UPDATE many SET body = body || ' changed', sig = minhash(body) WHERE id < 20",
    "SELECT near_dup_refresh('by_text', true)",
];

/// The difference in memory between two attempts at a nested statement.
const STEP: u64 = 4 << 10;

/// The least additional memory for a backend; each further attempt allows half as much again.
const LEAST: u64 = 64 << 10;

/// Checks that no statement crashes its backend, however little memory it has, and that no error carries a backtrace to
/// the client, although the server's environment requests one.
pub fn ends_the_statement(server: &Server, scale: Scale) -> Result<Outcome> {
    let mut cluster = server.scratch_cluster("out_of_memory")?;
    cluster.set_environment("RUST_BACKTRACE", "1");
    cluster.create(&[
        ("shared_buffers", "32MB"),
        ("max_parallel_workers_per_gather", "0"),
        ("jit", "off"),
    ])?;
    cluster.start()?;
    let database = Database::with_extension(&cluster, "out_of_memory")?;
    let words = scale.of(20_000, 60_000).to_string();
    database
        .connect()?
        .batch_execute(&TABLES.replace("WORDS", &words))?;
    errors_have_no_backtrace(&database)?;
    for statement in NESTED {
        for step in 0..scale.of(128, 512) {
            run_within(&database, statement, step * STEP)
                .with_context(|| format!("{statement} with {} bytes left", step * STEP))?;
        }
    }
    let (mut rejected, mut answered) = (0, 0);
    for statement in STATEMENTS {
        let mut spare = LEAST;
        loop {
            let outcome = run_within(&database, statement, spare)
                .with_context(|| format!("{statement} with {spare} bytes left"))?;
            if outcome {
                answered += 1;
                break;
            }
            rejected += 1;
            ensure!(spare < 1 << 32, "{statement} never has enough");
            spare += spare / 2;
        }
    }
    let log = fs::read_to_string(cluster.log_file())?;
    ensure!(!log.contains("terminated by signal"), "a backend died");
    ensure!(rejected > STATEMENTS.len(), "memory was never short");
    figure!("out of memory: {rejected} statements rejected, {answered} answered");
    Ok(Outcome::Passed)
}

fn errors_have_no_backtrace(database: &Database) -> Result<()> {
    for statement in [
        "SELECT minhash('some words', 0)",
        "SELECT * FROM near_dup_pairs(NULL::int, 'SELECT 1 / 0, NULL::minhash_signature', 0.5)",
    ] {
        let Err(error) = database.connect()?.simple_query(statement) else {
            bail!("{statement} is no error");
        };
        let error = error.as_db_error().context("the connection is lost")?;
        ensure!(error.detail().is_none(), "DETAIL: {:?}", error.detail());
    }
    Ok(())
}

/// Returns whether a statement succeeds if its backend may use `spare` more bytes.
fn run_within(database: &Database, statement: &str, spare: u64) -> Result<bool> {
    let mut client = database.connect()?;
    // Nothing survives that the stack cannot grow, so it grows first.
    client.batch_execute(
        "SET statement_timeout = '10min'; SET work_mem = '1MB'; SELECT minhash('a');
         SELECT (repeat('[', 4000) || repeat(']', 4000))::json",
    )?;
    limit(database, &mut client, spare)?;
    let Err(error) = client.simple_query(statement) else {
        return Ok(true);
    };
    let error = error.as_db_error().context("the connection is lost")?;
    let detail = error.detail().unwrap_or_default();
    ensure!(*error.code() == SqlState::OUT_OF_MEMORY, "{error}");
    ensure!(!detail.contains("  0: "), "DETAIL: {detail}");
    client
        .simple_query("SELECT 1")
        .context("the session is lost")?;
    Ok(false)
}

/// Limits a backend to its current address space and `spare` bytes.
fn limit(database: &Database, client: &mut Client, spare: u64) -> Result<()> {
    let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[])?.get(0);
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmSize:"));
    let taken = line.and_then(|line| line.split_whitespace().nth(1));
    let taken: u64 = taken.context("no VmSize")?.parse()?;
    let bytes = taken * 1024 + spare;
    // The server's account may limit its processes.
    let command =
        format!("COPY (SELECT WHERE false) TO PROGRAM 'prlimit --pid={pid} --as={bytes}'");
    database.connect()?.batch_execute(&command)?;
    Ok(())
}
