//! The pages of a table and its indexes that planning reads in new sessions, and the chosen plans.

use std::fs::{self, File};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use postgres::Client;
use testbed::corpora::Corpus;
use testbed::server::Server;
use testbed::server::database::Database;
use testbed::{shell, workspace};

use super::estimates::number_after;
use super::guard::{held_cluster, holds};
use crate::harness::Outcome;
use crate::sessions::{Sessions, Step};

/// Maximum number of pages of a table, its TOAST table and its indexes that planning may read.
const PAGES: i64 = 16;

/// Half of 16 000 rows follow one template, and arrive together; the others are unrelated. In `late`, the index is
/// created before the rows; `expressions` has an index on the result of a function.
const TABLES: &str = "
    CREATE TABLE half AS SELECT i AS id, minhash(CASE WHEN i BETWEEN 5000 AND 12999
            THEN (SELECT string_agg('t' || w, ' ') FROM generate_series(1, 60) w) || ' ' || i
            ELSE (SELECT string_agg('w' || hashint8(i * 100 + w), ' ') FROM generate_series(1, 30) w) END) AS sig,
        hashint8extended(CASE WHEN i BETWEEN 5000 AND 12999 THEN 0 ELSE i END, 0)::bit(64) # (1::bit(64) << i % 64) AS b,
        array(SELECT CASE WHEN i BETWEEN 5000 AND 12999 THEN w ELSE hashint8extended(i * 100 + w, 1) END
            FROM generate_series(1, 30) w) || i::bigint AS prints
    FROM generate_series(1, 16000) i;
    CREATE INDEX ON half USING neardup (sig);
    CREATE INDEX ON half USING neardup (sig minhash_ops (threshold = 0.6));
    CREATE INDEX ON half USING neardup (b);
    CREATE INDEX ON half USING neardup (prints);
    CREATE TABLE late (LIKE half);
    CREATE INDEX ON late USING neardup (sig);
    CREATE INDEX ON late USING neardup (b);
    CREATE INDEX ON late USING neardup (prints);
    INSERT INTO late SELECT * FROM half ORDER BY id;
    CREATE TABLE untouched (LIKE half);
    CREATE INDEX ON untouched USING neardup (sig);
    CREATE INDEX ON untouched USING neardup (b);
    CREATE INDEX ON untouched USING neardup (prints);
    CREATE TABLE expressions AS SELECT id, sig, b, prints FROM half;
    CREATE INDEX ON expressions USING neardup (minhash_pack(sig, 8));
    CREATE INDEX ON expressions USING neardup (near_dup_key(sig, 0.8));
    CREATE TABLE parts (LIKE half) PARTITION BY RANGE (id);
    SELECT format('CREATE TABLE parts_%s PARTITION OF parts FOR VALUES FROM (%s) TO (%s)', i, i * 300, i * 300 + 300)
    FROM generate_series(0, 59) i \\gexec
    INSERT INTO parts SELECT * FROM half;
    CREATE INDEX ON parts USING neardup (sig)";

/// Queries on a table, with placeholders VALUE for `sig`, BITS for `b` and SET for `prints` of some row.
const QUERIES: [&str; 11] = [
    "SELECT id FROM t WHERE near_dup(sig, VALUE, 0.8)",
    "SELECT id FROM t WHERE minhash_sim(sig, VALUE) > 0.8",
    "SELECT id FROM t WHERE near_dup(sig, VALUE, 0.8) OR near_dup(sig, minhash('another'), 0.9)",
    "SELECT id FROM t WHERE near_dup(sig, (SELECT sig FROM t LIMIT 1), 0.8)",
    "SELECT id FROM t WHERE near_dup(sig, $1, 0.8)",
    "SELECT id FROM t WHERE hamming_within(b, BITS, 3) AND near_dup(sig, VALUE, 0.8)",
    "SELECT id FROM t WHERE near_contained(SET, prints, 0.8)",
    "SELECT id FROM t WHERE near_contained(prints, SET, 0.8)",
    "SELECT id FROM t WHERE near_dup(prints, SET, 0.8)",
    "SELECT a.id FROM t a JOIN t b ON near_dup(a.sig, b.sig, 0.8)",
    "SELECT id FROM t ORDER BY sig <=> VALUE LIMIT 5",
];

