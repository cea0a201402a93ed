//! Lookups of real documents and of many bit strings through an index: exactly the rows that a sequential scan finds.

use anyhow::{Context, Result, ensure};
use postgres::Client;
use postgres::error::SqlState;
use testbed::corpora::Corpus;
use testbed::server::database::Database;
use testbed::server::{Server, memory};

use crate::harness::{Outcome, ensure_same_rows};
use crate::known::{Collection, Generated};

/// Looks up every document of a collection: with several numbers of slots, with packed signatures and with signatures
/// that are not comparable, at thresholds from far below the index's to 1.
pub fn documents(server: &Server) -> Result<Outcome> {
    for collection in Collection::all(Generated::english(), &["mccormick_2500"]) {
        check_signatures(server, &collection, &SIGNATURES)?;
    }
    if let Some(sentences) = Corpus::find("msr_paraphrase") {
        check_signatures(server, &Collection::Corpus(sentences), &["minhash(body)"])?;
    }
    Ok(Outcome::Passed)
}

/// The numbers of slots, with packed signatures at the end.
const SIGNATURES: [&str; 6] = [
    "minhash(body, slots => 64)",
    "minhash(body, slots => 100)",
    "minhash(body)",
    "minhash(body, slots => 200)",
    "minhash(body, slots => 256)",
    "minhash_pack(minhash(body), 8)",
];

fn check_signatures(server: &Server, collection: &Collection, signatures: &[&str]) -> Result<()> {
    let database = Database::with_extension(&server.main, "equals_scan")?;
    let mut client = database.connect()?;
    collection.load(&mut client, "docs")?;
    for signature in signatures {
        fill(&mut client, signature)?;
        check_thresholds(&mut client)
            .with_context(|| format!("{signature} of {}", collection.name()))?;
    }
    Ok(())
}

/// Creates a table of signatures, a fifth of them made with other parameters, and a table of all pairs found by a scan.
fn fill(client: &mut Client, signature: &str) -> Result<()> {
    client.batch_execute(&format!(
        "DROP TABLE IF EXISTS sigs, scan;
         CREATE TABLE sigs AS SELECT id, CASE
             WHEN id % 10 = 3 THEN minhash(body, seed => 7)
             WHEN id % 10 = 6 THEN minhash(body, 2)
             ELSE {signature} END AS sig FROM docs;
         INSERT INTO sigs VALUES (-1, minhash('')), (-2, minhash('')), (-3, NULL);
         ANALYZE sigs;
         CREATE TABLE scan AS SELECT q.id AS q, d.id, minhash_sim(q.sig, d.sig) AS similarity
             FROM sigs q, sigs d WHERE near_dup(d.sig, q.sig, 0.4) IS TRUE"
    ))?;
    Ok(())
}

fn check_thresholds(client: &mut Client) -> Result<()> {
    client.batch_execute("SET enable_seqscan = off; SET max_parallel_workers_per_gather = 0")?;
    client.batch_execute("CREATE INDEX sigs_sig ON sigs USING neardup (sig)")?;
    for threshold in ["0.8", "0.85", "0.95", "1"] {
        check_pairs(client, threshold, 1)?;
    }
    // The value is known only when the query runs, so the index returns all its rows.
    check_pairs(client, "(SELECT 0.4::float8)", 1000)?;
    client.batch_execute("RESET enable_seqscan")?;
    Ok(())
}

fn check_pairs(client: &mut Client, threshold: &str, every: u32) -> Result<()> {
    let lookup = format!(
        "SELECT q.id AS q, d.id FROM sigs q, sigs d
         WHERE near_dup(d.sig, q.sig, {threshold}) AND q.id % {every} = 0"
    );
    let wanted =
        format!("SELECT q, id FROM scan WHERE similarity >= {threshold} AND q % {every} = 0");
    check_same(client, &lookup, &wanted)
}

/// Checks that both queries return the same rows, and that the first uses the index.
fn check_same(client: &mut Client, lookup: &str, wanted: &str) -> Result<()> {
    let plan: Vec<String> = client
        .query(&format!("EXPLAIN (COSTS OFF) {lookup}"), &[])?
        .iter()
        .map(|row| row.get(0))
        .collect();
    ensure!(
        plan.iter().any(|line| line.contains("Index Scan")),
        "no index is used for {lookup}:\n{}",
        plan.join("\n")
    );
    ensure_same_rows(client, lookup, wanted)
}

/// Looks up 200 000 random and clustered bit strings of 64, 128 and 256 bits in one column, at distances from 0 to 12,
/// in every state of the index.
pub fn bit_strings(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "equals_scan_bits")?;
    let mut client = database.connect()?;
    client.batch_execute(STRINGS)?;
    client.batch_execute(SCAN)?;
    for distance in [3, 12] {
        client.batch_execute(&format!(
            "DROP INDEX IF EXISTS strings_b;
             CREATE INDEX strings_b ON strings USING neardup (b hamming_ops (distance = {distance}))"
        ))?;
        check_distances(&mut client, distance)?;
    }
    client.batch_execute(
        "UPDATE strings SET b = ~b WHERE id % 7 = 0; DELETE FROM strings WHERE id % 11 = 0",
    )?;
    client.batch_execute(SCAN)?;
    for change in ["", "VACUUM strings", "ALTER TABLE strings SET UNLOGGED"] {
        client.batch_execute(change)?;
        check_distances(&mut client, 12)?;
    }
    Ok(Outcome::Passed)
}

/// Groups of ten with 0 to 12 bits flipped; half of the groups consist of random strings.
const STRINGS: &str = "
    SET max_parallel_workers_per_gather = 0;
    CREATE FUNCTION bits(n int, seed int) RETURNS varbit LANGUAGE sql AS $$
        SELECT substring(('x' || string_agg(md5(seed || '.' || i), ''))::varbit FOR n)
        FROM generate_series(1, 2) i $$;
    CREATE TABLE strings AS
    SELECT id, length, CASE WHEN id / 10 % 2 = 0 THEN bits(length, id) ELSE
bits(length, id / 10) # (
            SELECT coalesce(bit_or(set_bit(zeros, (hashint4(id * 16 + i) & 65535) % length, 1)), zeros)
            FROM generate_series(1, id % 13) i) END AS b
    FROM (SELECT id, (ARRAY[64, 128, 256])[id / 10 % 3 + 1] AS length FROM generate_series(1, 200000) id) s,
        LATERAL (SELECT repeat('0', length)::bit varying AS zeros) z;
    INSERT INTO strings VALUES (0, 0, B''), (0, 64, NULL);
    CREATE TABLE scan (q int, id int, distance int);";

const SCAN: &str = "TRUNCATE scan;
    INSERT INTO scan SELECT q.id, d.id, bit_hamming(q.b, d.b) FROM strings q, strings d
    WHERE q.id % 5000 = 15 AND length(q.b) = length(d.b) AND bit_hamming(q.b, d.b) <= 12";

/// Tries distances that the index serves with 40 queries, and the next distance, for which it returns all its rows,
/// with 4.
fn check_distances(client: &mut Client, served: i32) -> Result<()> {
    client.batch_execute("SET enable_seqscan = off")?;
    for distance in 0..=(served + 1).min(12) {
        let queries = if distance <= served { 5000 } else { 50000 };
        // The value is known only when the query runs, so the index is used even beyond its distance.
        check_same(
            client,
            &format!(
                "SELECT q.id AS q, d.id
                 FROM (SELECT * FROM strings WHERE id % {queries} = 15) q, strings d
                 WHERE hamming_within(d.b, q.b, (SELECT {distance}))"
            ),
            &format!("SELECT q, id FROM scan WHERE distance <= {distance} AND q % {queries} = 15"),
        )?;
    }
    client.batch_execute("RESET enable_seqscan")?;
    Ok(())
}