/// The number of pages of a table, of its partitions, of their TOAST tables and of their indexes that a transaction has
/// read.
const READ: &str = "
    WITH tables AS (SELECT oid, reltoastrelid FROM pg_partition_tree($1::text::regclass) JOIN pg_class ON oid = relid),
        heaps AS (SELECT oid FROM tables UNION ALL SELECT reltoastrelid FROM tables),
        relations AS (SELECT oid FROM heaps
            UNION ALL SELECT indexrelid FROM pg_index JOIN heaps ON oid = indrelid)
    SELECT coalesce(sum(pg_stat_get_xact_blocks_fetched(oid)), 0)::bigint FROM relations";

/// Checks in new sessions that planning never reads more than 16 pages of a table or of a partition that is not pruned,
/// whatever its rows and statistics are.
pub fn few_pages(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "planning")?;
    let output = database.psql(TABLES)?;
    ensure!(output.is_empty(), "{output}");
    let queries = with_values(&mut database.connect()?, QUERIES)?;
    let pages = |table: &str, query: &str| pages_of_plan(&database, table, query);
    let check = |state: &str| {
        for table in ["half", "late", "untouched", "expressions"] {
            for query in &queries {
                let read = pages(table, query)?;
                ensure!(
                    read <= PAGES,
                    "{state}: {read} pages of {table} for {query}"
                );
            }
        }
        Ok(())
    };
    check("never analyzed")?;
    let mut client = database.connect()?;
    for target in [0, 10_000] {
        for table in ["half", "late", "expressions"] {
            let settings: Vec<String> = ["sig", "b", "prints"]
                .map(|column| format!("ALTER COLUMN {column} SET STATISTICS {target}"))
                .into();
            client.batch_execute(&format!("ALTER TABLE {table} {}", settings.join(", ")))?;
            client.batch_execute(&format!("ANALYZE {table}"))?;
        }
        check(&format!("statistics target {target}"))?;
    }
    for (condition, partitions) in [("true", 60), ("id < 300", 1), ("id >= 14400", 12)] {
        for query in &queries[..5] {
            let query = query.replace("WHERE", &format!("WHERE {condition} AND"));
            let query = query.replace("OR near_dup", "AND near_dup");
            let read = pages("parts", &query)?;
            // The subquery reads all of its own partitions.
            let tables = if query.contains("LIMIT") {
                partitions + 60
            } else {
                partitions
            };
            ensure!(
                read <= PAGES * tables,
                "{read} pages of {tables} partitions for {query}"
            );
        }
    }
    Ok(Outcome::Passed)
}

/// Returns the number of pages of a table that planning a query reads in a new session. A query with a parameter gets a
/// generic plan.
fn pages_of_plan(database: &Database, table: &str, query: &str) -> Result<i64> {
    let query = query.replace("FROM t", &format!("FROM {table}"));
    let query = query.replace("JOIN t", &format!("JOIN {table}"));
    let mut client = database.connect()?;
    let mut transaction = client.transaction()?;
    transaction.batch_execute(&match query.contains("$1") {
        true => format!(
            "SET LOCAL plan_cache_mode = force_generic_plan;
             PREPARE lookup AS {query}; EXPLAIN EXECUTE lookup (NULL)"
        ),
        false => format!("EXPLAIN {query}"),
    })?;
    Ok(transaction.query_one(READ, &[&table])?.get(0))
}

/// Replaces the placeholders in queries with the values of a row of the template.
fn with_values<const N: usize>(client: &mut Client, queries: [&str; N]) -> Result<[String; N]> {
    let values = "SELECT quote_literal(sig::text) || '::minhash_signature',
        quote_literal(b::text) || '::bit(64)', quote_literal(prints::text) || '::bigint[]' FROM half WHERE id = 7777";
    let row = client.query_one(values, &[])?;
    let names = ["VALUE", "BITS", "SET"];
    Ok(queries.map(|query| {
        let of_row = names.iter().enumerate();
        of_row.fold(query.to_string(), |query, (place, name)| {
            query.replace(name, row.get(place))
        })
    }))
}

/// Checks that planning a session's first lookup reads at most 16 pages more than planning a lookup through a B-tree,
/// as EXPLAIN counts them, including catalogs.
pub fn beside_a_btree(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "planning")?;
    let output = database.psql(TABLES)?;
    ensure!(output.is_empty(), "{output}");
    let mut client = database.connect()?;
    client.batch_execute("CREATE INDEX ON late (id)")?;
    client.batch_execute("VACUUM ANALYZE late")?;
    let [value] = with_values(&mut client, ["VALUE"])?;
    let pages_once = |condition: &str| {
        let mut client = database.connect()?;
        // The catalogs describe the extension's functions, and every session reads them once.
        client.batch_execute(&format!(
            "EXPLAIN SELECT id FROM untouched WHERE {condition}"
        ))?;
        let plan = format!("EXPLAIN (ANALYZE, BUFFERS) SELECT id FROM late WHERE {condition}");
        let plan = client.query(&plan, &[])?;
        let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
        let plan = plan.join("\n");
        let (_, planning) = plan
            .split_once("Planning:")
            .context("no pages of planning")?;
        let counts = planning.lines().nth(1).context("no pages of planning")?;
        let numbers = counts.split(|c: char| !c.is_ascii_digit());
        Ok::<i64, anyhow::Error>(
            numbers
                .filter_map(|number| number.parse::<i64>().ok())
                .sum(),
        )
    };
    // Changes of catalogs by other sessions make a session read more of them again, but never less.
    let pages = |condition: &str| -> Result<i64> {
        let counts: Vec<i64> = (0..3)
            .map(|_| pages_once(condition))
            .collect::<Result<_>>()?;
        counts.into_iter().min().context("no count")
    };
    let tree = pages("id = 7777")?;
    for query in [
        format!("near_dup(sig, {value}, 0.8)"),
        "near_dup(sig, (SELECT sig FROM untouched LIMIT 1), 0.8)".to_string(),
    ] {
        let ours = pages(&query)?;
        ensure!(ours <= tree + PAGES, "{ours} pages, {tree} for a B-tree");
    }
    Ok(Outcome::Passed)
}

/// Checks that an index is chosen for conditions that few rows meet, and not if half of the table meets them.
pub fn sensible_plans(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "planning")?;
    let output = database.psql(TABLES)?;
    ensure!(output.is_empty(), "{output}");
    let mut client = database.connect()?;
    for statement in [
        "VACUUM ANALYZE half",
        "VACUUM ANALYZE late",
        "SET max_parallel_workers_per_gather = 0",
    ] {
        client.batch_execute(statement)?;
    }
    for table in ["half", "late"] {
        for (id, expected) in [(100, true), (7777, false)] {
            let value: String = client
                .query_one(
                    &format!("SELECT quote_literal(sig::text) FROM half WHERE id = {id}"),
                    &[],
                )?
                .get(0);
            let query = format!(
                "EXPLAIN SELECT id FROM {table} WHERE near_dup(sig, {value}::minhash_signature, 0.8)"
            );
            let plan = client.query(&query, &[])?;
            let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
            let plan = plan.join("\n");
            let rows = number_after(&plan, "rows=")? as f64;
            let truth = if expected { 1.0 } else { 8000.0 };
            ensure!(
                rows <= 3.0 * truth && truth <= 3.0 * rows,
                "{rows} of {truth} rows of {table}"
            );
            ensure!(plan.contains("Index") || !expected, "{plan}");
        }
    }
    Ok(Outcome::Passed)
}

/// Generated tables of 20 000 rows, in which groups arrive together, scattered, first, or last: whether the index is
/// created before the rows, and the group of a row by its number.
const ORDERS: [(bool, &str); 6] = [
    (false, "i / 50"),
    (false, "hashint8(i) % 400"),
    (false, "CASE WHEN i < 6000 THEN 0 ELSE i END"),
    (false, "floor(exp(i / 2020.0))::int"),
    (true, "CASE WHEN i BETWEEN 5000 AND 15000 THEN 0 ELSE i END"),
    (true, "CASE WHEN i > 15000 THEN 0 ELSE i END"),
];