/// Three out of four rows differ from one string in up to three bits, and are candidates of its lookup.
const TEMPLATE: &str = "
    CREATE TABLE strings AS SELECT id, CASE WHEN id % 4 = 0 THEN ('x' || md5(id::text))::bit(64)
        ELSE set_bit(set_bit(set_bit(zeros, id % 64, 1), id / 64 % 64, 1), id / 4096 % 64, 1) END AS b
    FROM generate_series(1, 400000) id, (SELECT repeat('0', 64)::bit(64) AS zeros) z;
    CREATE INDEX ON strings USING neardup (b hamming_ops (distance = 6));
    ANALYZE strings";

/// The condition for rows near that string.
const NEAR: &str = "hamming_within(b, repeat('0', 64)::bit(64), 3)";

/// The additional memory that a search may take, in kB.
const MOST: u64 = 4_000;

/// Checks that 300 000 candidates, which exceed a work_mem of 64 kB, are kept in a temporary file: the rows equal the
/// rows of the sequential scan, memory is bounded, and the file is removed however the scan ends.
pub fn many_candidates(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "many_candidates")?;
    let mut client = database.connect()?;
    client.batch_execute(TEMPLATE)?;
    client.batch_execute(
        "SET work_mem = '64kB'; SET jit = off; SET max_parallel_workers_per_gather = 0;
         SET enable_seqscan = off; SELECT minhash('a')",
    )?;
    let count = format!("SELECT count(*), sum(hashint8(id)) FROM strings WHERE {NEAR}");
    let wanted = client.query_one(
        &count.replace("FROM strings", "FROM (TABLE strings OFFSET 0) s"),
        &[],
    )?;
    let wanted: (i64, i64) = (wanted.get(0), wanted.get(1));
    ensure!(wanted.0 >= 300_000, "{} rows", wanted.0);
    let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[])?.get(0);
    for other in ["indexscan", "bitmapscan"] {
        client.batch_execute(&format!("SET enable_{other} = off"))?;
        let before = memory::private(pid)?;
        let peak = memory::peak(pid, || {
            let row = client.query_one(&count, &[])?;
            ensure!(
                (row.get(0), row.get(1)) == wanted,
                "without {other}: {row:?}"
            );
            Ok(())
        })?;
        ensure!(
            peak < before + MOST,
            "without {other}: {} kB",
            peak - before
        );
        client.batch_execute(&format!("SET enable_{other} = on"))?;
    }
    client.batch_execute("SET enable_bitmapscan = off")?;
    check_files(&mut client)?;
    check_order(&mut client, pid, wanted)?;
    check_guard(&mut client, pid)?;
    Ok(Outcome::Passed)
}

/// Checks that the rows of a search come in the order of their distances, in bounded memory.
fn check_order(client: &mut Client, pid: i32, wanted: (i64, i64)) -> Result<()> {
    let ordered = format!(
        "SELECT id, b <-> repeat('0', 64)::bit(64) AS distance FROM strings WHERE {NEAR}
         ORDER BY b <-> repeat('0', 64)::bit(64)"
    );
    let plan = client.query(&format!("EXPLAIN {ordered}"), &[])?;
    let uses_index = |row: &postgres::Row| row.get::<_, String>(0).contains("Order By: ");
    ensure!(plan.iter().any(uses_index), "the index does not order");
    let count = format!(
        "SELECT count(*), sum(hashint8(id)), bool_and(distance >= before) FROM (
             SELECT *, lag(distance, 1, 0.0) OVER () AS before FROM ({ordered}) o) l"
    );
    let before = memory::private(pid)?;
    let peak = memory::peak(pid, || {
        let row = client.query_one(&count, &[])?;
        let found = (row.get(0), row.get(1));
        ensure!(found == wanted && row.get(2), "in order: {row:?}");
        Ok(())
    })?;
    ensure!(peak < before + MOST, "in order: {} kB", peak - before);
    Ok(())
}