/// Checks that the estimates for at most 10 of 100 queries with known values are off by a factor of more than 3, and at
/// most one by more than 10, in generated tables and, if present, in real texts. If documents lie just below the
/// threshold, more may be off.
pub fn near_the_truth(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "planning")?;
    let mut client = database.connect()?;
    for (number, (is_before, group)) in ORDERS.iter().enumerate() {
        let index = format!("CREATE INDEX ON generated_{number} USING neardup (sig)");
        let (before, after) = match is_before {
            true => (index.as_str(), ""),
            false => ("", index.as_str()),
        };
        client.batch_execute(&format!(
            "CREATE TABLE generated_{number} (id bigint, sig minhash_signature); {before};
             INSERT INTO generated_{number} SELECT i, minhash(
                (SELECT string_agg('w' || hashint8(grp * 100 + w), ' ') FROM generate_series(1, 40) w) || ' ' || i)
             FROM generate_series(1, 20000) i, LATERAL (SELECT ({group})::bigint AS grp) g; {after}"
        ))?;
        check_queries(&mut client, &format!("generated_{number}"), "sig", 0.8)?;
    }
    for name in ["reuters21578", "newsgroups20", "licenses"] {
        if let Some(corpus) = Corpus::find(name) {
            corpus.load(&mut client, name)?;
            client.batch_execute(&format!(
                "CREATE TABLE signed AS SELECT id, body, minhash(body) AS sig FROM {name};
                 CREATE INDEX ON signed USING neardup (sig);
                 CREATE INDEX ON signed USING neardup (body)"
            ))?;
            for (column, threshold) in [("sig", 0.8), ("sig", 0.9), ("body", 0.9)] {
                check_queries(&mut client, "signed", column, threshold)
                    .with_context(|| format!("{name} at {threshold}"))?;
            }
            client.batch_execute("DROP TABLE signed")?;
        }
    }
    Ok(Outcome::Passed)
}

fn check_queries(client: &mut Client, table: &str, column: &str, threshold: f64) -> Result<()> {
    const QUERIES: usize = 100;
    client.batch_execute("SET max_parallel_workers_per_gather = 0")?;
    let values = format!(
        "SELECT quote_literal({column}::text) || '::' || pg_typeof({column}) FROM {table}
         ORDER BY hashint8(id) LIMIT {QUERIES}"
    );
    let (mut off, mut far_off) = (0, 0);
    for row in client.query(&values, &[])? {
        let value: String = row.get(0);
        let query = format!("FROM {table} WHERE near_dup({column}, {value}, {threshold})");
        let truth: i64 = client
            .query_one(&format!("SELECT count(*) {query}"), &[])?
            .get(0);
        let plan = client.query(&format!("EXPLAIN SELECT id {query}"), &[])?;
        let plan: String = plan.first().context("no plan")?.get(0);
        let (planned, truth) = (
            number_after(&plan, "rows=")? as f64,
            (truth as f64).max(1.0),
        );
        let factor = (planned / truth).max(truth / planned);
        off += usize::from(factor > 3.0);
        far_off += usize::from(factor > 10.0);
    }
    ensure!(
        off * 10 <= QUERIES && far_off * 100 <= QUERIES,
        "{off} of {QUERIES} off by more than 3, {far_off} by more than 10, of {column} in {table}"
    );
    Ok(())
}

/// Checks that VACUUM measures an index when a value of its table is lost, and warns.
pub fn sampled_value_lost(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "sampled_value")?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE EXTENSION pg_surgery;
         CREATE TABLE docs AS SELECT i AS id, array(SELECT hashint8extended(e, i) FROM generate_series(1, 1000) e)
             AS elements FROM generate_series(1, 30) i;
         CREATE INDEX docs_elements ON docs USING neardup (elements)",
    )?;
    let values: String = client
        .query_one(
            "SELECT reltoastrelid::regclass::text FROM pg_class WHERE relname = 'docs'",
            &[],
        )?
        .get(0);
    // A chunk of about every second row.
    client.batch_execute(&format!(
        "SELECT heap_force_kill('{values}', array(SELECT format('(%s,2)', 2 * i)::tid FROM generate_series(0, 14) i))"
    ))?;
    let output = database.psql("VACUUM docs; SELECT count(*) FROM docs")?;
    let is_told = ["leaves out a row: ", "chunk number", "30"].map(|part| output.contains(part));
    ensure!(is_told == [true; 3], "{output}");
    Ok(Outcome::Passed)
}

/// Checks that VACUUM measures an index when a compressed value of its table is damaged, and warns.
pub fn sampled_value_damaged(server: &Server) -> Result<Outcome> {
    let cluster =
        server.quiet_cluster("sampled_damaged", &[("default_toast_compression", "pglz")])?;
    let mut client = cluster.connect("postgres")?;
    client.batch_execute(
        "CREATE EXTENSION pg_neardup;
         CREATE TABLE docs AS SELECT repeat('some words again ', 500) || i AS body FROM generate_series(1, 9) i;
         CREATE INDEX docs_body ON docs USING neardup (body)",
    )?;
    client.batch_execute("VACUUM docs")?;
    let path = client.query_one("SELECT pg_relation_filepath('docs')", &[])?;
    let path = cluster.data_dir().join(path.get::<_, String>(0));
    drop(client);
    cluster.stop()?;
    let mut table = fs::read(&path)?;
    let start = table.windows(8).position(|part| part == b"some wor");
    // A control byte for eight copies follows the eight letters, then their offsets, which reach before the start.
    let start = start.context("the value is not compressed")? + 8;
    table[start..start + 8].fill(0xFF);
    fs::write(&path, table)?;
    cluster.start()?;
    let mut psql = cluster.psql("postgres");
    psql.args(["--command", "SET ignore_checksum_failure = on"]);
    psql.args([
        "--command",
        "VACUUM docs",
        "--command",
        "SELECT count(*) FROM docs",
    ]);
    let output = psql.output()?;
    let output = [output.stdout, output.stderr].concat();
    let output = String::from_utf8_lossy(&output);
    let is_told = ["leaves out a row: compressed", " 9"].map(|part| output.contains(part));
    ensure!(is_told == [true; 2], "{output}");
    Ok(Outcome::Passed)
}

/// Checks that a path which another extension has added before is preserved.
pub fn beside_another_hook(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "another_hook")?;
    let library = server.main.socket_dir().join("free_scan.so");
    let source = workspace::root().join("crates/server-tests/src/server/free_scan.c");
    shell::run_quietly(
        Command::new("cc")
            .args(["-O1", "-fPIC", "-shared", "-I"])
            .arg(&server.pg.includedir_server)
            .arg("-o")
            .args([&library, &source]),
    )?;
    server.main.account.take(&library)?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE docs AS SELECT i AS id, 'words of document ' || i AS body FROM generate_series(1, 1000) i;
         CREATE INDEX ON docs USING neardup (body);
         ANALYZE docs",
    )?;
    let plan = |client: &mut Client| -> Result<String> {
        const QUERY: &str =
            "EXPLAIN SELECT id FROM docs WHERE near_dup(body, 'words of document 7', 0.8)";
        let lines = client.query(QUERY, &[])?;
        Ok(lines.first().context("no plan")?.get(0))
    };
    let own = plan(&mut client)?;
    ensure!(
        own.contains("Index Scan") || own.contains("Bitmap"),
        "{own}"
    );
    client.batch_execute(&format!("LOAD '{}'", library.display()))?;
    let other = plan(&mut client)?;
    ensure!(
        other.contains("Seq Scan") && other.contains("cost=0.00..0.00"),
        "{other}"
    );
    Ok(Outcome::Passed)
}