/// Checks that a guard finds the rows near another in bounded memory.
fn check_guard(client: &mut Client, pid: i32) -> Result<()> {
    client.batch_execute(
        "ALTER TABLE strings ADD PRIMARY KEY (id);
         SELECT near_dup_protect('strings', 'b', 6);
         INSERT INTO strings VALUES (0, ('x' || md5('0'))::bit(64))",
    )?;
    let before = memory::private(pid)?;
    let peak = memory::peak(pid, || {
        let insert = "INSERT INTO strings VALUES (-1, repeat('0', 64)::bit(64))";
        let rejected = client.batch_execute(insert).err().context("let in")?;
        let code = rejected.code();
        ensure!(code == Some(&SqlState::EXCLUSION_VIOLATION), "{rejected}");
        Ok(())
    })?;
    ensure!(peak < before + MOST, "a guard: {} kB", peak - before);
    Ok(())
}

/// Checks that temporary files exist while a scan continues, and are removed once when it is closed, fails or is
/// canceled.
fn check_files(client: &mut Client) -> Result<()> {
    let files = "SELECT count(*) FROM pg_ls_tmpdir()
                 WHERE name LIKE format('pgsql_tmp%s.%%', pg_backend_pid())";
    let ensure_files = |client: &mut Client, expected: i64, when: &str| -> Result<()> {
        let there: i64 = client.query_one(files, &[])?.get(0);
        ensure!(there == expected, "{there} files {when}");
        Ok(())
    };
    client.batch_execute(&format!(
        "BEGIN; DECLARE near CURSOR FOR SELECT id FROM strings WHERE {NEAR}; FETCH 10 FROM near"
    ))?;
    ensure_files(client, 1, "while a cursor is open")?;
    client.batch_execute("CLOSE near")?;
    ensure_files(client, 0, "after it was closed")?;
    client.batch_execute(&format!(
        "DO $$ BEGIN PERFORM 1 / (id - 5) FROM strings WHERE {NEAR};
         EXCEPTION WHEN division_by_zero THEN END $$"
    ))?;
    ensure_files(client, 0, "after an error that was caught")?;
    // The file of a cursor that fails within a savepoint is removed before the cursor is closed.
    client.batch_execute(&format!(
        "DECLARE near CURSOR FOR SELECT 1 / (id - 5001) FROM strings WHERE {NEAR};
         FETCH 1 FROM near; SAVEPOINT s"
    ))?;
    ensure_files(client, 1, "before a cursor fails")?;
    let error = client.batch_execute("FETCH ALL FROM near").err();
    let error = error.context("the cursor does not fail")?;
    ensure!(error.code() == Some(&SqlState::DIVISION_BY_ZERO), "{error}");
    client.batch_execute("ROLLBACK TO s")?;
    ensure_files(client, 0, "after a cursor has failed")?;
    // If it were removed twice, PostgreSQL would take the files of these tables for one file.
    client.batch_execute(
        "CLOSE near;
         CREATE TABLE many AS SELECT generate_series(1, 2000) AS n;
         CREATE TABLE one AS SELECT 1 AS n",
    )?;
    for (table, expected) in [("many", 2000), ("one", 1)] {
        let count = format!("SELECT count(*) FROM {table}");
        let rows: i64 = client.query_one(&count, &[])?.get(0);
        ensure!(rows == expected, "{rows} rows in table {table}");
    }
    client.batch_execute("COMMIT; SET statement_timeout = '100ms'")?;
    let sleeps = format!("SELECT count(pg_sleep(60)) FROM strings WHERE {NEAR}");
    let error = client.batch_execute(&sleeps).err().context("no timeout")?;
    ensure!(error.code() == Some(&SqlState::QUERY_CANCELED), "{error}");
    client.batch_execute("SET statement_timeout = 0")?;
    ensure_files(client, 0, "after a timeout")
}