/// Checks that VACUUM measures an index even if the values of a row that it has seen are removed before it reads them:
/// no snapshot of VACUUM keeps them.
pub fn sampled_rows_go(server: &Server) -> Result<Outcome> {
    let cluster = held_cluster(server, "sampled_rows")?;
    let database = Database::with_extension(&cluster, "sampled_rows")?;
    let mut client = database.connect()?;
    client.batch_execute(
        "CREATE TABLE docs AS SELECT i AS id, array(SELECT hashint8extended(e, i) FROM generate_series(1, 1000) e)
             AS elements FROM generate_series(1, 30) i;
         CREATE INDEX docs_elements ON docs USING neardup (elements)",
    )?;
    let mut sessions = Sessions::open(|| database.connect(), 1)?;
    let held = holds(&cluster).join(format!("{}.fetch_sees_row", sessions.pid(0)));
    File::create(&held)?;
    let step = sessions.step(0, "VACUUM docs")?;
    ensure!(step == Step::Waits, "{step:?}");
    client.batch_execute("DELETE FROM docs")?;
    let values: String = client
        .query_one(
            "SELECT reltoastrelid::regclass::text FROM pg_class WHERE relname = 'docs'",
            &[],
        )?
        .get(0);
    client.batch_execute(&format!("VACUUM {values}"))?;
    let left: i64 = client
        .query_one(&format!("SELECT count(*) FROM {values}"), &[])?
        .get(0);
    ensure!(left == 0, "{left} chunks are left");
    fs::remove_file(&held)?;
    sessions.finish()?;
    let failures = sessions.take_failures();
    ensure!(failures.is_empty(), "{failures:?}");
    client.batch_execute("SELECT near_dup_index_check('docs_elements')")?;
    Ok(Outcome::Passed)
}

/// Unrelated rows, a group of 300, more unrelated rows, another group, and so on: there are groups in segments of each
/// size, and in the log. Autovacuum could draw its sample while an insert has not committed its rows.
const LATE_GROUPS: &str = "
    CREATE FUNCTION words(seed int, n int) RETURNS text LANGUAGE sql IMMUTABLE AS $$
        SELECT string_agg('w' || hashint8(seed::bigint * 1000 + w), ' ') FROM generate_series(1, n) w $$;
    CREATE TABLE late (id bigint, sig minhash_signature) WITH (autovacuum_enabled = off);
    CREATE INDEX ON late USING neardup (sig);
    INSERT INTO late SELECT i, minhash(words(i, 20)) FROM generate_series(1, 60000) i;
    VACUUM ANALYZE late";

/// Checks that groups inserted since the last VACUUM are estimated, wherever they are, and that the estimate for
/// unknown values is updated when the index has doubled.
pub fn late_groups(server: &Server) -> Result<Outcome> {
    let database = Database::with_extension(&server.main, "late_groups")?;
    let output = database.psql(LATE_GROUPS)?;
    ensure!(output.is_empty(), "{output}");
    let mut client = database.connect()?;
    for (group, strangers) in [(1, 6000), (2, 2500), (3, 300)] {
        client.batch_execute(&format!(
            "INSERT INTO late SELECT -1, minhash(words({group}00000 + i, 20)) FROM generate_series(1, {strangers}) i;
             INSERT INTO late SELECT -{group}0, minhash(words(-{group}, 60) || ' ' || i) FROM generate_series(1, 300) i"
        ))?;
    }
    client.batch_execute(
        "INSERT INTO late SELECT -1, minhash(words(-10 - i, 20)) FROM generate_series(1, 100) i",
    )?;
    for group in 1..=3 {
        let rows = late_rows(
            &mut client,
            &format!("(SELECT sig::text FROM late WHERE id = -{group}0 LIMIT 1)"),
        )?;
        ensure!(
            (100..=900).contains(&rows),
            "{rows} for 300 rows of group {group}"
        );
    }
    client.batch_execute(
        "INSERT INTO late SELECT -40, minhash(words(-4, 60) || ' ' || i) FROM generate_series(1, 80000) i",
    )?;
    // More than half of the rows find the others of their group.
    let rows = late_rows(&mut client, "NULL")?;
    ensure!(
        (4_300..=430_000).contains(&rows),
        "{rows} for an unknown value"
    );
    Ok(Outcome::Passed)
}

/// Returns the number of rows that the planner expects for the value of a text expression, or for an unknown value.
fn late_rows(client: &mut Client, value: &str) -> Result<u64> {
    let value: Option<String> = client
        .query_one(&format!("SELECT {value}::text"), &[])?
        .get(0);
    let value = value.map_or("(SELECT sig FROM late LIMIT 1)".to_string(), |value| {
        format!("'{value}'::minhash_signature")
    });
    let query = format!("EXPLAIN SELECT FROM late WHERE near_dup(sig, {value}, 0.8)");
    let plan = client.query(&query, &[])?;
    number_after(plan.first().context("no plan")?.get(0), "rows=")
}
